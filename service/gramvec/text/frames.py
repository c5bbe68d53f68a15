"""Tables in memory: rows and columns of frames of pandas, polars and pyarrow, and what is missing in them.

No such library is imported: a value is recognized by what it can do, or by its type's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from os import PathLike
from typing import Any

import numpy as np

from gramvec.errors import InputError, quote
from gramvec.text.inputs import iterate_texts, list_texts, not_a_text, refuse_lazy

# Rows of a frame that are Python objects at a time.
BLOCK_ROWS = 4096


def is_missing(value: Any) -> bool:
    """Return True for None, NaN and pandas' NA and NaT."""
    if value is None or isinstance(value, str):
        return value is None
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType")


def texts_or_empty(values: Iterable[Any]) -> list[str]:
    """Return texts as a list, "" for each that is missing.

    Raises InputError, with the place of the first one, for numbers, bytes and everything else that is no text.
    """
    texts = ["" if is_missing(value) else value for value in list_texts(values)]
    for place, value in enumerate(texts):
        if not isinstance(value, str):
            raise not_a_text(place, value)
    return texts


def column_of(table: Any, name: str) -> list[Any]:
    """Return the values of table[name] as a list, None for each that is missing. A frame's index plays no part.

    Raises InputError if the table has no such column.
    """
    refuse_lazy(table)
    try:
        column = table[name]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _no_column(table, name) from error
    except Exception as error:  # polars has an exception of its own
        raise _no_column(table, name) from error
    return [None if is_missing(value) else value for value in list_texts(column)]


def _no_column(table: Any, name: str) -> InputError:
    try:
        there = f"it has {quote(', '.join(map(str, names_of(table))))}"
    except InputError:
        there = "columns are read as table[name]"
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(part in table for part in parts):
        there += f"; give names as a list, {parts!r}"
    return InputError(f"a table has no column {name!r}; {there}", field="on")


def texts_of_column(table: Any, name: str) -> list[str]:
    """Return the values of table[name] as texts, "" for each that is missing. Raises InputError as `column_of` does."""
    return [text_of_cell(value, name) for value in column_of(table, name)]


def text_of_cell(value: Any, name: str) -> str:
    """Return a value of a column as a text, "" for one that is missing. Raises InputError for bytes."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, bytes | bytearray):
        raise InputError(f"column {name!r} holds bytes; decode them to texts", field="on")
    # pandas makes a column of whole numbers one of floats where a value is missing.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def names_of(table: Any) -> Iterable[Any]:
    """Return the names of the columns of a dict or a frame. Raises InputError for what has none."""
    refuse_lazy(table)
    for name in ("column_names", "columns"):  # pyarrow's; pandas' and polars'
        if not isinstance(table, Mapping) and hasattr(table, name):
            return getattr(table, name)  # type: ignore[no-any-return]
    if isinstance(table, Mapping):
        return table
    raise InputError("rows: this table has no names of columns; give a list of texts, dicts, or a frame", field="rows")


def refuse_file(table: object, job: str) -> None:
    """Raise InputError for a text or a path where a table is meant, and name the job of `gramvec.jobs` for files."""
    if isinstance(table, str | bytes | PathLike):
        what = "a path" if isinstance(table, PathLike) else f"a {type(table).__name__}"
        raise InputError(f"got {what} in the place of a table; read the file first, or give its name to {job}",
                         field="on")  # fmt: skip


def table_of(rows: Any) -> dict[str, list[str]] | list[str]:
    """Return texts as a list, and rows that are dicts as columns. Raises InputError, with the place, for others."""
    listed: list[Any] = list(iterate_texts(rows))
    if not any(isinstance(row, Mapping) for row in listed):
        texts = ["" if is_missing(row) else row for row in listed]
        _check_types(texts, str, "a text")
        return texts
    _check_types(listed, Mapping, "a dict, as the others are")
    names = dict.fromkeys(str(name) for row in listed for name in row)
    return {name: [text_of_cell(row.get(name), name) for row in listed] for name in names}


def _check_types(rows: Sequence[Any], kind: type, wanted: str) -> None:
    for place, row in enumerate(rows):
        if not isinstance(row, kind):
            raise InputError(f"row {place} is of type {type(row).__name__}; give {wanted}", index=place)


def rows_of(records: Any) -> Iterator[Any]:
    """Return the rows of a frame, of a dict of columns, of an iterable of rows, or of one row that is a str.

    The rows of a frame are dicts with None where a value is missing, and come lazily; other rows are what they are.
    Raises InputError at once for an unordered collection, columns of other lengths, and what is not iterable.
    """
    if isinstance(records, str):
        return iter([records])
    if isinstance(records, Mapping):
        return _rows_of_columns(records)
    if len(getattr(records, "shape", ())) == 2:
        if hasattr(records, "to_batches"):  # pyarrow's
            return (row for batch in records.to_batches(BLOCK_ROWS) for row in batch.to_pylist())
        if hasattr(records, "iter_rows"):  # polars'
            return iter(records.iter_rows(named=True))
        if hasattr(records, "iloc"):  # pandas'
            return _rows_of_pandas(records)
    return iterate_texts(records)


def _rows_of_columns(columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not columns or any(isinstance(column, str) or not hasattr(column, "__len__") for column in columns.values()):
        return iter([dict(columns)])  # one row
    lists = {name: list_texts(column) for name, column in columns.items()}
    if len({len(column) for column in lists.values()}) > 1:
        sizes = ", ".join(f"{name!r} has {len(column):,}" for name, column in list(lists.items())[:20])
        raise InputError(f"records: the columns have different lengths ({sizes})", field="records")
    rows = zip(*lists.values(), strict=True)
    return (dict(zip(lists, map(_or_none, row), strict=True)) for row in rows)


def _rows_of_pandas(frame: Any) -> Iterator[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    for start in range(0, len(frame), BLOCK_ROWS):
        block = frame.iloc[start : start + BLOCK_ROWS]
        columns = [block.iloc[:, place].tolist() for place in range(len(names))]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, map(_or_none, row), strict=True))


def _or_none(value: Any) -> Any:
    return None if is_missing(value) else value


def to_plain(value: Any) -> Any:
    """Return what JSON has for a value that it lacks; the `default` of orjson.dumps.

    Dates and times are texts by ISO 8601, decimals numbers, items of numpy are Python's, what is missing is None.
    Raises TypeError for anything else.
    """
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, timedelta) or type(value).__name__ in ("Period", "Interval"):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
