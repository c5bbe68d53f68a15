"""What a match gives: pairs of rows with their scores, the threshold, and what is expected to be right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.matching.fields import ChosenMatches, Field
from gramvec.jobs.matching.matcher import LearnedMatcher
from gramvec.jobs.matching.nearest import CosineArray, Matches, RowIds
from gramvec.jobs.pairs.model import ExpectedShare, facts_of


@dataclass(frozen=True, repr=False)
class MatchResult(ResultTable):
    """Result of a match; `left, right, scores = result` takes its arrays.

    Attributes:
        matches: the rows of both tables that match, from 0, with their scores.
        threshold: the lowest score of a match.
        expected: the share of matches that is expected to be right; None where nothing is known of it.
        fields: the compared columns.
        left_ids: the ids of the left table's rows; None where no column has them.
        right_ids: the ids of the right table's rows; likewise.
        matcher: what scored: the matcher that was given, or learned; None for the pair model.
        summary: what came out, in a sentence, of files.
        ignored: columns of the left table that were not compared: rows that are one thing by the others differ in them.
    """

    matches: Matches
    threshold: float
    expected: ExpectedShare | None
    fields: Sequence[Field]
    left_ids: Sequence[str] | None = None
    right_ids: Sequence[str] | None = None
    matcher: LearnedMatcher | None = None
    summary: str = ""
    ignored: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        chosen: ChosenMatches,
        fields: Sequence[Field],
        columns: Sequence[tuple[str, str]],
        matcher: LearnedMatcher | None = None,
    ) -> MatchResult:
        """Return the result of chosen matches; `columns` are the names of the fields in both tables."""
        ignored = [columns[place][0] for place in chosen.ignored]
        return cls(chosen.matches, chosen.threshold, chosen.expected, fields, matcher=matcher, ignored=ignored)

    def __iter__(self) -> Iterator[RowIds | CosineArray]:
        return iter(self.matches)

    def __repr__(self) -> str:
        right = f", {self.expected} expected to be right" if self.expected else ""
        without = f", without {', '.join(self.ignored)}" if self.ignored else ""
        return f"MatchResult({len(self.left):,} pairs, threshold {self.threshold:.3f}{right}{without})"

    @property
    def left(self) -> RowIds:
        """The row of the left table of each match, from 0: int64[p]."""
        return self.matches.left

    @property
    def right(self) -> RowIds:
        """The row of the right table of each match, from 0: int64[p]."""
        return self.matches.right

    @property
    def scores(self) -> CosineArray:
        """The score of each match: float32[p]."""
        return self.matches.scores

    def columns(self) -> dict[str, FrameColumn]:
        """Return what `gramvec match` writes of each match, and both rows, from 0."""
        found: dict[str, FrameColumn] = {"left_row": self.left, "right_row": self.right}
        rows = self.left.tolist(), self.right.tolist()
        for name, ids, side in (("left_id", self.left_ids, rows[0]), ("right_id", self.right_ids, rows[1])):
            if ids is not None:
                found[name] = [ids[row] for row in side]
        found["score"] = self.scores
        for name, side, columns in (
            ("left", rows[0], [field.left for field in self.fields]),
            ("right", rows[1], [field.right for field in self.fields]),
        ):
            found[name] = [" | ".join(column[row] for column in columns) for row in side]
        return found

    def facts(self) -> dict[str, float]:
        """Return the threshold, and the ends of the share that is expected to be right."""
        return facts_of(self.threshold, self.expected)
