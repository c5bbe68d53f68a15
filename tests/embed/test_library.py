"""The library takes what people have their texts in, and says what it cannot take."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import gramvec
from gramvec.embed.vectors import quantize
from gramvec.errors import BundleError, InputError
from support.errors import refused

pytestmark = pytest.mark.slow

TEXTS = ["cheap flights", "low-cost air fares", "", "café"]


class Column:
    """As a Series of pandas: `tolist`, a shape, and labels that iteration does not give."""

    def __init__(self, values: list[Any], name: str = "tolist") -> None:
        self.shape = (len(values),)
        setattr(self, name, lambda: values)

    def __iter__(self) -> Any:
        raise AssertionError("its values are had as a list, in one step")


@pytest.mark.parametrize(
    "made",
    [
        tuple,
        iter,
        lambda texts: (one for one in texts),
        lambda texts: map(str, texts),
        np.array,
        lambda texts: np.array(texts, object),
        pa.array,
        lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
        lambda texts: OrderedDict.fromkeys(texts).keys(),
        Column,
        lambda texts: Column(texts, "to_list"),
    ],
)  # fmt: skip
def test_any_iterable_of_texts_is_read_once(
    made: Callable[[list[str]], Iterable[str]], embedder: gramvec.Embedder
) -> None:
    expected = embedder.embed(TEXTS)
    assert embedder.embed(made(TEXTS)).tobytes() == expected.tobytes()
    assert np.concatenate(list(embedder.stream(made(TEXTS), batch_size=3))).tobytes() == expected.tobytes()
    scores = embedder.similarity(made(TEXTS), made(TEXTS[:2]))
    assert scores.tobytes() == embedder.similarity(TEXTS, TEXTS[:2]).tobytes()
    assert embedder.pair_similarity(made(TEXTS), made(TEXTS)).tolist() == pytest.approx([1, 1, 0, 1])


def test_an_open_file_is_its_lines(embedder: gramvec.Embedder, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("cheap flights\nlow-cost air fares\n")
    with (tmp_path / "texts.txt").open() as file:
        assert embedder.embed(file).tobytes() == embedder.embed(TEXTS[:2]).tobytes()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hello", "wrap it in a list"),
        (b"hello", "wrap it in a list"),
        ({"a": "b"}, "mapping"),
        ({"a", "b"}, r"\bset\b"),
        (np.array([["a", "b"]]), r"shape \(1, 2\)"),
        (np.array("a"), r"shape \(\)"),
        (5, r"iterable .*int"),
        (None, r"iterable .*NoneType"),
        (["a", None], r"text 1 .*missing \(None\)"),
        (["a", "b", float("nan")], r"text 2 .*missing \(nan\)"),
        (pa.array(["a", None]), r"text 1 .*missing"),
        (np.array([1.0, 2.0]), r"text 0 .*float"),
        (["a", 3], r"text 1 .*int"),
        ([b"a"], r"text 0 .*bytes"),
    ],
)
def test_what_is_no_texts_is_one_sentence(given: Any, said: str, embedder: gramvec.Embedder) -> None:
    with pytest.raises(InputError, match=said) as caught:
        embedder.embed(given)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=said):
        list(embedder.stream(given))


def test_a_stream_refuses_before_it_is_read_and_counts_over_all_batches(embedder: gramvec.Embedder) -> None:
    with pytest.raises(InputError, match="wrap it in a list"):
        embedder.stream("hello")
    with pytest.raises(InputError, match="number 4 .*text 1 .*missing") as caught:
        list(embedder.stream(["a"] * 5 + [None], batch_size=2))  # type: ignore[list-item]
    assert caught.value.index == 5


def test_vectors_are_compared_as_their_texts_are(embedder: gramvec.Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    np.testing.assert_allclose(embedder.similarity(vectors, vectors), embedder.similarity(TEXTS, TEXTS), atol=1e-6)
    np.testing.assert_allclose(embedder.similarity(vectors * 3, TEXTS), embedder.similarity(TEXTS, TEXTS), atol=1e-6)
    alone = embedder.similarity(vectors[:1], vectors)
    many: list[Any] = [list(vectors), vectors.tolist(), torch.from_numpy(vectors), vectors.astype(np.float64)]
    for given in many:
        assert embedder.similarity(given[0], given).tobytes() == alone.tobytes()
        assert embedder.similarity_pairwise(given, TEXTS).tolist() == pytest.approx([1, 1, 0, 1])
    with refused(InputError, "(8,)", "[n, 300]"):
        embedder.similarity(vectors[0, :8], TEXTS)
    with refused(InputError, "(1, 4, 300)", "[n, 300]"):
        embedder.similarity(vectors[None], TEXTS)
    with refused(InputError, "2 left", "4 right"):
        embedder.pair_similarity(iter(TEXTS[:2]), vectors)


def test_it_speaks_the_words_of_sentence_transformers(
    embedder: gramvec.Embedder, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = embedder.embed(TEXTS, normalize=False)
    assert embedder.encode(TEXTS).tobytes() == vectors.tobytes()
    assert embedder.encode(iter(TEXTS), batch_size=3).tobytes() == vectors.tobytes()
    assert embedder.encode(TEXTS[0]).tobytes() == vectors[0].tobytes()
    assert embedder.encode_query(TEXTS[0]).tobytes() == embedder.encode_document(TEXTS[0]).tobytes()
    assert embedder.encode([]).shape == (0, embedder.dimension)
    units = embedder.encode(TEXTS, normalize_embeddings=True, truncate_dim=8)
    assert units.tobytes() == embedder.embed(TEXTS, dimensions=8).tobytes()
    small = embedder.encode(TEXTS, normalize_embeddings=True, precision="int8")
    assert small.tobytes() == quantize(embedder.embed(TEXTS), "int8").tobytes()
    rows = embedder.encode(TEXTS, convert_to_numpy=False)
    assert isinstance(rows, list)
    tensor = embedder.encode(TEXTS, convert_to_tensor=True)
    assert torch.equal(tensor, torch.from_numpy(vectors))
    assert capsys.readouterr().err == ""
    embedder.encode(TEXTS, batch_size=1, show_progress_bar=True)
    assert "Batches: 100%" in capsys.readouterr().err
    shown = embedder.embed(TEXTS, show_progress_bar=True)
    assert f"{len(TEXTS)}/{len(TEXTS)}" in capsys.readouterr().err
    assert shown.tobytes() == embedder.embed(TEXTS).tobytes()
    assert embedder.get_sentence_embedding_dimension() == embedder.get_embedding_dimension() == 300
    assert embedder.similarity_fn_name == "cosine"
    same = embedder.encode(
        TEXTS, prompt="", device="cpu", output_value="sentence_embedding", pool=None, chunk_size=None
    )
    assert same.tobytes() == vectors.tobytes()
    assert embedder.encode(TEXTS, device=torch.device("cpu")).tobytes() == vectors.tobytes()
    assert embedder.max_seq_length == embedder.max_characters
    for options in ({"prompt": "query: "}, {"prompt_name": "query"}):
        with refused(InputError, "prompts"):
            embedder.encode(TEXTS, **options)  # type: ignore[arg-type]
    with refused(InputError, "int8", "length 1"):
        embedder.encode(TEXTS, precision="int8")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"precision": "int4"}, "precision: must be one of float32, .*, got 'int4'"),
        ({"device": "cuda:0"}, "the model is on cpu, where it was loaded"),
        ({"output_value": "token_embeddings"}, "the models have only vectors of sentences"),
        ({"pool": {}}, "encode has no pool here; leave it out"),
        ({"task": "query"}, "encode has no task here; leave it out"),
    ]
    for options, said in cases:
        with pytest.raises(InputError, match=said):
            embedder.encode(TEXTS, **options)
    with refused(InputError, "max_characters", "gramvec.load", "256"):
        embedder.max_seq_length = 256


def test_the_default_is_loaded_by_no_name_and_shows_what_it_is() -> None:
    embedder = gramvec.load(device="cpu", runtime="native")
    assert embedder.name == "gramvec-en"
    assert repr(embedder) == "<gramvec.Embedder gramvec-en: 300 columns, runtime native on cpu>"
    embedder.close()


def _embedded(embedder: gramvec.Embedder) -> bytes:
    return embedder.embed(TEXTS).tobytes()


def test_a_model_is_pickled_by_its_place_and_digest(bundle_copy: Path) -> None:
    embedder = gramvec.load(bundle_copy, device="cpu", max_characters=100, threads=1)
    pickled = pickle.dumps(embedder)
    assert len(pickled) < 1_000
    for again in (pickle.loads(pickled), copy.deepcopy(embedder)):
        assert (again.max_characters, again.threads, again.runtime) == (100, 1, embedder.runtime)
        assert _embedded(again) == _embedded(embedder)
        again.close()
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(_embedded, embedder).result() == _embedded(embedder)
    manifest = bundle_copy / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    with refused(BundleError, "another model"):
        pickle.loads(pickled)
    embedder.close()


def test_explain_and_neighbors_are_there_by_import_gramvec_alone() -> None:
    script = "import gramvec, sys; print('numpy' in sys.modules); print(gramvec.explain.explain.__name__, " \
        "gramvec.explain.nearest_words.__name__)"  # fmt: skip
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nexplain nearest_words\n"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_real_column_goes_in_as_it_is_and_a_gap_is_named(library: str, embedder: gramvec.Embedder) -> None:
    series: Any = pytest.importorskip(library, reason=f"{library} is not installed").Series
    expected = embedder.embed(TEXTS).tobytes()
    assert embedder.embed(series(TEXTS)).tobytes() == expected
    assert np.concatenate(list(embedder.stream(series(TEXTS), batch_size=3))).tobytes() == expected
    assert embedder.encode(series(TEXTS), normalize_embeddings=True).tobytes() == expected
    holed = series(["a", "b", None, "c"])
    with pytest.raises(InputError, match=r"text 2 .*missing \((None|nan)\)"):
        embedder.embed(holed)
    whole = holed.dropna() if library == "pandas" else holed.drop_nulls()  # whose labels are no longer 0, 1, 2
    assert embedder.embed(whole).tobytes() == embedder.embed(["a", "b", "c"]).tobytes()
    with refused(InputError, "text 0", "int"):
        embedder.embed(series([1, 2]))


@pytest.mark.parametrize("made", [tuple, np.array, pa.array, lambda texts: (one for one in texts), Column])
def test_sparse_vectors_take_what_dense_ones_do(made: Callable[[list[str]], Iterable[str]]) -> None:
    expected = gramvec.lexical.fit(TEXTS).embed(TEXTS)
    found = gramvec.lexical.fit(made(TEXTS)).embed(made(TEXTS))
    assert found.values.tobytes() == expected.values.tobytes()
    assert found.indices.tobytes() == expected.indices.tobytes()
    assert gramvec.lexical.fit(set(TEXTS)).weights.tobytes() == gramvec.lexical.fit(TEXTS).weights.tobytes()
    again = pickle.loads(pickle.dumps(gramvec.lexical.fit(TEXTS)))
    assert again.embed(TEXTS).values.tobytes() == expected.values.tobytes()


def test_joblib_takes_a_model_to_its_processes(embedder: gramvec.Embedder) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(embedder.embed)([text]) for text in TEXTS)
    assert np.concatenate(found).tobytes() == embedder.embed(TEXTS).tobytes()
