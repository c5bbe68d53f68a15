"""Columns that a search is narrowed by: a code for each row, and the texts that the codes stand for, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import InputError, quoted

MOST_COLUMNS = 16
MOST_VALUES = 1_000_000
MOST_VALUE_BYTES = 1024
MOST_WANTED = 1_000
# Of a row without the column, or with null in it: nothing is equal to that.
NO_VALUE = -1

Scalar = str | int | float | bool
# A column -> the value that a row has there, or one of several.
Where = Mapping[str, Scalar | Sequence[Scalar]]
# Column and UTF-8 texts, in their order, each once.
Narrowing = tuple[tuple[str, tuple[bytes, ...]], ...]
Bytes = NDArray[np.uint8]


class FilterHeader(BaseModel):
    """What the index's header says of one column: its name, how many different values it has, and their bytes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    column: Annotated[str, Field(max_length=200)]
    values: Annotated[int, Field(ge=0, le=MOST_VALUES)] = 0
    value_bytes: Annotated[int, Field(ge=0, le=MOST_VALUES * MOST_VALUE_BYTES)] = 0

    def sizes(self, rows: int) -> tuple[int, int, int]:
        """The bytes of codes, places of values, values."""
        return padded(4 * rows), 8 * (self.values + 1), padded(self.value_bytes)


class FilterColumn(NamedTuple):
    """codes: int32[rows], of which value each row has. places: int64[values + 1], where each begins in `values`."""

    codes: NDArray[np.int32]
    places: NDArray[np.int64]
    values: Bytes

    def value(self, code: int) -> bytes:
        """The text of a code, in UTF-8."""
        begin, end = self.places[code : code + 2].tolist()
        return self.values[begin:end].tobytes()

    def code(self, text: bytes) -> int | None:
        """The code of a text; None if no row has it. By bisection: values lie in the order of their bytes."""
        low, high = 0, len(self.places) - 1
        while low < high:
            middle = (low + high) // 2
            found = self.value(middle)
            if found == text:
                return middle
            low, high = (middle + 1, high) if found < text else (low, middle)
        return None


def padded(size: int) -> int:
    """Bytes up to the next multiple of eight."""
    return -(-size // 8) * 8


def text_of(value: Any) -> str:
    """A value of a record as a cell of a table: a string as it is, nothing for null, JSON for the rest."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def narrowing(columns: Collection[str], where: Where) -> Narrowing:
    """What `where` asks of an index that can be narrowed by these columns, the same for what means the same.

    9 and "9" mean the same, and so do true and "true". Raises InputError for a column that cannot be asked for, and
    for what is no value.
    """
    if not isinstance(where, Mapping):
        raise InputError('where is to be columns with their values, as in {"team": "post"}', field="where")
    return tuple(sorted((name, _texts(columns, name, given)) for name, given in where.items()))


def _texts(columns: Collection[str], name: str, given: Any) -> tuple[bytes, ...]:
    if name not in columns:
        known = f"it can by {', '.join(map(quoted, columns))}" if columns else "it can by none"
        raise InputError(
            f"the index cannot be narrowed by {quoted(str(name))}; {known}: name columns with --filter when it is"
            " built",
            field="where",
        )
    values = [given] if isinstance(given, Scalar) else given
    if not isinstance(values, list | tuple) or not all(isinstance(one, Scalar) for one in values):
        raise InputError(
            f"{quoted(name)} is to be equal to a text, a number, true or false, or to one of a list of them",
            field="where",
        )
    if len(values) > MOST_WANTED:
        raise InputError(f"{len(values)} values of {quoted(name)}; give at most {MOST_WANTED}", field="where")
    # orjson has no number of more than 64 bits, which no record holds.
    texts = [str(one) if type(one) is int else text_of(one) for one in values]
    return tuple(sorted({text.encode("utf-8", "replace") for text in texts}))


def allowed_rows(columns: Mapping[str, FilterColumn], asked: Narrowing, rows: int) -> NDArray[np.bool_]:
    """bool[rows]: which rows have these values in these columns."""
    allowed = np.ones(rows, np.bool_)
    for name, texts in asked:
        codes = [columns[name].code(text) for text in texts]
        allowed &= np.isin(columns[name].codes, np.array([code for code in codes if code is not None], np.int32))
    return allowed


class Collected(NamedTuple):
    """One column as it is written."""

    header: FilterHeader
    parts: tuple[Bytes, Bytes, Bytes]


def collect(names: Sequence[str], records: Iterable[bytes], rows: int) -> Iterator[Collected]:
    """These columns of so many records, each a JSON object.

    Raises InputError for a column of too many or too long values, and for what is no object.
    """
    codes = np.full((len(names), rows), NO_VALUE, np.int32)
    known: list[dict[bytes, int]] = [{} for _ in names]
    for row, line in enumerate(records if names else ()):
        record = _record(line, row)
        for place, name in enumerate(names):
            value = record.get(name)
            if value is not None:
                codes[place, row] = _code(text_of(value).encode(), known[place], row, name)
    for name, some, values in zip(names, codes, known, strict=True):
        ordered = sorted(values)
        places = np.concatenate([[0], np.cumsum([len(one) for one in ordered])]).astype("<i8")
        new = np.empty(len(ordered) + 1, np.int32)
        new[NO_VALUE] = NO_VALUE
        new[[values[one] for one in ordered]] = np.arange(len(ordered))
        header = FilterHeader(column=name, values=len(ordered), value_bytes=int(places[-1]))
        text = np.frombuffer(b"".join(ordered), np.uint8)
        yield Collected(header, (new[some].astype("<i4").view(np.uint8), places.view(np.uint8), text))


def _record(line: bytes, row: int) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"row {row + 1} of the index holds no JSON object; it is damaged: copy or build it again")
    return found


def _code(text: bytes, known: dict[bytes, int], row: int, name: str) -> int:
    if len(text) > MOST_VALUE_BYTES:
        raise InputError(
            f"row {row + 1} has {len(text):,} bytes in {quoted(name)}, and a value to narrow by has at most"
            f" {MOST_VALUE_BYTES:,}; leave the column out of --filter"
        )
    code = known.setdefault(text, len(known))
    if code == MOST_VALUES:
        raise InputError(
            f"{quoted(name)} has more than {MOST_VALUES:,} different values, too many to narrow by; leave it out of"
            " --filter"
        )
    return code
