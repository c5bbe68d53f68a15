"""Input and output of `gramvec dedupe`: texts with their lines' numbers, duplicates, and the lines that are kept."""

from __future__ import annotations

import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.embed_file import Watcher
from gramvec.duplicates.features import NearPairs
from gramvec.duplicates.likely import Stays, likely_known, standing_for
from gramvec.duplicates.pairs import groups
from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.errors import InputError
from gramvec.lexical.demands import Demands
from gramvec.search.index import Index
from gramvec.tables.batches import BadLines
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import FileFormat, Form, Source
from gramvec.tables.parquet import ParquetReader, pyarrow
from gramvec.tables.readers import CsvReader, open_reader
from gramvec.tables.staging import output_file
from gramvec.text.arrays import Int64s
from gramvec.text.inputs import has_surrogate

# Hits of an index that each text is scored against.
KNOWN_CANDIDATES = 10
BLOCK_TEXTS = 1_024


@dataclass
class DedupeTexts:
    """Different texts, and which of them each row of a file has.

    different: in order of their first row. of_row: index into `different` for each row, -1 for a bad one and for one
    whose text is empty or of white space, which repeats nothing. empty: the number of such texts. numbers: the line
    (Parquet: row) of each row, from 1.
    """

    different: list[str] = field(default_factory=list)
    of_row: array[int] = field(default_factory=lambda: array("i"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    bad: BadLines = field(default_factory=BadLines)
    unit: str = "line"
    empty: int = 0

    def told(self) -> Iterator[str]:
        """Yield sentences about the rows that are compared with none."""
        if self.empty:
            one = self.empty == 1
            have = f"{self.unit} has no text and repeats" if one else f"{self.unit}s have no text and repeat"
            yield f"{self.empty:,} {have} nothing"
        yield from self.bad.report(len(self.numbers), self.unit)


class DedupeResult(NamedTuple):
    """Rows of an input and pairs of its different texts."""

    found: DedupeTexts
    pairs: NearPairs

    def lines(self, most: int) -> Iterator[dict[str, Any]]:
        """Yield the pairs of rows, equal texts among them: `lines`, `score`, `texts`.

        Raises InputError if there are more than `most`.
        """
        found, pairs = self
        rows: list[list[int]] = [[] for _ in found.different]
        for row, text in enumerate(found.of_row):
            if text >= 0:
                rows[text].append(row)
        sizes = np.array([len(one) for one in rows], np.int64)
        total = int((sizes * (sizes - 1) // 2).sum() + (sizes[pairs.left] * sizes[pairs.right]).sum())
        if total > most:
            raise InputError(
                f"{total:,} pairs of lines, with equal ones; take --groups or --keep, or raise --threshold or "
                "--max-pairs"
            )
        near: list[tuple[int, int, float]] = []
        for one in rows:
            near += [(a, b, 1.0) for at, a in enumerate(one) for b in one[at + 1 :]]
        for left, right, score in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.scores.tolist(), strict=True):
            near += [(min(a, b), max(a, b), score) for a, b in product(rows[left], rows[right])]
        for a, b, score in sorted(near):
            yield {
                "lines": [found.numbers[a], found.numbers[b]],
                "score": score,
                "texts": [found.different[found.of_row[row]] for row in (a, b)],
            }

    def groups(self) -> Iterator[dict[str, Any]]:
        """Yield the groups of several rows in order of their first one: `lines`, `texts`."""
        found = self.found
        roots = self.roots()
        order = np.argsort(roots, kind="stable")
        edges = np.flatnonzero(np.diff(roots[order], prepend=-1, append=-1))
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if end - begin > 1:
                rows = order[begin:end].tolist()
                yield {
                    "lines": [found.numbers[row] for row in rows],
                    "texts": [found.different[found.of_row[row]] for row in rows],
                }

    def roots(self) -> Int64s:
        """Return int64[rows], the first row of each row's group; a row without a text is a group of its own."""
        text = np.asarray(self.found.of_row)
        rows = np.arange(len(text))
        first = np.full(len(self.found.different) + 1, len(text))
        np.minimum.at(first, text, rows)
        # Texts stand in the order of their first rows, so the first row of a group is that of its first text.
        of_text = np.append(groups(len(self.found.different), self.pairs.left, self.pairs.right), -1)
        roots: Int64s = np.where(text < 0, rows, first[of_text[text]])
        return roots

    def staying(self, stays: Stays = "first") -> Int64s:
        """Return int64[rows], the row that stays for each row: no chain drops what is unlike it."""
        text = np.asarray(self.found.of_row)
        rows = np.arange(len(text))
        first = np.full(len(self.found.different) + 1, len(text))
        np.minimum.at(first, text, rows)
        counts = np.bincount(text[text >= 0], minlength=len(self.found.different))
        of_text = np.append(standing_for(self.found.different, counts, self.pairs, stays), -1)
        found: Int64s = np.where(text < 0, rows, first[of_text[text]])
        return found


class KnownRow(NamedTuple):
    """Row of an input that repeats a document of an index: its place, the document's id and text, the score."""

    row: int
    id: str
    text: str
    score: float

    def line(self, found: DedupeTexts) -> dict[str, Any]:
        """Return `line`, `id` in the index, `score` and both `texts`."""
        texts = [found.different[found.of_row[self.row]], self.text]
        return {"line": found.numbers[self.row], "id": self.id, "score": self.score, "texts": texts}


def read_texts(
    path: Path, form: Form | FileFormat, column: str, *, on_error: OnError, watch: Watcher
) -> DedupeTexts:  # fmt: skip
    """Return the texts of a file. Raises InputError for a bad line if on_error is "stop"."""
    texts = DedupeTexts()
    index: dict[str, int] = {}
    with closing(Source(path)) as source:
        reader = open_reader(source, form, column, keep=False)
        texts.unit = reader.unit
        for block in reader.blocks():
            texts.bad.blank += block.blank
            for at, (number, text) in enumerate(zip(block.numbers, block.texts, strict=True)):
                why = block.bad.get(at) or _refused(text)
                if why and on_error == "stop":
                    raise InputError(f"{texts.unit} {number}: {why}")
                if why:
                    texts.bad.add(number, why)
                blank = not why and not text.strip()
                texts.empty += blank
                texts.of_row.append(-1 if why or blank else index.setdefault(text, len(index)))
                texts.numbers.append(number)
            watch(reader, len(texts.numbers))
        texts.bad.notes = reader.notes
    texts.different = list(index)
    return texts


def known_rows(
    found: DedupeTexts, index: Index, threshold: float, *, watch: Callable[[int], None]
) -> list[KnownRow]:  # fmt: skip
    """Return the rows whose text has a score of at least `threshold` with one of its ten best documents of an index."""
    column = index.manifest.column
    snapshot = index.snapshot()
    best: dict[int, tuple[str, str, float]] = {}
    for start in range(0, len(found.different), BLOCK_TEXTS):
        texts = found.different[start : start + BLOCK_TEXTS]
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
    return [KnownRow(row, *best[text]) for row, text in enumerate(found.of_row) if text in best]


def _refused(text: str) -> str | None:
    if len(text) > MAX_CHARACTERS:
        return f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,}: cut it"
    if has_surrogate(text):
        return "the text has a lone surrogate, which is not a character; remove it or decode the text properly"
    return None


def write_kept(path: Path, form: Form | FileFormat, column: str, dropped: Int64s, output: Path) -> None:
    """Write the rows of `path` except those of some numbers, byte for byte (Parquet: with the same schema).

    Args:
        path: the input.
        form: of the input.
        column: the texts.
        dropped: ascending numbers as `DedupeTexts` has them.
        output: the file.
    """
    with closing(Source(path)) as source, output_file(output) as out:
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


def spooled(stream: BinaryIO, folder: Path) -> Path:
    """Return a file with everything that a pipe gives, since it is read twice."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        shutil.copyfileobj(stream, file)
    return Path(file.name)
