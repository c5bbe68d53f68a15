"""Explanations: the pairs of features that make a cosine, and the neighbors of a text or an n-gram.

A new question that the rows can answer is a module here.
"""

from __future__ import annotations

from gramvec.explain.contributions import Contribution, Explanation, Feature, explain
from gramvec.explain.decompose import Word, WordPair
from gramvec.explain.neighbors import Neighbor, nearest_ngrams, nearest_words, vocabulary_words

__all__ = [
    "Contribution",
    "Explanation",
    "Feature",
    "Neighbor",
    "Word",
    "WordPair",
    "explain",
    "nearest_ngrams",
    "nearest_words",
    "vocabulary_words",
]
