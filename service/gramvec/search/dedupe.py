"""Near-duplicates: all pairs of texts whose score is at least a threshold, without comparing every two texts.

The score is that of matching: the cosine of n-grams, and half as much that of words. Features are put into one order,
the rarest first. Where the features behind the first p of a vector have a length below the threshold, a text that
shares none of these p cannot reach it (prefix filtering: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant
2007). So only texts that share a feature of both prefixes are scored: the result is that of comparing all pairs.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.lexical.hashing import COLUMNS, counted
from gramvec.lexical.sparse import held_by
from gramvec.matching.nearest import scipy_sparse
from gramvec.text.arrays import Floats, Int64s

T = TypeVar("T")
U = TypeVar("U")
# A phase, how much more of it is done, and how much there is.
Watch = Callable[[str, int, int], None]

# As in matching (docs/matching.md).
ORDERS = (2, 3, 4)
NGRAM_POWER, WORD_POWER = 2.0, 1.0
NGRAM_SHARE, WORD_SHARE = 1.0, 0.5
# Texts by which features are weighted; of more, as many at equal distances.
WEIGHED_TEXTS = 100_000
# Up to so many texts the result is that of comparing all pairs; of more, neighbors with a feature are compared.
EXACT_TEXTS, NEIGHBORS, SAMPLE = 100_000, 24, 200
# Texts by which the cuts of the order are chosen.
DRAWN_TEXTS = 2_000
LEAST_THRESHOLD = 0.3
# Texts whose features are made together, and pairs that are scored or joined together.
BLOCK_TEXTS, BLOCK_CHARACTERS = 1_024, 1 << 18
SCORED_PAIRS, JOINED_PAIRS = 16_384, 1 << 20
# Bits of a key: rows of a block, place in the order of rarity, feature.
PLACE_BITS, FEATURE_BITS = 22, 25
CUTS = 24
# More than float32 rounds by.
SLACK = 1e-4

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_CODE = re.compile(r"(?=\w*\d)(?=\w*[^\W\d])\w{3,}")


class NearPairs(NamedTuple):
    """left int64[p] < right int64[p]: places of texts; scores float32[p]. In order of left, then right."""

    left: Int64s
    right: Int64s
    scores: Floats


class Duplicates(NamedTuple):
    """Pairs, and how many were left out because their numbers differ.

    sampled, sampled_found: pairs that some texts have with all others, and those of them that were compared; equal
    where every pair was.
    """

    pairs: NearPairs
    different: int
    sampled: int
    sampled_found: int


class _Rows(NamedTuple):
    """Vectors of length 1, the rarest features first: indptr int64[n + 1], keys int64, values float32.

    A key is the feature's place in the order of rarity, and the feature in its lowest 25 bits.
    """

    indptr: Int64s
    keys: Int64s
    values: Floats


class _Prefixes(NamedTuple):
    """The rarest features of rows: counts int64[n], keys int64, values float32; and what lies behind them.

    behind: float32[n, CUTS], the length of the features behind each cut of the order. reach: int64[n], the last cut
    that lies within a row's prefix, -1 for none.
    """

    counts: Int64s
    keys: Int64s
    values: Floats
    behind: Floats
    reach: Int64s


class Features:
    """N-grams and words of texts as vectors of length 1, weighted by how many of some texts have them."""

    def __init__(self, texts: Sequence[str]) -> None:
        sample = texts[:: max(1, -(-len(texts) // WEIGHED_TEXTS))]
        # How many texts have each feature; of that number, the inverse document frequency.
        self._held = [held_by(sample, ORDERS)[0], held_by([words_of(text) for text in sample], (), words=True)[0]]
        self._idf = np.log((1 + len(sample)) / (1 + np.arange(len(sample) + 1))) + 1
        self._places = ((1 - self._idf / self._idf[0]) * ((1 << PLACE_BITS) - 1)).astype(np.int64)

    def rows(self, texts: Sequence[str]) -> _Rows:
        """Return the vectors of texts. A text of white space has no features."""
        parts = []
        for given, orders, held, power, share in (
            (texts, ORDERS, self._held[0], NGRAM_POWER, NGRAM_SHARE),
            ([words_of(text) for text in texts], (), self._held[1], WORD_POWER, WORD_SHARE),
        ):
            indptr, columns, counts = counted(given, orders, words=not orders)
            row = np.repeat(np.arange(len(texts)), np.diff(indptr))
            common = held[columns]
            values = (1 + np.log(counts)) * self._idf[common] ** power
            squares = np.bincount(row, values**2, minlength=len(texts))
            keys = self._places[common] << FEATURE_BITS | columns
            parts.append((row, keys if orders else keys | COLUMNS, values / np.sqrt(squares)[row], share))
        whole = np.zeros(len(texts))
        for row, _, _, share in parts:
            whole += np.bincount(row, minlength=len(texts)).astype(bool) * share
        row = np.concatenate([row for row, *_ in parts])
        keys = np.concatenate([keys for _, keys, *_ in parts])
        values = np.concatenate([values * np.sqrt(share / whole[row]) for row, _, values, share in parts])
        order = np.argsort(row << (PLACE_BITS + FEATURE_BITS) | keys)
        indptr = np.append(0, np.cumsum(np.bincount(row, minlength=len(texts))))
        return _Rows(indptr, keys[order], values[order].astype(np.float32))

    def matrix(self, rows: _Rows) -> Any:
        """Return the vectors as a sparse matrix."""
        features = (rows.keys & ((1 << FEATURE_BITS) - 1)).astype(np.int32)
        shape = (len(rows.indptr) - 1, 1 << FEATURE_BITS)
        made = scipy_sparse().csr_array((rows.values, features, rows.indptr), shape=shape)
        made.sort_indices()
        return made


def _prefixes(rows: _Rows, threshold: float, cuts: Int64s) -> _Prefixes:
    """Return the features of rows without which none reaches the threshold."""
    n = len(rows.indptr) - 1
    if not len(rows.keys):
        nothing = np.zeros(n, np.int64)
        return _Prefixes(nothing, rows.keys, rows.values, np.zeros((n, len(cuts)), np.float32), nothing - 1)
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
    return _Prefixes(counts, rows.keys[kept], rows.values[kept], behind.astype(np.float32), reach)


def similar_pairs(
    texts: Sequence[str],
    threshold: float,
    *,
    numbers: bool = True,
    threads: int = 1,
    most: int | None = None,
    watch: Watch = lambda phase, done, total: None,
) -> Duplicates:
    """Return pairs of different texts whose score is at least `threshold`: all pairs of up to 100,000 texts.

    Of more, a text is compared with its next 24 neighbors of those that share a feature, in the order of their rarest
    features; which share of the pairs that finds is measured on some texts.

    Args:
        texts: n texts; a text of white space is in no pair.
        threshold: at least 0.3, at most 1.
        numbers: leave out pairs whose numbers or codes differ.
        threads: blocks that are compared at a time.
        most: pairs that may be found.
        watch: called with the phase, the texts done since the last call, and all texts.

    Raises:
        InputError: the threshold is not valid, there are more than `most` pairs, or SciPy is missing.
    """
    scipy_sparse()
    if not LEAST_THRESHOLD <= threshold <= 1:
        raise InputError(f"threshold: must be from {LEAST_THRESHOLD:g} to 1, got {threshold:g}", field="threshold")
    features = Features(texts)
    exact = len(texts) <= EXACT_TEXTS
    sample = _Sample(features, texts, threshold, 0 if exact else SAMPLE)
    with ThreadPoolExecutor(threads, thread_name_prefix="gramvec-dedupe") as pool:
        drawn = features.rows(texts[:: max(1, len(texts) // DRAWN_TEXTS)][:DRAWN_TEXTS])
        places = np.append(drawn.keys >> FEATURE_BITS, 0)
        cuts = np.unique(np.quantile(places, np.linspace(0, 1, CUTS)).astype(np.int64))

        def read(block: tuple[int, int]) -> tuple[_Prefixes, list[tuple[int, int]], int]:
            first, last = block
            rows = features.rows(texts[first:last])
            return _prefixes(rows, threshold, cuts), sample.near(rows, first), last - first

        found: list[_Prefixes] = []
        expected: set[tuple[int, int]] = set()
        for prefixes, near, done in _in_order(pool, read, _blocks(texts), threads):
            found.append(prefixes)
            expected.update(near)
            watch("reading letters and words", done, len(texts))
        if not found:
            return Duplicates(NearPairs(*_none()), 0, 0, 0)
        join = _Join(_Prefixes(*(np.concatenate(arrays) for arrays in zip(*found, strict=True))), threshold, exact)
        del found
        kept: list[NearPairs] = []
        count = different = 0
        met: set[tuple[int, int]] = set()

        def compare(block: tuple[int, int]) -> tuple[NearPairs, NDArray[np.bool_], int]:
            left, right = join.pairs(*block)
            pairs = score_pairs(features, texts, left, texts, right, threshold)
            same = np.ones(len(pairs.left), np.bool_)
            if numbers:
                both = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
                same = np.array([same_numbers(texts[a], texts[b]) for a, b in both], np.bool_)
            return pairs, same, block[1] - block[0]

        for pairs, same, done in _in_order(pool, compare, join.blocks(), threads):
            met.update(expected.intersection(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)))
            different += int(np.count_nonzero(~same))
            kept.append(_taken(pairs, same))
            count += len(kept[-1].left)
            if most is not None and count > most:
                raise InputError(f"more than {most:,} pairs; raise --threshold, or --max-pairs if you want them all")
            watch("comparing", done, len(texts))
    left, right, scores = (np.concatenate(arrays) for arrays in zip(*kept, strict=True))
    order = np.lexsort((right, left))
    return Duplicates(NearPairs(left[order], right[order], scores[order]), different, len(expected), len(met))


def score_pairs(
    features: Features, texts: Sequence[str], left: Int64s, others: Sequence[str], right: Int64s, threshold: float
) -> NearPairs:
    """Return those of the pairs of a text and another one whose score is at least `threshold`."""
    found = [_none()]
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


class _Sample:
    """Some texts that are compared with all, which tells the share of the pairs that are found."""

    def __init__(self, features: Features, texts: Sequence[str], threshold: float, number: int) -> None:
        self._features, self._threshold = features, threshold
        self._places = np.unique(np.linspace(0, max(len(texts) - 1, 0), number).astype(np.int64))
        some = [texts[at] for at in self._places.tolist()]
        self._matrix = features.matrix(features.rows(some)).T.tocsc() if some else None

    def near(self, rows: _Rows, first: int) -> list[tuple[int, int]]:
        """Return the pairs of the sample with rows, the first of which is `first`."""
        if self._matrix is None:
            return []
        scores = (self._features.matrix(rows) @ self._matrix).tocoo()
        above = scores.data >= self._threshold
        others, asked = scores.coords[0][above] + first, self._places[scores.coords[1][above]]
        both = zip(asked.tolist(), others.tolist(), strict=True)
        return [(min(pair), max(pair)) for pair in both if pair[0] != pair[1]]


class _Join:
    """Pairs of rows that share a feature of their prefixes and could reach the threshold.

    Rows are renumbered by their two rarest features that another row has too, so that near-duplicates are neighbors.
    """

    def __init__(self, found: _Prefixes, threshold: float, exact: bool) -> None:
        self._threshold = threshold
        self._number = len(found.counts)
        features = (found.keys & ((1 << FEATURE_BITS) - 1)).astype(np.int32)
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
        following = (np.repeat(ends, np.diff(ends, prepend=0)) - 1 - np.arange(len(row)))[self._place]
        self._following = following if exact else np.minimum(following, NEIGHBORS)

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
            return _none()[:2]
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
        one, other = self._rows[left[near]], self._rows[right[near]]
        return np.minimum(one, other), np.maximum(one, other)


def _none() -> tuple[Int64s, Int64s, Floats]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)


def same_numbers(one: str, other: str) -> bool:
    """Return True if two texts have the same numbers, and each the other's codes: letters and digits in one word.

    2TB and 2 TB are the same, 2TB and 4TB are not, A12B and A12C are not.
    """
    if sorted(_NUMBER.findall(one)) != sorted(_NUMBER.findall(other)):
        return False
    for text, against in ((one, other), (other, one)):
        codes = _CODE.findall(text)
        if codes:
            joined = "".join(_WORD.findall(against)).casefold()
            if not all(code.casefold() in joined for code in codes):
                return False
    return True


def words_of(text: str) -> str:
    """Return the words of a text with spaces between."""
    return " ".join(_WORD.findall(text))


def groups(n: int, left: Int64s, right: Int64s) -> Int64s:
    """Return int64[n], the first member of each row's group; rows are in one group if a chain of pairs joins them."""
    first = np.arange(n)
    while len(left):
        one, other = first[left], first[right]
        apart = one != other
        left, right, one, other = left[apart], right[apart], one[apart], other[apart]
        np.minimum.at(first, np.maximum(one, other), np.minimum(one, other))
        # A first member that has joined another group takes its own with it.
        while (ahead := first[first]).tobytes() != first.tobytes():
            first[:] = ahead
    return first


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    first = size = 0
    for at, text in enumerate(texts):
        if at > first and (at - first == BLOCK_TEXTS or size + len(text) > BLOCK_CHARACTERS):
            yield first, at
            first, size = at, 0
        size += len(text)
    if first < len(texts):
        yield first, len(texts)


def _in_order(pool: ThreadPoolExecutor, work: Callable[[T], U], blocks: Iterator[T], threads: int) -> Iterator[U]:
    waiting: deque[Future[U]] = deque()
    try:
        for block in blocks:
            waiting.append(pool.submit(work, block))
            if len(waiting) > threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _taken(pairs: NearPairs, kept: NDArray[np.bool_]) -> NearPairs:
    return NearPairs(pairs.left[kept], pairs.right[kept], pairs.scores[kept])
