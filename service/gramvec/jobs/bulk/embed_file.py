"""`embed_file`: a file of texts to a file of vectors, whole or not at all, and resumable.

Blocks of rows are read in this thread, embedded and encoded in a pool, and written in the input's order. A few of them
wait at a time, so that memory does not grow with the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import orjson
from numpy.typing import NDArray

import gramvec
from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import VectorPrecision, Vectors, check_dimensions, check_precision, quantize
from gramvec.errors import InputError
from gramvec.jobs.common.account import Account, BlockRows
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.common.outcome import Done, JobSettings, raise_stopped
from gramvec.jobs.common.stage import Stage, open_stage
from gramvec.jobs.tables.batches import BLOCK_ROWS, START, Block, Position, Reader
from gramvec.jobs.tables.inputs import STDIN, FileFormat, Form, Source, form_of
from gramvec.jobs.tables.outputs import form_to_write
from gramvec.jobs.tables.ownership import digest_of, mark_of
from gramvec.jobs.tables.parquet import DimensionColumns, ParquetForm, VectorColumn
from gramvec.jobs.tables.readers import open_reader
from gramvec.jobs.tables.staging import check_no_input, is_stream, output_file
from gramvec.jobs.tables.writers import NpyForm, OutputForm, RowsForm, VectorRowsForm, Writes
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.threads import count_cores, map_in_order

COLUMN = "text"
EMBEDDING = "embedding"
OUTPUT_FORMS: tuple[OutputForm, ...] = get_args(OutputForm)

Run = Callable[[Position], Iterator["BlockPart"]]


@dataclass(frozen=True)
class Files:
    """Files of a run.

    Args:
        source: the input; "-" is standard input.
        output: where vectors go; "-" is standard output.
        form: form or whole format of the input; None goes by its ending.
        output_form: None goes by the output's ending.
        column: name of the texts' column.
        embedding: name of the vectors' column; CSV and TSV have a column NAME_0 and so on for each dimension.
    """

    source: Path
    output: Path
    form: Form | FileFormat | None = None
    output_form: OutputForm | None = None
    column: str = COLUMN
    embedding: str = EMBEDDING

    @property
    def form_written(self) -> OutputForm:
        """Return the form of the vectors. Raises InputError for an ending that no form has."""
        return form_to_write(self.output, OUTPUT_FORMS, self.output_form, "jsonl")


def provenance(embedder: Embedder, options: dict[str, Any]) -> dict[str, str]:
    """Return the metadata of a file of vectors: gramvec.model, .digest, .version and, as JSON, .options."""
    return {
        "gramvec.model": embedder.name,
        "gramvec.digest": embedder.digest,
        "gramvec.version": gramvec.__version__,
        "gramvec.options": orjson.dumps(options, option=orjson.OPT_SORT_KEYS).decode(),
    }


@dataclass(frozen=True)
class Options:
    """Options that decide the numbers of a vector, see Embedder.embed and gramvec.embed.vectors."""

    normalize: bool = True
    dimensions: int | None = None
    truncate: bool = False
    precision: VectorPrecision = "float32"

    def check(self, embedder: Embedder) -> tuple[np.dtype[np.generic], int]:
        """Return the dtype and number of a vector's items. Raises InputError for options that the model cannot meet."""
        check_dimensions(self.dimensions, embedder.dimension)
        check_precision(self.precision, normalize=self.normalize)
        probe = quantize(np.zeros((1, self.dimensions or embedder.dimension), np.float32), self.precision)
        return probe.dtype, probe.shape[1]

    def embed(self, embedder: Embedder, texts: list[str]) -> Vectors:
        """Return float32[n, k]."""
        return embedder.embed(
            texts, normalize=self.normalize, dimensions=self.dimensions, truncate=self.truncate
        )  # fmt: skip


class EmbeddedBlock(NamedTuple):
    """Vectors [n, k] of a block, zero for a row without one; `missing` bool[n] marks these."""

    vectors: NDArray[np.generic]
    missing: NDArray[np.bool_]
    rows: BlockRows


class BlockPart(NamedTuple):
    """Bytes to append for a block, and its rows."""

    data: bytes
    rows: BlockRows = BlockRows()


@dataclass
class Work:
    """Work on a block. Its methods raise InputError, with the row's number, for a bad row if the job stops at one."""

    embedder: Embedder
    options: Options
    bad: BadRows

    def embed_block(self, block: Block) -> EmbeddedBlock:
        """Embed a block."""
        bad = dict(block.bad)
        texts = list(block.texts)
        try:
            vectors = self.options.embed(self.embedder, texts)
        except InputError:
            bad |= find_refused(self.embedder, texts, truncate=self.options.truncate)
            for index in bad:
                texts[index] = ""
            vectors = self.options.embed(self.embedder, texts)
        rows = BlockRows.of(block, bad)
        self.bad.check(rows.bad)
        missing = np.zeros(len(texts), np.bool_)
        missing[list(bad)] = True
        numbers = quantize(vectors, self.options.precision)
        if bad:
            numbers[missing] = 0
        return EmbeddedBlock(numbers, missing, rows)

    def piece(self, form: Writes, block: Block) -> BlockPart:
        """Embed and encode a block."""
        found = self.embed_block(block)
        return BlockPart(form.encode(block, found.vectors, found.missing), found.rows)


def pieces(reader: Reader, form: Writes, work: Work, threads: int, start: Position = START) -> Iterator[BlockPart]:
    """Yield the pieces of an input in its order. The form must have begun unless `start` is the start."""
    blocks = reader.blocks(start)
    if start == START:
        first = next(blocks, None)
        yield BlockPart(form.begin(first, getattr(reader, "schema", None), reader.names))
        blocks = chain(() if first is None else (first,), blocks)
    yield from map_in_order(blocks, partial(work.piece, form), threads)


def find_refused(embedder: Embedder, texts: Sequence[str], *, truncate: bool) -> dict[int, str]:
    """Return the places of the texts that an embedder does not take, and why."""
    bad = {}
    for place, text in enumerate(texts):
        try:
            embedder.prepare([text], truncate=truncate)
        except InputError as error:
            why = str(error).removeprefix("text 0 ").replace("pass truncate=true", "pass `truncate=True`")
            bad[place] = why.replace("has ", "the text has ", 1)
    return bad


def embed_file(
    embedder: Embedder,
    files: Files,
    options: Options = Options(),
    *,
    on_error: OnError = "stop",
    resume: bool = False,
    rows: int | None = None,
    threads: int | None = None,
    progress: Progress = NO_PROGRESS,
    task: str = "embedding",
    written: Writes | None = None,
) -> Done:
    """Embed the texts of a file into another.

    Args:
        embedder: the model; open it with threads=1, or its threads compete with this function's.
        files: what is read and written.
        options: of the vectors.
        on_error: "stop" at a bad line, or "skip" it: it gets zeros (.npy), empty cells (.csv, .tsv) or null.
        resume: continue a stopped run of the same files and options, and keep what is done if this one fails.
        rows: the most of a block; None for 2,048, or as many as the model's runtime takes at once if that is more.
        threads: blocks at a time; None for as many as this process has cores.
        progress: shows the rows.
        task: how the work on them is called.
        written: another form than those of OUTPUT_FORMS; it receives all columns.

    Raises:
        InputError: something cannot be read, embedded or written.
        OSError: the system refused to write.
        Interrupted: for KeyboardInterrupt.
    """
    dtype, width = options.check(embedder)
    check_no_input(files.output, [files.source])
    output_form = files.form_written if written is None else "jsonl"
    input_form = files.form or form_of(files.source)
    with closing(Source(files.source, input_form)) as source:
        reader = open_reader(
            source,
            input_form,
            files.column,
            keep=written is not None or output_form != "npy",
            rows=rows or max(BLOCK_ROWS, embedder.batching.texts),
        )
        if reader.format.form == "txt" and files.column != COLUMN:
            raise InputError(
                f"{source.name}: is read as lines of text, which have no column {files.column!r}; say which form it"
                ' has, such as `input_format="csv"`'
            )
        form = written or _form(output_form, files, provenance(embedder, asdict(options)), dtype, width)
        account = Account.of(reader, on_error, progress, task)
        work = Work(embedder, options, account.bad)
        run: Run = partial(pieces, reader, form, work, threads or count_cores())
        if files.output == STDIN or is_stream(files.output):
            if written is not None and not written.in_place:
                raise InputError(f"{files.output}: not a file; choose another one to write")
            if resume:
                raise InputError(
                    "resume: only a file can be continued; give one as `output`, or leave it out", field="resume"
                )
            return _write_stream(reader, run, account, files.output)
        can_resume = source.is_file and files.source != STDIN
        if resume and not can_resume:
            raise InputError("resume: needs a file to read from, a pipe cannot be read twice", field="resume")
        job = _job(reader, files, embedder, options, rows, output_form) if can_resume else None
        if resume and (found := mark_of(files.output)) is not None and found.job == digest_of(job):
            return Done(found.rows, found.rows, account.bad, was_complete=True)
        stage = open_stage(files.output, job, account, resume=resume)
        return _write_staged(reader, run, stage, form, resume=resume)


def _form(
    output_form: OutputForm, files: Files, metadata: dict[str, str], dtype: np.dtype[np.generic], width: int
) -> Writes:
    if output_form == "npy":
        return NpyForm(dtype, width)
    if output_form == "csv" or output_form == "tsv":
        return VectorRowsForm(output_form, files.column, DimensionColumns(files.embedding, dtype, width))
    added = VectorColumn(files.embedding, dtype, width)
    if output_form == "jsonl":
        return RowsForm(output_form, files.column, added)
    return ParquetForm(files.column, added, metadata)


def _job(
    reader: Reader, files: Files, embedder: Embedder, options: Options, rows: int | None, output_form: str
) -> JobSettings:
    """Return what decides the output's bytes, under names that a message can use."""
    source = reader.source
    return {
        "input": [source.size, source.mtime_ns],
        "input format": list(astuple(reader.format)),
        "column": files.column,
        "embedding column": files.embedding,
        "output format": output_form,
        "model": embedder.digest,
        "runtime": [embedder.runtime, embedder.device],
        "options": asdict(options) | {"max_characters": embedder.max_characters},
        "batch size": rows,
    }


def _write_stream(reader: Reader, run: Run, account: Account, output: Path) -> Done:
    with output_file(output) as file:
        for part in run(START):
            file.write(part.data)
            account.add(part.rows)
    return account.close(reader)


def _write_staged(reader: Reader, run: Run, stage: Stage, form: Writes, *, resume: bool) -> Done:
    account = stage.account
    resumed = account.rows
    try:
        if account.position != START:
            form.resume(stage.path)
        for part in run(account.position):
            stage.append(part.data)
            account.add(part.rows)
            if part.rows.rows:
                stage.checkpoint_if_due()
        stage.finish(form)
    except BaseException as error:
        can_resume = resume or isinstance(error, KeyboardInterrupt)
        kept = stage.stop(keep=can_resume)
        if can_resume:
            raise_stopped(error, "nothing was done yet", kept=kept)
        raise
    return account.close(reader, resumed=resumed)
