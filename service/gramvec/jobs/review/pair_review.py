"""Review of pairs of rows: candidates with the pair model's probabilities, and a matcher that learns from answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fields import Blocks, Field
from gramvec.jobs.matching.fit_matcher import fit_matcher
from gramvec.jobs.matching.inputs import DIGEST, why_changed
from gramvec.jobs.matching.match_tables import MIN_SCORE, score_fields, threshold_of
from gramvec.jobs.matching.matcher import PairLabels, score_pairs
from gramvec.jobs.matching.nearest import Matches, select_pairs
from gramvec.jobs.matching.report import show_pair
from gramvec.jobs.report.records import Pair
from gramvec.jobs.review.pair_questions import LearnedScores
from gramvec.progress import NO_PROGRESS, Progress

Ids = tuple[Sequence[str], Sequence[str]]


class PairTables(NamedTuple):
    """Tables of a review.

    Attributes:
        fields: the compared columns.
        columns: their names in both tables.
        blocks: a key for each row of both tables; only rows of the same key are compared.
        ids: what names the rows of both tables.
        same: whether both are one table.
        digest_of: returns `digest_texts` of a left and a right row.
        numbered: whether ids are numbers of rows.
    """

    fields: Sequence[Field]
    columns: Sequence[tuple[str, str]]
    blocks: Blocks | None
    ids: Ids
    same: bool
    digest_of: Callable[[int, int], str]
    numbered: bool = False


class PairReview:
    """Pairs of the rows of tables, for a review.

    Args:
        title: the page's title.
        tables: what is compared.
        write: called at the end with the labels; it writes the matches and returns what it has to say.
        threads: threads of the comparison.
        progress: as in `match_fields`, for the first scores.

    Raises:
        InputError: the tables cannot be compared, or no pair of rows is a candidate.
    """

    question = "Are these two rows the same thing?"
    unit = "candidate pairs"
    columns: tuple[str, ...] = ("left", "right", DIGEST, "match")
    older: tuple[str, ...] = ("left", "right", "match")

    def __init__(
        self,
        title: str,
        tables: PairTables,
        write: Callable[[PairLabels], list[str]],
        *,
        threads: int = 1,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self.title = title
        self._tables = tables
        self._write = write
        self._threads = threads
        scored = score_fields(tables.fields, tables.blocks, same=tables.same, threads=threads, progress=progress)
        candidates = scored.first_rows()
        candidates = select_pairs(candidates, candidates.scores >= np.float32(MIN_SCORE))
        if not len(candidates.left):
            raise InputError("no two rows have enough in common to be asked about; compare other columns with `on`")
        self._pairs = candidates
        self._rows: tuple[dict[str, int], dict[str, int]] = (
            {name: row for row, name in enumerate(tables.ids[0])},
            {name: row for row, name in enumerate(tables.ids[1])},
        )
        width = len(tables.ids[1])
        keys = candidates.left * width + candidates.right
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def first(self) -> LearnedScores:
        """Return the probabilities of the pair model, and its threshold."""
        return LearnedScores(
            self._pairs.scores.astype(np.float64), threshold_of(self._pairs.scores, same=self._tables.same)
        )

    def rows(self, pair: int) -> tuple[int, int]:
        """Return the left and the right row of a pair."""
        return int(self._pairs.left[pair]), int(self._pairs.right[pair])

    def show(self, pair: int, scores: NDArray[np.float64]) -> Pair:
        """Return what the page shows of a pair."""
        tables = self._tables
        candidates = Matches(self._pairs.left, self._pairs.right, scores.astype(np.float32))
        return show_pair(candidates, pair, tables.fields, tables.columns, tables.ids)

    def names(self, pair: int) -> tuple[str, ...]:
        """Return the ids of both rows, and the digest of their texts."""
        left, right = self.rows(pair)
        return self._tables.ids[0][left], self._tables.ids[1][right], self._tables.digest_of(left, right)

    def find(self, names: tuple[str, ...]) -> int | None:
        """Return the pair of two ids, of one table in either order; None if it is no candidate, or has other texts.

        Args:
            names: both ids, and the digest of the texts, which older files of answers lack.
        """
        ids, digests = names[:2], names[2:]
        orders = (ids, ids[::-1]) if self._tables.same else (ids,)
        for left, right in orders:
            rows = self._rows[0].get(left), self._rows[1].get(right)
            if rows[0] is None or rows[1] is None:
                continue
            now = self._tables.digest_of(rows[0], rows[1])
            if why_changed(digests[0] if digests else "", now, numbered=self._tables.numbered) is not None:
                continue
            key = rows[0] * len(self._tables.ids[1]) + rows[1]
            place = int(np.searchsorted(self._keys, key))
            if place < len(self._keys) and self._keys[place] == key:
                return int(self._order[place])
        return None

    def learn(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> LearnedScores:
        """Learn a matcher from the answers. Raises InputError where they do not suffice."""
        known = fit_matcher(self._compared, self._tables.columns, self._labels(pairs, match))
        scores = score_pairs(known, self._compared, self._pairs.left, self._pairs.right)
        return LearnedScores(scores.astype(np.float64), known.threshold)

    def finish(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> list[str]:
        """Write the matches. Raises as `write` does."""
        return self._write(self._labels(pairs, match))

    @cached_property
    def _compared(self) -> TablePair:
        tables = self._tables
        return TablePair(tables.fields, tables.blocks, same=tables.same, threads=self._threads)

    def _labels(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> PairLabels:
        """Return answers as labels by left row, then right row: what is learned depends on their order."""
        left, right = self._pairs.left[pairs], self._pairs.right[pairs]
        order = np.lexsort((right, left))
        return PairLabels(left[order], right[order], match[order])
