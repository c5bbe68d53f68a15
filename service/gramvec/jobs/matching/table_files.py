"""Files of two tables that a job compares: which columns, ids and blocks they have, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import field_validator, model_validator

from gramvec.errors import InputError
from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.file_job import FileJob, OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.matching.fields import Blocks, Field
from gramvec.jobs.matching.inputs import MatchTable, digest_texts, read_table
from gramvec.jobs.matching.on import TEXT, ComparedColumn, parse_on, split_both
from gramvec.jobs.tables.inputs import SPREADSHEETS, STDIN, UTF_8, FileFormat, Form, form_of


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
        id: column of the ids, COLUMN or COLUMN=OTHER; None for "id" if there is one, else the lines' numbers;
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
    id: str | None = None
    left_format: Form | None = None
    right_format: Form | None = None
    delimiter: str | None = None
    encoding: str = UTF_8
    sheet: str | None = None
    on_error: OnError = "stop"

    @field_validator("on", mode="before")
    @classmethod
    def _parse_columns(cls, on: Any) -> Any:
        return parse_on(on)

    @model_validator(mode="after")
    def _check_tables(self) -> Self:
        _split("block", self.block)
        _split("id", self.id)
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
        block, ids = _split("block", self.block), _split("id", self.id)
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
        encodings, sheets = _split("encoding", self.encoding), _split("sheet", self.sheet)
        forms = (
            self.left_format or form_of(self.left, "left_format"),
            self.right_format or form_of(self.right, "right_format"),
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


def _split(field: str, value: str | None) -> tuple[str | None, str | None]:
    """Return what `split_both` does. Raises OptionError as it raises InputError."""
    try:
        return split_both(field, value)
    except InputError as error:
        raise OptionError(str(error), field=error.field) from error
