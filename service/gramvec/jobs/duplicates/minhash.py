"""Likely candidates: pairs of rows that have the same features in several of their weighted samples.

A sample of a row is its feature of the least -log(u) / weight, where u is a random number of the feature and the
sample's number. Two rows have the same feature in a sample with a probability that is their probability Jaccard index
(Moulton and Jiang 2018), 0.7 to 0.8 where the score is 0.85. Rows that agree in all samples of a band (Leskovec,
Rajaraman and Ullman 2014, section 3.4) and in enough of all samples are candidates. Weights are the square roots of the
features' values: a misspelt word, whose n-grams are rare, then counts less than it does in the score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.duplicates.features import FEATURE_MASK, NO_PAIRS, FeatureRows
from gramvec.lexical.hashing import mix_key
from gramvec.text.arrays import Int64s, UInt64s
from gramvec.threads import map_in_order

SAMPLES = 60
# Samples of a band, for a threshold of at least this. Of product titles' pairs above 0.85, 99.6 % have a band of 4 in
# common, and 95.3 % one of 5; above 0.7, 98.5 % one of 3, and 92.1 % one of 4.
BAND_SAMPLES = ((0.8, 4), (0.0, 3))
# Candidates agree in at least this share of the samples, times the threshold.
MIN_AGREEMENT = 0.6
# Each row is compared with this many of the next rows in the same band.
NEIGHBORS = 24
# Pairs whose samples are compared, and whose scores are taken, together.
COMPARED_PAIRS, BLOCK_PAIRS = 1 << 17, 1 << 14
FRACTION_BITS = 16

_FACTORS = mix_key(np.arange(SAMPLES, dtype=np.uint64), 1) | np.uint64(1)
_LOGARITHMS = -np.log((np.arange(1 << FRACTION_BITS) + 0.5) / (1 << FRACTION_BITS))


class Sketches(NamedTuple):
    """Samples of n rows: bands uint64[b, n], 0 for a row without features; marks uint8[n, 60], 8 bits of each."""

    bands: UInt64s
    marks: NDArray[np.uint8]


def sketches_of(rows: FeatureRows, threshold: float) -> Sketches:
    """Return the samples of rows, in bands that suit a threshold."""
    size = next(samples for lowest, samples in BAND_SAMPLES if threshold >= lowest)
    n = len(rows.indptr) - 1
    bands, marks = np.zeros((SAMPLES // size, n), np.uint64), np.zeros((n, SAMPLES), np.uint8)
    held = np.flatnonzero(np.diff(rows.indptr))
    if not len(held):
        return Sketches(bands, marks)
    starts = rows.indptr[held]
    features = rows.keys & FEATURE_MASK
    numbers = mix_key(features.astype(np.uint64), 0)
    inverse = 1 / np.sqrt(rows.values.astype(np.float64))
    band = np.zeros(len(held), np.uint64)
    for sample, factor in enumerate(_FACTORS):
        waits = _LOGARITHMS[numbers * factor >> np.uint64(64 - FRACTION_BITS)] * inverse
        # Positive floats have the order of their bits, of which the lowest make place for the feature.
        smallest = np.minimum.reduceat(waits.view(np.int64) & ~FEATURE_MASK | features, starts) & FEATURE_MASK
        hashed = mix_key(smallest.astype(np.uint64), sample)
        marks[held, sample] = hashed >> np.uint64(56)
        band = mix_key(band ^ hashed, 0)
        if sample % size == size - 1:
            bands[sample // size, held] = band | np.uint64(1)
            band[:] = 0
    return Sketches(bands, marks)


class MinHashJoin:
    """Pairs of rows that are likely to reach a threshold.

    Args:
        found: the samples of blocks of rows, in order.
        threshold: as for the samples.
        threads: bands that are looked through at a time.
    """

    def __init__(self, found: Sequence[Sketches], threshold: float, threads: int) -> None:
        self._marks = np.concatenate([sketch.marks for sketch in found])
        self._min_agreement = int(MIN_AGREEMENT * threshold * SAMPLES)
        bands = [[sketch.bands[at] for sketch in found] for at in range(len(found[0].bands))]
        keys = np.unique(np.concatenate([*map_in_order(bands, self._near, threads)]))
        self._left, self._right = np.divmod(keys, max(len(self._marks), 1))

    def _near(self, parts: Sequence[UInt64s]) -> Int64s:
        """Return left x n + right of the pairs that one band proposes."""
        band = np.concatenate(parts)
        order = np.argsort(band, kind="stable")
        order = order[np.count_nonzero(band == 0) :]
        band = band[order]
        found = [NO_PAIRS.left]
        for step in range(1, NEIGHBORS + 1):
            equal = np.flatnonzero(band[step:] == band[:-step])
            if not len(equal):
                break
            for at in range(0, len(equal), COMPARED_PAIRS):
                # The order is stable, so the first of two has the lower row.
                left, right = (order[equal[at : at + COMPARED_PAIRS] + ahead] for ahead in (0, step))
                agreed = np.count_nonzero(self._marks[left] == self._marks[right], axis=1) >= self._min_agreement
                found.append(left[agreed] * len(self._marks) + right[agreed])
        return np.concatenate(found)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield runs of rows that have a bounded number of pairs together."""
        edges = np.unique(np.concatenate([[0], self._left[::BLOCK_PAIRS], [len(self._marks)]])).tolist()
        yield from pairwise(edges)

    def pairs(self, first: int, last: int) -> tuple[Int64s, Int64s]:
        """Return the pairs of rows from `first` to `last` with later ones."""
        some = slice(*np.searchsorted(self._left, [first, last]).tolist())
        return self._left[some], self._right[some]
