"""Pairs of rows into numbers that tell a match: what both share, what each lacks, and who else is near."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.lexical.sparse import fit
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.matching.classifiers import Classifier
from gramvec.matching.fields import Blocks, Field, Ngrams, Watch, beside, column_vectors, nearest_rows, unwatched
from gramvec.matching.nearest import Ids, Matches, scipy_sparse

Pairs = NDArray[np.float32]
Floats64 = NDArray[np.float64]

# Where a feature cannot be: a column is empty, or has no number.
ABSENT = -1.0
OF_A_PAIR = ("score", "above_other_left", "above_other_right")
OF_JOINED = ("joined.above_other_left", "joined.above_other_right")
OF_A_COLUMN = (
    "cosine", "words_cosine", "words_in_right", "words_in_left", "words_only_left", "words_only_right",
    "codes_in_right", "codes_in_left", "codes_shared", "codes_only_left", "codes_only_right",
    "number", "equal", "empty_left", "empty_right", "length",
)  # fmt: skip
# A pair whose cosine is lower is no candidate, and does not compete.
LEAST = 0.05
DEPTH = 10
# Joined columns and folded letters may be longer than what is read of a text.
MOST_CHARACTERS = 65_536
BLOCK_PAIRS = 65_536

_PLAIN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def feature_names(columns: int) -> list[str]:
    """The names of the features of pairs of rows with so many columns, in their order."""
    several = columns > 1
    texts = [f"column {number + 1}" for number in range(columns)] + ["joined"] * several
    return [*OF_A_PAIR, *(OF_JOINED if several else ()), *(f"{text}.{name}" for text in texts for name in OF_A_COLUMN)]


class Compared:
    """Two tables that are compared: their vectors, made once, and what is asked of pairs of their rows.

    Raises InputError for what cannot be compared, and without SciPy.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        blocks: Blocks | None = None,
        *,
        ngrams: Ngrams | None = None,
        threads: int = 1,
        watch: Watch = unwatched,
    ) -> None:
        scipy_sparse()
        self.weights = [field.weight for field in fields]
        self._blocks = blocks
        self.ngrams = ngrams or Ngrams()
        self._threads, self._watch = threads, watch
        self._fields = list(fields)
        self._vectors = column_vectors(fields, self.ngrams, watch)
        self._whole = beside(*self._vectors, self.weights)

    @property
    def rows(self) -> tuple[int, int]:
        """Of the left table and of the right one."""
        return len(self._whole[0]), len(self._whole[1])

    @property
    def columns(self) -> int:
        """How many are compared."""
        return len(self.weights)

    def candidates(self) -> Matches:
        """Pairs that may be matches, each once, and their scores: of each row of both tables the DEPTH nearest of the
        other, by its columns and by all of them joined. By left row, then right row.
        """
        pairs = np.concatenate([rivals.pairs for rivals in self._rivals])
        left, right = np.unique(pairs, axis=0).T
        return Matches(left, right, self._whole[0].dots(left, self._whole[1], right))

    def features(self, left: Ids, right: Ids, watch: Callable[[int], None] = lambda done: None) -> Pairs:
        """float32[p, features] of pairs of rows: finite, ABSENT where there is none; `feature_names` has their names.

        Each pair's by itself, so the same in any batch. watch: called with the pairs done since the last time.
        """
        made = np.empty((len(left), len(feature_names(self.columns))), np.float32)
        for part in self._parts(len(left), watch):
            made[part] = self._block(left[part], right[part])
        return made

    def judged(
        self, left: Ids, right: Ids, classifier: Classifier, watch: Callable[[int], None] = lambda done: None
    ) -> Floats64:
        """float64[p]: the probabilities of pairs of rows, whose features are never all in memory."""
        made = np.empty(len(left))
        for part in self._parts(len(left), watch):
            made[part] = classifier.probabilities(self._block(left[part], right[part]))
        return made

    def _parts(self, pairs: int, watch: Callable[[int], None]) -> Iterator[slice]:
        for start in range(0, pairs, BLOCK_PAIRS):
            yield slice(start, start + BLOCK_PAIRS)
            watch(min(BLOCK_PAIRS, pairs - start))

    def _block(self, left: Ids, right: Ids) -> Pairs:
        found = [self._whole[0].dots(left, self._whole[1], right).astype(np.float64)]
        for rivals in self._rivals:
            found += rivals.above(left, right)
        for text in self._texts:
            found += text.features(left, right)
        return np.stack(found, axis=1).astype(np.float32)

    @cached_property
    def _texts(self) -> list[_Text]:
        """The columns, and where there are several, all of them joined."""
        texts = []
        total = sum(len(field.left) + len(field.right) for field in self._joined_too)
        for field, left, right in zip(self._joined_too, *self._vectors_too, strict=True):
            texts.append(_Text(field, (left, right)))
            self._watch("reading words", len(field.left) + len(field.right), total)
        return texts

    @cached_property
    def _rivals(self) -> list[_Rivals]:
        both = [self._whole, *([(self._vectors_too[0][-1], self._vectors_too[1][-1])] if self.columns > 1 else [])]
        found = []
        for vectors in both:
            found.append(_Rivals(vectors, self._blocks, self._threads))
            self._watch("looking for candidates", sum(self.rows), len(both) * sum(self.rows))
        return found

    @cached_property
    def _joined_too(self) -> list[Field]:
        if self.columns == 1:
            return self._fields
        left = _joined([field.left for field in self._fields])
        right = _joined([field.right for field in self._fields])
        return [*self._fields, Field(left, right, 1.0)]

    @cached_property
    def _vectors_too(self) -> tuple[list[SparseVectors], list[SparseVectors]]:
        if self.columns == 1:
            return self._vectors
        left, right = column_vectors(self._joined_too[-1:], self.ngrams, self._watch)
        return self._vectors[0] + left, self._vectors[1] + right


class _Rivals:
    """Of each row of both tables the nearest of the other."""

    def __init__(self, vectors: tuple[SparseVectors, SparseVectors], blocks: Blocks | None, threads: int) -> None:
        self._vectors = vectors
        ways = [(vectors, blocks), (vectors[::-1], blocks[::-1] if blocks else None)]
        found = [nearest_rows(way, keys, DEPTH, LEAST, threads=threads) for way, keys in ways]
        self._best = [_two_best(one, len(way[0])) for one, (way, _) in zip(found, ways, strict=True)]
        there, back = found
        self.pairs = np.stack([np.append(there.left, back.right), np.append(there.right, back.left)], axis=1)

    def above(self, left: Ids, right: Ids) -> list[Floats64]:
        """By how much the pairs' cosines are above those of the best other pair of the left row, and of the right."""
        cosines = self._vectors[0].dots(left, self._vectors[1], right).astype(np.float64)
        return [
            cosines - np.where(others[rows, 0] == partners, scores[rows, 1], scores[rows, 0])
            for (others, scores), rows, partners in zip(self._best, (left, right), (right, left), strict=True)
        ]


def _two_best(found: Matches, rows: int) -> tuple[Ids, Floats64]:
    """(int64[rows, 2]: the two nearest, float64[rows, 2]: their cosines) of rows; -1 and 0 where there is none."""
    others, scores = np.full((rows, 2), -1, np.int64), np.zeros((rows, 2))
    place = np.arange(len(found.left)) - np.searchsorted(found.left, found.left)
    first = place < 2
    others[found.left[first], place[first]] = found.right[first]
    scores[found.left[first], place[first]] = found.scores[first]
    return others, scores


class _Text:
    """A column of both tables: its vectors, words, codes (words with a digit in them) and numbers."""

    def __init__(self, field: Field, vectors: tuple[SparseVectors, SparseVectors]) -> None:
        self._vectors = vectors
        plain = [[" ".join(text.casefold().split())[:MOST_CHARACTERS] for text in texts] for texts in field[:2]]
        codes = [[codes_of(text) for text in texts] for texts in plain]
        self._words = _Shared(*plain)
        self._codes = _Shared(*codes)
        self._numbers = [np.array([number_of(text) for text in texts]) for texts in plain]
        self._lengths = [np.array([len(text) for text in texts], np.float64) for texts in plain]
        known: dict[str, int] = {}
        self._same = [np.array([known.setdefault(text, len(known)) for text in texts], np.int64) for texts in plain]

    def features(self, left: Ids, right: Ids) -> list[Floats64]:
        """float64[p] for each of OF_A_COLUMN."""
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
            *(np.where(lacking, ABSENT, one) for one in of_text),
            codes.in_right, codes.in_left, codes.shared, codes.left - codes.shared, codes.right - codes.shared,
            np.where(np.isnan(greatest), ABSENT, _share(np.abs(numbers[0] - numbers[1]), greatest, 0.0)),
            np.where(lacking, ABSENT, self._same[0][left] == self._same[1][right]),
            (lengths[0] == 0).astype(np.float64),
            (lengths[1] == 0).astype(np.float64),
            _share(np.minimum(*lengths), np.maximum(*lengths), ABSENT),
        ]  # fmt: skip


class _Of(NamedTuple):
    """float64[p] each: the weights of the words of pairs: of both rows' together, and of what they share."""

    left: Floats64
    right: Floats64
    shared: Floats64

    @property
    def in_right(self) -> Floats64:
        """The share of the left row's that is in the right one."""
        return _share(self.shared, self.left, ABSENT)

    @property
    def in_left(self) -> Floats64:
        """The share of the right row's that is in the left one."""
        return _share(self.shared, self.right, ABSENT)

    @property
    def cosine(self) -> Floats64:
        """Of the roots of the weights."""
        return _share(self.shared, np.sqrt(self.left * self.right), ABSENT)


class _Shared:
    """The words of both tables' texts, each once in a text, weighed by how rare they are (idf)."""

    def __init__(self, left: Sequence[str], right: Sequence[str]) -> None:
        made = fit([*left, *right], orders=(), words=True, weighting="idf")
        sides = [made.embed(texts, normalize=False) for texts in (left, right)]
        weights = [made.weights[side.indices].astype(np.float64) for side in sides]
        rows = [np.repeat(np.arange(len(side)), np.diff(side.indptr)) for side in sides]
        self._totals: list[Floats64] = [
            np.bincount(row, weight, minlength=len(side)).astype(np.float64)
            for row, weight, side in zip(rows, weights, sides, strict=True)
        ]
        # So that a product is the share of the left row's that is in the right one.
        scaled = np.sqrt(weights[0]) / self._totals[0][rows[0]], np.sqrt(weights[1])
        self._left, self._right = (
            SparseVectors(side.indptr, side.indices, values.astype(np.float32), side.columns)
            for side, values in zip(sides, scaled, strict=True)
        )

    def features(self, left: Ids, right: Ids) -> _Of:
        totals = self._totals[0][left], self._totals[1][right]
        shared = self._left.dots(left, self._right, right) * totals[0]
        return _Of(totals[0], totals[1], np.minimum(shared, totals[1]))


def _joined(columns: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(filter(None, row))[:MOST_CHARACTERS] for row in zip(*columns, strict=True)]


def codes_of(text: str) -> str:
    """The words of a text that hold a digit, without their punctuation: "dvd-3800 black" is "dvd3800"."""
    words = ("".join(_PLAIN.findall(word)) for word in text.split())
    return " ".join(word for word in words if any(map(str.isdigit, word)))


def number_of(text: str) -> float:
    """The number that is in a text, a price perhaps; not a number where there is none, or more than one."""
    found = _NUMBER.findall(text)
    try:
        number = float(found[0].replace(",", "")) if len(found) == 1 else math.nan
    except ValueError:  # 1.2.3
        return math.nan
    return number if math.isfinite(number) else math.nan


def _share(part: Floats64, whole: Floats64, otherwise: float) -> Floats64:
    """part / whole; `otherwise` where that is 0."""
    made: Floats64 = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return made
