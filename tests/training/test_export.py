"""The graph against its equations, on weights small enough to add up by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gramvec
from gramvec.errors import InputError
from gramvec.features.spec import FeatureSpec
from gramvec.runtime.onnx_graph import quantize_table
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.encoders.bag import Bag
from gramvec_training.export.bundle import export_bundle
from gramvec_training.sections import BagSettings
from support.training import export_table

SPEC = FeatureSpec(orders=(), words=True, unknown_words="row")
VOCABULARY = Vocabulary.build([Entry("word", "a", 2), Entry("word", "b", 1), Entry("unknown", "", 0)])
TABLE = np.array([[1, 2], [3, -4], [10, 10]], np.float32)
TEXTS = ["a b b", "a", "", "zzz"]


ARGUMENTS: dict[str, Any] = {
    "name": "tiny",
    "kind": "paragram-phrase",
    "spec": SPEC,
    "vocabulary": VOCABULARY,
    "parity_texts": TEXTS,
    "golden_texts": TEXTS,
    "provenance": {"seed": 1},
    "card": "# tiny\n",
}
WEIGHTS: dict[str, Any] = {"table": TABLE, "bias": None, "pooling": "mean", "activation": "linear"}


def export(path: Path, **changes: Any) -> np.ndarray:
    manifest = export_table(path, **(ARGUMENTS | WEIGHTS | changes))
    embedder = gramvec.load(path, device="cpu")
    assert embedder.manifest == manifest
    vectors = embedder.raw(TEXTS).vectors
    embedder.close()
    return vectors


def test_mean_by_hand(tmp_path: Path) -> None:
    expected = [[7 / 3, -2], [1, 2], [0, 0], [10, 10]]
    np.testing.assert_allclose(export(tmp_path / "m"), expected, rtol=1e-6)


def test_sum_tanh_and_bias_by_hand(tmp_path: Path) -> None:
    bias = np.array([0.5, -0.5], np.float32)
    found = export(tmp_path / "m", pooling="sum", activation="tanh", bias=bias, table=TABLE / 10)
    expected = np.tanh([[0.7 + 0.5, -0.6 - 0.5], [0.1 + 0.5, 0.2 - 0.5], [0.5, -0.5], [1.5, 0.5]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_common_component_by_hand(tmp_path: Path) -> None:
    """SIF, Algorithm 1: v - u u^T v; with u = (0.6, 0.8), (1, 2) loses 2.2 u = (1.32, 1.76)."""
    found = export(tmp_path / "m", components=np.array([[0.6, 0.8]], np.float32))
    np.testing.assert_allclose(found[1], [1 - 1.32, 2 - 1.76], rtol=1e-5)
    np.testing.assert_allclose(found @ [0.6, 0.8], 0, atol=1e-6)
    assert found[2].tolist() == [0, 0]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 0), ("float16", 1e-3), ("int8", 1e-2), ("int4", 0.2)])
def test_stored_precisions(tmp_path: Path, precision: str, tolerance: float) -> None:
    exact = export(tmp_path / "exact")
    found = export(tmp_path / "m", precision=precision)
    np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance * 10)
    manifest = gramvec.load(tmp_path / "m", device="cpu").manifest
    assert manifest.graph.precision == precision
    assert manifest.provenance["parity"]["stored_vs_float32"] < (1e-4 if precision != "int4" else 1e-2)


def test_int8_by_hand() -> None:
    table, scales = quantize_table(np.array([[1.27, -0.635, 0.004], [0, 0, 0]], np.float32))
    assert table.tolist() == [[127, -64, 0], [0, 0, 0]]
    np.testing.assert_allclose(scales, [[0.01], [0.01 / 128]], rtol=1e-6)  # a row of zeros has the step
    table, scales = quantize_table(np.array([[1.27, 0], [0.0127 * 2.5, -0.02]], np.float32))
    # The step is 0.01 / 128; the second row takes 0.03175 / 127 = 3.2 steps, so 4 of them.
    np.testing.assert_allclose(scales, [[0.01], [0.04 / 128]], rtol=1e-6)
    assert table.tolist() == [[127, 0], [102, -64]]
    assert not quantize_table(np.zeros((2, 2), np.float32))[1].any()


def test_int8_in_parts_is_that_of_the_whole_table() -> None:
    random = np.random.default_rng(1)
    table, columns = random.normal(0, 1, (3_000, 7)).astype(np.float32), random.uniform(0.1, 9, 7).astype(np.float32)
    rows, scales = quantize_table(table, columns)
    divided = table / columns
    assert np.array_equal(rows, np.rint(divided / scales))
    assert scales[:, 0].tolist() == quantize_table(divided)[1][:, 0].tolist()


def test_a_trainer_that_disagrees_stops_the_export(tmp_path: Path) -> None:
    class Other(Bag):
        def forward(self, ids: torch.Tensor, offsets: torch.Tensor, table: torch.Tensor | None = None) -> torch.Tensor:
            return super().forward(ids, offsets, table) + torch.tensor([0.1, 0.0])

    encoder = Other(torch.from_numpy(TABLE), BagSettings(pooling="mean", activation="linear", bias=False))
    with pytest.raises(InputError, match="the graph and the trainer differ"):
        export_bundle(tmp_path / "m", encoder=encoder, **ARGUMENTS)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_do_not_fit_or_diverged_stop_the_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"shape \(2, 2\) does not fit a vocabulary of 3 rows"):
        export(tmp_path / "m", table=TABLE[:2])
    with pytest.raises(InputError, match="NaN or infinity"):
        export(tmp_path / "m", table=TABLE * np.float32(np.nan))
    assert list(tmp_path.iterdir()) == []
