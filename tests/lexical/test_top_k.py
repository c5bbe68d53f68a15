"""The k largest scores against a sort of all, with equal scores and types without a sign."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.lexical.top_k import top_k, top_k_of_rows

SCORES = st.lists(st.integers(0, 6), max_size=30)


@given(SCORES, st.integers(1, 35), st.sampled_from([np.float32, np.float64, np.int32, np.uint16]), st.randoms())
def test_the_k_largest_are_the_first_of_all_sorted(scores: list[int], k: int, kind: type, random: object) -> None:
    rows = list(range(100, 100 + len(scores)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    found = top_k(np.array(scores, kind), k, np.array(rows, np.int64))
    assert found.tolist() == sorted(range(len(scores)), key=lambda place: (-scores[place], rows[place]))[:k]
    without = top_k(np.array(scores, kind), k)
    assert without.tolist() == sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k]


def test_rows_are_ordered_as_one_is() -> None:
    scores = np.array([[0.5, 0.9, 0.5, -1.0], [0, 0, 0, 1]], np.float32)
    columns, best = top_k_of_rows(scores, 3)
    assert columns.tolist() == [top_k(row, 3).tolist() for row in scores] == [[1, 0, 2], [3, 0, 1]]
    assert best.tolist() == [[pytest.approx(0.9), 0.5, 0.5], [1, 0, 0]]
    assert top_k_of_rows(scores, 9)[0].shape == (2, 4)
