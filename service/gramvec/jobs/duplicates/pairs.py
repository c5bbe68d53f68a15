"""Near-duplicates: pairs of texts whose score is at least a threshold, and the groups that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.duplicates.differences import Difference, difference
from gramvec.jobs.duplicates.exact_join import ExactJoin, Prefixes, cuts_of, prefixes_of
from gramvec.jobs.duplicates.features import FEATURE_MASK, NO_PAIRS, FeatureRows, Features, NearPairs, score_pairs
from gramvec.jobs.duplicates.minhash import MinHashJoin, Sketches, sketches_of
from gramvec.jobs.matching.nearest import scipy_sparse
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Int64s
from gramvec.text.inputs import blocks
from gramvec.threads import map_in_order

# A phase, how much more of it is done, and how much there is.

# Up to this many texts all pairs are compared, in effect; of more, likely pairs, and a sample of the texts with all
# others.
EXACT_TEXTS, SAMPLE = 100_000, 200
MIN_THRESHOLD = 0.3
# Texts whose features are made together.
BLOCK_TEXTS, BLOCK_CHARACTERS = 1_024, 1 << 18


class Duplicates(NamedTuple):
    """Pairs, and how many were left out because of a difference, by its kind.

    sampled, sampled_found: pairs that some texts have with all others, and those of them that were compared; equal
    where every pair was.
    """

    pairs: NearPairs
    different: dict[Difference, int]
    sampled: int
    sampled_found: int


def similar_pairs(
    texts: Sequence[str],
    threshold: float,
    *,
    numbers: bool = True,
    words: bool = True,
    threads: int = 1,
    max_pairs: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> Duplicates:
    """Return pairs of different texts whose score is at least `threshold`: all pairs of up to 100,000 texts.

    Of more, pairs that are likely by samples of their features are compared; which share of the pairs that finds is
    measured on some texts.

    Args:
        texts: n texts; a text of white space is in no pair.
        threshold: at least 0.3, at most 1.
        numbers: leave out pairs whose numbers or codes differ.
        words: leave out pairs of which one word was replaced by another.
        threads: blocks that are compared at a time.
        max_pairs: pairs that may be found.
        progress: shows the tasks.

    Raises:
        InputError: the threshold is not valid, there are more than `max_pairs` pairs, or SciPy is missing.
    """
    scipy_sparse()
    if not MIN_THRESHOLD <= threshold <= 1:
        raise InputError(f"threshold: must be from {MIN_THRESHOLD:g} to 1, got {threshold:g}", field="threshold")
    features = Features(texts)
    exact = len(texts) <= EXACT_TEXTS
    sample = _Sample(features, texts, threshold, 0 if exact else SAMPLE)
    cuts = cuts_of(features, texts) if exact else None

    def read(block: tuple[int, int]) -> tuple[Prefixes | Sketches, list[tuple[int, int]], int]:
        first, last = block
        rows = features.rows(texts[first:last])
        part = sketches_of(rows, threshold) if cuts is None else prefixes_of(rows, threshold, cuts)
        return part, sample.near(rows, first), last - first

    found: list[Any] = []
    expected: set[tuple[int, int]] = set()
    progress.start("reading letters and words", len(texts), "texts")
    for part, near, done in map_in_order(blocks(texts, BLOCK_TEXTS, BLOCK_CHARACTERS), read, threads):
        found.append(part)
        expected.update(near)
        progress.advance(done)
    if not found:
        return Duplicates(NearPairs(*NO_PAIRS), {}, 0, 0)
    join = ExactJoin(found, threshold) if exact else MinHashJoin(found, threshold, threads)
    del found
    kept: list[NearPairs] = []
    count = 0
    different: Counter[Difference] = Counter()
    met: set[tuple[int, int]] = set()

    def compare(block: tuple[int, int]) -> tuple[NearPairs, list[Difference | None], int]:
        left, right = join.pairs(*block)
        pairs = score_pairs(features, texts, left, texts, right, threshold)
        both = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        apart = [difference(texts[a], texts[b], numbers=numbers, words=words) for a, b in both]
        return pairs, apart, block[1] - block[0]

    progress.start("comparing", len(texts), "texts")
    for pairs, apart, done in map_in_order(join.blocks(), compare, threads):
        met.update(expected.intersection(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)))
        different.update(difference for difference in apart if difference is not None)
        same = np.array([difference is None for difference in apart], np.bool_)
        kept.append(NearPairs(pairs.left[same], pairs.right[same], pairs.scores[same]))
        count += len(kept[-1].left)
        if max_pairs is not None and count > max_pairs:
            raise InputError(f"more than {max_pairs:,} pairs; raise --threshold, or --max-pairs if you want them all")
        progress.advance(done)
    left, right, scores = (np.concatenate(arrays) for arrays in zip(*kept, strict=True))
    order = np.lexsort((right, left))
    return Duplicates(NearPairs(left[order], right[order], scores[order]), different, len(expected), len(met))


class _Sample:
    """Some texts that are compared with all, which tells the share of the pairs that are found."""

    def __init__(self, features: Features, texts: Sequence[str], threshold: float, number: int) -> None:
        self._threshold = threshold
        self._places = np.unique(np.linspace(0, max(len(texts) - 1, 0), number).astype(np.int64))
        some = features.matrix(features.rows([texts[at] for at in self._places.tolist()]))
        # Columns only of the features that these texts have.
        self._known = np.unique(some.indices)
        self._matrix = some[:, self._known].T.tocsr()

    def near(self, rows: FeatureRows, first: int) -> list[tuple[int, int]]:
        """Return the pairs of the sample with rows, the first of which is `first`."""
        if not len(self._known):
            return []
        features = rows.keys & FEATURE_MASK
        column = np.minimum(np.searchsorted(self._known, features), len(self._known) - 1)
        known = self._known[column] == features
        row, column = np.repeat(np.arange(len(rows.indptr) - 1), np.diff(rows.indptr))[known], column[known]
        shape = (len(rows.indptr) - 1, len(self._known))
        scores = (scipy_sparse().csr_array((rows.values[known], (row, column)), shape=shape) @ self._matrix).tocoo()
        above = scores.data >= self._threshold
        others, asked = scores.coords[0][above] + first, self._places[scores.coords[1][above]]
        both = zip(asked.tolist(), others.tolist(), strict=True)
        return [(min(pair), max(pair)) for pair in both if pair[0] != pair[1]]


def groups(n: int, left: Int64s, right: Int64s) -> Int64s:
    """Return int64[n], the first member of each row's group; rows are in one group if a chain of pairs joins them."""
    first = np.arange(n)
    while len(left):
        left_first, right_first = first[left], first[right]
        apart = left_first != right_first
        left, right, left_first, right_first = left[apart], right[apart], left_first[apart], right_first[apart]
        np.minimum.at(first, np.maximum(left_first, right_first), np.minimum(left_first, right_first))
        # A first member that has joined another group takes its own with it.
        while (ahead := first[first]).tobytes() != first.tobytes():
            first[:] = ahead
    return first
