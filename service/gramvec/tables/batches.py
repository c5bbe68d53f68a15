"""Blocks of rows that the readers of files return, the protocol of a reader, and the account of bad rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from gramvec.tables.inputs import FileFormat, Source

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
        batch: the rows of a Parquet file as a pyarrow.RecordBatch.
    """

    position: Position
    numbers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)
    records: Records | None = None
    raw: list[bytes] = field(default_factory=list)
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
    parsed. total: the value of `done` at the end, in `total_unit`, None if unknown.
    """

    source: Source
    format: FileFormat
    unit: str
    column: str | None
    total: int | None
    total_unit: str

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


MOST_REASONS = 20
MOST_RANGES = 1_000


class BadLines:
    """Count of bad rows in bounded memory: the reasons of the first 20, and at most 1,000 ranges of other numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.reasons: list[tuple[int, str]] = []
        self.ranges: list[list[int]] = []
        self.unnamed = 0

    def add(self, number: int, why: str) -> None:
        """Count a row. Numbers must ascend."""
        self.count += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append((number, why))
        elif self.ranges and self.ranges[-1][1] == number - 1:
            self.ranges[-1][1] = number
        elif len(self.ranges) < MOST_RANGES:
            self.ranges.append([number, number])
        else:
            self.unnamed += 1

    def report(self, rows: int, unit: str, outcome: str = "could not be embedded and have no vector") -> Iterator[str]:
        """Yield sentences about the bad rows, if there are any.

        Args:
            rows: how many rows were read.
            unit: "line" or "row", what the numbers count.
            outcome: what became of the bad rows.
        """
        if not self.count:
            return
        yield f"{self.count:,} of {rows:,} {outcome}:"
        yield from (f"{unit} {number}: {why}" for number, why in self.reasons)
        if self.ranges:
            named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in self.ranges)
            yield f"{unit}s {named}" + (f", and {self.unnamed:,} more" if self.unnamed else "")

    def as_json(self) -> dict[str, Any]:
        """Return the argument of `from_json`."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BadLines:
        """Return the account that `as_json` was called on."""
        made = cls()
        vars(made).update(value, reasons=[(int(number), str(why)) for number, why in value["reasons"]])
        return made
