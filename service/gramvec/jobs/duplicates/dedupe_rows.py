"""Duplicates as rows of a table, or as lines of JSON: pairs, groups, and rows that an index has already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gramvec.jobs.common.file_job import RowColumns
from gramvec.jobs.duplicates.distinct import SOURCE, DuplicateRows, StayingMap
from gramvec.jobs.duplicates.rows import DedupeTable, KnownRow
from gramvec.jobs.matching.match_rows import COUNTED, tell_reasons
from gramvec.jobs.matching.nearest import Matches
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
        bom: likewise.
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
        bom: bool = False,
    ) -> None:
        self._safe_cells, self._bom = safe_cells, bom
        self._table, self._on, self._columns, self._source, self._format = table, list(on), columns, source, format

    def write_pairs(
        self, output: Path | None, form: TableForm, pairs: Matches, reasons: Iterable[PairReasons] | None = None
    ) -> None:
        """Write a pair of rows a line, with the reasons of its score if there are any."""
        self._read({*pairs.left.tolist(), *pairs.right.tolist()})
        told = () if reasons is None else COUNTED
        fixed = [*(side + name for name in self._table.named_by for side in ("", "other_")), "score", *told]
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
                cells = [*self._names_of(a, b), round(score, 4), *told.values(), *self._cells(a), *self._cells(b)]
                yield dict(zip(names, cells, strict=True))

        write_table(
            output, form, [] if form == "jsonl" else names, records(), safe_cells=self._safe_cells, bom=self._bom
        )

    def write_groups(self, output: Path | None, form: TableForm, found: DuplicateRows) -> None:
        """Write a row of a group a line, or as JSON a group a line."""
        groups = found.numbered_groups()
        self._read({row for _, group in groups for row in group})
        fixed = ["group", *self._table.named_by]
        names = [*fixed, *free_names(self._names, "row_", fixed).values()]

        def records() -> Iterator[dict[str, Any]]:
            for number, group in groups:
                if form == "jsonl":
                    yield self._lists(group, **({} if found.group_ids is None else {"group": number}))
                    continue
                for row in group:
                    cells = [number, *self._table.name_cells(row), *self._cells(row)]
                    yield dict(zip(names, cells, strict=True))

        write_table(
            output, form, [] if form == "jsonl" else names, records(), safe_cells=self._safe_cells, bom=self._bom
        )

    def write_known(self, output: Path | None, form: TableForm, known: Sequence[KnownRow]) -> None:
        """Write a row that an index has already a line."""
        self._read({pair.row for pair in known})
        fixed = [*self._table.named_by, "known_id", "score"]
        text = [] if self._columns == "none" else ["known_text"]
        names = [*fixed, *free_names(self._names, "row_", [*fixed, *text]).values(), *text]

        def records() -> Iterator[dict[str, Any]]:
            for row, known_id, known_text, score in known:
                if form == "jsonl":
                    record = self._lists([row], known_id=known_id, score=round(score, 4))
                    yield record | ({"known_text": known_text} if text else {})
                    continue
                cells = [*self._table.name_cells(row), known_id, round(score, 4), *self._cells(row)]
                yield dict(zip(names, [*cells, *([known_text] if text else [])], strict=True))

        write_table(
            output, form, [] if form == "jsonl" else names, records(), safe_cells=self._safe_cells, bom=self._bom
        )

    def write_map(self, output: Path, form: TableForm, found: StayingMap) -> None:
        """Write a row that goes a line, with the row that stays for it."""
        names = [*(side + name for name in self._table.named_by for side in ("", "kept_")), "score"]
        parts = (found.rows.tolist(), found.kept.tolist(), found.scores.tolist())

        def records() -> Iterator[dict[str, Any]]:
            for row, kept, score in zip(*parts, strict=True):
                yield dict(zip(names, [*self._names_of(row, kept), round(score, 4)], strict=True))

        self._write(output, form, names, records())

    def _write(
        self, output: Path | None, form: TableForm, names: Sequence[str], records: Iterator[dict[str, Any]]
    ) -> None:
        write_table(output, form, names, records, safe_cells=self._safe_cells, bom=self._bom)

    def _names_of(self, row: int, other: int) -> list[Any]:
        """Return the cells that name two rows, each beside that of the other row."""
        both = zip(self._table.name_cells(row), self._table.name_cells(other), strict=True)
        return [cell for cells in both for cell in cells]

    def _read(self, rows: set[int]) -> None:
        """Take the cells of these rows, and the names of their columns in the input's order."""
        self._names = self._on if self._columns == "compared" else []
        if self._columns == "all":
            numbers = self._table.table.numbers
            self._records = read_records(self._source, self._format, [numbers[row] for row in rows])
            without = [self._table.id_column, *([] if self._table.sources is None else [SOURCE])]
            self._names = [name for name in self._table.table.found if name not in without]

    def _cells(self, row: int) -> list[Any]:
        if self._columns == "compared":
            return [column[row] for column in self._table.columns]
        record = self._records[self._table.table.numbers[row]] if self._names else {}
        return [value_or_none(record, name) for name in self._names]

    def _lists(self, rows: Sequence[int], **more: Any) -> dict[str, Any]:
        table = self._table
        sources = {} if table.sources is None else {"sources": [table.sources[row] for row in rows]}
        found: dict[str, Any] = {
            **sources,
            "ids": [table.ids[row] for row in rows],
            "lines": [table.lines[row] for row in rows],
            **more,
        }
        if self._columns == "compared":
            found["texts"] = [table.text(row) for row in rows]
        if self._columns == "all":
            found["rows"] = [self._records[table.table.numbers[row]] for row in rows]
        return found
