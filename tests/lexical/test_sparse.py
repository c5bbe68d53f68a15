"""Sparse vectors: hashed n-grams and words, weighed by texts at hand; compared with strings and dictionaries."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec import lexical
from gramvec.errors import InputError
from gramvec.lexical import hashing as hashed
from gramvec.lexical import sparse as embedder
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse import Weighting
from support import reference

MASK = (1 << 64) - 1
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TEXT = st.one_of(UNICODE, st.text("aAb1 -\u0130\u00e9\u0301\u3000\n", max_size=30))


def finalized(key: int, kind: int) -> int:
    """SplitMix64's finaliser in Python's integers; the highest bits."""
    x = (key + (kind + 1) * hashed.PRIME) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return (x ^ (x >> 31)) >> 40


def column_of_ngram(ngram: str) -> int:
    key = 0
    for character in ngram:
        key = (key * hashed.PRIME + ord(character)) & MASK
    return finalized(key, len(ngram))


def column_of_word(word: str) -> int:
    key = 0xCBF29CE484222325
    for character in word:
        key = ((key ^ ord(character)) * 0x100000001B3) & MASK
    return finalized(key, 0)


def features(text: str, orders: tuple[int, ...], words: bool) -> Counter[int]:
    text = reference.normalized(text, lowercase=True)
    found = Counter(column_of_ngram(one) for one in reference.ngrams(text, orders))
    if words:
        found.update(column_of_word(one) for one in reference.words(text))
    return found


def weight(share_of: Counter[int], column: int, number: int, weighting: str) -> float:
    if weighting == "idf":
        return math.log((1 + number) / (1 + share_of[column])) + 1
    return 3e-3 / (3e-3 + share_of[column] / number)


@given(
    fitted=st.lists(TEXT, min_size=1, max_size=5),
    others=st.lists(TEXT, max_size=3),
    orders=st.sampled_from([(3, 4), (1,), (2, 5), (4, 1)]),
    words=st.booleans(),
    weighting=st.sampled_from(["sif", "idf"]),
)
def test_as_by_strings_and_dictionaries(
    fitted: list[str], others: list[str], orders: tuple[int, ...], words: bool, weighting: Weighting
) -> None:
    made = lexical.fit(fitted, weighting=weighting, orders=orders, words=words)
    held: Counter[int] = Counter()
    for text in fitted:
        held.update(features(text, orders, words).keys())
    found = list(made.embed([*fitted, *others]))
    for text, row in zip([*fitted, *others], found, strict=True):
        expected = {
            column: count * weight(held, column, len(fitted), weighting)
            for column, count in features(text, orders, words).items()
        }
        length = math.sqrt(sum(value**2 for value in expected.values()))
        assert list(row) == sorted(expected)
        assert row == pytest.approx({column: value / length for column, value in expected.items()}, rel=1e-5)


def test_a_worked_example_of_sif() -> None:
    # Of two texts both hold " ab", one "abc" and "bc ", one "abd" and "bd ": p is 1 and 1/2.
    made = lexical.fit(["abc", "abd"], orders=(3,), a=0.5)
    (row,) = made.embed(["abc"], normalize=False)
    assert row == pytest.approx(
        {column_of_ngram(" ab"): 1 / 3, column_of_ngram("abc"): 1 / 2, column_of_ngram("bc "): 1 / 2}
    )
    (unknown,) = made.embed(["xyz"], normalize=False)
    assert set(unknown.values()) == {1.0}


def test_the_same_text_has_the_same_bytes_in_any_batch(real_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*real_texts[:300], "", " \n"]
    made = lexical.fit(iter(texts))
    whole = made.embed(texts)
    monkeypatch.setattr(embedder, "BLOCK_CHARACTERS", 500)
    monkeypatch.setattr(embedder, "BLOCK_TEXTS", 7)
    again = lexical.fit(texts).embed(text for text in texts)
    assert np.array_equal(made.weights, lexical.fit(texts).weights)
    for one, other in zip(
        (whole.indptr, whole.indices, whole.values), (again.indptr, again.indices, again.values), strict=True
    ):
        assert one.tobytes() == other.tobytes()
    assert whole.indptr[-1] == whole.indptr[-3] and len(whole) == len(texts)


def test_products_are_those_of_scipy(real_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    texts = [*real_texts[:80], "", *real_texts[:5]]
    vectors = lexical.fit(texts, words=True).embed(texts)
    rows = vectors.to_scipy()
    assert rows.shape == (len(texts), COLUMNS)
    left, right = (one.ravel() for one in np.mgrid[: len(texts), : len(texts)])
    dots = vectors.dots(left, vectors, right)
    assert dots == pytest.approx((rows @ rows.T).toarray().ravel(), abs=1e-5)
    assert np.array_equal(vectors.dots(left[7:9], vectors, right[7:9]), dots[7:9])
    monkeypatch.setattr("gramvec.lexical.sparse_vectors.BLOCK_ENTRIES", 50)  # fewer than some pairs have
    assert np.array_equal(vectors.dots(left, vectors, right), dots)
    assert dots.max() <= 1 and vectors.dots(left[:0], vectors, right[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        ("one text", {}, "wrap it in a list"),
        (["a", None], {}, r"text 1 .*missing"),
        (["a", "\ud800"], {}, r"text 1 .*surrogate"),
        (["a" * 65_537], {}, "at most 65,536"),
        (["a"], {"orders": (0,)}, "1 to 8"),
        (["a"], {"orders": (3, 3)}, "different numbers"),
        (["a"], {"orders": ()}, "no features"),
        (["a"], {"a": 0}, "above 0"),
        (["a"], {"a": math.nan}, "above 0"),
        (["a"], {"weighting": "bm25"}, "sif or idf"),
    ],
)
def test_what_cannot_be_is_one_sentence(texts: list[str], options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        gramvec.lexical.fit(texts, **options)  # type: ignore[arg-type]
    if not options:
        with pytest.raises(InputError, match=said):
            gramvec.lexical.fit(["a"]).embed(texts)


def test_no_texts_and_no_features() -> None:
    made = lexical.fit([])
    assert len(made.embed([])) == 0
    assert list(made.embed([""])) == [{}]
    other = lexical.SparseVectors(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 5)
    with pytest.raises(InputError, match="no product"):
        other.dots(np.zeros(0, np.int64), made.embed([]), np.zeros(0, np.int64))
