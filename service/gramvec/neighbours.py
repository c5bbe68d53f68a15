"""The words nearest to a text, and n-grams nearest to an n-gram. They live in `gramvec.explaining`."""

from __future__ import annotations

from gramvec.explaining import Neighbour, nearest_ngrams, nearest_words, vocabulary_words

__all__ = ["Neighbour", "nearest_ngrams", "nearest_words", "vocabulary_words"]
