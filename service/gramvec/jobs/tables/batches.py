"""Blocks of rows that the readers of files return, the protocol of a reader, and the names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from gramvec.errors import InputError, quote
from gramvec.jobs.tables.inputs import FileFormat, Source

BLOCK_ROWS = 2048

Records = list[dict[str, Any]]


class Position(NamedTuple):
    """End of a block: the byte and the number of the next line; for Parquet the row group and the row."""

    offset: int = 0
    number: int = 1


START = Position()


@dataclass
class Block:
    """Consecutive rows of an input.

    Args:
        position: where the next block begins.
        numbers: of their lines (Parquet: rows), from 1.
        texts: of the text column; "" for a bad row.
        bad: why a row is bad, by its index in the block.
        records: the columns of each row by name, {} for a bad row; None unless they were asked for.
        raw: the bytes of each row as they are in the file (text forms only).
        blank: how many blank lines were skipped.
        batch: the rows of a Parquet file as a pyarrow.RecordBatch.
    """

    position: Position
    numbers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)
    records: Records | None = None
    raw: list[bytes] = field(default_factory=list)
    blank: int = 0
    batch: Any = None

    def refuse(self, why: str) -> None:
        """Add a bad row; the caller adds its number and bytes."""
        self.bad[len(self.texts)] = why
        self.texts.append("")
        if self.records is not None:
            self.records.append({})


class Reader(Protocol):
    """Input that is read block by block.

    unit: what row numbers count, "line" or "row". column: of the texts, None where every row is good that can be
    parsed. total: the value of `done` at the end, in `total_unit`, None if unknown. notes: what a user should know of
    the header.
    """

    source: Source
    format: FileFormat
    unit: str
    column: str | None
    total: int | None
    total_unit: str
    notes: list[str]

    @property
    def done(self) -> int:
        """Return how much of `total` has been read."""
        ...

    @property
    def names(self) -> list[str] | None:
        """Return the columns that the file's header names, None for a file without a header. Reads the header."""
        ...

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """Yield the blocks from a block's position on; the same ones whether or not reading began there."""
        ...

    def check_column(self, name: str) -> None:
        """Raise InputError for a column that the header names twice, or does not name at all."""
        ...


MAX_NAMED = 20
MAX_COLUMNS = 10_000


def list_names(names: Iterable[str]) -> str:
    """Return columns for a message: the first 20, in their order and their own letters."""
    found = list(names)
    more = f" and {len(found) - MAX_NAMED:,} more" if len(found) > MAX_NAMED else ""
    return (", ".join(quote_column(name) for name in found[:MAX_NAMED]) or "none") + more


def suggest_columns(name: str, names: Iterable[str], option: str) -> str | None:
    """Return what to write for columns whose names were put together, as in "name,email"; None for another name."""
    known = {*names}
    for between in ",;|+":
        parts = [part.strip() for part in name.split(between)]
        if len(parts) > 1 and known.issuperset(parts):
            each = " ".join(f'`{option}="{part}"`' for part in parts[:MAX_NAMED])
            return f"name one column at a time: {each}"
    left, colon, right = name.partition(":")
    if colon and left in known:
        return f'columns of two names are written `{option}="{left}={right}"`'
    if any(column.partition("=")[0] == name for column in known):
        return f"choose one with `{option}`, and write \\= for a = in its name"
    return None


def quote_column(name: str) -> str:
    """Return a column's name for a message: as it is if it can be printed, quoted if it is empty or longer than 40."""
    return name if name.strip() and len(name) <= 40 and name.isprintable() else f"'{quote(name)}'"


class ColumnNames:
    """Columns of a header, each with a name of its own: of two with one name the later has a number, as in "size_2".

    Args:
        given: the names as the header has them.

    Attributes:
        names: all different; an empty one is "column_3" in the third place.
        notes: a sentence about each name that is empty, or there several times.
    """

    def __init__(self, given: Sequence[str]) -> None:
        self.names: list[str] = []
        self._places: dict[str, list[int]] = {}
        taken = set(given)
        for place, name in enumerate(given, start=1):
            own = name
            if name in self._places or not name:
                number = place if not name else len(self._places[name]) + 1
                own = f"{name or 'column'}_{number}"
                while own in taken:
                    own += "_"
            taken.add(own)
            self.names.append(own)
            self._places.setdefault(name, []).append(place)
        several = {name: places for name, places in self._places.items() if len(places) > 1 or not name}
        self.notes = [self._say(name, places) for name, places in list(several.items())[:MAX_NAMED]]

    def _say(self, name: str, places: Sequence[int]) -> str:
        if not name:
            them = ", ".join(self.names[place - 1] for place in places[:MAX_NAMED])
            return f"the header has no name for {_number(places)}; called here {them}"
        them = ", ".join(quote_column(self.names[place - 1]) for place in places[1 : 1 + MAX_NAMED])
        place = _number(places)
        return f"the header names {quote_column(name)} {len(places)} times, {place}; called here the later {them}"

    def check(self, name: str, where: str, remedy: str = "choose one with `column`") -> None:
        """Raise InputError if the header does not name this column, or names it several times."""
        if len(self._places.get(name, ())) > 1:
            raise InputError(
                f"{where}: names the column {quote_column(name)} {len(self._places[name])} times"
                f" ({_number(self._places[name])}); rename one of them in the header"
            )
        if name not in self.names:
            raise InputError(f"{where}: has no column {name!r}; it has {list_names(self.names)}: {remedy}")


def _number(places: Sequence[int]) -> str:
    several = ", ".join(map(str, places[:MAX_NAMED])) + (" and others" if len(places) > MAX_NAMED else "")
    return f"column{'s' if len(places) > 1 else ''} {several}"


MISSING = object()


def value_at(record: Mapping[str, Any], column: str) -> Any:
    """Return the value of a column, or of a path of names with dots into objects; MISSING where it is not there."""
    if column in record:
        return record[column]
    value: Any = record
    for name in column.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value
