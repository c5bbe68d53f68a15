"""Features of pairs of rows, from which a matcher learns: what both share, what one lacks, and nearer rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.matching.fields import (
    Blocks,
    BothTables,
    Field,
    NgramSettings,
    check_fields,
    folded_field,
    joined_field,
    nearest_rows,
    ngram_vectors,
)
from gramvec.jobs.matching.groups import GroupPairs
from gramvec.jobs.matching.match_tables import score_fields
from gramvec.jobs.matching.nearest import Matches, RowIds, scipy_sparse, select_pairs
from gramvec.jobs.matching.scoring import beside, leads, two_nearest
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.lexical.sparse import MAX_CHARACTERS, fit
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.progress import NO_PROGRESS, Progress

PairFeatures = NDArray[np.float32]
PairValues = NDArray[np.float64]

# The value of a feature where a column is empty or has no number.
ABSENT = -1.0
# "likely" is the log-odds of the pair model's probability: where labels are few, little more is learned.
OF_A_PAIR = ("score", "above_other_left", "above_other_right", "likely")
LIKELY = OF_A_PAIR.index("likely")
# Pairs that are no candidates of the pair model have the lowest probability, and equal rows the highest.
MIN_LIKELY, MAX_LIKELY = 0.002, 0.998
OF_JOINED = ("joined.above_other_left", "joined.above_other_right")
OF_A_COLUMN = (
    "cosine", "words_cosine", "words_in_right", "words_in_left", "words_only_left", "words_only_right",
    "codes_in_right", "codes_in_left", "codes_shared", "codes_only_left", "codes_only_right",
    "number", "equal", "empty_left", "empty_right", "length",
)  # fmt: skip
# Pairs of a lower cosine are no candidates.
MIN_COSINE = 0.05
DEPTH = 10
BLOCK_PAIRS = 65_536

_PLAIN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def feature_names(columns: int) -> list[str]:
    """Return the names of the features of pairs with this number of columns, in order."""
    texts = [f"column {number + 1}" for number in range(columns)]
    pairs = [*OF_A_PAIR]
    if columns > 1:
        texts.append("joined")
        pairs += OF_JOINED
    return [*pairs, *(f"{text}.{name}" for text in texts for name in OF_A_COLUMN)]


class TablePair:
    """Two tables with their vectors, and the candidates and features of pairs of their rows.

    Rows are compared in the order of their texts, so that what a matcher learns and finds is the same whatever order
    they are given in. All methods speak of rows as they are given.

    Args:
        fields: the compared columns.
        blocks: as in `match_fields`.
        ngrams: settings of the cosine; a matcher's own where it has one.
        same: whether both are one table, of which no row is compared with itself and each pair is given once, the lower
            row left.
        explain: keep what tells why the pair model gives pairs their scores.
        threads: threads of the sparse product.
        progress: as in `match_fields`.

    Raises:
        InputError: columns or texts cannot be compared, or SciPy is not installed.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        blocks: Blocks | None = None,
        *,
        ngrams: NgramSettings | None = None,
        same: bool = False,
        explain: bool = False,
        threads: int = 1,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        scipy_sparse()
        self.weights = [field.weight for field in fields]
        self.ngrams = ngrams or NgramSettings()
        self.same = same
        self._explain = explain
        self._threads, self._progress = threads, progress
        check_fields(fields)
        left_order, right_order = self._orders = _order_rows(fields, blocks, 0), _order_rows(fields, blocks, 1)
        self.ranks = np.argsort(left_order), np.argsort(right_order)
        self._sorted = [Field(_take(field.left, left_order), _take(field.right, right_order), 1.0) for field in fields]
        self._blocks = None if blocks is None else (_take(blocks[0], left_order), _take(blocks[1], right_order))
        self._fields = [folded_field(field) for field in self._sorted]
        self._vectors = ngram_vectors(self._fields, self.ngrams, progress, np.concatenate(self._orders))
        left, right = (beside(side, self.weights) for side in zip(*self._vectors, strict=True))
        self._whole = left, right

    @property
    def rows(self) -> tuple[int, int]:
        """Return the rows of the left table and of the right one."""
        return len(self._whole[0]), len(self._whole[1])

    @property
    def columns(self) -> int:
        """Number of compared columns."""
        return len(self.weights)

    def candidates(self) -> Matches:
        """Return pairs that may be matches, each once, with their cosines, in the order of the texts of their rows.

        They are the DEPTH nearest rows of each row of both tables, by the columns and by all of them joined.
        """
        pairs = np.concatenate([rivals.pairs for rivals in self._rivals])
        left, right = np.unique(np.sort(pairs, axis=1) if self.same else pairs, axis=0).T
        cosines = self._whole[0].dots(left, self._whole[1], right)
        rows = self._orders[0][left], self._orders[1][right]
        return Matches(*self._lower_left(*rows), cosines)

    def places(self, left: RowIds, right: RowIds) -> tuple[RowIds, RowIds]:
        """Return the places of the rows of pairs among the sorted ones; of one table, the lower place left."""
        return self._lower_left(self.ranks[0][left], self.ranks[1][right])

    def reasons(
        self, left: RowIds, right: RowIds, names: Sequence[str], words: Callable[[int, int], str]
    ) -> Iterator[PairReasons]:
        """Yield the reasons of the pair model's scores, as `MatchReasons.of` does, if `explain` asked for them."""
        assert self._scored.reasons is not None
        one, other = (np.append(ranks, -1)[rows] for ranks, rows in zip(self.ranks, (left, right), strict=True))

        def words_of_places(a: int, b: int) -> str:
            return words(int(self._orders[0][a]), int(self._orders[1][b]))

        return self._scored.reasons.of(one, other, names, words_of_places)

    def _lower_left(self, left: RowIds, right: RowIds) -> tuple[RowIds, RowIds]:
        return (np.minimum(left, right), np.maximum(left, right)) if self.same else (left, right)

    def features(self, left: RowIds, right: RowIds, progress: Progress = NO_PROGRESS) -> PairFeatures:
        """Return the features of pairs of rows, float32[p, features], in the order of `feature_names`.

        They are finite, and ABSENT where there is no value. A pair has the same features in any batch.

        Args:
            left: int64[p], rows of the left table.
            right: int64[p], rows of the right table.
            progress: shows the pairs that are done.
        """
        empty = np.empty((0, len(feature_names(self.columns))), np.float32)
        return np.concatenate([empty, *self.feature_blocks(left, right, progress)])

    def feature_blocks(self, left: RowIds, right: RowIds, progress: Progress) -> Iterator[PairFeatures]:
        """Yield `features` block by block, so that all of them are never in memory."""
        progress.start("comparing pairs", len(left), "pairs")
        for start in range(0, len(left), BLOCK_PAIRS):
            part = slice(start, start + BLOCK_PAIRS)
            yield self._block(*self.places(left[part], right[part]))
            progress.advance(min(BLOCK_PAIRS, len(left) - start))

    def _block(self, left: RowIds, right: RowIds) -> PairFeatures:
        """Return the features of pairs of places."""
        columns = [self._whole[0].dots(left, self._whole[1], right).astype(np.float64)]
        for number, rivals in enumerate(self._rivals):
            columns += rivals.above(left, right)
            if not number:
                columns.append(self._likely.log_odds(left, right))
        for text in self._texts:
            columns += text.features(left, right)
        return np.stack(columns, axis=1).astype(np.float32)

    @cached_property
    def _scored(self) -> GroupPairs:
        return score_fields(
            self._sorted, self._blocks, same=self.same, explain=self._explain, threads=self._threads,
            progress=self._progress,
        )  # fmt: skip

    @cached_property
    def _likely(self) -> _Likely:
        return _Likely(self._scored)

    @cached_property
    def _texts(self) -> list[_Text]:
        """Features of the columns, and of all of them joined where there are several."""
        texts = []
        self._progress.start("reading words", sum(len(field.left) + len(field.right) for field in self._joined_too))
        for field, vectors in zip(self._joined_too, self._vectors_too, strict=True):
            texts.append(_Text(field, vectors))
            self._progress.advance(len(field.left) + len(field.right))
        return texts

    @cached_property
    def _rivals(self) -> list[_Rivals]:
        both = [self._whole, *self._vectors_too[self.columns :]]
        found = []
        self._progress.start("looking for candidates", len(both) * sum(self.rows))
        for vectors in both:
            found.append(_Rivals(vectors, self._blocks, self._threads, same=self.same))
            self._progress.advance(sum(self.rows))
        return found

    @cached_property
    def _joined_too(self) -> list[Field]:
        return [*self._fields, joined_field(self._fields, 1.0)] if self.columns > 1 else self._fields

    @cached_property
    def _vectors_too(self) -> list[BothTables]:
        joined = self._joined_too[self.columns :]
        return [*self._vectors, *(ngram_vectors(joined, self.ngrams, self._progress) if joined else [])]


def _order_rows(fields: Sequence[Field], blocks: Blocks | None, side: int) -> RowIds:
    """Return the rows of a table in the order of their texts, and where these are equal of their numbers."""
    texts = [*zip(*(field[:2][side] for field in fields), *([] if blocks is None else [blocks[side]]), strict=True)]
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)


def _take(texts: Sequence[str], rows: RowIds) -> list[str]:
    return [texts[row] for row in rows.tolist()]


class _Likely:
    """Probabilities of pairs of rows by the pair model."""

    def __init__(self, scored: GroupPairs) -> None:
        self._of_row = scored.left.of_row, scored.right.of_row
        self._width = len(scored.right.counts)
        keys = scored.pairs.left * self._width + scored.pairs.right
        order = np.argsort(keys)
        # A key above all others, so that each search has a place.
        self._keys = np.append(keys[order], np.iinfo(np.int64).max)
        self._scores = np.append(scored.pairs.scores[order].astype(np.float64), 0.0)

    def log_odds(self, left: RowIds, right: RowIds) -> PairValues:
        """Return the log-odds of pairs of rows, float64[p]."""
        left_row, right_row = self._of_row[0][left], self._of_row[1][right]
        keys = np.where((left_row >= 0) & (right_row >= 0), left_row * self._width + right_row, -1)
        places = np.searchsorted(self._keys, keys)
        scores = np.where(self._keys[places] == keys, self._scores[places], 0.0)
        likely = np.clip(scores, MIN_LIKELY, MAX_LIKELY)
        odds: PairValues = np.log(likely / (1 - likely))
        return odds


class _Rivals:
    """The nearest rows of each row of both tables."""

    def __init__(self, vectors: BothTables, blocks: Blocks | None, threads: int, *, same: bool) -> None:
        self._vectors = vectors
        ways = [(vectors, blocks), (vectors[::-1], blocks[::-1] if blocks else None)]
        nearest = [nearest_rows(way, keys, DEPTH + same, MIN_COSINE, threads=threads) for way, keys in ways]
        if same:
            nearest = [select_pairs(pairs, pairs.left != pairs.right) for pairs in nearest]
        self._best = [two_nearest(pairs, len(way[0])) for pairs, (way, _) in zip(nearest, ways, strict=True)]
        there, back = nearest
        self.pairs = np.stack([np.append(there.left, back.right), np.append(there.right, back.left)], axis=1)

    def above(self, left: RowIds, right: RowIds) -> list[PairValues]:
        """Return the leads of the pairs' cosines over the best other pair of the left row, and of the right row."""
        cosines = self._vectors[0].dots(left, self._vectors[1], right).astype(np.float64)
        return [
            leads(best, rows, partners, cosines)
            for best, rows, partners in zip(self._best, (left, right), (right, left), strict=True)
        ]


class _Text:
    """A column of both tables: its vectors, words, codes (words with a digit) and numbers."""

    def __init__(self, field: Field, vectors: BothTables) -> None:
        self._vectors = vectors
        # Case folding may make a text longer than the most that is read.
        plain = [[" ".join(text.casefold().split())[:MAX_CHARACTERS] for text in texts] for texts in field[:2]]
        codes = [[codes_of(text) for text in texts] for texts in plain]
        self._words = _SharedTokens(*plain)
        self._codes = _SharedTokens(*codes)
        self._numbers = [np.array([number_of(text) for text in texts]) for texts in plain]
        self._lengths = [np.array([len(text) for text in texts], np.float64) for texts in plain]
        known: dict[str, int] = {}
        self._same = [np.array([known.setdefault(text, len(known)) for text in texts], np.int64) for texts in plain]

    def features(self, left: RowIds, right: RowIds) -> list[PairValues]:
        """Return float64[p] for each of OF_A_COLUMN."""
        words, codes = self._words.features(left, right), self._codes.features(left, right)
        lengths = [length[rows] for length, rows in zip(self._lengths, (left, right), strict=True)]
        lacking = (lengths[0] == 0) | (lengths[1] == 0)
        numbers = [number[rows] for number, rows in zip(self._numbers, (left, right), strict=True)]
        greatest = np.maximum(*numbers)  # none is below 0
        of_text = [
            self._vectors[0].dots(left, self._vectors[1], right).astype(np.float64),
            words.cosine, words.in_right, words.in_left, words.left - words.shared, words.right - words.shared,
        ]  # fmt: skip
        return [
            *(np.where(lacking, ABSENT, figure) for figure in of_text),
            codes.in_right, codes.in_left, codes.shared, codes.left - codes.shared, codes.right - codes.shared,
            np.where(np.isnan(greatest), ABSENT, _share(np.abs(numbers[0] - numbers[1]), greatest, 0.0)),
            np.where(lacking, ABSENT, self._same[0][left] == self._same[1][right]),
            (lengths[0] == 0).astype(np.float64),
            (lengths[1] == 0).astype(np.float64),
            _share(np.minimum(*lengths), np.maximum(*lengths), ABSENT),
        ]  # fmt: skip


class _WordWeights(NamedTuple):
    """Total weights of the words of pairs, float64[p] each: the left row's, the right row's, and the shared ones'."""

    left: PairValues
    right: PairValues
    shared: PairValues

    @property
    def in_right(self) -> PairValues:
        """Share of the left row's weight that is in the right row."""
        return _share(self.shared, self.left, ABSENT)

    @property
    def in_left(self) -> PairValues:
        """Share of the right row's weight that is in the left row."""
        return _share(self.shared, self.right, ABSENT)

    @property
    def cosine(self) -> PairValues:
        """Cosine of the vectors of the weights' roots."""
        return _share(self.shared, np.sqrt(self.left * self.right), ABSENT)


class _SharedTokens:
    """Words of both tables' texts, each once in a text, weighted by idf."""

    def __init__(self, left: Sequence[str], right: Sequence[str]) -> None:
        made = fit([*left, *right], orders=(), words=True, weighting="idf")
        sides = [made.embed(texts, normalize=False) for texts in (left, right)]
        weights = [made.weights[side.indices].astype(np.float64) for side in sides]
        rows = [np.repeat(np.arange(len(side)), np.diff(side.indptr)) for side in sides]
        self._totals: list[PairValues] = [
            np.bincount(row, weight, minlength=len(side)).astype(np.float64)
            for row, weight, side in zip(rows, weights, sides, strict=True)
        ]
        # Scaled so that a product is the share of the left row's weight that is in the right row.
        scaled = np.sqrt(weights[0]) / self._totals[0][rows[0]], np.sqrt(weights[1])
        self._left, self._right = (
            SparseVectors(side.indptr, side.indices, values.astype(np.float32), side.columns)
            for side, values in zip(sides, scaled, strict=True)
        )

    def features(self, left: RowIds, right: RowIds) -> _WordWeights:
        totals = self._totals[0][left], self._totals[1][right]
        shared = self._left.dots(left, self._right, right) * totals[0]
        return _WordWeights(totals[0], totals[1], np.minimum(shared, totals[1]))


def codes_of(text: str) -> str:
    """Return the words of a text that have a digit, without punctuation: "dvd-3800 black" gives "dvd3800"."""
    words = ("".join(_PLAIN.findall(word)) for word in text.split())
    return " ".join(word for word in words if any(map(str.isdigit, word)))


def number_of(text: str) -> float:
    """Return the number in a text, such as a price; NaN if there is none or more than one."""
    found = _NUMBER.findall(text)
    try:
        number = float(found[0].replace(",", "")) if len(found) == 1 else math.nan
    except ValueError:  # 1.2.3
        return math.nan
    return number if math.isfinite(number) else math.nan


def _share(part: PairValues, whole: PairValues, otherwise: float) -> PairValues:
    """Return part / whole, and `otherwise` where whole is 0."""
    made: PairValues = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return made
