"""Explanations against the sum written out with plain strings, and one by hand."""

from __future__ import annotations

import re
import shutil
import tracemalloc
from bisect import bisect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_features import CORPUS

import gramvec
from conftest import MODELS, SHIPPED
from gramvec.errors import InputError
from gramvec.explain.contributions import MAX_CHARACTERS, Explanation, explain
from gramvec.explain.neighbors import vocabulary_words
from gramvec.features.spans import locate
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.export.bundle import NO_MEMO, ChosenChunks, read_weights
from support import reference
from support.errors import refused
from support.training import export_table

pytestmark = pytest.mark.slow

ODD = ["e\u0301", "\u0130", "I\u0307", "\t", "\n", "\u00a0", "\u3000", "🙂", "👩\u200d👧", "\u1112\u1161\u11ab",
       "\u0f73", "\u0344", "\u2126", "q\u0323\u0307", "\ufb01", "日", "A", " ", "", "\x1c", "-"]  # fmt: skip
WORDS = ["the", "The quick", "brown", "fox,", "lazy dog", "jumps", "zzqx", "cheap", "vehicals", "not", "good"]
TEXTS = st.one_of(
    st.lists(st.sampled_from(ODD + WORDS), max_size=12).map(lambda parts: " ".join(parts)),
    st.lists(st.sampled_from(ODD + WORDS), max_size=8).map("".join),
    st.text(max_size=20).map(lambda text: "".join(c for c in text if not 0xD800 <= ord(c) < 0xE000)),
)
RARELY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# What contributions may leave of a score without a bias.
ROUNDING = 1e-5

VARIANTS: dict[str, dict[str, Any]] = {
    "sum": {},
    "mean": {"pooling": "mean", "spec": FeatureSpec(orders=(), words=True, unknown_words="row")},
    "tanh": {"activation": "tanh"},
    "tanh and bias": {"activation": "tanh", "bias": True},
    "bias": {"bias": True},
    "float16": {"precision": "float16"},
    "int8": {"precision": "int8"},
    "letters": {"spec": FeatureSpec(orders=(1, 3), words=False, lowercase=False)},
    "spelt": {"spec": FeatureSpec(orders=(1, 2, 3), words=True, unknown_words="ngrams")},
}
NAMES = [*VARIANTS, "memo", *SHIPPED]


def exported(path: Path, *, spec: FeatureSpec, vocabulary: Vocabulary, table: np.ndarray, **changes: Any) -> Path:
    arguments: dict[str, Any] = {
        "name": "small", "kind": "test", "bias": None, "pooling": "sum", "activation": "linear",
        "golden_texts": CORPUS[:2], "parity_texts": CORPUS[:2], "memo": NO_MEMO, "provenance": {}, "card": "",
    }  # fmt: skip
    export_table(path, spec=spec, vocabulary=vocabulary, table=table, **(arguments | changes))
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], gramvec.Embedder]]:
    embedders: dict[str, gramvec.Embedder] = {}

    def _opened(name: str) -> gramvec.Embedder:
        if name not in embedders:
            path = MODELS / name if name in SHIPPED else make(tmp_path_factory.mktemp("models") / "m", name)
            embedders[name] = gramvec.load(path, device="cpu", runtime="native")
        return embedders[name]

    yield _opened
    for embedder in embedders.values():
        embedder.close()


def make(path: Path, name: str) -> Path:
    rng = np.random.default_rng(3)
    changes = dict(VARIANTS.get(name, {}))
    spec = changes.pop("spec", FeatureSpec(orders=(2, 3), words=True))
    vocabulary = build_vocabulary(CORPUS * 2 + ["café 🙂 ié"] * 3, spec)
    table = rng.normal(0, 0.3, (len(vocabulary), 37)).astype(np.float32)
    if changes.get("bias"):
        changes["bias"] = rng.normal(0, 0.3, 37).astype(np.float32)
    if name == "memo":
        changes["memo"] = ChosenChunks(["the", "quick", "fox,"], ["e q"])
    return exported(path, spec=spec, vocabulary=vocabulary, table=table, **changes)


def parts_of(found: Explanation) -> float:
    return sum(pair.contribution for pair in found.pairs) + found.rest


@pytest.mark.parametrize("name", NAMES)
@RARELY
@given(source=TEXTS, target=TEXTS)
@example(source="", target="the")
@example(source="the quick brown fox, the lazy dog", target="The  quick\tfox")
def test_the_parts_make_the_score(
    opened: Callable[[str], gramvec.Embedder], name: str, source: str, target: str
) -> None:
    embedder = opened(name)
    found = explain(embedder, source, target, top_k=5)
    score = float(embedder.similarity([source], [target])[0, 0])
    assert found.score == score
    assert parts_of(found) + found.residual == pytest.approx(score, abs=1e-9)
    for side in (found.source, found.target):
        assert side.contributions.sum() == pytest.approx(parts_of(found), abs=1e-9)
        assert side.characters.sum() == pytest.approx(parts_of(found) if side.text else 0, abs=1e-9)
        assert len(side.characters) == len(side.text)
        assert 0 <= side.coverage <= 1
    graph = embedder.manifest.graph
    if graph.stored is not None and graph.stored.bias is None:
        assert abs(found.residual) <= ROUNDING
    sizes = [abs(pair.contribution) for pair in found.pairs]
    assert sizes == sorted(sizes, reverse=True)
    if score == 0:
        assert parts_of(found) == pytest.approx(0, abs=ROUNDING)
    assert sum(pair.contribution for pair in found.words) + found.words_rest == pytest.approx(parts_of(found), abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@RARELY
@given(source=TEXTS, target=TEXTS)
@example(source="", target="the")
@example(source=" \tthe quick\n\nbrown fox, the", target="The  quick\tfox ")
def test_words_have_their_letters_shares(
    opened: Callable[[str], gramvec.Embedder], name: str, source: str, target: str
) -> None:
    found = explain(opened(name), source, target, top_k=1000)
    assert found.words_rest == pytest.approx(0, abs=1e-9)
    for side, words in (
        (found.source, [(pair.source, pair.contribution) for pair in found.words]),
        (found.target, [(pair.target, pair.contribution) for pair in found.words]),
    ):
        starts = [one.start() for one in re.finditer(r"\S+", side.text)] or [0]
        of = [bisect(starts, place) - 1 for place in range(len(side.text))]
        expected = dict.fromkeys(starts, 0.0)
        for feature, contribution in zip(side.features, side.contributions.tolist(), strict=True):
            inked = [of[place] for place in range(feature.start, feature.end) if not side.text[place].isspace()]
            for word in inked or [min(bisect(starts, feature.start - 1), len(starts) - 1)]:
                expected[starts[word]] += contribution / (len(inked) or 1)
        got = dict.fromkeys(starts, 0.0)
        for word, contribution in words:
            assert side.text[word.start : word.end] == word.text
            got[word.start] += contribution
        assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@RARELY
@given(text=TEXTS)
@example(text="  Cafe\u0301 \t\u0130e\u0301\n")
@example(text="the\u0338\u0301 \u1112\u1161\u11ab\u11a8")
def test_features_stand_where_their_spans_say(opened: Callable[[str], gramvec.Embedder], name: str, text: str) -> None:
    bundle = opened(name).bundle
    found = locate(text, bundle.spec, bundle.vocabulary)
    assert found.rows.tolist() == bundle.featurizer([text]).ids.tolist()
    assert found.text == reference.normalized(bundle.spec.read(text), bundle.spec.lowercase)
    composed = bundle.spec.read(text) == text
    for index, (start, end) in enumerate(zip(found.start.tolist(), found.end.tolist(), strict=True)):
        assert 0 <= start <= end <= len(text)
        there = reference.normalized(bundle.spec.read(text[start:end]), bundle.spec.lowercase).strip()
        spelt = found.spell(index).strip()
        assert there == spelt if composed else spelt in there


@pytest.mark.parametrize("name", ["sum", "mean", "tanh and bias", "letters", "spelt", "memo"])
def test_the_contributions_are_those_of_the_sum_written_out(
    opened: Callable[[str], gramvec.Embedder], name: str
) -> None:
    embedder = opened(name)
    texts = ["the quick brown fox, the quick zzz", "The lazy the dog 🙂"]
    found = explain(embedder, *texts, top_k=1000)
    table, bias = read_weights(embedder.bundle)
    shift = np.zeros(table.shape[1]) if bias is None else np.asarray(bias, np.float64)
    entries = embedder.bundle.vocabulary.entries()
    rows = [reference.featurize(text, embedder.bundle.spec, entries) for text in texts]
    graph = embedder.manifest.graph
    parts, lengths = [], []
    for ids in rows:
        each = table[ids].astype(np.float64) / (len(ids) if graph.pooling == "mean" else 1)
        total = each.sum(axis=0) + shift
        gain = np.tanh(total) / total if graph.activation == "tanh" else np.ones_like(total)
        parts.append(each * gain)
        lengths.append(np.linalg.norm(total * gain))
    products = parts[0] @ parts[1].T / (lengths[0] * lengths[1])
    np.testing.assert_allclose(found.source.contributions, products.sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.target.contributions, products.sum(axis=0), atol=1e-6)
    merged: dict[tuple[int, int], float] = {}
    for i, one in enumerate(rows[0]):
        for j, other in enumerate(rows[1]):
            merged[one, other] = merged.get((one, other), 0.0) + products[i, j]
    if name != "mean":  # there words of their own share a row
        largest = sorted(map(abs, merged.values()), reverse=True)[:1000]
        np.testing.assert_allclose([abs(pair.contribution) for pair in found.pairs], largest, atol=1e-6)
    for pair in found.pairs:
        for text, feature in zip(texts, (pair.source, pair.target), strict=True):
            assert reference.normalized(text[feature.start : feature.end], True).strip() == feature.text.strip().lower()


WORDS_ONLY = FeatureSpec(orders=(), words=True, unknown_words="row")
TINY = Vocabulary.build([Entry("word", "a", 2), Entry("word", "b", 1), Entry("unknown", "", 0)])


def test_by_hand(tmp_path: Path) -> None:
    """a = (1, 2), b = (3, -4): "A b" is (4, -2) of length sqrt(20), "b" is b of length 5; a.b = -5, b.b = 25."""
    table = np.array([[1, 2], [3, -4], [10, 10]], np.float32)
    embedder = gramvec.load(exported(tmp_path / "m", spec=WORDS_ONLY, vocabulary=TINY, table=table), device="cpu")
    found = explain(embedder, " A b", "b")
    length = np.sqrt(20) * 5
    assert found.score == pytest.approx(20 / length)
    assert (found.rest, found.residual) == pytest.approx((0, 0), abs=1e-6)
    assert [(pair.source.text, pair.target.text) for pair in found.pairs] == [("b", "b"), ("a", "b")]
    assert [pair.contribution for pair in found.pairs] == pytest.approx([25 / length, -5 / length])
    assert found.pairs[1].source == ("word", "a", 1, 2, 1)
    assert found.source.characters.tolist() == pytest.approx([0, -5 / length, 0, 25 / length])
    assert (found.source.coverage, found.target.coverage) == (1, 1)

    unknown = explain(embedder, "zz b zz", "b q")
    assert unknown.source.coverage == 1 / 5
    assert unknown.pairs[0].source == ("unknown", "zz", 0, 2, 2)
    assert unknown.pairs[0].target == ("unknown", "q", 2, 3, 1)
    assert unknown.pairs[0].contribution == pytest.approx(2 * 200 / (np.hypot(23, 16) * np.hypot(13, 6)))
    embedder.close()


def test_a_tanh_by_hand(tmp_path: Path) -> None:
    """a = (1, 2) and bias (0, 1): tanh of (1, 3); a has all of the first and 2/3 of the second, the bias the rest."""
    table = np.array([[1, 2], [3, -4], [10, 10]], np.float32)
    path = exported(tmp_path / "m", spec=WORDS_ONLY, vocabulary=TINY, table=table, activation="tanh",
                    bias=np.array([0, 1], np.float32))  # fmt: skip
    embedder = gramvec.load(path, device="cpu")
    found = explain(embedder, "a", "a")
    first, second = np.tanh(1) ** 2, np.tanh(3) ** 2
    assert found.score == pytest.approx(1)
    assert found.pairs[0].contribution == pytest.approx((first + second * 4 / 9) / (first + second))
    assert found.residual == pytest.approx(second * 5 / 9 / (first + second), abs=1e-6)
    embedder.close()


def test_spans_in_the_text_as_given(embedder: gramvec.Embedder) -> None:
    text = "\u0130 like  Cafe\u0301s\t🙂"
    words = {feature.text: text[feature.start : feature.end]
             for feature in explain(embedder, text, "cafés").source.features if feature.kind == "word"}  # fmt: skip
    assert words["i"] == "\u0130"
    assert words["like"] == "like"
    assert words.get("cafés", "Cafe\u0301s") == "Cafe\u0301s"
    ngrams = {feature.text: (feature.start, feature.end) for feature in explain(embedder, text, "x").source.features}
    assert ngrams["e c"] == (5, 9)
    assert ngrams[" i "] == (0, 2)


def test_texts_without_features(embedder: gramvec.Embedder) -> None:
    for text in ("", " \n", "\N{EGYPTIAN HIEROGLYPH A001}"):
        found = explain(embedder, text, "a cat")
        assert (found.score, found.residual, found.rest, found.pairs) == (0, 0, 0, [])
        assert found.source.coverage == 0
        assert found.target.coverage == 1
        assert not found.target.contributions.any()


def test_long_texts_are_explained_and_longer_ones_refused(embedder: gramvec.Embedder, real_texts: list[str]) -> None:
    long = real_texts[-1][:MAX_CHARACTERS]
    found = explain(embedder, long, long[::-1], top_k=1000)
    assert len(found.pairs) == 1000
    assert parts_of(found) + found.residual == pytest.approx(found.score, abs=1e-6)
    again = explain(embedder, long, long[::-1], top_k=10)
    assert again.pairs == found.pairs[:10]
    with refused(InputError, "text 1", "4097", "4096", index=1):
        explain(embedder, "short", "x" * 4097)


def test_the_products_of_long_texts_are_never_held_at_once(
    embedder: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = list(vocabulary_words(embedder.bundle.vocabulary))
    source, target = (" ".join(words[first::37])[:MAX_CHARACTERS] for first in (500, 501))
    explain(embedder, source, target)
    tracemalloc.start()
    found = explain(embedder, source, target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    distinct = [len(set(side.located.rows.tolist())) for side in (found.source, found.target)]
    products, features = distinct[0] * distinct[1] * 4, sum(distinct) * embedder.dimension * 8
    assert peak < 3 * features + 40e6 < products
    # And the blocks change nothing.
    monkeypatch.setattr("gramvec.explain.contributions.BLOCK", 200_000)
    assert explain(embedder, source, target).pairs == found.pairs


@pytest.mark.parametrize("top_k", [0, 1001, True, 2.0])
def test_a_wrong_top_k(embedder: gramvec.Embedder, top_k: Any) -> None:
    with refused(InputError, "top_k", "1 to 1000"):
        explain(embedder, "a", "b", top_k=top_k)


def test_a_model_that_was_replaced_on_disk_is_explained_as_it_was_loaded(bundle_copy: Path) -> None:
    embedder, whole = (gramvec.load(path, device="cpu") for path in (bundle_copy, MODELS / bundle_copy.name))
    bundle_copy.rename(bundle_copy.with_name("old"))
    shutil.copytree(MODELS / "sif", bundle_copy)
    found, expected = (explain(one, "a fast car", "a slow car").to_dict() for one in (embedder, whole))
    assert found["features"] == expected["features"]
    embedder.close()
    whole.close()
