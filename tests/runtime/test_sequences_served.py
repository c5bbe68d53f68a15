"""Encoders with layers and with order, by the same loop, export, checks and service as the bags."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
import torch

import gramvec
from gramvec.bundle.bundle import open_bundle
from gramvec.bundle.manifest import Manifest
from gramvec.errors import BundleError, DeviceError, InputError
from gramvec.explain.contributions import explain
from gramvec.explain.decompose import MAX_PIECES, shares
from gramvec.explain.neighbors import nearest_ngrams
from gramvec.features.spec import FeatureSpec
from gramvec.runtime.ort import PLACES, OnnxRuntime, take_texts
from gramvec.server.settings import Settings
from gramvec.text.arrays import FeatureBatch
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.config import parse_config
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.base import LONGEST, Encoder
from gramvec_training.encoders.build import build_encoder, make_encode
from gramvec_training.export.bundle import export_bundle
from gramvec_training.runs.run_dir import load_run
from hostile.bundles.craft import manifest
from support.batches import batch_of
from support.errors import refused
from support.http import PATIENCE, running
from support.training import call, export_table

pytestmark = pytest.mark.slow

WORDS, CHARACTERS = {"orders": [], "words": True}, {"orders": [1]}
# A config's [encoder], [features], dimension; its graph's composition, pooling and activation.
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any], int, tuple[str, str, str]]] = {
    "two-layer": ({"kind": "two-layer"}, {"orders": [2, 3]}, 24, ("layers", "sum", "tanh")),
    "two-layer-relu": ({"kind": "two-layer", "activation": "relu"}, {"orders": [2]}, 24, ("layers", "sum", "relu")),
    "projection": ({"kind": "projection"}, WORDS, 24, ("layers", "mean", "linear")),
    "dan": ({"kind": "dan"}, WORDS, 24, ("layers", "mean", "tanh")),
    "dan-4": ({"kind": "dan", "layers": 4, "activation": "sigmoid"}, WORDS, 24, ("layers", "mean", "sigmoid")),
    "rnn": ({"kind": "rnn"}, WORDS, 24, ("sequence", "last", "tanh")),
    "rnn-relu": ({"kind": "rnn", "activation": "relu"}, WORDS, 24, ("sequence", "last", "relu")),
    "irnn": ({"kind": "irnn"}, WORDS, 24, ("sequence", "last", "linear")),
    "lstm": ({"kind": "lstm"}, WORDS, 24, ("sequence", "last", "tanh")),
    "lstm-no-gate": ({"kind": "lstm", "output_gate": False}, WORDS, 24, ("sequence", "last", "tanh")),
    "charlstm": ({"kind": "lstm"}, CHARACTERS, 24, ("sequence", "last", "tanh")),
    "charcnn-a": (
        {"kind": "char-cnn", "filters": "a", "filter_activation": "linear", "activation": "linear"},
        CHARACTERS, 24, ("sequence", "max", "linear"),
    ),
    "charcnn-b": ({"kind": "char-cnn", "filters": "b"}, CHARACTERS, 24, ("sequence", "max", "tanh")),
    "charcnn-b-no-layer": (
        {"kind": "char-cnn", "filters": "b", "filter_activation": "relu", "layer": False},
        CHARACTERS, 525, ("sequence", "max", "relu"),
    ),
}  # fmt: skip
SOME = ("red", "green", "small", "large", "old", "new", "car", "house", "river", "tree", "na\u00efve", "\u03a3\u03bf")
KINDS = {
    "two": "charagram-2-layer", "pro": "paragram-projection", "dan": "dan", "rnn": "rnn", "irn": "irnn",
}  # fmt: skip


def kind_of(name: str) -> str:
    """Of the config's model."""
    if name.startswith("char"):
        return name.split("-")[0]
    return KINDS.get(name[:3], "lstm")


def texts_of(n: int, seed: int = 1, longest: int = 12) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(SOME, rng.integers(0, longest))) for _ in range(n)]


def made(name: str, seed: int = 3) -> tuple[Encoder, FeatureSpec, Vocabulary]:
    """A model of this kind with random weights everywhere."""
    encoder, features, dimension, _ = MODELS[name]
    values = {
        "model": {"name": name, "kind": kind_of(name), "dimension": dimension},
        "encoder": encoder, "features": features, "training": {"steps": 1}, "data": [{"path": "x"}],
    }  # fmt: skip
    config = parse_config(values, source="test")
    spec = FeatureSpec(orders=tuple(config.features.orders), words=config.features.words)
    vocabulary = build_vocabulary(list(SOME), spec)
    generator = torch.Generator().manual_seed(seed)
    table = torch.empty(len(vocabulary), 24).normal_(0, 0.5, generator=generator)
    built = build_encoder(config.composition, table, dimension, generator)
    with torch.no_grad():
        for key, parameter in built.named_parameters():
            if key != "table":
                parameter.normal_(0, 0.15, generator=generator)
    return built, spec, vocabulary


def written(path: Path, name: str, **rest: Any) -> tuple[Encoder, Manifest]:
    encoder, spec, vocabulary = made(name)
    manifest = export_bundle(
        path, name=name, kind=name, spec=spec, vocabulary=vocabulary, encoder=encoder,
        parity_texts=[*texts_of(40), "", "zzz"], provenance={}, card="", **rest,
    )  # fmt: skip
    return encoder, manifest


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    for name in MODELS:
        written(folder / name, name)
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_the_bundle_says_what_it_is_and_gives_the_trainers_vectors(bundles: Path, name: str) -> None:
    encoder, _, _ = made(name)
    embedder = gramvec.load(bundles / name, device="cpu")
    graph = embedder.manifest.graph
    assert (graph.composition, graph.pooling, graph.activation) == MODELS[name][3]
    layers = graph.composition == "layers"
    assert (graph.stored is not None) == (embedder.bundle.weights is not None) == layers
    assert not [path.name for path in (bundles / name).glob("model.*.onnx")]  # the whole graph only
    assert not graph.cpu and type(embedder._runtime) is OnnxRuntime
    assert (embedder.runtime, embedder.device) == ("onnx", "cpu")
    texts = [*texts_of(60, 2), "", "zzz", " ", "red " * 300, "re"]
    expected = make_encode(encoder, embedder.bundle.featurizer)(texts)
    found = embedder.embed(texts, normalize=False)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    embedder.close()


def assert_close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Row by row: both zero, or 1 - cosine at most 1e-6."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    known = a.any(axis=1)
    np.testing.assert_array_equal(known, b.any(axis=1))
    lengths = np.linalg.norm(a[known], axis=1) * np.linalg.norm(b[known], axis=1)
    assert (1 - np.einsum("ij,ij->i", a[known], b[known]) / lengths).max(initial=0) <= 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_a_vector_is_within_a_millionth_in_any_batch(bundles: Path, name: str) -> None:
    """Whatever the lengths, the order and the number of the other texts are, 1 - cosine is at most 1e-6."""
    embedder = gramvec.load(bundles / name, device="cpu")
    texts = [*texts_of(70, 3), "red " * 900, "", "red", "x", "green river " * 200]
    together = embedder.embed(texts, normalize=False)
    for size in (1, 2, 3, 7, 33):
        parts = [embedder.embed(texts[start : start + size], normalize=False) for start in range(0, len(texts), size)]
        assert_close(np.concatenate(parts), together)
    order = np.random.default_rng(4).permutation(len(texts))
    assert_close(embedder.embed([texts[at] for at in order], normalize=False), together[order])
    threaded = gramvec.load(bundles / name, device="cpu", threads=3)
    many = texts * 25
    assert_close(threaded.embed(many, normalize=False), np.tile(together, (25, 1)))
    for one in (embedder, threaded):
        one.close()


@pytest.mark.parametrize("name", ["rnn", "irnn", "lstm", "charlstm", "charcnn-b"])
def test_padding_never_changes_a_byte(bundles: Path, name: str) -> None:
    """The graph itself pads a text to the longest of its call."""
    bundle = open_bundle(bundles / name)
    runtime = OnnxRuntime(bundle.graph_path, bundle.manifest.dimension)
    text = "small old car"
    alone = runtime.run(bundle.featurizer([text]))[0]
    for longer in ("red " * 5, "red " * 60, "house river " * 400):
        for company in ([text, longer], [longer, text, ""], [longer, text, longer]):
            batch = bundle.featurizer(company)
            assert runtime.run(batch)[company.index(text)].tobytes() == alone.tobytes()
    runtime.close()


@pytest.mark.parametrize("name", ["rnn", "irnn", "lstm", "charlstm", "charcnn-a"])
def test_a_text_is_read_up_to_its_longest_position_in_the_graph_too(bundles: Path, name: str) -> None:
    bundle = open_bundle(bundles / name)
    runtime = OnnxRuntime(bundle.graph_path, bundle.manifest.dimension)
    ids = np.random.default_rng(1).integers(0, bundle.manifest.rows, LONGEST + 50).astype(np.int32)
    longer, cut = runtime.run(batch_of(ids)), runtime.run(batch_of(ids[:LONGEST]))
    if name != "irnn":  # whose states may be of any size after so many steps
        assert np.isfinite(longer).all()
    np.testing.assert_array_equal(longer, cut)
    runtime.close()


@pytest.mark.parametrize(
    ("name", "precision", "tolerance"),
    [
        *((name, "float16", 5e-3) for name in ("two-layer", "dan", "rnn", "lstm", "charlstm")),
        *((name, "int8", 6e-2) for name in ("two-layer", "dan", "rnn", "lstm", "charlstm")),
        *((name, "int4", 0.3) for name in ("two-layer", "dan")),
    ],
)
def test_tables_in_fewer_bits(tmp_path: Path, name: str, precision: Any, tolerance: float) -> None:
    encoder, manifest = written(tmp_path / "b", name, precision=precision)
    assert manifest.graph.precision == precision
    embedder = gramvec.load(tmp_path / "b", device="cpu")
    texts = texts_of(50, 5)
    expected = make_encode(encoder, embedder.bundle.featurizer)(texts)
    np.testing.assert_allclose(embedder.embed(texts, normalize=False), expected, atol=tolerance * 3)
    together = embedder.embed(texts)
    assert_close(np.concatenate([embedder.embed([text]) for text in texts]), together)
    embedder.close()


def test_what_has_no_graph_is_said(tmp_path: Path) -> None:
    with refused(InputError, "character CNN"):
        written(tmp_path / "b", "charcnn-a", precision="int8")
    for name in ("lstm", "rnn"):
        with refused(InputError, "four bits", "take int8"):
            written(tmp_path / "b", name, precision="int4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["dan", "lstm", "charcnn-b"])
def test_other_runtimes_say_why_not(bundles: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    beyond = "has layers above the sum of its rows" if name == "dan" else "reads a text's rows in their order"
    with refused(DeviceError, name, "runtime onnx"):
        gramvec.load(bundles / name, device="cpu", runtime="native")
    with refused(DeviceError, "cuda"):
        gramvec.load(bundles / name, device="cuda")
    caplog.set_level(logging.INFO, "gramvec.runtime")
    gramvec.load(bundles / name, device="cpu").close()
    lines = [(one.levelno, one.message) for one in caplog.records if "runtime auto" in one.message]
    why = f"runtime auto: onnx, because runtime native: {name} {beyond}; take runtime onnx"
    assert lines == [(logging.INFO, why)]
    result = call("convert", bundles / name, "-o", bundles / f"{name}-again", "--precision", "int8")
    assert result.exit_code == 1
    assert "bag" in result.stderr


def test_a_bundle_without_a_table_that_is_a_bag_was_made_before(bundles: Path, tmp_path: Path) -> None:
    """The message about an old bundle is for old bundles alone."""
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary(list(SOME), spec)
    table = np.random.default_rng(1).normal(size=(len(vocabulary), 8)).astype(np.float32)
    export_table(
        tmp_path / "old", name="old", kind="sif", spec=spec, vocabulary=vocabulary, table=table, provenance={}, card=""
    )
    changed(tmp_path / "old", stored=None)
    with refused(BundleError, "runtime native"):
        gramvec.load(tmp_path / "old", device="cpu", runtime="native")


def changed(folder: Path, **graph: Any) -> None:
    """Change what the manifest says of the graph; digests are right afterwards."""
    with manifest(folder) as values:
        values["graph"].update(graph)


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("lstm", {"composition": "bag"}, r"last .*graph\.composition bag"),
        ("lstm", {"pooling": "mean"}, r"mean .*graph\.composition sequence"),
        ("lstm", {"composition": "tree"}, r"graph\.composition"),
        ("dan", {"pooling": "max"}, r"max .*graph\.composition layers"),
        ("dan-4", {"composition": "bag"}, r"sigmoid .*graph\.composition bag"),
        ("lstm", {"stored": {"file": "model.onnx.data", "rows": 12, "table": 0}}, r"graph\.stored"),
        ("dan", {"cpu": True}, r"model\.cpu\.onnx"),
        ("lstm", {"cuda": True}, r"graph: cuda"),
    ],
    ids=str,
)
def test_manifests_that_contradict_themselves(tmp_path: Path, name: str, values: dict[str, Any], sentence: str) -> None:
    written(tmp_path / "b", name)
    changed(tmp_path / "b", **values)
    with pytest.raises(BundleError, match=sentence):
        open_bundle(tmp_path / "b")


def set_attribute(operator: str, name: str, value: Any) -> Callable[[onnx.ModelProto], object]:
    def change(model: onnx.ModelProto) -> None:
        (node,) = [one for one in model.graph.node if one.op_type == operator]
        kept = [one for one in node.attribute if one.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    return change


def set_constant(name: str, value: Any) -> Callable[[onnx.ModelProto], object]:
    def change(model: onnx.ModelProto) -> None:
        (tensor,) = [one for one in model.graph.initializer if one.name == name]
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.asarray(value, np.int64), name))

    return change


def set_operator(before: str, after: str) -> Callable[[onnx.ModelProto], object]:
    def change(model: onnx.ModelProto) -> None:
        for node in model.graph.node:
            node.op_type = after if node.op_type == before else node.op_type

    return change


def with_cells(model: onnx.ModelProto) -> None:
    next(node for node in model.graph.node if node.op_type == "LSTM").output.append("cells")


def rename_input(model: onnx.ModelProto) -> None:
    model.graph.input[1].name = "segments"
    for node in model.graph.node:
        node.input[:] = ["segments" if one == "offsets" else one for one in node.input]


@pytest.mark.parametrize(
    ("name", "change", "graph", "sentence"),
    [
        ("lstm", set_attribute("LSTM", "hidden_size", 2**40), {}, "onnxruntime"),
        ("lstm", set_attribute("LSTM", "hidden_size", 7), {}, "golden texts fail"),
        ("lstm", set_attribute("LSTM", "activations", ["Odd", "Tanh", "Tanh"]), {}, "onnxruntime"),
        ("lstm", set_attribute("LSTM", "clip", 0.001), {}, "other vectors"),
        ("lstm", set_constant("least", [2**40]), {}, "golden texts fail"),
        ("lstm", set_constant("stride", 0), {}, "golden texts fail"),
        ("lstm", with_cells, {}, "LSTM"),
        ("lstm", set_operator("LSTM", "GRU"), {}, "GRU"),
        ("rnn", set_operator("Less", "Greater"), {}, "Greater"),
        ("rnn", rename_input, {}, "segments"),
        (
            "lstm", lambda model: None, {"composition": "layers", "pooling": "sum"},
            "LSTM",
        ),
        ("charcnn-b", set_constant("further", [2**40]), {}, "golden texts fail"),
    ],
)  # fmt: skip
def test_graphs_of_a_stranger_end_in_a_sentence(
    bundles: Path, tmp_path: Path, name: str, change: Callable[[onnx.ModelProto], object], graph: Any, sentence: str
) -> None:
    shutil.copytree(bundles / name, tmp_path / "b")
    model = onnx.load(tmp_path / "b" / "model.onnx", load_external_data=False)
    change(model)
    (tmp_path / "b" / "model.onnx").write_bytes(model.SerializeToString())
    changed(tmp_path / "b", **graph)
    with pytest.raises(BundleError, match=sentence):
        gramvec.load(tmp_path / "b", device="cpu")


def test_a_vector_that_is_no_number_is_zeros(tmp_path: Path) -> None:
    """An iRNN whose matrix doubles at each step overflows in a long text, and other texts of the call do not."""
    encoder, spec, vocabulary = made("irnn")
    with torch.no_grad():
        encoder.get_parameter("recurrent").copy_(2 * torch.eye(24))
    export_bundle(
        tmp_path / "b", name="b", kind="irnn", spec=spec, vocabulary=vocabulary, encoder=encoder,
        golden_texts=["red car"], provenance={}, card="",
    )  # fmt: skip
    embedder = gramvec.load(tmp_path / "b", device="cpu")
    texts = ["red green car", "red " * 500]
    found = embedder.embed(texts)
    assert np.linalg.norm(found[0]) == pytest.approx(1)
    assert not found[1].any()
    assert found[0].tobytes() == embedder.embed(texts[:1]).tobytes()
    embedder.close()


def test_texts_of_about_one_length_go_together(bundles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = open_bundle(bundles / "rnn")
    runtime = OnnxRuntime.from_bundle(bundle)
    rng = np.random.default_rng(1)
    counts = np.append(rng.integers(0, 90, 300), [0, 4_000, 1])
    offsets = np.cumsum(np.append(0, counts)).astype(np.int64)
    ids = rng.integers(0, bundle.manifest.rows, offsets[-1]).astype(np.int32)
    batch = FeatureBatch(ids, offsets)
    calls: list[list[int]] = []
    call = runtime._call
    monkeypatch.setattr(runtime, "_call", lambda part: (calls.append(part.counts.tolist()), call(part))[1])
    found = runtime.run(batch)
    beside_a_row, *calls = calls  # which says what a text without rows is
    assert beside_a_row == [0, 1]
    assert [count for one in calls for count in one] == sorted(counts[counts > 0].tolist())
    assert all(max(one) * len(one) <= PLACES or len(one) == 1 for one in calls)
    alone = np.concatenate([runtime.run(batch.part(i, i + 1)) for i in range(len(batch))])
    np.testing.assert_allclose(found, alone, atol=1e-6)
    assert runtime.run(batch_of()).shape == (0, 24)
    assert take_texts(batch, np.array([5, 2, 2])).counts.tolist() == counts[[5, 2, 2]].tolist()
    runtime.close()


@pytest.mark.parametrize("name", MODELS)
def test_explanations_leave_features_out(bundles: Path, name: str) -> None:
    embedder = gramvec.load(bundles / name, device="cpu")
    texts = ("small red car", "large green  house")
    found = explain(embedder, *texts, top_k=5)
    assert found.score == pytest.approx(float(embedder.similarity(texts[:1], texts[1:])[0, 0]), abs=1e-6)
    assert sum(pair.contribution for pair in found.pairs) + found.rest + found.residual == pytest.approx(found.score)
    assert len(found.pairs) == 5
    assert found.by_occlusion
    # What a feature adds is by how much the score falls without it: embedded again here, by hand.
    units = []
    for text in texts:
        ids = embedder.bundle.featurizer([text]).ids
        without = [np.delete(ids, index) for index in range(len(ids))]
        batch = batch_of(ids, *without)
        vectors = embedder.vectors_of(batch).astype(np.float64)
        vectors[batch.counts == 0] = 0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units.append(vectors / np.where(lengths > 0, lengths, 1))
    cosines = units[0] @ units[1].T
    np.testing.assert_allclose(found.source.contributions, cosines[0, 0] - cosines[1:, 0], atol=1e-6)
    np.testing.assert_allclose(found.target.contributions, cosines[0, 0] - cosines[0, 1:], atol=1e-6)
    interactions = cosines[0, 0] - cosines[1:, :1] - cosines[:1, 1:] + cosines[1:, 1:]
    largest = np.sort(np.abs(interactions).ravel())[::-1][:5]
    np.testing.assert_allclose([abs(pair.contribution) for pair in found.pairs], largest, atol=1e-6)
    assert found.source.characters.shape == (len(texts[0]),)
    assert found.source.characters.sum() == pytest.approx(found.source.contributions.sum())
    nothing = explain(embedder, "", "zzz" if MODELS[name][1] == WORDS else "\u4e00")
    assert nothing.score == 0
    assert nothing.pairs == []
    embedder.close()


def test_explanations_of_long_texts_leave_pieces_out(bundles: Path) -> None:
    embedder = gramvec.load(bundles / "charlstm", device="cpu")
    rows = embedder.bundle.featurizer(["small red car " * 20]).ids
    each, whole = shares(embedder, rows)
    assert each.shape == (len(rows), 24)
    assert len(np.unique(each, axis=0)) <= MAX_PIECES
    assert np.linalg.norm(whole) == pytest.approx(1)
    longest = explain(embedder, "small red car " * 292, "tree")
    assert len(longest.source.characters) == 14 * 292
    embedder.close()


def test_a_row_has_no_vector_of_its_own(bundles: Path) -> None:
    embedder = gramvec.load(bundles / "charlstm", device="cpu")
    with refused(BundleError, "order"):
        nearest_ngrams(embedder, "e", k=3)
    embedder.close()


def test_they_are_served_over_http(bundles: Path) -> None:
    for name in ("dan", "lstm", "charcnn-b"):
        embedder = gramvec.load(bundles / name, device="cpu")
        with running(Settings(), embedder) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
            texts = [*texts_of(40, 6), "red " * 500]
            answer = client.post("/embed", json={"inputs": texts})
            assert answer.status_code == 200
            np.testing.assert_array_equal(np.array(answer.json(), np.float32), embedder.embed(texts))
            body = {"inputs": {"source_sentence": "red car", "target_sentence": "old house"}}
            explained = client.post("/explain", json=body).json()
            assert explained["score"] == pytest.approx(explain(embedder, "red car", "old house").score, abs=1e-6)
            assert len(explained["characters"][0]) == len("red car")
        embedder.close()


def config_of(name: str, folder: Path, source: str, **sections: dict[str, Any]) -> Path:
    """The config of a model of this kind; source: "data" or "texts", and the file that it is in."""
    encoder, features, dimension, _ = MODELS[name]
    model = {"name": name, "kind": kind_of(name), "dimension": dimension}
    lines = []
    for section, values in {"model": model, "encoder": encoder, "features": features, **sections}.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path = folder / f"{name}.toml"
    path.write_text("\n".join([*lines, f"[[{source}]]", f'path = "{source}.tsv"', ""]))
    return path


@pytest.mark.parametrize("name", MODELS)
def test_they_are_trained_by_the_same_loop(tmp_path: Path, name: str) -> None:
    texts = [text for text in texts_of(80, 7, 5) if text]
    (tmp_path / "data.tsv").write_text("".join(f"{one}\t{' '.join(reversed(one.split()))} tree\n" for one in texts))
    training = {"batch": 8, "steps": 6, "rate": 0.01, "l2": 1e-6, "l2_composition": 1e-5}
    config = config_of(name, tmp_path, "data", training=training)
    result = call("fit", config, "--data", tmp_path, "--out", tmp_path / "run", "--export", tmp_path / "bundle")
    assert result.exit_code == 0, result.output
    run, embedder = load_run(tmp_path / "run"), gramvec.load(tmp_path / "bundle", device="cpu")
    expected = make_encode(run.encoder, embedder.bundle.featurizer)(texts)
    np.testing.assert_allclose(embedder.embed(texts, normalize=False), expected, atol=2e-5)
    parity = embedder.manifest.provenance["parity"]
    assert parity["float32_vs_trainer"] < 1e-6
    embedder.close()


@pytest.mark.parametrize("name", ["lstm", "charlstm", "charcnn-a", "irnn"])
def test_they_are_distilled(tmp_path: Path, name: str) -> None:
    """A student that reads in order learns what a bag says of texts."""
    texts = sorted({text for text in texts_of(150, 8, 4) if text})
    (tmp_path / "texts.tsv").write_text("\n".join(texts))
    spec = FeatureSpec(orders=(), words=True)
    vocabulary = build_vocabulary(texts, spec)
    table = np.random.default_rng(1).normal(size=(len(vocabulary), 24)).astype(np.float32)
    export_table(
        tmp_path / "teacher", name="teacher", kind="gramvec", spec=spec, vocabulary=vocabulary, table=table,
        provenance={}, card="",
    )  # fmt: skip
    teacher_path = str(tmp_path / "teacher")
    distillation = {"teacher": teacher_path, "batch": 32, "rate": 0.01, "epochs": 60, "spans": 0, "misspelt": 0.0}
    config = config_of(name, tmp_path, "texts", distillation=distillation)
    options = ["--data", tmp_path, "--cache", tmp_path / "cache", "--out", tmp_path / "run"]
    result = call("distill", config, *options)
    assert result.exit_code == 0, result.output
    result = call("export", tmp_path / "run", "-o", tmp_path / "student")
    assert result.exit_code == 0, result.output
    teacher, student = (gramvec.load(tmp_path / one, device="cpu") for one in ("teacher", "student"))
    a, b = teacher.similarity(texts, texts), student.similarity(texts, texts)
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.7
    for one in (teacher, student):
        one.close()
