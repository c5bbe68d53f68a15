"""Likely candidates of near-duplicates: weighted samples, bands, and bounds."""

from __future__ import annotations

import numpy as np
import pytest

from gramvec.jobs.duplicates.features import FEATURE_BITS, Features
from gramvec.jobs.duplicates.minhash import NEIGHBORS, SAMPLES, MinHashJoin, Sketches, sketches_of

pytest.importorskip("scipy", reason="scipy is not installed: pip install '.[search]'")


def probability_jaccard(one: dict[int, float], other: dict[int, float]) -> float:
    """Return how often samples agree: Moulton and Jiang 2018, definition 1, term by term."""
    return sum(
        1 / sum(max(one.get(j, 0) / one[i], other.get(j, 0) / other[i]) for j in one.keys() | other.keys())
        for i in one.keys() & other.keys()
    )


def joined(sketches: Sketches, threshold: float = 0.85) -> set[tuple[int, int]]:
    join = MinHashJoin([sketches], threshold, threads=2)
    both = [join.pairs(*block) for block in join.blocks()]
    return {pair for left, right in both for pair in zip(left.tolist(), right.tolist(), strict=True)}


def test_samples_agree_as_often_as_weights_do(real_texts: list[str]) -> None:
    texts = [one for one in dict.fromkeys(real_texts) if 30 < len(one) < 90][:120]
    changed = [one[: 3 + at % 20] + one[4 + at % 20 :] for at, one in enumerate(texts)]
    rows = Features([*texts, *changed]).rows([*texts, *changed])
    weights = [
        {
            int(key) & ((1 << FEATURE_BITS) - 1): float(value) ** 0.5
            for key, value in zip(rows.keys[a:b], rows.values[a:b], strict=True)
        }
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]
    marks = sketches_of(rows, 0.85).marks
    agreed = [np.mean(marks[at] == marks[len(texts) + at]) for at in range(len(texts))]
    expected = [probability_jaccard(weights[at], weights[len(texts) + at]) for at in range(len(texts))]
    assert np.mean(agreed) == pytest.approx(np.mean(expected), abs=0.02)
    assert np.corrcoef(agreed, expected)[0, 1] > 0.5


def test_pairs_agree_in_a_band_and_in_enough_samples() -> None:
    bands = np.array([[7, 7, 7, 9], [3, 5, 4, 3]], np.uint64)
    marks = np.zeros((4, SAMPLES), np.uint8)
    marks[2, : SAMPLES // 2] = 1
    assert joined(Sketches(bands, marks), 0.8) == {(0, 1), (0, 2), (1, 2), (0, 3)}
    assert joined(Sketches(bands, marks), 0.9) == {(0, 1), (0, 3)}


def test_rows_without_features_are_in_no_pair() -> None:
    texts = [" ", "", "bananas", "bananas ", " bananas"]
    sketches = sketches_of(Features(texts).rows(texts), 0.5)
    assert not sketches.bands[:, :2].any()
    assert joined(sketches) == {(2, 3), (2, 4), (3, 4)}


def test_many_rows_with_one_band_are_a_chain_of_bounded_length() -> None:
    n = 1_000
    found = joined(Sketches(np.full((12, n), 5, np.uint64), np.zeros((n, SAMPLES), np.uint8)))
    assert len(found) == sum(min(NEIGHBORS, n - 1 - at) for at in range(n))
    assert {(at, at + 1) for at in range(n - 1)} <= found
