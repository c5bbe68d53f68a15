"""`embed_file`: a file of texts to a file of vectors, whole or not at all, and resumable."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gramvec.bulk.metadata import provenance
from gramvec.bulk.pipeline import OnError, Options, Piece, Work, pieces
from gramvec.embed.embedder import Embedder
from gramvec.errors import GramvecError, InputError
from gramvec.tables.bad_rows import BadLines
from gramvec.tables.batches import BLOCK_ROWS, START, Position, Reader
from gramvec.tables.inputs import STDIN, FileFormat, Form, Source, form_of
from gramvec.tables.readers import open_reader
from gramvec.tables.staging import Job, Progress, Stage, open_stage
from gramvec.tables.writers import JsonForm, NpyForm, OutputForm, Writes

COLUMN = "text"
EMBEDDING = "embedding"
OUTPUT_FORMS: tuple[OutputForm, ...] = ("jsonl", "npy", "parquet")

Watcher = Callable[[Reader, int], None]
Run = Callable[[Position], Iterator[Piece]]


class BulkError(GramvecError):
    """A run failed, and what it did is kept."""


class Interrupted(BulkError):
    """A run was told to stop; what it did is kept if it can be resumed."""


@dataclass(frozen=True)
class Done:
    """What came of it: rows in all, those of an earlier run among them, and the bad lines."""

    rows: int
    resumed: int
    bad: BadLines
    unit: str


@dataclass(frozen=True)
class Files:
    """What is read and written. `source` or `output` of "-" is standard input or output.

    form, output_form: None goes by the ending. column: the text's. embedding: the name of the vector's column.
    """

    source: Path
    output: Path
    form: Form | FileFormat | None = None
    output_form: OutputForm | None = None
    column: str = COLUMN
    embedding: str = EMBEDDING


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def output_form_of(path: Path) -> OutputForm:
    """The form of an output by its ending, "jsonl" for one that says nothing."""
    ending = path.suffix.lower().removeprefix(".")
    return next((form for form in OUTPUT_FORMS if form == {"pq": "parquet"}.get(ending, ending)), "jsonl")


def embed_file(
    embedder: Embedder,
    files: Files,
    options: Options = Options(),
    *,
    on_error: OnError = "stop",
    resume: bool = False,
    rows: int | None = None,
    threads: int | None = None,
    watch: Watcher | None = None,
    written: Writes | None = None,
    also: Job | None = None,
) -> Done:
    """Embed the texts of a file into another.

    on_error: "skip" gives a bad line zeros (.npy) or null. resume: go on where a run with the same files and options
    was stopped, and keep what is done if this one fails. rows: the most of a block; None for 2,048, or for as many as
    the model's runtime takes at once where those are more. threads: blocks at a time, None for as many as this process
    has cores; open the embedder with threads=1, or they compete.
    watch: called with the reader and the rows done so far, after each block. written: another form than those of
    OUTPUT_FORMS, with the other columns, and to a file where it is not in_place; also: what decides its bytes besides.
    Raises InputError for what cannot be read, embedded or written, OSError for what the system refuses while writing,
    Interrupted for KeyboardInterrupt.
    """
    dtype, width = options.check(embedder)
    output_form = files.output_form or output_form_of(files.output)
    with closing(Source(files.source)) as source:
        reader = open_reader(
            source,
            files.form or form_of(files.source),
            files.column,
            keep=written is not None or output_form != "npy",
            rows=rows or max(BLOCK_ROWS, embedder.batching.texts),
        )
        form = written or _form(output_form, files, provenance(embedder, asdict(options)), dtype, width)
        work = Work(embedder, options, on_error, reader.unit)
        run: Run = partial(pieces, reader, form, work, threads or cores())
        if files.output == STDIN or (files.output.exists() and not files.output.is_file()):
            if written is not None and not written.in_place:
                raise InputError(f"{files.output} is no file; choose another one to write")
            if output_form != "jsonl":
                raise InputError(f"{output_form} needs a file to write to; choose another --output, or --format jsonl")
            if resume:
                raise InputError("only a file can be resumed; give --output FILE, or leave out --resume")
            return _streamed(reader, run, files.output, watch)
        can_resume = source.is_file and files.source != STDIN
        if resume and not can_resume:
            raise InputError("--resume needs a file to read from: a pipe cannot be read twice")
        job = _job(reader, files, embedder, options, rows) | (also or {}) if can_resume else None
        stage = open_stage(files.output, job, resume=resume)
        return _staged(reader, run, stage, form, resume=resume, watch=watch)


def _form(
    output_form: OutputForm, files: Files, metadata: dict[str, str], dtype: np.dtype[np.generic], width: int
) -> Writes:
    if output_form == "npy":
        return NpyForm(dtype, width)
    if output_form == "jsonl":
        return JsonForm(files.column, files.embedding)
    from gramvec.tables.parquet import ParquetForm

    return ParquetForm(files.column, files.embedding, dtype, width, metadata)


def _job(reader: Reader, files: Files, embedder: Embedder, options: Options, rows: int | None) -> Job:
    """What decides the output's bytes, under names that a message can use."""
    source = reader.source
    return {
        "input": [source.size, source.mtime_ns],
        "input format": [reader.form, reader.format.delimiter, reader.format.encoding],
        "column": files.column,
        "embedding column": files.embedding,
        "output format": files.output_form or output_form_of(files.output),
        "model": embedder.digest,
        "runtime": [embedder.runtime, embedder.device],
        "options": asdict(options) | {"max_characters": embedder.max_characters},
        "batch size": rows,
    }


def _streamed(reader: Reader, run: Run, output: Path, watch: Watcher | None) -> Done:
    progress = Progress()
    file: BinaryIO = sys.stdout.buffer if output == STDIN else output.open("wb")
    try:
        for piece in run(START):
            file.write(piece.data)
            _count(progress, piece)
            if watch:
                watch(reader, progress.rows)
        file.flush()
    finally:
        if output != STDIN:
            file.close()
    return Done(progress.rows, 0, progress.bad, reader.unit)


def _count(progress: Progress, piece: Piece) -> None:
    progress.rows += piece.rows
    progress.position = piece.position
    for number, why in piece.bad:
        progress.bad.add(number, why)


def _staged(reader: Reader, run: Run, stage: Stage, form: Writes, *, resume: bool, watch: Watcher | None) -> Done:
    progress = stage.progress
    resumed = progress.rows
    try:
        if progress.position != START:
            form.resume(stage.path)
        for piece in run(progress.position):
            stage.append(piece.data)
            _count(progress, piece)
            if piece.rows:
                stage.checkpoint_if_due()
            if watch:
                watch(reader, progress.rows)
        stage.finish(form, progress.rows)
    except KeyboardInterrupt as error:
        raise Interrupted(f"stopped; {_left_over(stage, keep=True)}") from error
    except OSError as error:
        left = _left_over(stage, keep=resume)
        if not resume:
            raise
        raise BulkError(f"{error.strerror or error}; {left}") from error
    except BaseException:
        _left_over(stage, keep=resume)
        raise
    return Done(progress.rows, resumed, progress.bad, reader.unit)


def _left_over(stage: Stage, *, keep: bool) -> str:
    """Leave what can be gone on with if `keep`, else nothing; say which."""
    stage.close()
    if not keep or not stage.journalled:
        stage.discard()
        return "nothing was done yet"
    return f"the first {stage.journalled:,} rows are kept: the same command with --resume goes on from there"
