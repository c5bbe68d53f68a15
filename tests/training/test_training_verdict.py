"""Whether a model has become better: differences with an interval, on groups of held-out examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr

from gramvec_training.data.sampling import HeldOut
from gramvec_training.evaluation.matching import judge_pairs, score_pairs
from gramvec_training.evaluation.tasks import list_reciprocal_ranks
from gramvec_training.evaluation.verdict import (
    count_values,
    describe_verdict,
    f1_of,
    group_rows,
    judge,
    mean_of,
    pearson_of,
)
from support.errors import assert_names
from support.training import call


def test_scores_of_sums_by_hand() -> None:
    assert mean_of(np.array([[3.0], [4.0]])).tolist() == [75.0]
    assert f1_of(np.array([[2.0], [3.0], [5.0]])).tolist() == [50.0]
    x, y = np.array([1.0, 2, 4, 3]), np.array([1.0, 3, 4, 5])
    sums = np.array([4, x.sum(), y.sum(), x @ x, y @ y, x @ y])[:, None]
    assert pearson_of(sums)[0] == pytest.approx(100 * pearsonr(x, y).statistic)
    assert pearson_of(np.array([[2.0], [2.0], [2.0], [2.0], [2.0], [2.0]])).tolist() == [0.0]


def test_one_pair_more_of_a_hundred_is_no_better_for_sure_and_ten_are() -> None:
    before, groups = np.zeros(100), np.arange(100)
    before[:80] = 1

    def said(more: int) -> dict[str, object]:
        after = before.copy()
        after[80 : 80 + more] = 1
        return judge("found", [count_values(before), count_values(after)], groups, mean_of)

    one, ten = said(1), said(10)
    assert (one["before"], one["after"], one["better"]) == (80.0, 81.0, False)
    assert (ten["after"], ten["better"]) == (90.0, True)
    assert describe_verdict(ten).startswith("found: better, 80.0 before and 90.0 after, +10.0 (95 % interval +")
    worse = judge("found", [count_values(before), count_values(np.zeros(100))], groups, mean_of)
    assert "worse, 80.0 before and 0.0 after" in describe_verdict(worse)
    assert said(10) == ten  # the same draws every time


def test_examples_of_one_group_are_one() -> None:
    before, after = np.zeros(100), np.zeros(100)
    after[:10] = 1
    each = judge("x", [count_values(before), count_values(after)], np.arange(100), mean_of)
    assert each["better"]
    together = np.maximum(np.arange(100) - 9, 0)  # the ten are one group
    assert not judge("x", [count_values(before), count_values(after)], together, mean_of)["better"]


def test_groups_share_a_number_directly_or_through_others() -> None:
    left, right = np.array([0, 1, 0, 5, 6]), np.array([2, 3, 3, 7, 7])
    assert group_rows([left, right]).tolist() == [0, 0, 0, 1, 1]


def test_ranks_are_among_the_right_sides_of_all_pairs() -> None:
    vectors = {"a": (1, 0), "b": (0, 1), "x": (0.8, 0.6), "y": (0.6, 0.8), "z": (1, 0), "w": (0.9, 0.436)}
    pairs = HeldOut(["a", "b"], ["x", "y"], np.array([0, 1]))

    def unit(texts: list[str]) -> np.ndarray:
        return np.array([vectors[text] for text in texts], np.float32)

    assert list_reciprocal_ranks(pairs, [], unit).tolist() == [1, 1]  # type: ignore[arg-type]
    found = list_reciprocal_ranks(pairs, ["z", "w"], unit)  # type: ignore[arg-type]
    assert found.tolist() == pytest.approx([1 / 3, 1])


def test_a_verdict_on_pairs_has_the_f1_of_the_report() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 200).astype(np.float64)
    before, after = labels + rng.normal(0, 1.0, 200), labels + rng.normal(0, 0.2, 200)
    parts, groups = np.arange(200) % 5, np.arange(200)
    found = judge_pairs(before, after, labels, parts, groups, binary=True)
    for name, cosines in (("before", before), ("after", after)):
        assert found[name] == pytest.approx(score_pairs(cosines, labels, parts, binary=True)["f1"])
    assert found["better"]
    scored = judge_pairs(before, after, labels, parts, groups, binary=False)
    assert scored["after"] == pytest.approx(score_pairs(after, labels, parts, binary=False)["pearson"])


def test_weights_that_are_no_better_are_not_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = ["car", "dog", "house", "tree", "film", "road", "river", "cloud"]
    rows = [
        (" ".join(rng.choice(words, 3)), f"{' '.join(rng.choice(words, 3))} {row}", int(rng.integers(0, 2)))
        for row in range(60)
    ]  # labels that say nothing
    (tmp_path / "a.tsv").write_text("".join(f"{left}\t{right}\t{label}\n" for left, right, label in rows))
    command = ["fit-weights", tmp_path / "a.tsv", "--from", "gramvec-en", "--export", tmp_path / "m"]
    done = call(*command)
    assert done.exit_code == 1
    assert "beside " in done.stdout and "F1 of pairs: " in done.stdout
    assert_names(done.stderr, "not written", "no better for sure")
    assert not (tmp_path / "m").exists()
    assert call(*command, "--anyway").exit_code == 0
    assert (tmp_path / "m" / "manifest.json").exists()
