"""Exact candidates: all pairs of rows that can reach a threshold, without comparing every two rows.

Features are put into one order, the rarest first. Where the features behind the first p of a vector have a length below
the threshold, a text that shares no such feature cannot reach it (prefix filtering: Chaudhuri, Ganti and Kaushik 2006;
Bayardo, Ma and Srikant 2007). So only texts that share a feature of both prefixes have to be scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gramvec.jobs.duplicates.features import (
    FEATURE_BITS,
    FEATURE_MASK,
    NO_PAIRS,
    PLACE_BITS,
    SLACK,
    FeatureRows,
    Features,
)
from gramvec.text.arrays import Floats, Int64s

# Pairs that are joined together.
JOINED_PAIRS = 1 << 20
# Places at which the order of features is cut, and the texts by which they are chosen.
CUTS, DRAWN_TEXTS = 24, 2_000


class Prefixes(NamedTuple):
    """The rarest features of rows: counts int64[n], keys int64, values float32; and what lies behind them.

    behind: float32[n, CUTS], the length of the features behind each cut of the order. reach: int64[n], the last cut
    that lies within a row's prefix, -1 for none.
    """

    counts: Int64s
    keys: Int64s
    values: Floats
    behind: Floats
    reach: Int64s


def cuts_of(features: Features, texts: Sequence[str]) -> Int64s:
    """Return the places at which the order of features is cut: as many features of some of the texts between two."""
    drawn = features.rows(texts[:: max(1, len(texts) // DRAWN_TEXTS)][:DRAWN_TEXTS])
    places = np.append(drawn.keys >> FEATURE_BITS, 0)
    cuts: Int64s = np.unique(np.quantile(places, np.linspace(0, 1, CUTS)).astype(np.int64))
    return cuts


def prefixes_of(rows: FeatureRows, threshold: float, cuts: Int64s) -> Prefixes:
    """Return the features of rows without which none reaches the threshold."""
    n = len(rows.indptr) - 1
    if not len(rows.keys):
        nothing = np.zeros(n, np.int64)
        return Prefixes(nothing, rows.keys, rows.values, np.zeros((n, len(cuts)), np.float32), nothing - 1)
    row = np.repeat(np.arange(n), np.diff(rows.indptr))
    squares = np.append(0, np.cumsum(rows.values.astype(np.float64) ** 2))
    ends = squares[rows.indptr[1:]]
    kept = ends[row] - squares[:-1] >= (threshold - SLACK) ** 2
    counts = np.bincount(row[kept], minlength=n)
    place = row << PLACE_BITS | rows.keys >> FEATURE_BITS
    first = np.searchsorted(place, (np.arange(n) << PLACE_BITS)[:, None] | cuts[None, :])
    behind = np.sqrt(np.maximum(ends[:, None] - squares[first], 0)) + SLACK
    last = rows.indptr[:-1] + counts - 1
    reach = np.where(counts > 0, np.searchsorted(cuts, place[last] & ((1 << PLACE_BITS) - 1), side="right") - 1, -1)
    return Prefixes(counts, rows.keys[kept], rows.values[kept], behind.astype(np.float32), reach)


class ExactJoin:
    """Pairs of rows that share a feature of their prefixes and could reach the threshold.

    Rows are renumbered by their two rarest features that another row has too, so that near-duplicates are neighbors.
    """

    def __init__(self, parts: Sequence[Prefixes], threshold: float) -> None:
        found = Prefixes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        self._threshold = threshold
        self._number = len(found.counts)
        features = (found.keys & FEATURE_MASK).astype(np.int32)
        row = np.repeat(np.arange(self._number, dtype=np.int32), found.counts)
        _, which, often = np.unique(features, return_inverse=True, return_counts=True)
        shared = often[which] > 1
        keys, values, row, features = found.keys[shared], found.values[shared], row[shared], features[shared]
        starts = np.searchsorted(row, np.arange(self._number + 1))
        counts = np.diff(starts)
        two = [
            np.where(counts > at, keys[np.minimum(starts[:-1] + at, max(len(keys) - 1, 0))], -1)
            if len(keys)
            else np.full(self._number, -1)
            for at in (0, 1)
        ]
        self._rows = np.lexsort((two[1], two[0]))  # new number -> row
        number = np.empty(self._number, np.int32)
        number[self._rows] = np.arange(self._number, dtype=np.int32)
        self._behind, self._reach = found.behind[self._rows], found.reach[self._rows]
        row = number[row]
        order = np.argsort(row.astype(np.int64) << FEATURE_BITS | features)
        row, features, self._values = row[order], features[order], values[order]
        self._starts = np.searchsorted(row, np.arange(self._number + 1))
        # Postings: the rows of each feature, ascending; of each entry, how many that follow it is compared with.
        by_feature = np.argsort(features, kind="stable")
        ends = np.flatnonzero(np.diff(features[by_feature], append=-1)) + 1
        self._posting, self._posting_values = row[by_feature], self._values[by_feature]
        self._place = np.empty(len(row), np.int64)
        self._place[by_feature] = np.arange(len(row))
        self._following = (np.repeat(ends, np.diff(ends, prepend=0)) - 1 - np.arange(len(row)))[self._place]

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield runs of rows that have a bounded number of pairs together."""
        sums = np.append(0, np.cumsum(self._following))[self._starts]
        first = 0
        while first < self._number:
            last = int(np.searchsorted(sums, sums[first] + JOINED_PAIRS, side="right")) - 1
            last = min(max(last, first + 1), self._number)
            yield first, last
            first = last

    def pairs(self, first: int, last: int) -> tuple[Int64s, Int64s]:
        """Return the pairs of rows numbered from `first` to `last` with later ones, each once, the lower row first."""
        entries = slice(self._starts[first], self._starts[last])
        counts = self._following[entries]
        rows = np.repeat(np.arange(first, last), np.diff(self._starts[first : last + 1]))
        at = np.repeat(self._place[entries] + 1 - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        products = np.repeat(self._values[entries], counts) * self._posting_values[at]
        keys = np.repeat(rows - first, counts) * self._number + self._posting[at]
        if not len(keys):
            return NO_PAIRS[:2]
        order = np.argsort(keys)
        keys, products = keys[order], products[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        shared = np.add.reduceat(products, begins)
        left, right = np.divmod(keys[begins], self._number)
        left += first
        # What both have behind a cut within both prefixes is at most the product of the lengths there.
        cut = np.minimum(self._reach[left], self._reach[right])
        bound = np.where(cut < 0, 1.0, self._behind[left, cut] * self._behind[right, cut]) + shared
        near = bound >= self._threshold - SLACK
        left_rows, right_rows = self._rows[left[near]], self._rows[right[near]]
        return np.minimum(left_rows, right_rows), np.maximum(left_rows, right_rows)
