"""Files of two tables that a job compares: which columns, ids and blocks they have, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import field_validator, model_validator

from gramvec.errors import InputError
from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.file_job import FileJob, OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.matching.api import TEXT
from gramvec.jobs.matching.fields import Blocks, Field
from gramvec.jobs.matching.inputs import MatchTable, digest_texts, read_table
from gramvec.jobs.tables.inputs import SPREADSHEETS, STDIN, UTF_8, FileFormat, Form, form_of

# A = with the backslashes before it.
_EQUALS = re.compile(r"(?<!\\)(\\*)=")


class ComparedColumn(NamedTuple):
    """Column that is compared: its names in the left and the right table, and its weight (above 0)."""

    left: str
    right: str
    weight: float = 1.0

    def __str__(self) -> str:
        """Return the column as `parse_column` reads it."""
        left, right = (_EQUALS.sub(r"\1\1\\=", name) for name in self[:2])
        at_end = left[len(left.rstrip("\\")) :]  # before the = that parts both names they count in pairs, too
        name = left if left == right else f"{left}{at_end}={right}"
        return f"{name}:{self.weight:g}" if ":" in name or self.weight != 1 else name


class ReadTables(NamedTuple):
    """Rows of both tables.

    Attributes:
        left: the left table.
        right: the right table.
        fields: the compared columns.
        columns: the names of each compared column in both tables.
        blocks: a key for each row of both tables; None compares all rows.
        same: whether both are one file, whose rows are not compared with themselves.
    """

    left: MatchTable
    right: MatchTable
    fields: list[Field]
    columns: list[tuple[str, str]]
    blocks: Blocks | None
    same: bool

    @property
    def numbered(self) -> bool:
        """True if rows of one of the tables are named by their numbers."""
        return self.left.numbered or self.right.numbered

    def digest_of(self, left: int, right: int) -> str:
        """Return `digest_texts` of a left and a right row."""
        texts = [field.left[left] for field in self.fields], [field.right[right] for field in self.fields]
        return digest_texts(self.columns, *texts, same=self.same)


class TableFiles(FileJob):
    """Files of two tables, and the columns that are compared.

    Attributes:
        left: a file that `gramvec embed` reads; - is standard input.
        right: likewise; the file of `left` compares its rows with each other.
        on: the compared columns: COLUMN, COLUMN=OTHER, COLUMN:WEIGHT or (left, right, weight) each, or a mapping of
            columns to weights; none for the column "text".
        block: compare only rows with the same value in this column: COLUMN or COLUMN=OTHER.
        id_column: column of the ids, COLUMN or COLUMN=OTHER; None for "id" if there is one, else the rows' numbers;
            "none" for the numbers.
        left_format: form of the left file; None goes by its ending.
        right_format: form of the right file; None goes by its ending.
        delimiter: character between the columns of CSV; None recognizes it by the header.
        encoding: of both files, or LEFT=RIGHT.
        sheet: of spreadsheets, NAME or LEFT=RIGHT; None for the first.
        on_error: "stop" at a bad row, or "skip" it.
    """

    left: Path
    right: Path
    on: tuple[ComparedColumn, ...] = ()
    block: str | None = None
    id_column: str | None = None
    left_format: Form | None = None
    right_format: Form | None = None
    delimiter: str | None = None
    encoding: str = UTF_8
    sheet: str | None = None
    on_error: OnError = "stop"

    @field_validator("on", mode="before")
    @classmethod
    def _parse_columns(cls, on: Any) -> Any:
        if isinstance(on, Mapping):
            return [ComparedColumn(name, name, weight) for name, weight in on.items()]
        columns = [on] if isinstance(on, str) else on
        return [parse_column(column) if isinstance(column, str) else column for column in columns]

    @model_validator(mode="after")
    def _check_tables(self) -> Self:
        _split_both("--block", self.block)
        _split_both("--id", self.id_column)
        self.formats()
        if self.left == self.right == STDIN:
            raise OptionError(
                "LEFT and RIGHT cannot both be standard input (-); give a file for one of them", field="right"
            )
        return self

    def read_tables(self, columns: tuple[ComparedColumn, ...], watch: JobWatch) -> ReadTables:
        """Read the compared columns of both files, and those of their ids and blocks.

        Raises InputError as `read_table` does.
        """
        tables = []
        block, ids = _split_both("--block", self.block), _split_both("--id", self.id_column)
        names = [column.left for column in columns], [column.right for column in columns]
        paths, forms = (self.left, self.right), self.formats()
        for path, form, compared, key, id_column in zip(paths, forms, names, block, ids, strict=True):
            tables.append(read_table(path, form, compared, id_column, key, on_error=self.on_error, progress=watch))
        left, right = tables
        for table in tables[:1] if self.left == self.right else tables:
            for sentence in table.bad.report(len(table.ids) + table.bad.count, "rows could not be read"):
                watch.report(f"{table.name}: {sentence}")
        return ReadTables(
            left,
            right,
            [Field(left.columns[column.left], right.columns[column.right], column.weight) for column in columns],
            [(column.left, column.right) for column in columns],
            (left.columns[block[0]], right.columns[block[1]]) if block[0] and block[1] else None,
            STDIN not in (self.left, self.right) and self.left.samefile(self.right),
        )

    def formats(self) -> tuple[FileFormat, FileFormat]:
        """Return the formats of both files. Raises InputError for a format that cannot be used."""
        encodings, sheets = _split_both("--encoding", self.encoding), _split_both("--sheet", self.sheet)
        forms = (
            self.left_format or form_of(self.left, "--left-format"),
            self.right_format or form_of(self.right, "--right-format"),
        )
        # One name for both is that of the spreadsheet, where the other file is none.
        without = [form not in SPREADSHEETS and any(other in SPREADSHEETS for other in forms) for form in forms]
        left, right = (
            FileFormat(form, self.delimiter, encoding or UTF_8, None if left_out else sheet)
            for form, encoding, sheet, left_out in zip(forms, encodings, sheets, without, strict=True)
        )
        return left, right


def default_columns(on: tuple[ComparedColumn, ...]) -> tuple[ComparedColumn, ...]:
    """Return the compared columns: those that are named, else the column "text"."""
    return on or (ComparedColumn(TEXT, TEXT),)


def parse_column(value: str) -> ComparedColumn:
    """Return the column that COLUMN, COLUMN=OTHER, COLUMN:WEIGHT or COLUMN=OTHER:WEIGHT names.

    Raises InputError for anything else.
    """
    names, colon, weight = value.rpartition(":")
    try:
        number = float(weight) if colon else 1.0
    except ValueError:  # a column's name may have a colon
        names, colon, number = value, "", 1.0
    left, right = split_names(names if colon else value)
    if not left or right == "" or not 0 < number < float("inf"):
        raise InputError(f"{value!r}: is not COLUMN, COLUMN=OTHER or COLUMN:WEIGHT with a weight above 0", field="on")
    return ComparedColumn(left, right or left, number)


def split_names(value: str) -> tuple[str, str | None]:
    r"""Return both names of LEFT=RIGHT, None for a second that is not there.

    Before a = backslashes count in pairs: \= is a = in a name, \\= ends a name with a backslash.
    """
    names, start = [""], 0
    for equals in _EQUALS.finditer(value):
        pairs, odd = divmod(len(equals[1]), 2)
        names[-1] += value[start : equals.start()] + "\\" * pairs
        start = equals.end()
        if odd or len(names) == 2:
            names[-1] += "="
        else:
            names.append("")
    names[-1] += value[start:]
    return names[0], names[1] if len(names) == 2 else None


def _split_both(option: str, value: str | None) -> tuple[str | None, str | None]:
    """Return the names that NAME or NAME=OTHER has for the left and the right table; None twice for None.

    Raises OptionError for anything else.
    """
    if value is None or not value:
        return None, None
    left, right = split_names(value)
    if not left or right == "":
        raise OptionError(f"{option} {value!r} is not COLUMN or COLUMN=OTHER", field=option.removeprefix("--"))
    return left, right or left
