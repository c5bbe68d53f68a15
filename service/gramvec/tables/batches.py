"""What is read at a time: a block of rows, where it ends, and what every reader of files offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from gramvec.tables.inputs import Form, Source

BLOCK_ROWS = 2048

Records = list[dict[str, Any]]


class Position(NamedTuple):
    """Where a block ends: for lines the byte and the number of the next line, for Parquet the row group and row."""

    offset: int = 0
    number: int = 1


START = Position()


@dataclass
class Block:
    """Some rows of the input, in order.

    numbers: of their lines, from 1. texts: "" for a bad one. bad: why, by index. position: where the next block starts.
    records: the columns of each row by name ({} for a bad one), the text among them; None if nobody asked for them.
    raw: the bytes of each row as they stood in the file (text forms alone). batch: the rows of a Parquet file.
    """

    position: Position
    numbers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)
    records: Records | None = None
    raw: list[bytes] = field(default_factory=list)
    batch: Any = None

    def refuse(self, why: str) -> None:
        """Add a bad row; its number and bytes are added by the caller."""
        self.bad[len(self.texts)] = why
        self.texts.append("")
        if self.records is not None:
            self.records.append({})


class Reader(Protocol):
    """An input that is read block by block.

    form: of the input. unit: what the numbers of rows count, "line" or "row". total: what `done` grows to, in
    `total_unit`, None if unknown.
    """

    source: Source
    form: Form
    unit: str
    column: str
    total: int | None
    total_unit: str

    @property
    def done(self) -> int:
        """How much of `total` has been read."""
        ...

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """The blocks from there on; the same ones whether reading begins at the start or at a block's position."""
        ...
