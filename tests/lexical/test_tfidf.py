"""TF-IDF: the numbers by hand, and rows of length 1."""

from __future__ import annotations

import numpy as np
import pytest

from gramvec.lexical.tfidf import damp_counts, inverse_frequency, normalize_rows


def test_the_formulas_by_hand() -> None:
    assert inverse_frequency(3, np.array([0, 1, 3])) == pytest.approx([1 + np.log(4), 1 + np.log(2), 1])
    assert damp_counts(np.array([1, 2], np.float32)) == pytest.approx([1, 1 + np.log(2)])


def test_each_row_has_length_1() -> None:
    found = normalize_rows(np.array([3.0, 4.0, 7.0]), np.array([0, 0, 2]))
    assert found == pytest.approx([0.6, 0.8, 1])
