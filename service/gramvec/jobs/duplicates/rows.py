"""Input and output of `gramvec dedupe`: texts with their lines' numbers, duplicates, and the lines that are kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.errors import InputError, quote
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.columns import Columns, read_columns
from gramvec.jobs.duplicates.api import why_not_compared
from gramvec.jobs.duplicates.distinct import SOURCE, DistinctRows
from gramvec.jobs.duplicates.likely import likely_known
from gramvec.jobs.matching.inputs import MAX_NAMED, NO_ID
from gramvec.jobs.matching.on import split_names
from gramvec.jobs.search.index import Index
from gramvec.jobs.tables.batches import Reader
from gramvec.jobs.tables.columns import text_of, value_or_none
from gramvec.jobs.tables.decoding import UTF_8_MARK
from gramvec.jobs.tables.inputs import COMPRESSED, STDIN, FileFormat, Source
from gramvec.jobs.tables.lines import JsonReader, LineReader
from gramvec.jobs.tables.outputs import TABLE_FORMS, TableForm, form_to_write, write_records
from gramvec.jobs.tables.parquet import ParquetReader, pyarrow
from gramvec.jobs.tables.readers import CsvReader, TsvReader, open_reader
from gramvec.jobs.tables.staging import is_stream, output_at_once
from gramvec.jobs.tables.writers import records_of
from gramvec.lexical.demands import Demands
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Int64s

# Rows of a file: more do not fit in memory.
MAX_ROWS = 100_000_000
# Hits of an index that each text is scored against.
KNOWN_CANDIDATES = 10
# Documents that tell which columns an index has.
KNOWN_DOCUMENTS = 1_000
BLOCK_TEXTS = 1_024
KeptForm = TableForm | Literal["txt"]


class DedupeTable(NamedTuple):
    """Rows of a file, or of several as one.

    Attributes:
        table: the file.
        on: the names of the compared columns.
        columns: the texts of these.
        ids: the ids of the rows.
        id_column: the column of those; None where they are the lines' numbers.
        sources: the file of each row, where there are several.
        lines_there: the line of each row in that file.
    """

    table: Columns
    on: list[str]
    columns: list[list[str]]
    ids: list[str]
    id_column: str | None
    sources: list[str] | None = None
    lines_there: list[int] | None = None

    @property
    def has_ids(self) -> bool:
        """True if a column names the rows."""
        return self.id_column is not None

    @property
    def lines(self) -> list[int]:
        """The line of each row in its file, or its number where the file has no lines."""
        return self.table.numbers if self.lines_there is None else self.lines_there

    def name(self, row: int) -> str:
        """Return what a row is called in messages."""
        source = "" if self.sources is None else f"{self.sources[row]}, "
        return f"{source}{self.table.unit} {self.lines[row]}"

    @property
    def named_by(self) -> list[str]:
        """The columns of a list that name a row."""
        return [*([] if self.sources is None else [SOURCE]), *(["id"] if self.has_ids else []), "line"]

    def name_cells(self, row: int) -> list[Any]:
        """Return the cells of these columns."""
        source = [] if self.sources is None else [self.sources[row]]
        return [*source, *([self.ids[row]] if self.has_ids else []), self.lines[row]]

    def text(self, row: int) -> str:
        """Return the compared texts of a row as one."""
        return " | ".join(column[row] for column in self.columns)


class KnownRow(NamedTuple):
    """Row that repeats a document of an index: its place, the document's id and compared texts, and the score."""

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
    progress: Progress = NO_PROGRESS,
    name: str | None = None,
) -> DedupeTable:
    """Read the compared columns of a file and its ids.

    Args:
        path: a file that `gramvec embed` reads.
        form: its format.
        on: the compared columns.
        id_column: whose values name the rows; None for "id" if there is one, else the lines' numbers; "none" for the
            numbers whatever there is.
        on_error: "stop" at a bad row, or "skip" it.
        progress: shows the reading.
        name: of the file, for messages; None for its own.

    Raises:
        InputError: naming file and line, for a bad row if `on_error` is "stop", and for a column that is not there.
    """
    names = list(dict.fromkeys(on))
    named = [] if id_column in (None, NO_ID) else [str(id_column)]
    options = dict.fromkeys(names, "on") | dict.fromkeys(named, "id")
    table = read_columns(
        path, [*names, *named], format=form, options=options, optional=["id"] if id_column is None else [],
        on_error=on_error, max_rows=MAX_ROWS, progress=progress, why_bad=why_not_compared, name=name,
    )  # fmt: skip
    ids_in = named[0] if named else "id" if id_column is None and "id" in table.found else None
    ids = [str(number) for number in table.numbers] if ids_in is None else table.values[ids_in]
    return DedupeTable(table, names, [table.values[name] for name in names], ids, ids_in)


def known_rows(
    distinct: DistinctRows,
    names: Sequence[str],
    index: Index,
    threshold: float,
    *,
    progress: Progress = NO_PROGRESS,
) -> list[KnownRow]:
    """Return the rows that have a score of at least `threshold` with one of their ten best documents of an index.

    Args:
        distinct: the different rows.
        names: the compared columns, as documents have them; the index's own, by which they are found, is one of them.
        index: the index.
        threshold: the lowest score.
        progress: shows the comparison.
    """
    snapshot = index.snapshot()
    best: dict[int, tuple[str, str, float]] = {}
    queries = distinct.columns[names.index(index.manifest.column)]
    progress.start("comparing with the index", len(queries), "texts")
    for start in range(0, len(queries), BLOCK_TEXTS):
        block = slice(start, start + BLOCK_TEXTS)
        columns = [column[block] for column in distinct.columns]
        left: list[int] = []
        hits = []
        for at, top in enumerate(snapshot.find([*map(Demands, queries[block])], None, KNOWN_CANDIDATES)):
            there = snapshot.hits(top)
            left += [at] * len(there)
            hits += there
        others = [[text_of(value_or_none(hit.record, name)) for hit in hits] for name in names]
        scores = likely_known(columns, np.array(left, np.int64), others)
        rows, documents = [*zip(*columns, strict=True)], zip(*others, strict=True)
        for at, hit, document, score in zip(left, hits, documents, scores.tolist(), strict=True):
            known = 1.0 if rows[at] == document else score
            former = best.get(start + at)
            # Of two that are as likely that of the lower id: the order of hits changes with the index's segments.
            if known >= threshold and (former is None or (-known, hit.id) < (-former[2], former[0])):
                best[start + at] = hit.id, " | ".join(document), known
        progress.advance(len(rows))
    return [KnownRow(row, *best[text]) for row, text in enumerate(distinct.of_row.tolist()) if text in best]


def known_columns(on: Sequence[str], index: Index, *, is_text: bool) -> dict[str, str]:
    """Return the columns that are compared with the documents of an index: their names in the input and the index.

    Args:
        on: NAME, or NAME=OTHER for a column that documents have as OTHER; none for the index's own column.
        index: the index.
        is_text: whether the input is a text a line, so that it has no names.

    Raises:
        InputError: documents lack a column, a column is named twice, or the index's own is left out.
    """
    own = index.manifest.column
    if not on:
        return {COLUMN if is_text else own: own}
    pairs = [(name, other or name) for name, other in map(split_names, dict.fromkeys(on))]
    names, others = (list(side) for side in zip(*pairs, strict=True))
    for side in (names, others):
        if twice := next((name for name in side if side.count(name) > 1), None):
            raise InputError(f"on: names the column {quote(twice)} twice; leave one out", field="on")
    has = dict.fromkeys(name for _, record in islice(index.items(), KNOWN_DOCUMENTS) for name in record)
    for name, other in pairs:
        if has and other not in has:
            listed = ", ".join(map(quote, [*has][:MAX_NAMED]))
            raise InputError(
                f"{index.path}: its documents have no column {quote(other)}; they have {listed}: compare those, and"
                f" write {name}=OTHER for a column that is called otherwise there",
                field="on",
            )
    if own not in others:
        raise InputError(
            f"{index.path}: finds documents by their column {quote(own)}; compare it, too, as {own} or NAME={own}",
            field="on",
        )
    return dict(pairs)


def form_to_keep(source: Path, form: FileFormat, output: Path | None) -> KeptForm:
    """Return the form of the rows that are kept: the input's on a pipe or behind the same ending, else the ending's.

    Spreadsheets become CSV on a pipe, and an array of JSON becomes lines of it.

    Raises InputError for an ending that no form has.
    """
    own: KeptForm = "csv"  # of a form that is only read
    if form.form != "xlsx" and (form.form == "txt" or form.form in TABLE_FORMS):
        own = form.form
    elif form.form == "json":
        own = "jsonl"
    if output is None or output == STDIN or is_stream(output):
        return own
    ending = output.suffix.lower()
    if own == form.form and ending not in COMPRESSED and ending == source.suffix.lower():
        return own
    if own == "txt" and not ending:
        return own
    forms: tuple[KeptForm, ...] = ("txt", *TABLE_FORMS) if own == "txt" else TABLE_FORMS
    return form_to_write(output, forms, option="")


def write_kept(
    path: Path,
    given: FileFormat,
    form: KeptForm,
    columns: Iterable[str],
    dropped: Int64s,
    merged: Mapping[int, Mapping[str, Any]],
    output: Path,
) -> None:
    """Write the rows of `path` except those of some numbers, in the input's own form byte for byte.

    Parquet of Parquet has the same schema.

    Args:
        path: the input.
        given: its format.
        form: of the output, see `form_to_keep`.
        columns: of the input, in order.
        dropped: ascending numbers, see TableRow.
        merged: values that take the place of a row's own, by its number and the column.
        output: the file; - for standard output, which gets nothing before all is written.

    Raises:
        InputError: a row that cannot be read has no place in another form.
    """
    with closing(Source(path, given)) as source:
        reader = open_reader(source, given, COLUMN if given.form == "txt" else None, keep=True)
        if form == "xlsx" or (form != given.form and form != "txt"):
            names = [] if form == "jsonl" else list(columns)
            records = _records(reader, names, dropped, merged, output)
            with output_at_once(output) as out:
                write_records(out, form, names, records)
            return
        with output_at_once(output) as out:
            if isinstance(reader, ParquetReader):
                _write_parquet(reader, dropped, merged, out)
                return
            begun = False
            for block in reader.blocks():
                if not begun and isinstance(reader, CsvReader):
                    out.write(_end_line(reader.header))
                begun = True
                assert isinstance(reader, LineReader)
                for at in np.flatnonzero(_find_kept(block.numbers, dropped)).tolist():
                    line, changed = block.raw[at], merged.get(block.numbers[at])
                    if changed and block.records is not None:
                        line = _line_of(reader, line, block.records[at] | dict(changed))
                    out.write(_end_line(line))


def _line_of(reader: LineReader, line: bytes, record: Mapping[str, Any]) -> bytes:
    """Return the line of a record in the place of that of a file, with its mark and its end."""
    if isinstance(reader, JsonReader):
        text = orjson.dumps(record).decode()
    elif isinstance(reader, TsvReader) and not reader.is_quoted:
        text = "\t".join(record.values())
    elif isinstance(reader, CsvReader):
        written = io.StringIO()
        csv.writer(written, delimiter=reader.delimiter, lineterminator="").writerow(record.values())
        text = written.getvalue()
    else:
        (text,) = record.values()
    mark = UTF_8_MARK if line.startswith(UTF_8_MARK) else b""
    return mark + text.encode(reader.encoding) + (b"\r\n" if line.endswith(b"\r\n") else b"\n")


def _records(
    reader: Reader, names: Sequence[str], dropped: Int64s, merged: Mapping[int, Mapping[str, Any]], output: Path
) -> Iterator[dict[str, Any]]:
    """Yield these columns of the rows that are kept, or all."""
    for block in reader.blocks():
        for place, why in block.bad.items():
            where = "standard output" if output == STDIN else output
            raise InputError(
                f"{where}: {reader.unit} {block.numbers[place]} cannot be written ({why}); name a file with the"
                " input's ending, which takes it as it is"
            )
        kept = _find_kept(block.numbers, dropped).tolist()
        for number, own in compress(zip(block.numbers, records_of(block), strict=True), kept):
            record = own | dict(merged.get(number, {}))
            yield {name: value_or_none(record, name) for name in names} if names else record


def _find_kept(numbers: Sequence[int], dropped: Int64s) -> NDArray[np.bool_]:
    here = np.asarray(numbers, np.int64)
    if not len(dropped):
        return np.ones(len(here), np.bool_)
    found: NDArray[np.bool_] = dropped[np.minimum(np.searchsorted(dropped, here), len(dropped) - 1)] != here
    return found


def _end_line(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _write_parquet(
    reader: ParquetReader, dropped: Int64s, merged: Mapping[int, Mapping[str, Any]], out: BinaryIO
) -> None:
    pa, pq = pyarrow(), pyarrow(module="pyarrow.parquet")
    with pq.ParquetWriter(out, reader.schema) as writer:
        for block in reader.blocks():
            batch = block.batch.cast(reader.schema)
            changed = {at: merged[number] for at, number in enumerate(block.numbers) if number in merged}
            for name in {name for values in changed.values() for name in values}:
                place = reader.schema.get_field_index(name)
                column = batch.column(place).to_pylist()
                for at, values in changed.items():
                    column[at] = values.get(name, column[at])
                batch = batch.set_column(place, name, pa.array(column, reader.schema.field(place).type))
            batch = batch.cast(reader.schema)
            writer.write_batch(batch.filter(pa.array(_find_kept(block.numbers, dropped))))
