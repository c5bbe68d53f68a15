"""gramvec-train convert: another precision, a memo, the same model."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.bundle.manifest import Precision, StoredWeights
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.runtime.exact import ExactTable
from gramvec.runtime.onnx_graph import write_graphs
from gramvec_training.data.vocabulary import RepeatedParts, build_vocabulary, count_repeated
from gramvec_training.export.bundle import choose_chunks, read_weights
from gramvec_training.export.convert import convert
from hostile.bundles.craft import manifest
from support.training import call, export_table, sentence

TEXTS = ["the quick brown fox", "the lazy dog, the end", "THE dog"]


def test_chunks_are_counted_as_the_featurizer_cuts_them() -> None:
    found = count_repeated(["The  end.\tthe", "e\u0301t\u00e9 \u0130", ""], FeatureSpec())
    assert found.chunks == {"the": 2, "end.": 1, "\u00e9t\u00e9": 1, "i": 1}
    assert found.edges == {"he en": 1, "d. th": 1, "t\u00e9 i ": 1}
    assert count_repeated(["The the"], FeatureSpec(lowercase=False)).chunks == {"The": 1, "the": 1}
    assert not count_repeated(["a b"], FeatureSpec(orders=(2,))).edges


def test_the_chunks_that_save_most_are_chosen() -> None:
    spec = FeatureSpec(orders=(2, 3))
    featurizer = Featurizer(spec, build_vocabulary(["abcdef ab x " * 3], spec))
    # " abcdef " has 7 bigrams and 6 trigrams, " ab " 3 and 2, " x " 2 and 1; a Greek letter has no row.
    counts = {"x": 100, "ab": 60, "abcdef": 25, "\u03b1": 1000, "abab": 1}
    repeated = RepeatedParts(counts, {"b x": 5, "x a": 2})
    # They save 60 x 4 and 25 x 12; x saves 100 x 2, and an edge of one trigram nothing.
    assert choose_chunks(repeated, featurizer, chunks=2, edges=9) == (["ab", "abcdef"], [])
    assert choose_chunks(repeated, featurizer, chunks=9, edges=0) == (["x", "ab", "abcdef"], ())
    assert choose_chunks(repeated, featurizer, chunks=0, edges=0) == ([], ())


def test_a_memo_and_another_precision_keep_the_vectors(tmp_path: Path, real_texts: list[str]) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(real_texts), encoding="utf-8")
    result = call("convert", "charagram-phrase", "-o", tmp_path / "c", "--texts", file, "--chunks", 400, "--edges", 100,
                  "--precision", "float16", "--name", "mine")  # fmt: skip
    assert "500 of the memo, float16" in result.output
    before, after = gramvec.load("charagram-phrase"), gramvec.load(tmp_path / "c")
    assert (after.name, after.manifest.memo) == ("mine", 500)
    assert after.bundle.memoized(real_texts).counts.sum() < 0.8 * after.bundle.featurizer(real_texts).counts.sum()
    cosines = (before.embed(real_texts) * after.embed(real_texts)).sum(axis=1)
    assert np.sort(cosines)[1] > 0.999  # the last text is all others in one, where tanh is all but a sign
    assert cosines.min() > 0.99
    origin = after.manifest.provenance["converted_from"]
    assert (origin["digest"], origin["precision"]) == (before.digest, "int8")
    convert(tmp_path / "c", tmp_path / "again", precision="int8")
    assert gramvec.load(tmp_path / "again").manifest.memo == 500
    result = call("convert", "charagram-phrase", "-o", tmp_path / "fours", "--precision", "int4")
    assert "of the memo, int4" in result.output
    fours, words = gramvec.load(tmp_path / "fours"), real_texts[:-1]
    assert (before.embed(words) * fours.embed(words)).sum(axis=1).min() > 0.95
    sizes = [len(one.bundle.weights.data) for one in (before, fours)]  # type: ignore[union-attr]
    assert 0.49 < sizes[1] / sizes[0] < 0.51
    # It is rewritten as it is.
    assert convert(tmp_path / "fours", tmp_path / "again", name="other").files == fours.manifest.files
    # What goes on from it, or converts it again, sees the rows of the vocabulary alone.
    table, _ = read_weights(open_bundle(tmp_path / "c"))
    assert len(table) == after.manifest.rows == before.manifest.rows


def test_what_does_not_change_keeps_its_bytes(tmp_path: Path) -> None:
    """Also where the bundle has graphs of another time, and few golden texts."""
    source = tmp_path / "source"
    shutil.copytree(MODELS / "charagram-phrase", source)
    shutil.copy(source / "model.cpu.onnx", source / "model.onnx")  # of ids and offsets, as both graphs once were
    with manifest(source) as values:
        values["graph"]["inputs"] = ["ids", "offsets"]
        values["golden"] = values["golden"][:3]
    converted = convert(source, tmp_path / "c")
    assert converted == open_bundle(MODELS / "charagram-phrase").manifest
    for file in converted.files:
        assert (tmp_path / "c" / file).read_bytes() == (MODELS / "charagram-phrase" / file).read_bytes(), file
    assert convert(tmp_path / "c", tmp_path / "again", name="other").name == "other"
    assert convert(tmp_path / "c", tmp_path / "f16", precision="float16").graph.precision == "float16"


def test_int8_rows_of_scales_without_a_step_are_rounded_anew(tmp_path: Path, real_texts: list[str]) -> None:
    bundle = small(tmp_path / "m", "int8")
    rows = bundle.manifest.rows
    # As they were until 2026: the largest of each row over 127.
    stored = bundle.manifest.graph.model_dump()["stored"]
    table, _ = read_weights(bundle)
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    data = bytearray((bundle.path / "model.onnx.data").read_bytes())
    data[stored["table"] : stored["table"] + table.size] = np.rint(table / scales).astype(np.int8).tobytes()
    data[stored["scales"] : stored["scales"] + 4 * rows] = scales.astype(np.float32).tobytes()
    (bundle.path / "model.onnx.data").write_bytes(data)
    stored["columns"] = None
    graph = write_graphs(bundle.path, bundle.manifest.graph.model_copy(update={"stored": StoredWeights(**stored)}), 24)
    assert (graph.cpu, ExactTable.from_bundle(bundle)) == (False, None)
    (bundle.path / "model.cpu.onnx").unlink()
    with manifest(bundle.path) as values:
        del values["files"]["model.cpu.onnx"]
        values |= {"graph": graph.model_dump(), "golden": []}
    old = gramvec.load(bundle.path, runtime="onnx").embed(TEXTS)
    assert gramvec.load(bundle.path, runtime="native").embed(TEXTS) == pytest.approx(old, abs=1e-6)
    convert(bundle.path, tmp_path / "c")
    assert ExactTable.from_bundle(open_bundle(tmp_path / "c")) is not None
    assert (gramvec.load(tmp_path / "c").embed(TEXTS) * old).sum(axis=1).min() > 0.999


def small(path: Path, precision: Precision) -> Bundle:
    spec = FeatureSpec(orders=(2, 3))
    vocabulary = build_vocabulary(TEXTS * 2, spec)
    table = np.random.default_rng(5).normal(0, 1, (len(vocabulary), 24)).astype(np.float32)
    table *= np.random.default_rng(6).uniform(0.1, 1, (len(table), 1)).astype(np.float32)
    export_table(
        path, name="small", kind="test", spec=spec, vocabulary=vocabulary, table=table, bias=None, pooling="sum",
        activation="linear", precision=precision, golden_texts=TEXTS, provenance={}, card="",
    )  # fmt: skip
    return open_bundle(path)


def test_a_model_of_words_has_no_memo(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paragram-phrase: cannot have a memo"):
        convert("paragram-phrase", tmp_path / "p", texts=TEXTS, chunks=10)
    assert not (tmp_path / "p").exists()
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    refused = call("convert", "sif", "-o", tmp_path / "s", "--texts", file)
    assert "cannot have a memo" in sentence(refused)


def test_the_memo_of_a_run_is_cut_from_its_own_texts(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"the quick fox {i}\tthe fast fox {i}\n" for i in range(60)), encoding="utf-8")
    call("fit-pairs", pairs, "--out", tmp_path / "run", "--epochs", 1, "--export", tmp_path / "bundle")
    embedder = gramvec.load(tmp_path / "bundle")
    assert embedder.manifest.memo > 3
    batch = embedder.bundle.memoized(["the quick fox"])
    assert batch.counts.tolist() == [(batch.ids >= embedder.manifest.rows).sum()] == [5]  # three chunks, two edges
    assert np.isfinite(embedder.embed(["the quick fox"])).all()
