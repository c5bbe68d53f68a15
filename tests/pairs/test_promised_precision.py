"""A threshold by precision: the lowest that promises it, nothing where none does, and never beside a threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.duplicates.job import DedupeJob
from gramvec.jobs.matching.job import MatchJob
from gramvec.jobs.pairs.model import Promise, one_table_model, two_table_model
from support.bulk import gramvec_command
from support.errors import assert_names, refused

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

NAMES = [f"{first} {last}, {street} street" for first, last, street in zip(
    ("Anna", "Pat", "Wei", "Maria", "Jose", "Olga", "Ivan", "Noor"),
    ("Schmidt", "O'Neil", "Zhang", "Silva", "Garcia", "Petrova", "Novak", "Haddad"),
    ("Main", "Baker", "Station", "Church", "Mill", "Park", "School", "Harbor"), strict=True)]  # fmt: skip


@given(st.lists(st.integers(0, 20), max_size=12), st.sampled_from([0.5, 0.8, 0.9, 0.98, 0.995, 0.9999]))
def test_the_lowest_threshold_that_promises_it(scores: list[int], precision: float) -> None:
    promise = two_table_model().promise
    given_scores = (np.array(scores, np.float32) / 20).astype(np.float32)
    expected = None
    for score in sorted(set(given_scores.tolist())):
        mean = float(given_scores[given_scores >= np.float32(score)].astype(np.float64).mean())
        # What a higher mean promises must be as much.
        higher = [mean, *(start for start in promise.starts if start > mean)]
        if expected is None and all(promise.range(share)[0] >= precision for share in higher):
            expected = score
    assert promise.precise_from(given_scores, precision) == expected


def test_each_pair_counts_as_often_as_it_stands() -> None:
    promise = Promise((0.0,), (0.0,), (0.0,))
    scores = np.array([0.99, 0.5], np.float32)
    assert promise.precise_from(scores, 0.7) == 0.5
    assert promise.precise_from(scores, 0.7, np.array([1, 9])) == pytest.approx(0.99)
    assert promise.precise_from(scores, 0.995) is None
    assert promise.precise_from(np.zeros(0, np.float32), 0.5) is None


def test_a_higher_precision_takes_a_part_of_the_pairs() -> None:
    other = [name.replace("e", "", 1) for name in NAMES] + ["Berta Blum, Lake street"]
    more, less = (gramvec.match(NAMES, other, precision=precision) for precision in (0.5, 0.95))
    assert set(zip(less.left, less.right, strict=True)) <= set(zip(more.left, more.right, strict=True))
    for found, precision, model in ((more, 0.5, two_table_model()), (less, 0.95, two_table_model())):
        expected = model.promise.of(found.scores)
        assert expected is None or expected.low >= precision
    found = gramvec.dedupe(NAMES + other, precision=0.9)
    expected = one_table_model().promise.of(found.likely.pairs.scores)
    assert expected is None or expected.low >= 0.9
    # All of them are sure enough to go.
    assert found.likely.sure == found.threshold


def test_what_is_no_precision_is_refused() -> None:
    for precision in (0, 1, -0.5):
        with refused(InputError, "precision", field="precision"):
            gramvec.match(NAMES, NAMES, precision=precision)
    for options in ({"threshold": 0.5}, {"labels": [(0, 0, True)]}):
        with refused(InputError, "threshold", field="precision"):
            gramvec.match(NAMES, NAMES, precision=0.9, **options)
    for options in ({"threshold": 0.5}, {"by": "meaning"}):
        with refused(InputError, "threshold", field="precision"):
            gramvec.dedupe(NAMES, precision=0.9, **options)
    with refused(InputError, field="precision"):
        MatchJob(left="a.csv", right="b.csv", precision=0.9, matcher="m.json")


def test_the_commands_say_what_they_chose_and_that_no_pair_is_so_sure(tmp_path: Path) -> None:
    for name, texts in (("a.csv", NAMES), ("b.csv", [*NAMES[:3], "nothing at all"]), ("c.csv", ["x y z", "k l m"])):
        (tmp_path / name).write_text("name\n" + "".join(f'"{text}"\n' for text in texts))
    left, options = tmp_path / "a.csv", {"on": "name", "output": tmp_path / "m.csv"}
    done = MatchJob(left=left, right=tmp_path / "b.csv", precision=0.9, **options).run()
    assert_names(done.summary, "3 of 8", "the precision 0.9", f"the threshold {done.threshold:.3f}", "97 to 100%")
    done = MatchJob(left=left, right=tmp_path / "c.csv", precision=0.98, overwrite=True, **options).run()
    assert_names(done.summary, "0 of 8", "0.98", "`precision`", "`threshold`")
    listed = gramvec_command("dedupe", left, "--on", "name", "--precision", "0.98")
    assert_names(listed.stderr.decode(), "no pairs", "0.98", "--precision", "--threshold")
    with refused(InputError, "`threshold`", field="precision"):
        DedupeJob(source=left, precision=0.9, threshold=0.5)
