"""gramvec-train adapt: SIF's weights from a user's own texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gramvec
from gramvec.bundle.bundle import open_bundle
from gramvec.errors import BundleError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.export.adapt import adapt, weigh_features
from gramvec_training.export.bundle import read_weights
from support.training import call, export_table, sentence

TEXTS = ["red car", "red house", "red red tree", "old car"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adapt") / "source"
    spec = FeatureSpec(orders=(2, 3), words=True)
    vocabulary = build_vocabulary([*TEXTS, "a blue sky"], spec)
    table = np.random.default_rng(1).normal(0, 0.3, (len(vocabulary), 8)).astype(np.float32)
    export_table(
        path, table=table, name="source", kind="gramvec", spec=spec, vocabulary=vocabulary, precision="float32",
        golden_texts=TEXTS[:2], provenance={"seed": 1, "data": [{"name": "none"}]}, card="# source\n",
    )  # fmt: skip
    return path


def test_the_weights_are_sifs_worked_by_hand() -> None:
    """a / (a + p): red is in 3 of 4 texts, twice in one of them, which counts once; car in 2; sky in none."""
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary([*TEXTS, "sky"], spec)
    rows = {entry.text: row for row, entry in enumerate(vocabulary.entries())}
    weights = weigh_features(Featurizer(spec, vocabulary), TEXTS, len(vocabulary), a=0.5)
    by_hand = {"red": 0.5 / (0.5 + 3 / 4), "car": 0.5 / (0.5 + 2 / 4), "house": 0.5 / (0.5 + 1 / 4), "sky": 1.0}
    assert {word: weights[rows[word]] for word in by_hand} == pytest.approx(by_hand)


def test_a_vector_is_the_weighted_sum_of_its_rows(source: Path, tmp_path: Path) -> None:
    manifest, count = adapt(source, tmp_path / "adapted", iter(TEXTS), a=0.1, chunks=3, edges=2)
    assert (count, manifest.name) == (4, "source-adapted")
    assert manifest.memo > 0
    before, after = open_bundle(source), gramvec.load(tmp_path / "adapted", device="cpu")
    assert manifest.provenance["adapted"] == {"from": before.digest, "texts": 4, "a": 0.1}
    table, _ = read_weights(before)
    weights = weigh_features(before.featurizer, TEXTS, manifest.rows, 0.1)
    for text in [*TEXTS, "a blue sky", "unknown"]:
        ids = before.featurizer([text]).ids
        expected = (table[ids] * weights[ids, None]).sum(axis=0)
        np.testing.assert_allclose(after.embed([text], normalize=False)[0], expected, atol=1e-5)
    # What most of the texts share counts for less than before.
    plain = gramvec.load(source, device="cpu")
    shared = ["red car", "red house"]
    assert after.similarity(shared[:1], shared[1:])[0, 0] < plain.similarity(shared[:1], shared[1:])[0, 0]
    for embedder in (after, plain):
        embedder.close()


def test_the_command(source: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    result = call("adapt", source, "--texts", tmp_path / "texts.txt", "-o", tmp_path / "ours", "--name", "ours")
    assert result.exit_code == 0, result.output
    assert "rows weighed by 4 texts" in result.stdout
    assert gramvec.load(tmp_path / "ours", device="cpu").name == "ours"


def test_what_cannot_be_is_a_sentence(source: Path, tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("")
    out = ["-o", tmp_path / "ours"]
    assert "no texts" in sentence(call("adapt", source, "--texts", tmp_path / "none.txt", *out))
    assert "missing.txt" in sentence(call("adapt", source, "--texts", tmp_path / "missing.txt", *out))
    assert "no model 'nonesuch'" in sentence(call("adapt", "nonesuch", "--texts", tmp_path / "none.txt", *out))
    assert call("adapt", source, "--texts", tmp_path / "none.txt", *out, "-a", "0").exit_code == 2
    assert not (tmp_path / "ours").exists()
    with pytest.raises(InputError, match="a: must be above 0"):
        adapt(source, tmp_path / "ours", TEXTS, a=0)
    with pytest.raises(BundleError):
        adapt(tmp_path, tmp_path / "ours", TEXTS)
