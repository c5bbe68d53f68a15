"""Trials of the pair models: pairs within tables, the cap by them, and a table of what was tried."""

from random import Random

import numpy as np
import pytest

from gramvec_training.data.pair_tables import LearningTable, OwnPairs, compare_two_tables
from gramvec_training.runs import pair_trials
from gramvec_training.runs.pair_model import Effort, SumCalibration, list_figures

pytest.importorskip("sklearn")
SYLLABLES = ("ba", "ko", "mi", "tu", "re", "la", "so", "ni", "pe", "da", "vu", "go")


def make_table(source: str, kind: str, *, shared: bool) -> LearningTable:
    drawn = Random(source)
    names = ["".join(drawn.choices(SYLLABLES, k=4)) + f" {drawn.choice(SYLLABLES)}" for _ in range(120)]
    left, right = names[:60], [name.replace("a", "aa", 1) for name in names[:60]] if shared else names[60:]
    truth = [(row, row) for row in range(60)] if shared else []
    return compare_two_tables(source, kind, source, [left], [right], truth, own=True)


@pytest.fixture(scope="module")
def tables() -> list[LearningTable]:
    registers = [make_table(f"made {name}", "made registers", shared=True) for name in "abcde"]
    return [*registers, *(make_table(f"made {name} halves", "made halves", shared=False) for name in "abcde")]


def test_pairs_within_a_table_are_of_two_of_its_rows(tables):
    for table in tables:
        assert len(table.own) == 2
        for own in table.own:
            assert len(own.left) and (own.left < own.right).all() and own.right.max() < 60
            assert own.figures.shape == (len(own.left), table.figures.shape[1])


def test_a_table_of_one_row_has_no_pairs_within():
    table = compare_two_tables("one", "join", "one", [["Acme"]], [["Acme", "Acme Inc"]], [(0, 0)], own=True)
    assert [len(own.left) for own in table.own] == [0, 1]


def test_what_scores_no_higher_than_pairs_within_is_capped():
    rows = np.arange(40)
    none = np.zeros((0, 1), np.float32)
    table = LearningTable(
        "t", "join", "t", np.zeros((40, 1), np.float32), np.ones(40, np.int64), np.ones(40, np.int64), 40,
        left=rows, right=rows, own=(OwnPairs(rows[:0], rows[:0], none),) * 2,
    )  # fmt: skip
    odds = np.full(40, 1.0)
    nothing, every = np.full(40, -np.inf), np.full(40, 1.0)
    assert pair_trials.share_of_null(table, odds, (every, every)).tolist() == pytest.approx([1.0] * 40)
    # The lesser share of both counts, and copies within a table are no null.
    assert pair_trials.share_of_null(table, odds, (every, nothing)).tolist() == [0.0] * 40
    assert pair_trials.share_of_null(table, odds, (every + 5, every + 5)).tolist() == [0.0] * 40
    few = table._replace(left=rows[:9], right=rows[:9])
    assert pair_trials.share_of_null(few, odds[:9], (every, every)) is None
    scored = {"t": (table, np.full(40, 0.8, np.float32))}
    left_out = pair_trials.LeftOut({"t": (table, odds)}, {"t": (table, odds)}, {"t": (every, every)})
    assert pair_trials.cap(scored, left_out)["t"][1].tolist() == pytest.approx([0.3] * 40)


@pytest.mark.slow
def test_what_was_tried_is_a_table(tables, monkeypatch):
    # Tables without a doubtful pair have no calibration.
    monkeypatch.setattr(pair_trials, "calibrate", lambda _: SumCalibration())
    # scikit-learn takes no figure that is NaN throughout.
    known = [table._replace(figures=np.nan_to_num(table.figures)) for table in tables]
    left_out = pair_trials.leave_out(known, Effort(trees=4, rate=0.5))
    trials = {name: list_figures(scored) for name, scored in pair_trials.try_all(left_out)}
    # Without and with the cap.
    tries = 2 * (2 + len(pair_trials.PARTS_OF_FIRST) + len(pair_trials.PENALTIES))
    assert len(trials) == tries
    lines = list(pair_trials.describe_trials(trials, {"registers": "made registers", "joins": "join"}))
    assert lines[0] == "| F1 at the own threshold | registers | joins |"
    kinds, families = lines[2 : 2 + tries], lines[5 + tries :]
    # There are no joins.
    assert all(line.endswith(" |  |") for line in kinds)
    assert float(kinds[2].split("|")[2]) > 90
    assert len(families) == 6 and all(line.count("|") == tries + 2 for line in families)
