"""N-grams and words of texts as sparse vectors, and the scores of pairs: those of matching (docs/matching.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gramvec.jobs.matching.nearest import scipy_sparse
from gramvec.jobs.matching.scoring import NGRAM_POWER, NGRAM_SHARE, ORDERS, WORD_POWER, WORD_SHARE, words_of
from gramvec.lexical.hashing import COLUMNS, count_features
from gramvec.lexical.sparse import count_holders
from gramvec.lexical.tfidf import damp_counts, inverse_frequency, normalize_rows
from gramvec.text.arrays import Floats, Int64s
from gramvec.text.folding import fold_texts
from gramvec.text.scripts import close_gaps

# Texts by which features are weighted; of more, as many at equal distances.
WEIGHED_TEXTS = 100_000
# Pairs that are scored together.
SCORED_PAIRS = 16_384
# Bits of a key: place in the order of rarity, feature.
PLACE_BITS, FEATURE_BITS = 22, 25
# More than float32 rounds by.
SLACK = 1e-4
FEATURE_MASK = (1 << FEATURE_BITS) - 1


class NearPairs(NamedTuple):
    """left int64[p] < right int64[p]: places of texts; scores float32[p]. In order of left, then right."""

    left: Int64s
    right: Int64s
    scores: Floats


NO_PAIRS = NearPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


class FeatureRows(NamedTuple):
    """Vectors of length 1, the rarest features first: indptr int64[n + 1], keys int64, values float32.

    A key is the feature's place in the order of rarity, and the feature in its lowest 25 bits.
    """

    indptr: Int64s
    keys: Int64s
    values: Floats


class Features:
    """N-grams and words of texts as vectors of length 1, weighted by how many of some texts have them."""

    def __init__(self, texts: Sequence[str]) -> None:
        sample = [*map(close_gaps, fold_texts(texts[:: max(1, -(-len(texts) // WEIGHED_TEXTS))]))]
        # How many texts have each feature; of that number, the inverse document frequency.
        self._held = [
            count_holders(sample, ORDERS)[0],
            count_holders([words_of(text) for text in sample], (), words=True)[0],
        ]
        self._idf = inverse_frequency(len(sample), np.arange(len(sample) + 1))
        self._places = ((1 - self._idf / self._idf[0]) * ((1 << PLACE_BITS) - 1)).astype(np.int64)

    def rows(self, texts: Sequence[str]) -> FeatureRows:
        """Return the vectors of texts. A text of white space has no features."""
        texts = [*map(close_gaps, fold_texts(texts))]
        parts = []
        for given, orders, held, power, share in (
            (texts, ORDERS, self._held[0], NGRAM_POWER, NGRAM_SHARE),
            ([words_of(text) for text in texts], (), self._held[1], WORD_POWER, WORD_SHARE),
        ):
            indptr, columns, counts = count_features(given, orders, words=not orders)
            row = np.repeat(np.arange(len(texts)), np.diff(indptr))
            common = held[columns]
            values = normalize_rows(damp_counts(counts) * self._idf[common] ** power, row)
            keys = self._places[common] << FEATURE_BITS | columns
            parts.append((row, keys if orders else keys | COLUMNS, values, share))
        whole = np.zeros(len(texts))
        for row, _, _, share in parts:
            whole += np.bincount(row, minlength=len(texts)).astype(bool) * share
        row = np.concatenate([row for row, *_ in parts])
        keys = np.concatenate([keys for _, keys, *_ in parts])
        values = np.concatenate([values * np.sqrt(share / whole[row]) for row, _, values, share in parts])
        order = np.argsort(row << (PLACE_BITS + FEATURE_BITS) | keys)
        indptr = np.append(0, np.cumsum(np.bincount(row, minlength=len(texts))))
        return FeatureRows(indptr, keys[order], values[order].astype(np.float32))

    @staticmethod
    def matrix(rows: FeatureRows) -> Any:
        """Return the vectors as a sparse matrix."""
        features = (rows.keys & FEATURE_MASK).astype(np.int32)
        shape = (len(rows.indptr) - 1, 1 << FEATURE_BITS)
        made = scipy_sparse().csr_array((rows.values, features, rows.indptr), shape=shape)
        made.sort_indices()
        return made


def score_pairs(
    features: Features, texts: Sequence[str], left: Int64s, others: Sequence[str], right: Int64s, threshold: float
) -> NearPairs:
    """Return those of the pairs of a text and another one whose score is at least `threshold`."""
    found: list[tuple[Int64s, Int64s, Floats]] = [NO_PAIRS]
    for start in range(0, len(left), SCORED_PAIRS):
        part = slice(start, start + SCORED_PAIRS)
        sides = []
        for given, places in ((texts, left[part]), (others, right[part])):
            needed, at = np.unique(places, return_inverse=True)
            sides.append(features.matrix(features.rows([given[place] for place in needed.tolist()]))[at])
        scores = np.asarray(sides[0].multiply(sides[1]).sum(axis=1)).ravel().astype(np.float32)
        kept = scores >= np.float32(threshold - SLACK)
        found.append((left[part][kept], right[part][kept], np.minimum(scores[kept], np.float32(1))))
    return NearPairs(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))
