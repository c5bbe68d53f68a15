"""Numbers that are learned over fixed word vectors: by hand, in the loop, and in a bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gramvec import load
from gramvec.errors import InputError
from gramvec_training.config import parse_config
from gramvec_training.encoders.bag import Weighted, WeightedSettings, fold_numbers
from gramvec_training.encoders.build import build_encoder, restore_encoder
from gramvec_training.runs.run_dir import load_run
from support.training import call

VECTORS = {"red": (1, 0), "car": (0, 2), "the": (3, 3), "boat": (0, -1)}


def test_a_vector_by_hand() -> None:
    """Words (1, 0), (0, 2), (3, 3) with numbers 2, 1, 0.5: of all three (2 + 0 + 1.5, 0 + 2 + 1.5) / 3."""
    table = torch.tensor([[1.0, 0, 2], [0, 2, 1], [3, 3, 0.5]])
    encoder = Weighted(table, 2)
    vectors = encoder(torch.tensor([0, 1, 2, 1, 1], dtype=torch.int32), torch.tensor([0, 3, 5, 5]))
    np.testing.assert_allclose(vectors.detach(), [[3.5 / 3, 3.5 / 3], [0, 2], [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(fold_numbers(table.numpy()), [[2, 0], [0, 2], [1.5, 1.5]])
    assert encoder.parameter_counts() == {"table": 3}


def test_it_begins_as_the_average_and_the_vectors_have_no_gradient() -> None:
    """d/da_w of the first column's sum, over a mean of two words, is v_w / 2."""
    settings = WeightedSettings(kind="weighted")
    encoder = build_encoder(settings, torch.tensor([[1.0, 4], [3, 5]]), 2, torch.Generator())
    vectors = encoder(torch.tensor([0, 1], dtype=torch.int32), torch.tensor([0, 2]))
    np.testing.assert_array_equal(vectors.detach(), [[2, 4.5]])
    (gradient,) = torch.autograd.grad(vectors[:, 0].sum(), [encoder.table])
    np.testing.assert_array_equal(gradient, [[0, 0, 0.5], [0, 0, 1.5]])
    again = restore_encoder(settings, encoder.arrays(), 2)
    assert torch.equal(again.table, encoder.table)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "v.txt").write_text("".join(f"{word} {a} {b}\n" for word, (a, b) in VECTORS.items()))
    rows = ["the red car\tred car", "red\tthe red", "the boat\tboat", "car boat\tthe car the boat"]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows * 8))
    (tmp_path / "c.toml").write_text("""
[model]
name = "weighted"
kind = "paragram-phrase"
dimension = 2
vectors = "v.txt"
[features]
orders = []
words = true
[vocabulary]
words_of_vectors = true
[encoder]
kind = "weighted"
[training]
batch = 4
steps = 30
rate = 0.05
l2 = 1e-3
l2_center = "initial"
[[data]]
path = "pairs.tsv"
""")
    return tmp_path / "c.toml"


def test_it_learns_numbers_alone_and_is_served_as_a_bag(config: Path, tmp_path: Path) -> None:
    data = ["--data", tmp_path]
    assert call("fit", config, *data, "--out", tmp_path / "run").exit_code == 0
    run = load_run(tmp_path / "run")
    table = run.encoder.arrays()["table"]
    for entry, row in zip(run.vocabulary.entries(), table, strict=True):
        np.testing.assert_array_equal(row[:2], VECTORS[entry.text])
    numbers = dict(zip((entry.text for entry in run.vocabulary.entries()), table[:, 2], strict=True))
    assert numbers["the"] < 0.95  # the pairs differ in it
    exported = call("export", tmp_path / "run", "-o", tmp_path / "bundle")
    assert exported.exit_code == 0, exported.output
    found = load(tmp_path / "bundle").embed(["the red", "boat"], normalize=False)
    expected = (numbers["the"] * np.array([3, 3]) + numbers["red"] * np.array([1, 0])) / 2
    np.testing.assert_allclose(found, [expected, numbers["boat"] * np.array([0, -1])], rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"vectors": None}}, "name a file"),
        ({"training": {"l2": 1e-3}}, 'set l2_center = "initial", or l2 = 0'),
        ({"training": {"fixed_table": True}}, "leave fixed_table out"),
        ({"model": {"width": 7}}, "leave model.width out"),
        ({"export": {"scales": {"word": 0.5}}}, "leave export.scales out"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, dict[str, object]], message: str) -> None:
    values = {
        "model": {"name": "w", "kind": "paragram-phrase", "vectors": "v.txt"},
        "features": {"orders": [], "words": True},
        "encoder": {"kind": "weighted"},
        "training": {"steps": 1},
        "data": [{"path": "pairs.tsv"}],
    }
    for key, change in changes.items():
        values[key] = {**values.get(key, {}), **change}  # type: ignore[dict-item]
    with pytest.raises(InputError, match=message):
        parse_config(values, source="c.toml")
