"""How much of a text a model knows: its n-grams, its words, and texts of which it knows nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramvec.text import numpy_reference as plain
from gramvec.text.code_points import code_points
from gramvec.text.featurizer import Featurizer
from gramvec_training.evaluation.sets import SimilaritySet

_CHUNK = 2_000  # texts at a time, so that the n-gram keys of a large set fit into memory


def coverage(sets: Sequence[SimilaritySet], featurizer: Featurizer) -> dict[str, dict[str, Any]]:
    """What is known of each task's texts, counting every occurrence.

    Task -> `texts`; `texts_unknown`, those without any known feature; `ngrams_known` and `words_known`, shares in
    [0, 1] of all n-grams of the model's orders and of all words and symbols, None for a model that has none.
    A word that falls on the row of unknown words is not known.
    """
    return {
        task: _of_texts([text for one in sets if one.task == task for text in [*one.left, *one.right]], featurizer)
        for task in dict.fromkeys(one.task for one in sets)
    }


def _of_texts(texts: list[str], featurizer: Featurizer) -> dict[str, Any]:
    counts = [_counts(chunk, featurizer) for chunk in _chunks(texts)]
    ngrams, words = sum(one.ngrams for one in counts), sum(one.words for one in counts)
    return {
        "texts": len(texts),
        "texts_unknown": sum(int(np.count_nonzero(~one.known)) for one in counts),
        "ngrams_known": sum(one.known_ngrams for one in counts) / ngrams if ngrams else None,
        "words_known": sum(one.known_words for one in counts) / words if words else None,
    }


class _Counts(NamedTuple):
    known: npt.NDArray[np.bool_]
    ngrams: int = 0
    known_ngrams: int = 0
    words: int = 0
    known_words: int = 0


def _counts(texts: Sequence[str], featurizer: Featurizer) -> _Counts:
    spec, vocabulary = featurizer.spec, featurizer.vocabulary
    chars = plain.characters(code_points(texts), vocabulary.table)
    counts = _Counts(np.zeros(len(texts), np.bool_))
    if spec.orders:
        keys, valid = plain.ngram_keys(chars, spec.orders, vocabulary.bits)
        found = valid & (plain.ngram_rows(keys, vocabulary) >= 0)
        counts.known[chars.text[found.any(axis=1)]] = True
        # Position k of a text ends an n-gram of every order up to k + 1, also where a character of it is unknown.
        position = np.arange(len(chars.text)) - chars.first
        ngrams = sum(int(np.count_nonzero(position >= order - 1)) for order in spec.orders)
        counts = counts._replace(ngrams=ngrams, known_ngrams=int(np.count_nonzero(found)))
    if spec.words:
        spans = plain.word_spans(chars)
        found = plain.word_rows(chars, spans, vocabulary) >= 0
        counts.known[spans.text[found]] = True
        counts = counts._replace(words=len(found), known_words=int(np.count_nonzero(found)))
    return counts


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _CHUNK):
        yield texts[start : start + _CHUNK]
