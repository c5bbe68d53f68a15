"""TF-IDF: the numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gramvec.lexical.tfidf import damp_counts, inverse_frequency


def test_the_formulas_by_hand() -> None:
    assert inverse_frequency(3, np.array([0, 1, 3])) == pytest.approx([1 + np.log(4), 1 + np.log(2), 1])
    assert damp_counts(np.array([1, 2], np.float32)) == pytest.approx([1, 1 + np.log(2)])
