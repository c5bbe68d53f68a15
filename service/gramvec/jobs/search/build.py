"""`build_index`: the rows of a file into a new index, which is put in the place of the old one when it is whole."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError, quote
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.common.account import Account
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.common.outcome import Done, check_same_job, raise_stopped
from gramvec.jobs.search.documents import DocumentEncoder, EncodedBlock
from gramvec.jobs.search.filters import check_name, columns_of, kind_of
from gramvec.jobs.search.folder import (
    IDS,
    JOURNAL,
    LETTERS,
    LOCK,
    MANIFEST,
    MAX_JOURNAL,
    MAX_ROWS,
    IndexManifest,
    lock_for_writing,
    make_folder,
    read_bounded,
    read_manifest,
    remove_generations,
    write_manifest,
    write_whole,
)
from gramvec.jobs.search.segments import engine_errors, schema_of, tantivy
from gramvec.jobs.search.snapshot import Snapshot
from gramvec.jobs.search.writer import IndexWriter, SeenIds
from gramvec.jobs.tables.batches import START, Block, Reader
from gramvec.jobs.tables.inputs import STDIN, FileFormat, Form, Source, form_of
from gramvec.jobs.tables.readers import open_reader
from gramvec.jobs.tables.writers import records_of
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.threads import count_cores, map_in_order

MAX_NAMED = 5
# After how long a build commits what it has, which `resume` continues from.
CHECKPOINT_SECONDS = 60.0
EMPTY = "there is no text in the input; an index needs at least one"

CountedRows = Annotated[int, Field(ge=0, le=1 << 62)]


class Checkpoint(NamedTuple):
    """Progress of a build: committed rows, the input's position, rows of the input, the last id, and bad rows."""

    rows: Annotated[int, Field(ge=0, le=MAX_ROWS)]
    position: tuple[CountedRows, CountedRows]
    read: CountedRows
    next_id: CountedRows
    bad: dict[str, Any]


class _Journal(BaseModel):
    """building.json of a build that was stopped."""

    model_config = ConfigDict(strict=True, extra="forbid")

    job: dict[str, Any]
    manifest: IndexManifest
    checkpoints: Annotated[list[Checkpoint], Field(max_length=2)]


def build_index(
    embedder: Embedder,
    source: Path,
    output: Path,
    *,
    form: Form | FileFormat | None = None,
    column: str = COLUMN,
    id_column: str | None = None,
    filters: Sequence[str] = (),
    truncate: bool = False,
    on_error: OnError = "stop",
    resume: bool = False,
    threads: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> Done:
    """Build an index from the rows of a file; an index at `output` is replaced when the new one is complete.

    Args:
        embedder: model of the space "semantic"; threads=1 is fastest.
        source: what `gramvec embed` reads.
        output: folder of the index.
        form: None goes by the ending.
        column: the texts.
        id_column: ids, all different; None takes the numbers of the lines.
        filters: columns that searches can be narrowed by, as NAME or NAME:text, NAME:number, NAME:date.
        truncate: cut texts that are too long.
        on_error: "skip" leaves a bad row out.
        resume: continue a build of the same input and options that was stopped.
        threads: blocks that are embedded at a time; None for one per core.
        progress: shows the rows.

    Raises:
        InputError: the input is not valid, has no text, or has an id twice; `output` holds other files.
        Interrupted: KeyboardInterrupt.
    """
    tantivy()  # raises InputError where it is missing, before the work
    if embedder.space != "semantic":
        raise InputError("an index compares meaning and letters by itself; leave out space")
    check_name(column)
    if id_column is not None:
        check_name(id_column)
    if resume and source == STDIN:
        raise InputError("resume: needs a file to read from, a pipe cannot be read twice", field="resume")
    made = make_folder(output)
    if not _current(output):
        try:
            _journal(output)
        except InputError:
            raise InputError(
                f"{output}: its {JOURNAL} is damaged, or no build's; delete it, or choose another `output`"
            ) from None
    try:
        with lock_for_writing(output), closing(Source(source, form or form_of(source))) as opened:
            reader = open_reader(opened, form or form_of(source), column, keep=True)
            job = _job(embedder, reader, id_column, filters, truncate, on_error)
            left = _left(output, job, embedder) if resume else None
            blocks = None
            if left is None:
                _clear_build(output)
                blocks = reader.blocks()
                first = next(blocks, None)
                if first is not None:
                    blocks = chain([first], blocks)
                manifest = IndexManifest(
                    generation=secrets.token_hex(8), model=embedder.name, digest=embedder.digest,
                    dimensions=embedder.dimension, column=column, id=id_column,
                    filters=columns_of(filters, records_of(first) if first is not None else []),
                )  # fmt: skip
                left = manifest, []
            account = Account.of(reader, on_error, progress, "indexing")
            build = _Build(output, job, *left, account)
            guessed = {name for name, kind in map(kind_of, filters) if kind is None}
            encoder = DocumentEncoder(embedder, left[0], account.bad, truncate, guessed)
            return build.run(reader, blocks, encoder, threads or count_cores())
    except BaseException:
        if made and not (output / JOURNAL).exists() and not (output / MANIFEST).exists():
            (output / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                output.rmdir()
        raise


def start_generation(output: Path, manifest: IndexManifest) -> IndexWriter:
    """Make the folder of a generation, and return its writer."""
    letters = output / manifest.generation / LETTERS
    letters.mkdir(parents=True)
    with engine_errors(output):
        tantivy().Index(schema_of(manifest), str(letters))
    return IndexWriter(output, manifest)


def finish_generation(output: Path, manifest: IndexManifest) -> None:
    """Make a generation that is whole the current one, and delete the others. Raises InputError where it is damaged."""
    Snapshot(output, manifest, 1)
    write_manifest(output, manifest)
    (output / manifest.generation / IDS).unlink(missing_ok=True)
    remove_generations(output, manifest.generation)
    (output / JOURNAL).unlink(missing_ok=True)


class _Build:
    """A generation that is being built, from its last checkpoint where there are some."""

    def __init__(
        self,
        output: Path,
        job: dict[str, Any],
        manifest: IndexManifest,
        checkpoints: Sequence[Checkpoint],
        account: Account,
    ) -> None:
        self._output, self._job, self._manifest = output, job, manifest
        self._folder = output / manifest.generation
        try:
            if checkpoints:
                self._writer = IndexWriter(output, manifest)
            else:
                self._write_journal()  # first, so that it names whatever a kill leaves
                self._writer = start_generation(output, manifest)
        except OSError:  # the disk is full
            if not checkpoints:
                _clear_build(output)
            raise
        start = Checkpoint(0, (START.offset, START.number), 0, 0, BadRows().as_json())
        point = next((checkpoint for checkpoint in (*checkpoints, start) if checkpoint.rows == self._writer.rows), None)
        if point is None:
            self._writer.close()
            raise InputError(f"{output}: what is left of its build is damaged; start again without `resume`")
        self._point = point
        account.restore({"position": point.position, "rows": point.read, "bad": point.bad})
        self._account, self._resumed, self._next_id = account, point.read, point.next_id
        self._seen = SeenIds(self._folder / IDS, point.rows) if manifest.id is not None else None

    def run(
        self,
        reader: Reader,
        blocks: Iterator[Block] | None,
        encoder: DocumentEncoder,
        threads: int,
    ) -> Done:
        """Read the rest of the input and make the generation the index's current one."""
        blocks = blocks or reader.blocks(self._account.position)
        due = time.monotonic() + CHECKPOINT_SECONDS
        try:
            for encoded in map_in_order(blocks, encoder.encode, threads):
                self._append(encoded)
                if time.monotonic() > due and self._job["input"] is not None:
                    self._commit()
                    due = time.monotonic() + CHECKPOINT_SECONDS
            if not self._writer.rows:
                raise InputError(EMPTY)
            self._commit()
        except BaseException as error:
            self._raise_failure(error)
            raise
        self._writer.close()
        made = self._manifest.model_copy(update={"next": self._writer.rows, "next_id": self._next_id})
        finish_generation(self._output, made)
        return self._account.close(reader, resumed=self._resumed)

    def _append(self, encoded: EncodedBlock) -> None:
        if self._seen is not None:
            self._seen.add([document.id for document in encoded.documents])
        self._writer.append(encoded)
        self._next_id = max(self._next_id, encoded.rows.last)
        self._account.add(encoded.rows)

    def _commit(self) -> None:
        """Write the journal with the last checkpoint and this one, then commit: tantivy knows which of both holds."""
        done, position = self._account, self._account.position
        place = position.offset, position.number
        new = Checkpoint(self._writer.rows, place, done.rows, self._next_id, done.bad.as_json())
        if self._seen is not None:
            self._seen.save()
        self._write_journal(self._point, new)
        self._writer.commit()
        self._point = new

    def _write_journal(self, *checkpoints: Checkpoint) -> None:
        content = {
            "job": self._job,
            "manifest": self._manifest.model_dump(mode="json"),
            "checkpoints": [checkpoint._asdict() for checkpoint in checkpoints],
        }
        write_whole(self._output / JOURNAL, orjson.dumps(content))

    def _raise_failure(self, error: BaseException) -> None:
        """Keep what `resume` can continue from; raise what a stop and a full disk become."""
        self._writer.close(undo=True)
        kept = self._point.read if self._point.rows and not isinstance(error, InputError) else 0
        if not kept:
            _clear_build(self._output)
        raise_stopped(error, "nothing was kept", kept=kept)


def check_model(manifest: IndexManifest, embedder: Embedder, path: Path) -> None:
    """Raise InputError unless the embedder is the model of an index's vectors."""
    if embedder.digest != manifest.digest:
        raise InputError(
            f"{path}: was made with {quote(manifest.model)} {manifest.digest[:12]}, not with "
            f"{embedder.name} {embedder.digest[:12]}; name that model, or build the index again"
        )
    if embedder.dimension != manifest.dimensions:
        raise InputError(
            f"{path}: a damaged index (vectors of {manifest.dimensions} numbers, and its model makes"
            f" {embedder.dimension}); build it again"
        )


def _job(
    embedder: Embedder, reader: Reader, id_column: str | None, filters: Sequence[str], truncate: bool, on_error: OnError
) -> dict[str, Any]:
    """Return what decides the rows of an index, under names that a message can use."""
    source = reader.source
    return {
        "input": [source.size, source.mtime_ns] if source.is_file and source.path != STDIN else None,
        "input format": reader.format.form,
        "column": reader.column,
        "id": id_column,
        "filter": [*filters],
        "model": embedder.digest,
        "max-characters": embedder.max_characters,
        "truncate": truncate,
        "on-error": on_error,
    }


def _left(output: Path, job: dict[str, Any], embedder: Embedder) -> tuple[IndexManifest, list[Checkpoint]] | None:
    """Return the manifest and the checkpoints of a build that was stopped; None where there is none."""
    journal = _journal(output)
    if journal is None or journal.manifest.generation == _current(output):
        return None
    check_same_job(output, job, journal.job)
    found = journal.manifest
    filters = [kind_of(column)[0] for column in job["filter"]]
    if (found.digest, found.dimensions, found.column, found.id, [column.column for column in found.filters]) != (
        embedder.digest, embedder.dimension, job["column"], job["id"], filters,
    ):  # fmt: skip
        raise _journal_error(output)
    return (found, journal.checkpoints) if journal.checkpoints else None


def _journal(output: Path) -> _Journal | None:
    """Return the journal of a build; None where there is none. Raises InputError for one that is not valid."""
    try:
        found = _Journal.model_validate_json(read_bounded(output / JOURNAL, MAX_JOURNAL))
        for checkpoint in found.checkpoints:
            BadRows().restore(checkpoint.bad)
        return found
    except FileNotFoundError:
        return None
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:  # ValidationError is a ValueError
        raise _journal_error(output) from error


def _journal_error(output: Path) -> InputError:
    return InputError(f"{output / JOURNAL}: damaged; start again without `resume`")


def _clear_build(output: Path) -> None:
    """Delete what a build that was stopped has left."""
    remove_generations(output, _current(output))
    (output / JOURNAL).unlink(missing_ok=True)


def _current(output: Path) -> str:
    """Return the generation that an index has; "" where there is no index yet."""
    try:
        return read_manifest(output).generation
    except InputError:
        return ""
