"""What `gramvec dedupe` reads and writes: texts with their lines' numbers, and the lines that are kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.tables.arrow import pyarrow
from gramvec.tables.bad_rows import BadLines
from gramvec.tables.batches import Reader
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import Form, Source
from gramvec.tables.parquet import ParquetReader
from gramvec.tables.readers import CsvReader, open_reader
from gramvec.tables.staging import whole

Ids = NDArray[np.int64]
Watcher = Callable[[Reader, int], None]


class TooManyTexts(InputError):
    """A file has more different texts than all pairs of are compared."""


@dataclass
class Texts:
    """Different texts, and which of them each row of a file has.

    different: in order of their first row. of_row: index into `different` for each row, -1 for a bad one.
    numbers: the line (Parquet: row) of each row, from 1.
    """

    different: list[str] = field(default_factory=list)
    of_row: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: BadLines = field(default_factory=BadLines)
    unit: str = "line"


def read_texts(
    path: Path,
    form: Form,
    column: str,
    embedder: Embedder,
    *,
    truncate: bool,
    on_error: OnError,
    most: int,
    watch: Watcher,
) -> Texts:
    """The texts of a file.

    Raises InputError for a bad line if on_error is "stop", and TooManyTexts beyond `most` different ones.
    """
    texts = Texts()
    index: dict[str, int] = {}
    with closing(Source(path)) as source:
        reader = open_reader(source, form, column, keep=False)
        texts.unit = reader.unit
        for block in reader.blocks():
            for at, (number, text) in enumerate(zip(block.numbers, block.texts, strict=True)):
                why = block.bad.get(at) or _refused(embedder, text, truncate=truncate)
                if why and on_error == "stop":
                    raise InputError(f"{texts.unit} {number}: {why}")
                if why:
                    texts.bad.add(number, why)
                texts.of_row.append(-1 if why else index.setdefault(text, len(index)))
                texts.numbers.append(number)
            if len(index) > most:
                raise TooManyTexts(f"{source.name} has more than {most:,} different texts")
            watch(reader, len(texts.numbers))
    texts.different = list(index)
    return texts


def _refused(embedder: Embedder, text: str, *, truncate: bool) -> str | None:
    try:
        embedder.prepare([text], truncate=truncate)
    except InputError as error:
        return str(error).replace("text 0 ", "the text ", 1).replace("pass truncate=true", "pass --truncate")
    return None


def units_of(embedder: Embedder, texts: list[str], *, truncate: bool, watch: Callable[[int], None]) -> Vectors:
    """float32[n, d]: vectors of length 1, or 0 for a text without any known feature, which resembles nothing."""
    units = np.empty((len(texts), embedder.dimension), np.float32)
    for start in range(0, len(texts), 16_384):
        part = slice(start, start + 16_384)
        raw = embedder.raw(embedder.prepare(texts[part], truncate=truncate))
        units[part] = raw.units
        units[part][raw.feature_counts == 0] = 0
        watch(len(raw.units))
    return units


def write_kept(path: Path, form: Form, column: str, dropped: Ids, output: Path) -> None:
    """Write the rows of `path` but those of these numbers, byte for byte (Parquet: with the same schema).

    dropped: int64, ascending, numbers as `Texts` has them.
    """
    with closing(Source(path)) as source, whole(output) as out:
        reader = open_reader(source, form, column, keep=True)
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


def _kept(numbers: Sequence[int], dropped: Ids) -> NDArray[np.bool_]:
    here = np.asarray(numbers, np.int64)
    if not len(dropped):
        return np.ones(len(here), np.bool_)
    found: NDArray[np.bool_] = dropped[np.minimum(np.searchsorted(dropped, here), len(dropped) - 1)] != here
    return found


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _write_parquet(reader: ParquetReader, dropped: Ids, out: BinaryIO) -> None:
    pa, pq = pyarrow(), pyarrow(module="pyarrow.parquet")
    with pq.ParquetWriter(out, reader.schema) as writer:
        for block in reader.blocks():
            batch = block.batch.cast(reader.schema)
            writer.write_batch(batch.filter(pa.array(_kept(block.numbers, dropped))))


def spooled(stream: BinaryIO, folder: Path) -> Path:
    """A file with all that a pipe gives, since it is read twice."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        shutil.copyfileobj(stream, file)
    return Path(file.name)
