"""`gramvec import`: the vectors of model2vec and sentence-transformers, and folders that are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

import gramvec
from conftest import ROOT
from gramvec.bundle.bundle import open_bundle
from gramvec.cli.main import cli
from gramvec.embed.verify import compare
from gramvec.errors import BundleError, GramvecError, InputError
from gramvec.explain.contributions import explain
from gramvec.explain.neighbors import nearest_words
from gramvec.server.settings import Settings
from gramvec.text.array_file import pack_arrays
from support.errors import refused
from support.http import running
from support.static import WORDS, table, word_pieces, write_model2vec, write_static_embedding

pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install '.[static]'")
pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[static]'")

from gramvec.hub.static_models import import_static

TEXTS = [
    "the cat sat on a mat.",
    "",
    " ",
    "zzz",
    "CAF\u00c9s!  cats",
    "the " * 2_000,
    "x" * 5_000,
    "\u65e5 \u03a3 12",
    "\x00a",
]


def embedded(folder: Path, out: Path, *, normalize: bool = False) -> np.ndarray:
    import_static(folder, out, precision="float32")
    with closing(gramvec.load(out, device="cpu")) as opened:
        return opened.embed(TEXTS, normalize=normalize)


def means(rows: np.ndarray, longest: int | None = None, dropped: int | None = None) -> np.ndarray:
    made, vectors = word_pieces(), []
    characters = None if longest is None else longest * int(np.median([len(word) for word in WORDS]))
    for text in (text[:characters] for text in TEXTS):
        ids = [one for one in made.encode(text, add_special_tokens=False).ids[:longest] if one != dropped]
        vectors.append(rows[ids].mean(axis=0) if ids else np.zeros(rows.shape[1]))
    return np.array(vectors)


def test_vectors_are_means_of_the_rows_of_tokens(tmp_path: Path) -> None:
    found = embedded(write_static_embedding(tmp_path / "st"), tmp_path / "b")
    assert np.abs(found - means(table())).max() < 1e-6
    assert open_bundle(tmp_path / "b").manifest.provenance["imported"]["format"] == "sentence-transformers"


def test_weights_and_the_mapping_are_folded_into_the_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    mapping, weights = rng.integers(0, 9, len(WORDS)), rng.uniform(0.1, 2, len(WORDS)).astype(np.float32)
    arrays = {"embeddings": table(9), "mapping": mapping, "weights": weights}
    found = embedded(write_model2vec(tmp_path / "m", arrays=arrays, max_length=30), tmp_path / "b")
    # model2vec leaves unknown words out, and cuts texts at 30 tokens and at 30 tokens of median length.
    assert np.abs(found - means(table(9)[mapping] * weights[:, None], 30, dropped=1)).max() < 1e-6


@pytest.mark.filterwarnings("ignore")
def test_vectors_are_model2vecs(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec", reason="model2vec is not installed: pip install --group bench")
    rng = np.random.default_rng(2)
    more: dict[str, Any] = {
        "weights": rng.uniform(0.1, 2, len(WORDS)).astype(np.float32),
        "token_mapping": rng.integers(0, 9, len(WORDS)),
    }
    for name, rows, given in (("plain", table(), {}), ("all", table(9), more)):
        theirs = model2vec.StaticModel(rows, word_pieces(), config={}, normalize=True, **given)
        theirs.save_pretrained(tmp_path / name)
        expected = model2vec.StaticModel.from_pretrained(tmp_path / name).encode(TEXTS)
        found = embedded(tmp_path / name, tmp_path / f"{name}-bundle", normalize=True)
        assert np.abs(found - expected).max() < 1e-6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    modules = library.sentence_transformer.modules
    parts = [modules.StaticEmbedding(word_pieces(), embedding_weights=table()), modules.Normalize()]
    library.SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "st"))
    expected = library.SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(TEXTS)
    assert np.abs(embedded(tmp_path / "st", tmp_path / "b", normalize=True) - expected).max() < 1e-6


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
def test_the_precision_is_the_one_asked_for(tmp_path: Path, precision: Any) -> None:
    manifest, _ = import_static(write_model2vec(tmp_path / "m"), tmp_path / "b", precision=precision)
    assert manifest.graph.precision == precision
    assert (
        0 <= manifest.provenance["parity"]["stored_vs_float32"] < {"float32": 1e-6, "int4": 5e-2}.get(precision, 1e-3)
    )


def test_int8_is_the_default_unless_it_costs_too_much(tmp_path: Path) -> None:
    assert import_static(write_model2vec(tmp_path / "m"), tmp_path / "b")[0].graph.precision == "int8"
    rows = table() * np.float32(1e-3)
    rows[:, 0] = np.where(np.arange(len(rows)) % 2, 1, -1)  # sums to nothing, and takes all bits of a row
    rows[7, 0] = 1e4
    coarse = write_model2vec(tmp_path / "n", arrays={"embeddings": rows})
    assert import_static(coarse, tmp_path / "c")[0].graph.precision == "float16"


def test_an_imported_model_is_a_bundle_like_any_other(tmp_path: Path) -> None:
    out = tmp_path / "static"
    done = CliRunner().invoke(cli, ["import", str(write_model2vec(tmp_path / "m")), "-o", str(out)])
    assert done.exit_code == 0 and "26 tokens of 8 columns in int8" in done.output, done.output
    with closing(gramvec.load(out, device="cpu")) as opened:
        assert compare(opened, TEXTS).agrees
        found = explain(opened, "the cat", "a cat sat")
        assert found.score == pytest.approx(
            float(np.prod(opened.embed(["the cat", "a cat sat"]), axis=0).sum()), abs=1e-5
        )
        expected = opened.embed(["cats"])[0]
        assert {one.text for one in nearest_words(opened, "cats", k=5)} <= {*WORDS}
    with running(Settings(model=str(out), device="cpu")) as server:
        answer = httpx.post(f"{server.url}/embed", json={"inputs": ["cats"]}).json()
    assert np.abs(np.array(answer[0]) - expected).max() < 1e-6
    assert "License of the source: mit" in (out / "README.md").read_text()


def test_nothing_of_the_trainer_or_torch_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from gramvec.cli.main import cli; cli(sys.argv[1:], standalone_mode=False); "
        "assert not {'torch', 'gramvec_training', 'transformers'} & {*sys.modules}"
    )
    folder = write_model2vec(tmp_path / "m")
    subprocess.run(
        [sys.executable, "-c", code, "import", folder, "-o", tmp_path / "b"], check=True, timeout=60, cwd=ROOT
    )


def test_a_folder_that_is_in_use_is_kept(tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path / "m")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").write_text("mine")
    with pytest.raises(GramvecError):
        import_static(folder, tmp_path / "b")
    assert (tmp_path / "b" / "mine.txt").read_text() == "mine"


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model2vec(tmp_path / "m")
    import_static(folder, tmp_path / "b")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for call in (lambda: import_static(folder, tmp_path / "c"), lambda: open_bundle(tmp_path / "b")):
        with refused(InputError, "gramvec[static]"):
            call()


def _tensors(**arrays: np.ndarray) -> Callable[[Path], None]:

    return lambda folder: _write(folder, "model.safetensors", pack_arrays("test", 1, arrays))


def _write(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)


def _huge(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, size)


def _pipe(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


def _modules(*kinds: str, path: str = "") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "config.json").unlink()
        modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for kind in kinds]
        _write(folder, "modules.json", json.dumps(modules).encode())

    return change


LYING = json.dumps({"embeddings": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 64]}}).encode()
NAN = np.full((len(WORDS), 4), np.nan, np.float32)
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a tokenizer of a gigabyte": (_huge("tokenizer.json", 2**30), "not a file of 1 to"),
    "a config of a gigabyte": (_huge("config.json", 2**30), "not a file of 1 to"),
    "a pipe": (_pipe, "no regular file"),
    "no table": (lambda folder: (folder / "model.safetensors").unlink(), "cannot be read"),
    "an empty table": (lambda folder: _write(folder, "model.safetensors", b""), "not a file of 1 to"),
    "a header that lies": (
        lambda folder: _write(folder, "model.safetensors", len(LYING).to_bytes(8, "little") + LYING + bytes(64)),
        "other bytes than its shape",
    ),
    "a header of 2**60 bytes": (
        lambda folder: _write(folder, "model.safetensors", (2**60).to_bytes(8, "little") + bytes(64)),
        "header of at most",
    ),
    "pickled weights": (lambda folder: _write(folder, "model.safetensors", b"\x80\x04cos\nsystem\n"), "header"),
    "a transformer": (_tensors(**{"encoder.weight": table()}), "neither"),
    "fewer rows than tokens": (_tensors(embeddings=table(5)), "the table 5 rows"),
    "numbers of one dimension": (_tensors(embeddings=table()[0]), "rows of"),
    "whole numbers": (_tensors(embeddings=np.ones((len(WORDS), 4), np.int64)), "not floats"),
    "not numbers": (_tensors(embeddings=NAN), "NaN"),
    "a mapping beyond the table": (
        _tensors(embeddings=table(), mapping=np.full(len(WORDS), 99)),
        "not among the 26",
    ),
    "a mapping below the table": (_tensors(embeddings=table(), mapping=np.full(len(WORDS), -1)), "not among"),
    "too few weights": (_tensors(embeddings=table(), weights=np.ones(3, np.float32)), "one for each of 26"),
    "a config that is a list": (lambda folder: _write(folder, "config.json", b"[]"), "not a JSON dict"),
    "a length below 1": (lambda folder: _write(folder, "config.json", b'{"max_length": -5}'), "-5 tokens"),
    "modules of a transformer": (_modules("Transformer", "Pooling"), "not a StaticEmbedding"),
    "a folder above": (_modules("StaticEmbedding", path="../secret"), "not a folder in it"),
    "modules that are numbers": (
        lambda folder: ((folder / "config.json").unlink(), _write(folder, "modules.json", b"[1]"))[1],
        "not a StaticEmbedding",
    ),
    "a folder that is not there": (lambda folder: folder.rename(folder.with_name("moved")), "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_folder_that_is_not_a_static_model_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    change, said = HOSTILE[name]
    folder = write_model2vec(tmp_path / "m")
    change(folder)
    with pytest.raises((BundleError, InputError), match=said) as raised:
        import_static(folder, tmp_path / "b")
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 600
    assert not [path for path in tmp_path.iterdir() if path.name not in ("m", "moved")]


def test_a_bundle_whose_tokenizer_was_exchanged_is_refused(tmp_path: Path) -> None:
    import_static(write_model2vec(tmp_path / "m"), tmp_path / "b")
    tokenizer = tmp_path / "b" / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes().replace(b'"cat"', b'"dog"'))
    with pytest.raises(BundleError, match=r"tokenizer\.json"):
        open_bundle(tmp_path / "b")
