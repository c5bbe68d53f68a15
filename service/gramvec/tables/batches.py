"""Batches of rows that the readers of files give, and the protocol of a reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from gramvec.tables.inputs import FileFormat, Form, Source

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
    form: Form
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
