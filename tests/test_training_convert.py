"""gramvec-train convert: another precision, a memo, the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec.bundle import open_bundle
from gramvec.errors import InputError
from gramvec.features import FeatureSpec, Featuriser
from gramvec_training.data import Repeated, build_vocabulary, count_repeated
from gramvec_training.export import choose, convert, read_weights
from training_support import call, sentence

TEXTS = ["the quick brown fox", "the lazy dog, the end", "THE dog"]


def test_chunks_are_counted_as_the_featuriser_cuts_them() -> None:
    found = count_repeated(["The  end.\tthe", "e\u0301t\u00e9 \u0130", ""], FeatureSpec())
    assert found.chunks == {"the": 2, "end.": 1, "\u00e9t\u00e9": 1, "i": 1}
    assert found.edges == {"he en": 1, "d. th": 1, "t\u00e9 i ": 1}
    assert count_repeated(["The the"], FeatureSpec(lowercase=False)).chunks == {"The": 1, "the": 1}
    assert not count_repeated(["a b"], FeatureSpec(orders=(2,))).edges


def test_the_chunks_that_save_most_are_chosen() -> None:
    spec = FeatureSpec(orders=(2, 3))
    featuriser = Featuriser(spec, build_vocabulary(["abcdef ab x " * 3], spec))
    # " abcdef " has 7 bigrams and 6 trigrams, " ab " 3 and 2, " x " 2 and 1; a Greek letter has no row.
    counts = {"x": 100, "ab": 60, "abcdef": 25, "\u03b1": 1000, "abab": 1}
    repeated = Repeated(counts, {"b x": 5, "x a": 2})
    # They save 60 x 4 and 25 x 12; x saves 100 x 2, and an edge of one trigram nothing.
    assert choose(repeated, featuriser, chunks=2, edges=9) == (["ab", "abcdef"], [])
    assert choose(repeated, featuriser, chunks=9, edges=0) == (["x", "ab", "abcdef"], ())
    assert choose(repeated, featuriser, chunks=0, edges=0) == ([], ())


def test_a_memo_and_another_precision_keep_the_vectors(tmp_path: Path, real_texts: list[str]) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(real_texts), encoding="utf-8")
    result = call("convert", "charagram-phrase", "-o", tmp_path / "c", "--texts", file, "--chunks", 400, "--edges", 100,
                  "--precision", "float16", "--name", "mine")  # fmt: skip
    assert "500 of the memo, float16" in result.output
    before, after = gramvec.load("charagram-phrase"), gramvec.load(tmp_path / "c")
    assert (after.name, after.manifest.memo) == ("mine", 500)
    assert after.bundle.memoised(real_texts).counts.sum() < 0.8 * after.bundle.featuriser(real_texts).counts.sum()
    cosines = (before.embed(real_texts) * after.embed(real_texts)).sum(axis=1)
    assert np.sort(cosines)[1] > 0.999  # the last text is all others in one, where tanh is all but a sign
    assert cosines.min() > 0.99
    origin = after.manifest.provenance["converted_from"]
    assert (origin["digest"], origin["precision"]) == (before.digest, "int8")
    convert(tmp_path / "c", tmp_path / "again", precision="int8")
    assert gramvec.load(tmp_path / "again").manifest.memo == 500
    # What goes on from it, or converts it again, sees the rows of the vocabulary alone.
    table, _ = read_weights(open_bundle(tmp_path / "c"))
    assert len(table) == after.manifest.rows == before.manifest.rows


def test_an_int8_table_without_a_memo_keeps_its_bytes(tmp_path: Path) -> None:
    convert("paragram-phrase", tmp_path / "p")
    name = "model.onnx.data"
    assert (tmp_path / "p" / name).read_bytes() == (MODELS / "paragram-phrase" / name).read_bytes()


def test_a_model_of_words_has_no_memo(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paragram-phrase cannot have a memo"):
        convert("paragram-phrase", tmp_path / "p", texts=TEXTS, chunks=10)
    assert not (tmp_path / "p").exists()
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    refused = call("convert", "sif", "-o", tmp_path / "s", "--texts", file)
    assert "cannot have a memo" in sentence(refused)


def test_the_memo_of_a_run_is_cut_from_its_own_texts(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"the quick fox {i}\tthe fast fox {i}\n" for i in range(60)), encoding="utf-8")
    call("fit", "--pairs", pairs, "--out", tmp_path / "run", "--epochs", 1, "--export", tmp_path / "bundle")
    embedder = gramvec.load(tmp_path / "bundle")
    assert embedder.manifest.memo > 3
    batch = embedder.bundle.memoised(["the quick fox"])
    assert batch.counts.tolist() == [(batch.ids >= embedder.manifest.rows).sum()] == [5]  # three chunks, two edges
    assert np.isfinite(embedder.embed(["the quick fox"])).all()
