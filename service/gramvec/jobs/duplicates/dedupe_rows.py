"""Duplicates as rows of a table, or as lines of JSON: pairs, groups, and rows that an index has already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gramvec.jobs.common.file_job import RowColumns
from gramvec.jobs.duplicates.pairs import NearPairs
from gramvec.jobs.duplicates.rows import DedupeTable, KnownRow
from gramvec.jobs.matching.match_rows import COUNTED, tell_reasons
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.jobs.tables.columns import read_records, value_or_none
from gramvec.jobs.tables.inputs import FileFormat
from gramvec.jobs.tables.outputs import TableForm, free_names, write_table


class RowList:
    """List that is written: a row of a table has named cells, and a line of JSON the lists of its rows.

    Args:
        table: the rows of the input.
        on: the names of the compared columns.
        columns: which columns are listed.
        source: the input, which is read again for all columns.
        format: of the input.
        safe_cells: as of `write_table`.
    """

    def __init__(
        self,
        table: DedupeTable,
        on: Sequence[str],
        columns: RowColumns,
        source: Path,
        format: FileFormat,  # noqa: A002 - the field's word
        *,
        safe_cells: bool = False,
    ) -> None:
        self._safe_cells = safe_cells
        self._table, self._on, self._columns, self._source, self._format = table, list(on), columns, source, format

    def write_pairs(
        self, output: Path | None, form: TableForm, pairs: NearPairs, reasons: Iterable[PairReasons] | None = None
    ) -> None:
        """Write a pair of rows a line, with the reasons of its score if there are any."""
        self._read({*pairs.left.tolist(), *pairs.right.tolist()})
        ids = ["id", "other_id"] if self._table.has_ids else []
        fixed = [*ids, "line", "other_line", "score", *(() if reasons is None else COUNTED)]
        own = free_names(self._names, "row_", fixed)
        other = free_names([f"other_{name}" for name in self._names], "other_", [*fixed, *own.values()])
        names = [*fixed, *own.values(), *other.values()]

        def records() -> Iterator[dict[str, Any]]:
            rows = zip(*(part.tolist() for part in pairs), strict=True)
            for (a, b, score), why in zip_longest(rows, reasons or ()):
                told = tell_reasons(why) if why is not None else {}
                if form == "jsonl":
                    yield self._lists([a, b], score=round(score, 4), **told)
                    continue
                cells = [self._table.ids[a], self._table.ids[b]] if ids else []
                cells += [self._table.table.numbers[a], self._table.table.numbers[b], round(score, 4), *told.values()]
                yield dict(zip(names, [*cells, *self._cells(a), *self._cells(b)], strict=True))

        write_table(output, form, [] if form == "jsonl" else names, records(), safe_cells=self._safe_cells)

    def write_groups(self, output: Path | None, form: TableForm, groups: Sequence[Sequence[int]]) -> None:
        """Write a row of a group a line, or as JSON a group a line."""
        self._read({row for group in groups for row in group})
        fixed = ["group", *(["id"] if self._table.has_ids else []), "line"]
        names = [*fixed, *free_names(self._names, "row_", fixed).values()]

        def records() -> Iterator[dict[str, Any]]:
            for number, group in enumerate(groups, start=1):
                if form == "jsonl":
                    yield self._lists(group)
                    continue
                for row in group:
                    ids = [self._table.ids[row]] if self._table.has_ids else []
                    cells = [number, *ids, self._table.table.numbers[row], *self._cells(row)]
                    yield dict(zip(names, cells, strict=True))

        write_table(output, form, [] if form == "jsonl" else names, records(), safe_cells=self._safe_cells)

    def write_known(self, output: Path | None, form: TableForm, known: Sequence[KnownRow]) -> None:
        """Write a row that an index has already a line."""
        self._read({pair.row for pair in known})
        fixed = [*(["id"] if self._table.has_ids else []), "line", "known_id", "score"]
        text = [] if self._columns == "none" else ["known_text"]
        names = [*fixed, *free_names(self._names, "row_", [*fixed, *text]).values(), *text]

        def records() -> Iterator[dict[str, Any]]:
            for row, known_id, known_text, score in known:
                if form == "jsonl":
                    record = self._lists([row], known_id=known_id, score=round(score, 4))
                    yield record | ({"known_text": known_text} if text else {})
                    continue
                ids = [self._table.ids[row]] if self._table.has_ids else []
                cells = [*ids, self._table.table.numbers[row], known_id, round(score, 4), *self._cells(row)]
                yield dict(zip(names, [*cells, *([known_text] if text else [])], strict=True))

        write_table(output, form, [] if form == "jsonl" else names, records(), safe_cells=self._safe_cells)

    def _read(self, rows: set[int]) -> None:
        """Take the cells of these rows, and the names of their columns in the input's order."""
        self._names = self._on if self._columns == "compared" else []
        if self._columns == "all":
            numbers = self._table.table.numbers
            self._records = read_records(self._source, self._format, [numbers[row] for row in rows])
            self._names = [name for name in self._table.table.found if name != self._table.id_column]

    def _cells(self, row: int) -> list[Any]:
        if self._columns == "compared":
            return [column[row] for column in self._table.columns]
        record = self._records[self._table.table.numbers[row]] if self._names else {}
        return [value_or_none(record, name) for name in self._names]

    def _lists(self, rows: Sequence[int], **more: Any) -> dict[str, Any]:
        table = self._table
        found: dict[str, Any] = {
            "ids": [table.ids[row] for row in rows],
            "lines": [table.table.numbers[row] for row in rows],
            **more,
        }
        if self._columns == "compared":
            found["texts"] = [table.text(row) for row in rows]
        if self._columns == "all":
            found["rows"] = [self._records[table.table.numbers[row]] for row in rows]
        return found
