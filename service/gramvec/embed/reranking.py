"""Reranking: the scores of texts for a query, by the two terms of a search, with no index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramvec.embed.vectors import RawEmbeddings, Vectors, cosine_matrix
from gramvec.lexical.letters import LETTERS_SHARE, letter_scores
from gramvec.lexical.sketch import LexicalSketch


class RerankedText(NamedTuple):
    """A text's place among the given ones, and its score for the query."""

    place: int
    score: float


def rerank_scores(
    query: str, texts: Sequence[str], embeddings: RawEmbeddings, lexical: LexicalSketch | None
) -> Vectors:
    """Return the score of each text for a query: BM25 / (1.1 x the sum of the query's idf) + cosine.

    BM25 is of character 4-grams within words (k1 = 1.2, b = 0.75). How rare an n-gram is comes from the given texts
    and the counts that are shipped with the model, so the other texts change a text's score a little.

    Args:
        query: a prepared text.
        texts: n prepared texts.
        embeddings: of the query, then of the texts.
        lexical: the model's lexical sketch; None to count n-grams only in the given texts.

    Returns:
        float32[n], -1 to 3; without an n-gram in common it is the cosine.
    """
    (cosines,) = cosine_matrix(embeddings.take(slice(1)), embeddings.take(slice(1, None)))
    return np.asarray(letter_scores(query, texts, shipped=lexical) / LETTERS_SHARE + cosines, np.float32)
