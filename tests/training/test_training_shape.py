from __future__ import annotations

import numpy as np
import pytest

from gramvec.errors import InputError
from gramvec.text.vocabulary import Entry
from gramvec_training.config import parse_config
from gramvec_training.export.adapt import make_whitening, scale_kind, scale_rows

ENTRIES = [Entry("ngram", "ab", 3), Entry("word", "ab", 2), Entry("ngram", "abc", 1), Entry("unknown", "", 0)]


def test_rows_are_scaled_by_their_kind() -> None:
    assert [scale_kind(entry) for entry in ENTRIES] == ["2", "word", "3", "word"]
    table = np.ones((4, 2), np.float32)
    assert scale_rows(table, ENTRIES, {"word": 0.5, "3": 2.0}).tolist() == [[1, 1], [0.5, 0.5], [2, 2], [0.5, 0.5]]
    assert np.array_equal(scale_rows(table, ENTRIES, {}), table)


def test_whitening_by_hand() -> None:
    # Unit vectors along two axes, four times as many along the first: variances 0.8 and 0.2, relative 1 and 0.25.
    vectors = np.array([[3, 0], [-1, 0], [2, 0], [5, 0], [0, 7]], np.float32)
    np.testing.assert_allclose(make_whitening(vectors, 0.0), np.eye(2), atol=1e-6)
    full = make_whitening(vectors, 1.0)
    np.testing.assert_allclose(full, np.diag([1, 2]), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(make_whitening(vectors, 0.5), np.diag([1, 2**0.5]), rtol=1e-3, atol=1e-6)


def test_whitening_is_for_linear_models_alone() -> None:
    values = {
        "model": {"name": "x", "kind": "charagram-phrase"},
        "training": {"steps": 1},
        "data": [{"path": "a"}],
        "export": {"whitening": 0.2},
    }
    with pytest.raises(InputError, match="needs a linear model without a bias"):
        parse_config(values, source="config")
