"""The nearest rows of an index in another order, by the n-grams that they share with the query."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import gramvec
from bulk_support import gramvec_command
from gramvec import Index
from gramvec.embed.spaces import Space
from gramvec.errors import InputError
from gramvec.lexical.similarity import overlap
from gramvec.lexical.sketch import LexicalSketch
from gramvec.search import weighing

pytest.importorskip("numkong")

TEXTS = [
    "Insulin is secreted by the beta cells of the pancreas.",
    "UCP2 lowers the secretion of insulin in obese mice.",
    "Mice that eat much sugar become fat and sick.",
    "The uncoupling protein 3 is found in muscles.",
]
QUERY = "uncoupling protein UCP2"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> gramvec.Index:
    path = tmp_path_factory.mktemp("index") / "texts.gvi"
    return gramvec.Index.build(path, [{"abstract": text} for text in TEXTS], column="abstract")


def slow_overlap(lexical: LexicalSketch, one: str, other: str) -> float:
    """By dictionaries of n-grams."""
    vectors = []
    for text in (one, other):
        padded = f" {' '.join(text.lower().split())} " if text.split() else ""
        ngrams = [padded[at : at + n] for n in lexical.orders for at in range(len(padded) - n + 1)]
        found = lexical.ngrams(text)
        spelt = [found.text[first:last] for first, last in zip(found.first, found.last, strict=True)]
        weights = dict(zip(spelt, lexical.weights.of(found.hashes).tolist(), strict=True))
        assert sorted(spelt) == sorted(ngrams)
        vectors.append({ngram: (1 + math.log(ngrams.count(ngram))) * weights[ngram] for ngram in ngrams})
    lengths = [math.sqrt(sum(value**2 for value in vector.values())) for vector in vectors]
    product = sum(value * vectors[1].get(ngram, 0) for ngram, value in vectors[0].items())
    return product / (lengths[0] * lengths[1]) if product else 0.0


def test_an_overlap_is_the_cosine_of_weighed_ngrams() -> None:
    lexical = LexicalSketch.of_texts([*TEXTS, QUERY], orders=(2, 3))
    texts = [*TEXTS, QUERY, "", " ", "abababab", "ÇÉ ÇÉ ÇÉ", "日本"]
    for query in texts:
        expected = [slow_overlap(lexical, query, text) for text in texts]
        assert overlap(lexical, query, texts).tolist() == pytest.approx(expected, abs=1e-12)
    assert overlap(lexical, QUERY, []).tolist() == []
    with pytest.raises(InputError, match="lone surrogate"):
        overlap(lexical, "\ud800", TEXTS)


@pytest.mark.parametrize("hybrid", [0.25, 0.5, 1])
def test_scores_are_the_mixture_and_in_order(index: gramvec.Index, hybrid: float) -> None:
    plain = {hit.id: hit for hit in index.search(QUERY)[0]}
    found = index.search(QUERY, k=3, hybrid=hybrid)[0]
    lexical = index.embedder.bundle.lexical
    assert lexical is not None
    shared = dict(zip("1234", overlap(lexical, QUERY, TEXTS), strict=True))
    expected = {one: (1 - hybrid) * plain[one].score + hybrid * shared[one] for one in plain}
    assert [hit.id for hit in found] == sorted(expected, key=lambda one: -expected[one])[:3]
    assert [hit.score for hit in found] == pytest.approx([expected[hit.id] for hit in found])
    assert all(hit.record == plain[hit.id].record for hit in found)


def test_none_is_the_search_without(index: gramvec.Index) -> None:
    assert index.search([QUERY, ""], hybrid=0) == index.search([QUERY, ""])
    assert len(index.search(["", " "], hybrid=0.5)) == 2


def test_texts_at_hand_may_weigh_them(tmp_path: Path) -> None:
    adapted = gramvec.load().adapted(TEXTS)
    index = gramvec.Index.build(tmp_path / "own.gvi", TEXTS, model=adapted)
    assert adapted.lexical is not None
    (hit,) = index.search(QUERY, k=1, hybrid=1)[0]
    assert hit.score == pytest.approx(overlap(adapted.lexical, QUERY, TEXTS).max())


def test_by_the_command(index: gramvec.Index) -> None:
    done = gramvec_command("search", index.path, QUERY, "-k", "2", "--hybrid", "0.5", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in found] == [hit.id for hit in index.search(QUERY, k=2, hybrid=0.5)[0]]
    assert np.isclose(found[0]["score"], index.search(QUERY, k=1, hybrid=0.5)[0][0].score, atol=1e-6)
    assert gramvec_command("search", index.path, QUERY, "--hybrid", "2").returncode == 2


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan, "half", True, None])
def test_what_is_no_share(index: gramvec.Index, wrong: float) -> None:
    with pytest.raises(InputError, match="hybrid must be a number from 0 to 1"):
        index.search(QUERY, hybrid=wrong)


def test_a_model_that_weighs_nothing(tmp_path: Path) -> None:
    index = gramvec.Index.build(tmp_path / "sif.gvi", TEXTS, model="sif")
    with pytest.raises(InputError, match="sif does not say what n-grams weigh"):
        index.search(QUERY, hybrid=0.5)


TITLES = [f"canon powershot sd{37 * row} digital camera" for row in range(120)]


@pytest.mark.parametrize("space", ["semantic", "both", "lexical"])
def test_an_index_weighs_ngrams_by_its_own_texts_and_goes_on_so(tmp_path: Path, space: Space) -> None:
    path = tmp_path / "x.gvi"
    model = gramvec.load(device="cpu", space=space)
    built = Index.build(path, TITLES, model=model)
    found = built.search("camera sd1110", k=3, hybrid=0.5)
    assert found[0][0].record["text"] == TITLES[30]
    opened = Index.open(path)
    assert [hits == found[0] for hits in opened.search("camera sd1110", k=3, hybrid=0.5)] == [True]
    assert opened.lexical is not None
    assert opened.lexical.digest == LexicalSketch.of_texts(TITLES, **model.bundle.lexical.shape, a=0.03).digest  # type: ignore[union-attr]
    plain = Index.build(tmp_path / "y.gvi", TITLES, model=model, weights="model")
    assert plain.lexical is None
    assert (plain.header.digest == built.header.digest) == (space == "semantic")
    # What is added is weighed as the rest, and rows that go take no weights with them.
    opened.add(["canon powershot sd9999"])
    opened.remove(["1"])
    again = Index.open(path, model=gramvec.load(device="cpu"))
    assert again.lexical is not None
    assert again.lexical.digest == opened.lexical.digest
    assert again.search("sd9999", k=1)[0][0].id == "121"


def test_an_adapted_model_keeps_its_weights(tmp_path: Path) -> None:
    adapted = gramvec.load(device="cpu").adapted(TITLES[:5])
    rows = [{"text": title, "team": f"t{row % 7}"} for row, title in enumerate(TITLES)]
    built = Index.build(tmp_path / "x.gvi", rows, model=adapted, filters=["team"])
    assert {hit.record["team"] for hit in built.search("sd37", where={"team": "t3"})[0]} == {"t3"}
    assert built.header.digest == adapted.digest
    assert Index.build(tmp_path / "y.gvi", TITLES[:99]).lexical is None
    assert Index.open(tmp_path / "x.gvi").embedder.digest == adapted.digest


def test_a_sample_is_of_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "MOST_TEXTS", 8)
    assert weighing.sampled(map(str, range(8))) == [str(n) for n in range(8)]
    assert weighing.sampled(map(str, range(9))) == ["0", "2", "4", "6", "8"]
    assert weighing.sampled(map(str, range(100))) == [str(n) for n in range(0, 100, 16)]
    assert weighing.sampled(iter(["x" * 5_000])) == ["x" * 4_096]


def test_a_pipe_is_weighed_by_the_model() -> None:
    assert weighing.weighed(gramvec.load(device="cpu"), Path("-"), None, "text") is None


@pytest.mark.parametrize("change", ["zero weight", "orders", "columns", "scale", "bytes", "cut"])
def test_a_strangers_weights_are_refused(tmp_path: Path, change: str) -> None:
    """With digests that are right."""
    path = tmp_path / "x.gvi"
    layout = Index.build(path, TITLES, model=gramvec.load(device="cpu"))._layout
    data, said = bytearray(path.read_bytes()), layout.header.weights
    assert said is not None
    if change == "zero weight":
        data[-1] = 0
    elif change == "cut":
        del data[-1]
        said = said.model_copy(update={"bytes": said.bytes - 1})
    else:
        wrong = {"orders": (4, 3), "columns": 255, "scale": 1e9, "bytes": said.bytes + 8}[change]
        said = said.model_copy(update={change: wrong})
    body = hashlib.sha256(data[4096:]).hexdigest()
    data[:4096] = layout.header.model_copy(update={"weights": said, "body": body}).packed()
    path.write_bytes(data)
    with pytest.raises(InputError, match="a damaged index"):
        Index.open(path)
