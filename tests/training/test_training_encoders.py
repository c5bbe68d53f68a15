"""An encoder that is no bag, by the same loop, export and service as the bags: CHARAGRAM with two layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gramvec
from gramvec.errors import BundleError, DeviceError, InputError
from gramvec_training.config import parse_config
from gramvec_training.encoders.bag import TwoLayer
from gramvec_training.encoders.build import make_encode
from gramvec_training.runs.run_dir import load_run
from support.training import call

CONFIG = """
[model]
name = "two"
kind = "charagram-2-layer"
dimension = 24
[encoder]
kind = "two-layer"
[training]
batch = 8
steps = 60
l2_composition = 1e-5
[export]
memo_chunks = 5
memo_edges = 5
[[data]]
path = "pairs.tsv"
"""
WORDS = ("red", "green", "small", "large", "old", "new", "car", "house", "river", "tree")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(1)
    rows = [" ".join(rng.choice(WORDS, 3)) for _ in range(120)]
    (path / "pairs.tsv").write_text("".join(f"{row}\t{' '.join(reversed(row.split()))}\n" for row in rows))
    (path / "two.toml").write_text(CONFIG)
    result = call("fit", path / "two.toml", "--data", path, "--out", path / "run", "--export", path / "two")
    assert result.exit_code == 0, result.output
    return path


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
def test_it_is_trained_exported_and_served(folder: Path, precision: str) -> None:
    bundle = folder / f"two-{precision}"
    assert call("export", folder / "run", "-o", bundle, "--precision", precision).exit_code == 0
    run, embedder = load_run(folder / "run"), gramvec.load(bundle, device="cpu")
    assert isinstance(run.encoder, TwoLayer)
    assert set(run.encoder.arrays()) == {"table", "bias", "second", "second_bias"}
    assert embedder.runtime == "onnx"
    assert embedder.manifest.memo > 0
    texts = [*run.texts[:40], "", "zzz", "red " * 400]
    expected = make_encode(run.encoder, embedder.bundle.featurizer)(texts)
    found = embedder.embed(texts, normalize=False)
    np.testing.assert_allclose(found, expected, atol={"float32": 1e-5, "int4": 0.2}.get(precision, 0.02))
    embedder.close()


def test_a_vector_does_not_depend_on_its_batch(folder: Path) -> None:
    embedder = gramvec.load(folder / "two", device="cpu")
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 9))) for _ in range(70)]
    together = embedder.embed(texts)
    for size in (1, 2, 3, 7, 33):
        parts = [embedder.embed(texts[start : start + size]) for start in range(0, len(texts), size)]
        assert np.concatenate(parts).tobytes() == together.tobytes()
    embedder.close()


def test_what_it_cannot_do_is_said(folder: Path) -> None:
    with pytest.raises((BundleError, DeviceError), match="runtime onnx"):
        gramvec.load(folder / "two", device="cpu", runtime="native")
    values = {"training": {"steps": 1}, "data": [{"path": "x"}], "encoder": {"kind": "two-layer"}}
    with pytest.raises(InputError, match=r"model\.pooling belongs to a model without \[encoder\]"):
        parse_config({**values, "model": {"name": "m", "kind": "gramvec", "pooling": "mean"}}, source="test")
    result = call("fit-pairs", folder / "pairs.tsv", "--from", folder / "two", "--out", folder / "more")
    assert result.exit_code == 1
    assert "no bag of rows" in result.stderr
