"""Writer of .xlsx: a sheet whose first row names the columns. A text stays a text, whatever it begins with."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.errors import InputError, import_extra
from gramvec.jobs.tables.batches import Block
from gramvec.jobs.tables.writers import AddedColumns, RowsForm, cell

# What a sheet holds (Microsoft, "Excel specifications and limits"); it keeps 15 digits of a number.
MAX_SHEET_ROWS, MAX_SHEET_COLUMNS, MAX_CELL, MAX_WHOLE = 1 << 20, 1 << 14, 32_767, 10**15
# The same rows are the same bytes.
CREATED = datetime(2000, 1, 1, tzinfo=UTC)


def write_xlsx(file: BinaryIO, names: Sequence[str], records: Iterable[dict[str, Any]]) -> None:
    """Write rows to a spreadsheet, in bounded memory.

    Args:
        file: the output.
        names: the columns, in order.
        records: the rows. Numbers of up to 15 digits and booleans stay what they are; all else is a text, as in CSV.

    Raises:
        InputError: there are more rows or columns than a sheet holds, a text is longer than a cell, or XlsxWriter is
            not installed.
    """
    library = import_extra("xlsxwriter", "sheets", "writing .xlsx")
    if len(names) > MAX_SHEET_COLUMNS:
        raise InputError(f"{len(names):,} columns; a sheet has at most {MAX_SHEET_COLUMNS:,}: write .csv")
    with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        options = {
            "constant_memory": True, "tmpdir": folder, "strings_to_numbers": False, "strings_to_formulas": False,
            "strings_to_urls": False,
        }  # fmt: skip
        made = Path(folder) / "book.xlsx"
        # Closed by all means, as it holds files: so it is not the output that it writes.
        with closing(library.Workbook(str(made), options)) as book:
            book.set_properties({"created": CREATED})
            sheet = book.add_worksheet("gramvec")
            rows: Iterator[list[Any]] = ([record.get(name) for name in names] for record in records)
            for place, values in enumerate(chain([[*names]], rows)):
                if place >= MAX_SHEET_ROWS:
                    raise InputError(f"a sheet has at most {MAX_SHEET_ROWS - 1:,} rows below its names; write .csv")
                for column, value in enumerate(values):
                    _write_cell(sheet, place, column, value, names)
        with made.open("rb") as written:
            shutil.copyfileobj(written, file)


def _write_cell(sheet: Any, row: int, column: int, value: Any, names: Sequence[str]) -> None:
    if isinstance(value, bool | np.bool_):
        sheet.write_boolean(row, column, bool(value))
    elif isinstance(value, int | float | np.integer | np.floating) and -MAX_WHOLE < value < MAX_WHOLE:
        sheet.write_number(row, column, float(value))
    elif text := cell(value):
        if len(text.encode("utf-16-le", "replace")) > 2 * MAX_CELL:
            raise InputError(
                f"row {row}: column {names[column]!r} has {len(text):,} characters, and a cell at most {MAX_CELL:,};"
                " write .csv"
            )
        # XML has neither lone surrogates nor these two.
        plain = text.encode("utf-8", "replace").decode().replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
        sheet.write_string(row, column, plain)


class SheetForm(RowsForm):
    """Writer of .xlsx: the input's columns, and those that a job adds. The stage file has a row a line, as JSON.

    Args:
        column: of the texts.
        added: the new columns.
    """

    in_place = False

    def __init__(self, column: str, added: AddedColumns) -> None:
        super().__init__("csv", column, added)

    def begin(self, block: Block | None, columns: Any, names: Sequence[str] | None = None) -> bytes:
        """Return the names of the columns. Raises InputError where the input has a column of an added name."""
        super().begin(block, columns, names)
        return orjson.dumps(self._names, option=orjson.OPT_APPEND_NEWLINE)

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the lines of a block. Raises InputError, with the line's number, for a column the header lacks."""
        own = self._names[: -len(self._added.names)]
        added = zip(*self._added.values(block, vectors, missing), strict=True)
        return b"".join(
            orjson.dumps([*_plain(record, own), *values], option=orjson.OPT_APPEND_NEWLINE)
            for (_, record), values in zip(self._rows(block), added, strict=True)
        )

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """Write the spreadsheet. Raises InputError as `write_xlsx` does."""
        stage.seek(0)
        names = orjson.loads(stage.readline())
        write_xlsx(out, names, (dict(zip(names, orjson.loads(line), strict=True)) for line in stage))


def _plain(record: dict[str, Any], names: Sequence[str]) -> Iterator[Any]:
    for name in names:
        value = record.get(name)
        yield value if isinstance(value, bool | int | float) and abs(value) < MAX_WHOLE else cell(value)
