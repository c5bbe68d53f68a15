"""N-grams within words, and BM25 over given texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.lexical import letters
from gramvec.lexical.letters import EDGE, Collection, counted, letter_scores, tokens
from gramvec.text.folding import fold_letters


def reference_tokens(text: str) -> list[str]:
    """The n-grams of scikit-learn's char_wb, with another edge."""
    found = []
    for word in text.lower().split():
        edged = f"{EDGE}{word}{EDGE}"
        found += [edged[at : at + 4] for at in range(len(edged) - 3)] or [edged]
    return found


def reference_scores(query: str, texts: Sequence[str]) -> list[float]:
    held = [Counter(reference_tokens(text)) for text in texts]
    mean = sum(one.total() for one in held) / len(held) or 1
    asked = Counter(reference_tokens(query))
    idf = {}
    for one in asked:
        df = sum(one in text for text in held)
        idf[one] = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
    total = sum(count * idf[one] for one, count in asked.items())
    return [
        sum(
            count * idf[one] * text[one] * 2.2 / (text[one] + 1.2 * (0.25 + 0.75 * text.total() / mean))
            for one, count in asked.items()
        )
        / total
        for text in held
    ]


@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=60))
def test_tokens_are_ngrams_within_words(text: str) -> None:
    if text.isascii():
        assert tokens(text).split(" ") == (reference_tokens(text) or [""])
    assert counted(text).total() == len([one for one in tokens(text).split(" ") if one])


def test_spellings_of_one_text_have_the_same_tokens() -> None:
    assert tokens("Cafe\u0301") == tokens("caf\u00e9") == tokens("  CAF\u00c9\n")
    assert tokens("a" * 100).count(" ") == 98
    assert counted("") == counted(" \n\x1f ") == Counter()
    sklearn = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is not installed")
    analyzed = sklearn.CountVectorizer(analyzer="char_wb", ngram_range=(4, 4)).build_analyzer()
    text = "Where is my parcel 6205-2Z?"
    assert sorted(analyzed(text)) == sorted(
        tokens(text).replace(EDGE, "*").replace(" ", "|").replace("*", " ").split("|")
    )


@given(st.text(max_size=30))
def test_a_text_and_its_fold_have_the_same_tokens(text: str) -> None:
    assert tokens(text) == tokens(fold_letters(text))


def test_scores_of_nothing_and_of_another_collection() -> None:
    texts = ["lost parcel", "the parcel is late, late again", "bananas", "", "parcels parcels"]
    assert letter_scores("", texts).tolist() == [0] * 5
    assert letter_scores("x", []).tolist() == []
    assert letter_scores("parcel", texts, Collection(texts)).tolist() == letter_scores("parcel", texts).tolist()


@given(
    st.text("aab\u0434\U0001f600 .", max_size=20),
    st.lists(st.text("aab\u0434\U0001f600 .", max_size=40), min_size=1, max_size=6),
    st.integers(1, 50),
)
def test_scores_of_any_texts_are_bm25(query: str, texts: list[str], slab: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(letters, "SLAB_CHARACTERS", slab)
        found = letter_scores(query, texts)
    if query.split():
        assert found.tolist() == pytest.approx(reference_scores(query, texts))
    else:
        assert not found.any()


def test_scores_by_hand() -> None:
    """Each text has one n-gram, so that a count's part is 2.2 / 2.2; one of two texts holds it: idf is log(2)."""
    assert letter_scores("ab", ["ab", "cd"]).tolist() == pytest.approx([1, 0])
    # Of the query's n-grams "b" is in no text: idf is log(1 + 2.5 / 0.5).
    share = math.log(2) / (math.log(2) + math.log(6))
    assert letter_scores("ab b", ["ab", "cd"]).tolist() == pytest.approx([share, 0])


def test_shipped_counts_are_texts_beside_the_given(embedder: gramvec.Embedder) -> None:
    sketch = embedder.sketch
    assert sketch is not None
    the, rare = letters.shipped_shares([f"{EDGE}the", "zqxj"], sketch).tolist()  # type: ignore[union-attr]
    assert 1 >= the > 0.05 > 0.001 > rare >= 0
    texts, query = ["the cat", "zqxj", "the dog"], "the zqxj"
    # Alone, the two n-grams weigh by 2 and 1 of 3 texts; with the shipped counts "zqxj" weighs more.
    assert letter_scores(query, texts, shipped=sketch)[1] > letter_scores(query, texts)[1] + 0.05
