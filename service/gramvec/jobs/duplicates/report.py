"""Reports of dedupe: all candidates' scores, the pairs to look at, and the groups with the row that stays of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.jobs.duplicates.distinct import DuplicateRows
from gramvec.jobs.duplicates.rows import DedupeTable, KnownRow
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.nearest import Matches, select_pairs
from gramvec.jobs.matching.report import EQUAL_ROWS, list_pairs
from gramvec.jobs.report import DuplicateGroup, GroupSizes, JobReport, ScoreHistogram, count_groups
from gramvec.text.arrays import Int64s

MAX_GROUPS = 30
# A group of so many rows may be a chain of pairs that are each alike, with ends that are not.
LARGE_GROUP = 10
# Rows of a group that are shown, and characters of each.
MAX_ROWS, MAX_CHARACTERS = 20, 300


def dedupe_report(
    found: DuplicateRows, table: DedupeTable, *, title: str, columns: Sequence[str], facts: Sequence[tuple[str, str]]
) -> JobReport:
    """Return the report of a deduplication.

    Args:
        found: the duplicates.
        table: the rows of the file.
        title: the heading.
        columns: the names of the compared columns.
        facts: what was done and with what.
    """
    of_row, likely, unit = found.distinct.of_row, found.likely, table.table.unit
    texts, first = np.unique(of_row, return_index=True)
    first_row = dict(zip(texts.tolist(), first.tolist(), strict=True))

    def name_text(text: int) -> str:
        return _name_row(table, first_row[text])

    number = len(likely.pairs.left)
    summary = (
        f"{len(found.dropped):,} of {len(of_row):,} {unit}s repeat one that stays; {number:,} pair{'s' * (number != 1)}"
        f" of different {unit}s at the threshold {likely.threshold:.3f}"
    )
    if likely.expected is not None:
        summary += f", of which {likely.expected} are expected to be right"
    fields = [Field(column, column, 1.0) for column in found.distinct.columns]
    return JobReport(
        title, summary, [*facts],
        scores=ScoreHistogram.from_scores(likely.candidates.scores, likely.threshold, unit="candidate pairs",
                                          note=EQUAL_ROWS),
        pairs=list_pairs(Matches(*likely.candidates), Matches(*likely.pairs), likely.threshold, fields,
                         [(name, name) for name in columns], (name_text, name_text), likely.reasons, groups=True),
        groups=_groups(found.stays, table),
    )  # fmt: skip


def known_report(
    found: Sequence[KnownRow], threshold: float, table: DedupeTable, *, title: str, facts: Sequence[tuple[str, str]]
) -> JobReport:
    """Return the report of rows that were compared with the documents of an index.

    Args:
        found: each row with its best document, whatever its score is.
        threshold: from which on a row is known.
        table: the rows of the file.
        title: the heading.
        facts: what was done and with what.
    """
    scores = np.array([row.score for row in found], np.float32)
    places = np.arange(len(found))
    best = Matches(places, places, scores)
    known = select_pairs(best, scores >= np.float32(threshold))
    texts = Field([table.text(row.row) for row in found], [row.text for row in found], 1.0)
    names = [_name_row(table, row.row) for row in found], [f"document {row.id}" for row in found]
    unit = table.table.unit
    return JobReport(
        title, f"{len(known.left):,} of {len(table.ids):,} {unit}s have a document that is probably the same thing, "
        f"at the threshold {threshold:.3f}.",
        [*facts],
        scores=ScoreHistogram.from_scores(scores, threshold, unit=f"{unit}s with their best document"),
        pairs=list_pairs(best, known, threshold, [texts], [("text", "text")],
                         (names[0].__getitem__, names[1].__getitem__)),
    )  # fmt: skip


def _groups(roots: Int64s, table: DedupeTable) -> GroupSizes:
    sizes = np.bincount(roots, minlength=len(roots))
    several = np.flatnonzero(sizes > 1)
    largest = several[np.argsort(-sizes[several], kind="stable")[:MAX_GROUPS]]
    order = np.argsort(roots, kind="stable")
    starts = np.cumsum(sizes) - sizes

    def text(row: int) -> str:
        whole = table.text(row)
        cut = whole if len(whole) <= MAX_CHARACTERS else whole[:MAX_CHARACTERS] + "…"
        return f"{_name_row(table, row)}: {cut}"

    shown = []
    for root in largest.tolist():
        members = order[starts[root] : starts[root] + min(sizes[root], MAX_ROWS + 1)].tolist()
        others = [row for row in members if row != root][:MAX_ROWS]
        shown.append(DuplicateGroup(text(root), [text(row) for row in others], int(sizes[root])))
    rows = int(sizes.max(initial=0))
    doubt = f"a group of {rows:,} {table.table.unit}s" if rows >= LARGE_GROUP else ""
    return GroupSizes(count_groups(sizes[several].tolist()), shown, doubt)


def _name_row(table: DedupeTable, row: int) -> str:
    """Return what a row is called: its id where a column has ids, else its line."""
    if table.id_column is None:
        return table.name(row)
    source = "" if table.sources is None else f"{table.sources[row]}, "
    return f"{source}{table.id_column} {table.ids[row]}"
