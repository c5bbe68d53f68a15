"""Writer of .xlsx: a sheet whose first row names the columns. A text stays a text, whatever it begins with.

The parts of the file (ECMA-376, Office Open XML) are written one after the other into the archive that is the output.
XlsxWriter keeps rows in memory, or in files of /tmp that a kill leaves behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.jobs.tables.batches import Block
from gramvec.jobs.tables.writers import AddedColumns, RowsForm, cell

# What a sheet holds (Microsoft, "Excel specifications and limits"); it keeps 15 digits of a number.
MAX_SHEET_ROWS, MAX_SHEET_COLUMNS, MAX_CELL, MAX_WHOLE = 1 << 20, 1 << 14, 32_767, 10**15
# Excel offers to repair larger archives as Python writes them.
MAX_SHEET_BYTES = (1 << 31) - 1
# Characters that XML has not, and what looks like one of them that was written so (ECMA-376, ST_Xstring).
_control = re.compile("[\x00-\x08\x0b-\x1f]")
_like_control = re.compile("_(x[0-9a-fA-F]{4}_)")

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FORMATS = "http://schemas.openxmlformats.org"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_SHEET = "xl/worksheets/sheet1.xml"
# The parts that are the same in each file.
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_FORMATS}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/{_SHEET}" ContentType="{_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_FORMATS}/package/2006/relationships"><Relationship Id="rId1"'
    f' Type="{_FORMATS}/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_FORMATS}/spreadsheetml/2006/main"'
    f' xmlns:r="{_FORMATS}/officeDocument/2006/relationships"><sheets><sheet name="gramvec" sheetId="1" r:id="rId1"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_FORMATS}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_FORMATS}/officeDocument/2006/relationships/worksheet"'
    ' Target="worksheets/sheet1.xml"/></Relationships>',
}
_BEGIN = f'<worksheet xmlns="{_FORMATS}/spreadsheetml/2006/main"><sheetData>'
_END = "</sheetData></worksheet>"


def write_xlsx(file: BinaryIO, names: Sequence[str], records: Iterable[dict[str, Any]]) -> None:
    """Write rows to a spreadsheet, in bounded memory and without another file. The same rows are the same bytes.

    Args:
        file: the output.
        names: the columns, in order.
        records: the rows. Numbers of up to 15 digits and booleans stay what they are; all else is a text, as in CSV.

    Raises:
        InputError: there are more rows, columns or bytes than a sheet holds, or a text is longer than a cell.
    """
    if len(names) > MAX_SHEET_COLUMNS:
        raise InputError(f"{len(names):,} columns; a sheet has at most {MAX_SHEET_COLUMNS:,}: write .csv")
    with ZipFile(file, "w") as archive:
        for name, text in _PARTS.items():
            archive.writestr(_entry(name), _XML + text)
        with archive.open(_entry(_SHEET), "w") as sheet:
            written = sheet.write((_XML + _BEGIN).encode()) + len(_END)
            for line in _lines(names, records):
                written += len(line)
                if written > MAX_SHEET_BYTES:
                    raise InputError("the rows have more than 2 GB as a sheet; write .csv")
                sheet.write(line)
            sheet.write(_END.encode())


def _entry(name: str) -> ZipInfo:
    """Return what the archive says of a part: no time of writing."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    return entry


def _lines(names: Sequence[str], records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the XML of each row, that of the names first."""
    columns = [_letters(place) for place in range(len(names))]
    rows: Iterator[list[Any]] = ([record.get(name) for name in names] for record in records)
    for row, values in enumerate(chain([[*names]], rows)):
        if row >= MAX_SHEET_ROWS:
            raise InputError(f"a sheet has at most {MAX_SHEET_ROWS - 1:,} rows below its names; write .csv")
        cells = "".join(
            _cell(f"{column}{row + 1}", value, row, name)
            for column, value, name in zip(columns, values, names, strict=True)
        )
        yield f'<row r="{row + 1}">{cells}</row>'.encode()


def _letters(place: int) -> str:
    """Return what a sheet calls a column: A to Z, AA and so on."""
    letters = ""
    while place >= 0:
        place, letter = divmod(place, 26)
        letters, place = chr(ord("A") + letter) + letters, place - 1
    return letters


def _cell(place: str, value: Any, row: int, name: str) -> str:
    """Return the XML of a cell; "" for one of no text. `row` and the column's `name` are for messages."""
    if isinstance(value, bool | np.bool_):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    if isinstance(value, int | float | np.integer | np.floating) and -MAX_WHOLE < value < MAX_WHOLE:
        return f'<c r="{place}"><v>{value:d}</v></c>' if isinstance(value, int | np.integer) else (
            f'<c r="{place}"><v>{float(value)!r}</v></c>'
        )  # fmt: skip
    text = cell(value)
    if not text:
        return ""
    if len(text.encode("utf-16-le", "replace")) > 2 * MAX_CELL:
        raise InputError(
            f"row {row}: column {name!r} has {len(text):,} characters, and a cell at most {MAX_CELL:,}; write .csv"
        )
    # XML has neither lone surrogates nor these two.
    plain = text.encode("utf-8", "replace").decode().replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    plain = _control.sub(lambda found: f"_x{ord(found[0]):04X}_", _like_control.sub(r"_x005F_\1", plain))
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(plain)}</t></is></c>'


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
