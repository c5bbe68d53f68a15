"""N-grams within words, and BM25 over given texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.lexical.letters import EDGE, counted, letter_scores, tokens


def reference_tokens(text: str) -> list[str]:
    """The n-grams of scikit-learn's char_wb, with another edge."""
    found = []
    for word in text.lower().split():
        edged = f"{EDGE}{word}{EDGE}"
        found += [edged[at : at + 4] for at in range(len(edged) - 3)] or [edged]
    return found


def reference_scores(query: str, texts: Sequence[str]) -> list[float]:
    held = [Counter(reference_tokens(text)) for text in texts]
    mean = sum(one.total() for one in held) / len(held)
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


def test_scores_are_bm25_over_the_texts() -> None:
    texts = ["lost parcel", "the parcel is late, late again", "bananas", "", "parcels parcels"]
    for query in ("lost parcel parcel", "bananna", "where is it"):
        assert letter_scores(query, texts).tolist() == pytest.approx(reference_scores(query, texts))
    assert letter_scores("", texts).tolist() == [0] * 5
    assert letter_scores("x", []).tolist() == []
