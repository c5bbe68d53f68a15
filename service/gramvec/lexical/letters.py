"""Character 4-grams within words: the tokens of an index, and BM25 over them.

A word is cut with one edge on each side, as scikit-learn's `char_wb` does; a word that is shorter than an n-gram is one
token. The edge is a control character that Python counts as white space, so that no word contains it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

ORDER = 4
EDGE = "\x1f"
K1, B = 1.2, 0.75
# Most words of a text are common: the cache halves the time of cutting. Longer words are not kept, to bound memory.
CACHED_WORDS, CACHED_LENGTH = 1 << 17, 24
# Distinct n-grams of a query that are looked up, and those of the highest idf that are searched for.
MOST_LOOKED_UP, MOST_SEARCHED = 4_096, 256


def tokens(text: str) -> str:
    """Return the n-grams of a text with spaces between."""
    return " ".join([_cached(word) if len(word) <= CACHED_LENGTH else _cut(word) for word in _words(text)])


def counted(text: str) -> Counter[str]:
    """Return how often each n-gram occurs in a text."""
    return Counter(tokens(text).split(" ")) if not text.isspace() and text else Counter()


def _words(text: str) -> list[str]:
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower().split()


def _cut(word: str) -> str:
    edged = f"{EDGE}{word}{EDGE}"
    if len(edged) <= ORDER:
        return edged
    return " ".join([edged[at : at + ORDER] for at in range(len(edged) - ORDER + 1)])


_cached = lru_cache(CACHED_WORDS)(_cut)


def idf(holding: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return Lucene's inverse document frequency of n-grams that `holding` of `total` documents contain."""
    found: NDArray[np.float64] = np.log1p((total - holding + 0.5) / (holding + 0.5))
    return found


class Collection:
    """Statistics of a collection of texts: how many of them have each n-gram, and their mean length in n-grams."""

    def __init__(self, texts: Sequence[str]) -> None:
        held = [counted(text) for text in texts]
        self.size = len(held)
        self.holding = Counter(name for one in held for name in one)
        self.length = max(sum(one.total() for one in held) / max(len(held), 1), 1e-9)


def letter_scores(query: str, texts: Sequence[str], collection: Collection | None = None) -> NDArray[np.float64]:
    """Return BM25 of a query over texts, divided by the sum of the query's idf.

    Args:
        query: the query, of which at most 4,096 distinct n-grams count.
        texts: n texts.
        collection: by which n-grams are weighted; None for the texts themselves.

    Returns:
        float64[n], 0 where a text shares no n-gram with the query.
    """
    asked = counted(query)
    names = list(asked)[:MOST_LOOKED_UP]
    scores = np.zeros(len(texts))
    if not names or not texts:
        return scores
    among = Collection(texts) if collection is None else collection
    weights = idf(np.array([among.holding[name] for name in names], np.float64), among.size)
    weights *= [asked[name] for name in names]
    place = {name: at for at, name in enumerate(names)}
    for row, text in enumerate(texts):
        held = counted(text)
        shared = [name for name in held if name in place]
        counts = np.array([held[name] for name in shared], np.float64)
        norm = K1 * (1 - B + B * held.total() / among.length)
        scores[row] = weights[[place[name] for name in shared]] @ (counts * (K1 + 1) / (counts + norm)) if shared else 0
    return np.asarray(scores / weights.sum())
