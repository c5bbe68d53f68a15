"""Input and output of `gramvec dedupe`: texts with their lines' numbers, duplicates, and the lines that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.embed_file import Watcher
from gramvec.duplicates.api import why_not_compared
from gramvec.duplicates.distinct import DistinctRows
from gramvec.duplicates.likely import likely_known
from gramvec.lexical.demands import Demands
from gramvec.matching.inputs import NO_ID
from gramvec.search.index import Index
from gramvec.tables.columns import Columns, OnError, read_columns
from gramvec.tables.inputs import FileFormat, Source
from gramvec.tables.parquet import ParquetReader, pyarrow
from gramvec.tables.readers import CsvReader, open_reader
from gramvec.tables.staging import output_file
from gramvec.text.arrays import Int64s

# Rows of a file: more do not fit in memory.
MOST_ROWS = 100_000_000
# Hits of an index that each text is scored against.
KNOWN_CANDIDATES = 10
BLOCK_TEXTS = 1_024


class DedupeTable(NamedTuple):
    """Rows of a file: its compared columns, the id of each row, and the column of the ids, None for the numbers."""

    table: Columns
    columns: list[list[str]]
    ids: list[str]
    id_column: str | None

    @property
    def has_ids(self) -> bool:
        """True if a column names the rows."""
        return self.id_column is not None

    def name(self, row: int) -> str:
        """Return what a row is called in messages."""
        return f"{self.table.unit} {self.table.numbers[row]}"

    def text(self, row: int) -> str:
        """Return the compared texts of a row as one."""
        return " | ".join(column[row] for column in self.columns)


class KnownRow(NamedTuple):
    """Row of an input that repeats a document of an index: its place, the document's id and text, the score."""

    row: int
    id: str
    text: str
    score: float


def read_rows(
    path: Path,
    form: FileFormat,
    on: Sequence[str],
    id_column: str | None,
    *,
    on_error: OnError,
    watch: Watcher,
    name: str | None = None,
) -> DedupeTable:
    """Read the compared columns of a file and its ids.

    Args:
        path: a file that `gramvec embed` reads.
        form: its format.
        on: the compared columns.
        id_column: whose values name the rows; None for "id" if there is one, else the rows' numbers; "none" for the
            numbers whatever there is.
        on_error: "stop" at a bad row, or "skip" it.
        watch: called with the reader and the number of rows after each block.
        name: of the file, for messages; None for its own.

    Raises:
        InputError: naming file and line, for a bad row if `on_error` is "stop", and for a column that is not there.
    """
    names = list(dict.fromkeys(on))
    named = [] if id_column in (None, NO_ID) else [str(id_column)]
    options = dict.fromkeys(names, "--on") | dict.fromkeys(named, "--id")
    table = read_columns(
        path, [*names, *named], format=form, options=options, optional=["id"] if id_column is None else [],
        on_error=on_error, most=MOST_ROWS, watch=watch, why_bad=why_not_compared, name=name,
    )  # fmt: skip
    ids_in = named[0] if named else "id" if id_column is None and "id" in table.found else None
    ids = [str(number) for number in table.numbers] if ids_in is None else table.values[ids_in]
    return DedupeTable(table, [table.values[one] for one in names], ids, ids_in)


def known_rows(
    distinct: DistinctRows, index: Index, threshold: float, *, watch: Callable[[int], object]
) -> list[KnownRow]:  # fmt: skip
    """Return the rows whose text has a score of at least `threshold` with one of its ten best documents of an index."""
    column = index.manifest.column
    snapshot = index.snapshot()
    best: dict[int, tuple[str, str, float]] = {}
    every = distinct.joined()
    for start in range(0, len(every), BLOCK_TEXTS):
        texts = every[start : start + BLOCK_TEXTS]
        left: list[int] = []
        hits = []
        for at, one in enumerate(snapshot.find([*map(Demands, texts)], None, KNOWN_CANDIDATES)):
            there = snapshot.hits(one)
            left += [at] * len(there)
            hits += there
        others = [str(hit.record.get(column, "")) for hit in hits]
        scores = likely_known(texts, np.array(left, np.int64), others)
        for text, hit, other, score in zip(left, hits, others, scores.tolist(), strict=True):
            known = 1.0 if texts[text] == other else score
            if known >= threshold and (start + text not in best or known > best[start + text][2]):
                best[start + text] = hit.id, other, known
        watch(len(texts))
    return [KnownRow(row, *best[text]) for row, text in enumerate(distinct.of_row.tolist()) if text in best]


def write_kept(path: Path, form: FileFormat, dropped: Int64s, output: Path) -> None:
    """Write the rows of `path` except those of some numbers, byte for byte (Parquet: with the same schema).

    Args:
        path: the input.
        form: of the input.
        dropped: ascending numbers, see TableRow.
        output: the file.
    """
    with closing(Source(path)) as source, output_file(output) as out:
        reader = open_reader(source, form, None, keep=True)
        if isinstance(reader, ParquetReader):
            _write_parquet(reader, dropped, out)
            return
        begun = False
        for block in reader.blocks():
            if not begun and isinstance(reader, CsvReader):
                out.write(_ended(reader.header))
            begun = True
            kept = _kept(block.numbers, dropped)
            out.writelines(_ended(line) for line, keep in zip(block.raw, kept.tolist(), strict=True) if keep)


def _kept(numbers: Sequence[int], dropped: Int64s) -> NDArray[np.bool_]:
    here = np.asarray(numbers, np.int64)
    if not len(dropped):
        return np.ones(len(here), np.bool_)
    found: NDArray[np.bool_] = dropped[np.minimum(np.searchsorted(dropped, here), len(dropped) - 1)] != here
    return found


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _write_parquet(reader: ParquetReader, dropped: Int64s, out: BinaryIO) -> None:
    pa, pq = pyarrow(), pyarrow(module="pyarrow.parquet")
    with pq.ParquetWriter(out, reader.schema) as writer:
        for block in reader.blocks():
            batch = block.batch.cast(reader.schema)
            writer.write_batch(batch.filter(pa.array(_kept(block.numbers, dropped))))
