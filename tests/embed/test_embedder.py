from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from conftest import MODELS
from gramvec.embed.vectors import RawEmbeddings, cosine_matrix, cosine_pairs, finish, unit
from gramvec.errors import DeviceError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.runtime.base import Batching
from gramvec.runtime.native import NativeRuntime
from gramvec.text.memo import Memo
from support import reference
from support.errors import refused


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype == np.float32 and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_the_same_text_has_the_same_bytes_alone_and_in_any_batch(
    embedder: gramvec.Embedder, real_texts: list[str]
) -> None:
    together = embedder.embed(real_texts)
    alone = np.concatenate([embedder.embed([text]) for text in real_texts])
    assert same_bytes(together, alone)
    order = np.random.default_rng(0).permutation(len(real_texts))
    assert same_bytes(embedder.embed([real_texts[i] for i in order]), together[order])


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_any_text_has_a_finite_vector_of_length_one_or_zero(embedder: gramvec.Embedder, texts: list[str]) -> None:
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), embedder.dimension)
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))


def test_a_charagram_vector_is_the_papers_equation() -> None:
    """CHARAGRAM (Wieting et al. 2016, equation 1): tanh(b + the sum of the rows of the text's n-grams)."""
    embedder = gramvec.load(MODELS / "charagram-phrase", device="cpu")
    assert embedder.manifest.graph.activation == "tanh"
    text, entries = "the cat", embedder.bundle.vocabulary.entries()
    rows = table_of(embedder)[reference.featurize(text, embedder.bundle.spec, entries)]
    bias = np.arctanh(embedder.raw([""]).vectors[0].astype(np.float64))
    expected = np.tanh(bias + rows.sum(axis=0))
    np.testing.assert_allclose(without_memo(embedder, text), expected, atol=1e-5)
    # The memo's rows were rounded to int8 apart from their parts.
    np.testing.assert_allclose(embedder.raw([text]).vectors[0], expected, atol=0.03)
    embedder.close()


def test_the_default_models_vector_is_the_sum_of_its_rows(embedder: gramvec.Embedder) -> None:
    assert (embedder.manifest.graph.activation, embedder.manifest.graph.pooling) == ("linear", "sum")
    text, entries = "the cat's definately", embedder.bundle.vocabulary.entries()
    ids = reference.featurize(text, embedder.bundle.spec, entries)
    assert {entries[row].kind for row in ids} == {"ngram", "word"}
    expected = table_of(embedder)[ids].sum(axis=0)
    np.testing.assert_allclose(without_memo(embedder, text), expected, atol=1e-5)
    np.testing.assert_allclose(embedder.raw([text]).vectors[0], expected, atol=0.03 * np.abs(expected).max())


def without_memo(embedder: gramvec.Embedder, text: str) -> np.ndarray:
    bundle = embedder.bundle
    spelt_out = Featurizer(bundle.spec, bundle.vocabulary, memo=Memo.build([], bundle.vocabulary))
    return NativeRuntime(bundle).run(spelt_out([text]))[0]


def table_of(embedder: gramvec.Embedder) -> np.ndarray:
    """float64[rows, d]: each row of the vocabulary a feature's own: a row as it is stored, less that of its suffix."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(embedder.bundle.graph_path)
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    stored = arrays["table"].astype(np.float64) * arrays.get("scales", 1.0) * arrays.get("columns", 1.0)
    entries = embedder.bundle.vocabulary.entries()
    rows = {entry.text: row for row, entry in enumerate(entries) if entry.kind == "ngram"}
    table = stored[: len(entries)].copy()
    for text, row in rows.items():
        itself, *shorter = reference.suffixes(text, rows)
        assert itself == text
        if shorter:
            table[row] -= stored[rows[shorter[0]]]
    return table


def test_options(embedder: gramvec.Embedder) -> None:
    texts = ["a cat sat", "the dog ran"]
    raw = embedder.raw(texts).vectors
    assert same_bytes(embedder.embed(texts, normalize=False), raw)
    short = embedder.embed(texts, dimensions=7)
    assert short.shape == (2, 7)
    np.testing.assert_allclose(short, raw[:, :7] / np.linalg.norm(raw[:, :7], axis=1, keepdims=True), rtol=1e-5)
    assert same_bytes(embedder.embed(texts, dimensions=embedder.dimension), embedder.embed(texts))
    for bad in (0, -1, 301, True, 2.5):
        with refused(InputError, "dimensions", "300"):
            embedder.embed(texts, dimensions=bad)  # type: ignore[arg-type]
    assert embedder.embed([]).shape == (0, 300)


class Recorded:
    """A runtime that wants calls of so many texts, and remembers how it was called."""

    def __init__(self, inner: Any, texts: int) -> None:
        self._inner = inner
        self.batching = Batching(texts=texts)
        self.sizes: list[int] = []

    def embed(self, featurizer: Featurizer, texts: Sequence[str]) -> Any:
        self.sizes.append(len(texts))
        return self._inner.embed(featurizer, texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize(
    ("wanted", "threads", "texts", "sizes"),
    [
        (512, 1, 1_200, [512, 512, 176]),
        (512, 4, 1_200, [512, 512, 176]),
        (4_096, 1, 5_000, [4_096, 904]),
        (4_096, 8, 4_096, [4_096]),  # no more than one call: nobody has to wait for another
        (4_096, 3, 6_000, [2_000, 2_000, 2_000]),
        (4_096, 64, 6_000, [512] * 11 + [368]),
    ],
)
def test_a_call_is_cut_as_the_runtime_wants(
    embedder: gramvec.Embedder, wanted: int, threads: int, texts: int, sizes: list[int]
) -> None:
    runtime = Recorded(embedder._runtime, wanted)
    cut = gramvec.Embedder(embedder.bundle, runtime, threads=threads)
    batch = [f"text {number % 9}" for number in range(texts)]
    expected = embedder.embed(batch[:9])[np.arange(texts) % 9]
    for embed in (cut.embed, lambda texts: cut.raw(texts).units):
        runtime.sizes.clear()
        assert same_bytes(embed(batch), expected)
        assert sorted(runtime.sizes, reverse=True) == sizes
    runtime.sizes.clear()
    assert sum(map(len, cut.stream(iter(batch)))) == texts
    assert max(runtime.sizes) <= wanted


def test_loops_that_give_other_lengths_do_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(vectors: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        units = unit(vectors, out)
        units[-1, -1] += 1e-5
        return units

    monkeypatch.setattr("gramvec.embed.loading.unit", wrong)
    with refused(DeviceError, "length 1"):
        gramvec.load("charagram-phrase", device="cpu")


def test_truncation(embedder: gramvec.Embedder) -> None:
    short = gramvec.Embedder(embedder.bundle, embedder._runtime, max_characters=3)
    with refused(InputError, "text 1", "7", "3") as caught:
        short.embed(["abc", "abc def"])
    assert caught.value.index == 1
    assert same_bytes(short.embed(["abc def"], truncate=True), short.embed(["abc"]))
    assert same_bytes(short.embed(["abc def"], truncate=True, truncation_direction="left"), short.embed(["def"]))
    with refused(InputError, "'left'", "'right'"):
        short.embed(["a"], truncation_direction="up")  # type: ignore[arg-type]
    with refused(InputError, "max_characters", "1"):
        gramvec.Embedder(embedder.bundle, embedder._runtime, max_characters=0)


def test_bad_texts_are_refused_with_their_index(embedder: gramvec.Embedder) -> None:
    for bad, message in ((None, "is missing"), (b"x", "type bytes"), ("\ud800", "lone surrogate")):
        with pytest.raises(InputError, match=f"text 1 .*{message}") as caught:
            embedder.embed(["fine", bad])  # type: ignore[list-item]
        assert caught.value.index == 1


def test_similarity_is_a_cosine(embedder: gramvec.Embedder) -> None:
    left, right = ["a cat sat on a mat", ""], ["the cat sat", "a cat sat on a mat", "\u2003"]
    scores = embedder.similarity(left, right)
    a, b = embedder.embed(left), embedder.embed(right)
    assert scores.shape == (2, 3)
    np.testing.assert_allclose(scores[0, :2], a[0] @ b[:2].T, atol=1e-6)
    assert scores[0, 1] == pytest.approx(1.0, abs=1e-6)
    assert scores[1].tolist() == [0, 0, 0]
    assert scores[0, 2] == 0
    assert embedder.similarity([], right).shape == (0, 3)


def test_a_pair_scores_the_same_bytes_in_any_shape(embedder: gramvec.Embedder, real_texts: list[str]) -> None:
    left, right = embedder.raw(real_texts[:40]), embedder.raw(real_texts[40:80])
    matrix = cosine_matrix(left, right)
    assert same_bytes(np.ascontiguousarray(np.diagonal(matrix)), cosine_pairs(left, right))
    one = cosine_matrix(left.take(np.array([3])), right)
    assert same_bytes(one[0], matrix[3])
    with refused(InputError, "1 left", "2 right"):
        embedder.pair_similarity(["a"], ["b", "c"])


def test_scores_stay_within_bounds_and_zero_vectors_stay_zero() -> None:
    random = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    raw = RawEmbeddings.from_vectors(random, np.ones(200, np.int64))
    scores = cosine_matrix(raw, raw)
    assert scores.max() <= 1
    assert scores.min() >= -1
    zero = np.zeros((1, 5), np.float32)
    assert finish(zero, normalize=True, dimensions=3).tolist() == [[0, 0, 0]]


def test_a_stream_is_lazy_and_complete(embedder: gramvec.Embedder) -> None:
    drawn: list[int] = []

    def texts() -> object:
        for i in range(1000):
            drawn.append(i)
            yield f"text {i}"

    stream = embedder.stream(texts(), batch_size=64)  # type: ignore[arg-type]
    assert drawn == []
    first = next(stream)
    assert len(drawn) == 64
    rest = list(stream)
    everything = np.concatenate([first, *rest])
    assert same_bytes(everything, embedder.embed([f"text {i}" for i in range(1000)]))
    with pytest.raises(InputError, match="batch_size"):
        next(embedder.stream(["a"], batch_size=0))


def test_threads_get_what_one_caller_gets(embedder: gramvec.Embedder, real_texts: list[str]) -> None:
    expected = embedder.embed(real_texts)
    start = threading.Barrier(4)

    def run(_: int) -> np.ndarray:
        start.wait()
        return embedder.embed(real_texts)

    with ThreadPoolExecutor(4) as pool:
        assert all(same_bytes(vectors, expected) for vectors in pool.map(run, range(4)))


def test_what_is_exported() -> None:
    assert sorted(gramvec.__all__) == gramvec.__all__
    assert all(hasattr(gramvec, name) for name in gramvec.__all__)
    assert set(gramvec.__all__) <= set(dir(gramvec))
    assert not hasattr(gramvec, "no_such_name")
