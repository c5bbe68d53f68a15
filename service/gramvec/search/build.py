"""`build_index`, `add_to_index` and `remove_from_index`: rows of a file into an index, and out of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BaseModel, Field

from gramvec.bulk.embed_file import COLUMN, BulkError, Done, Interrupted, Watcher, cores, in_order
from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError, quoted
from gramvec.search.documents import DocumentEncoder, Encoded
from gramvec.search.filters import check_name, columns_of
from gramvec.search.folder import (
    JOURNAL,
    LETTERS,
    LOCK,
    MANIFEST,
    MOST_MANIFEST,
    VECTORS,
    IndexManifest,
    engine_errors,
    read_bounded,
    read_manifest,
    remove_generations,
    schema_of,
    tantivy,
    write_manifest,
    write_whole,
    writing,
)
from gramvec.search.vectors import zero_rows
from gramvec.search.writer import IndexWriter, SeenIds
from gramvec.tables.batches import START, BadLines, Block, Position, Reader
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import STDIN, FileFormat, Form, Source, form_of
from gramvec.tables.readers import open_reader
from gramvec.tables.staging import check_same_job
from gramvec.tables.writers import records_of

MOST_NAMED = 5
# After how long a build commits what it has, which --resume continues from.
CHECKPOINT_SECONDS = 60.0
EMPTY = "there is no text in the input; an index needs at least one"

RowCount = Annotated[int, Field(ge=0)]


class Checkpoint(NamedTuple):
    """Progress of a build: committed rows, the input's position, rows of the input, the last id, and bad rows."""

    rows: RowCount
    position: tuple[RowCount, RowCount]
    read: RowCount
    next_id: RowCount
    bad: dict[str, Any]


class _Journal(BaseModel):
    """building.json of a build that was stopped."""

    job: dict[str, Any]
    manifest: IndexManifest
    checkpoints: list[Checkpoint]


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
    watch: Watcher | None = None,
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
        watch: called with the reader and the number of rows read so far.

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
        raise InputError("--resume needs a file to read from: a pipe cannot be read twice")
    made = _make_folder(output)
    try:
        with writing(output), closing(Source(source)) as opened:
            reader = open_reader(opened, form or form_of(source), column, keep=True)
            job = _job(embedder, reader, id_column, filters, truncate, on_error)
            left = _left(output, job) if resume else None
            blocks = None
            if left is None:
                (output / JOURNAL).unlink(missing_ok=True)
                remove_generations(output, but=_current(output))
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
            build = _Build(output, job, *left)
            encoder = DocumentEncoder(embedder, left[0], reader.unit, truncate, on_error)
            return build.run(reader, blocks, encoder, threads or cores(), watch)
    except BaseException:
        if made and not (output / JOURNAL).exists() and not (output / MANIFEST).exists():
            (output / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                output.rmdir()
        raise


class _Build:
    """A generation that is being built, from its last checkpoint where there are some."""

    def __init__(
        self, output: Path, job: dict[str, Any], manifest: IndexManifest, checkpoints: Sequence[Checkpoint]
    ) -> None:
        self._output, self._job, self._manifest = output, job, manifest
        self._folder = output / manifest.generation
        try:
            if not checkpoints:
                (self._folder / LETTERS).mkdir(parents=True)
                with engine_errors(output):
                    tantivy().Index(schema_of(manifest), str(self._folder / LETTERS))
            self._writer = IndexWriter(output, manifest)
        except OSError:  # the disk is full
            if not checkpoints:
                remove_generations(output, but=_current(output))
            raise
        start = Checkpoint(0, (START.offset, START.number), 0, 0, BadLines().as_json())
        point = next((one for one in (*checkpoints, start) if one.rows == self._writer.rows), None)
        if point is None:
            self._writer.close()
            raise InputError(f"{output}: what is left of its build is damaged; start again without --resume")
        self._point = point
        self._resumed = self._read = point.read
        self._position, self._next_id, self._bad = point.position, point.next_id, BadLines.from_json(point.bad)
        self._seen = SeenIds(self._folder / "ids", point.rows) if manifest.id is not None else None

    def run(
        self,
        reader: Reader,
        blocks: Iterator[Block] | None,
        encoder: DocumentEncoder,
        threads: int,
        watch: Watcher | None,
    ) -> Done:
        """Read the rest of the input and make the generation the index's current one."""
        blocks = blocks or reader.blocks(Position(*self._position))
        due = time.monotonic() + CHECKPOINT_SECONDS
        try:
            for encoded in in_order(blocks, encoder.encode, threads):
                self._append(encoded)
                if time.monotonic() > due and self._job["input"] is not None:
                    self._commit()
                    due = time.monotonic() + CHECKPOINT_SECONDS
                if watch is not None:
                    watch(reader, self._read)
            if not self._writer.rows:
                raise InputError(EMPTY)
            self._commit()
        except BaseException as error:
            self._failed(error)
            raise
        self._writer.close()
        (self._folder / "ids").unlink(missing_ok=True)
        made = self._manifest.model_copy(update={"next": self._writer.rows, "next_id": self._next_id})
        write_manifest(self._output, made)
        (self._output / JOURNAL).unlink(missing_ok=True)
        remove_generations(self._output, but=made.generation)
        return Done(self._read, self._resumed, self._bad, reader.unit)

    def _append(self, encoded: Encoded) -> None:
        if self._seen is not None:
            self._seen.add([one.id for one in encoded.documents])
        self._writer.append(encoded)
        numbers = encoded.block.numbers
        self._read += len(numbers)
        self._next_id = max(self._next_id, *numbers) if numbers else self._next_id
        self._position = (encoded.block.position.offset, encoded.block.position.number)
        for number, why in encoded.bad:
            self._bad.add(number, why)

    def _commit(self) -> None:
        """Write the journal with the last checkpoint and this one, then commit: tantivy knows which of both holds."""
        new = Checkpoint(self._writer.rows, self._position, self._read, self._next_id, self._bad.as_json())
        if self._seen is not None:
            self._seen.save()
        content = {
            "job": self._job,
            "manifest": self._manifest.model_dump(mode="json"),
            "checkpoints": [self._point._asdict(), new._asdict()],
        }
        write_whole(self._output / JOURNAL, orjson.dumps(content))
        self._writer.commit()
        self._point = new

    def _failed(self, error: BaseException) -> None:
        """Keep what --resume can continue from; raise what a stop and a full disk become."""
        self._writer.close(undo=True)
        said = "nothing was kept"
        if self._point.rows and not isinstance(error, InputError):
            said = f"the first {self._point.read:,} rows are kept: the same command with --resume continues from there"
        else:
            (self._output / JOURNAL).unlink(missing_ok=True)
            remove_generations(self._output, but=_current(self._output))
        _raise_stopped(error, said)


def add_to_index(
    embedder: Embedder,
    path: Path,
    source: Path,
    *,
    form: Form | FileFormat | None = None,
    replace: bool = False,
    truncate: bool = False,
    on_error: OnError = "stop",
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Done:
    """Add the rows of a file to an index, all of them or none; its columns of texts and ids are the index's.

    With `replace`, rows whose id is in the index take the place of those; otherwise such an id is an error. The other
    arguments and errors are those of `build_index`; InputError also for another model.
    """
    check_model(read_manifest(path), embedder, path)
    with writing(path), closing(Source(source)) as opened:
        manifest = read_manifest(path)
        check_model(manifest, embedder, path)
        if replace and manifest.id is None:
            raise InputError(f"{path}: counts its ids, so no row has another's; build it with --id to replace rows")
        reader = open_reader(opened, form or form_of(source), manifest.column, keep=True)
        encoder = DocumentEncoder(embedder, manifest, reader.unit, truncate, on_error)
        writer = IndexWriter(path, manifest)
        seen, bad, read, last = SeenIds(None, 0), BadLines(), 0, 0
        before = writer.rows
        try:
            for encoded in in_order(reader.blocks(), encoder.encode, threads or cores()):
                if manifest.id is not None:
                    ids = [one.id for one in encoded.documents]
                    seen.add(ids)
                    writer.make_room(ids, replace=replace)
                writer.append(encoded)
                read += len(encoded.block.numbers)
                last = max(last, *encoded.block.numbers) if encoded.block.numbers else last
                for number, why in encoded.bad:
                    bad.add(number, why)
                if watch is not None:
                    watch(reader, read)
            if writer.rows == before:
                raise InputError(EMPTY)
            # Before the commit: rows and ids are never used twice, even where the commit is lost.
            write_manifest(path, manifest.model_copy(update={"next": writer.rows, "next_id": manifest.next_id + last}))
            writer.commit()
        except BaseException as error:
            writer.close(undo=True)
            _raise_stopped(error, "nothing was added")
            raise
        writer.close()
        zero_rows(path / manifest.generation / VECTORS, manifest.dimensions, writer.removed)
    return Done(read, 0, bad, reader.unit)


def remove_from_index(path: Path, ids: Collection[str]) -> int:
    """Remove rows from an index by their ids; return how many rows are left.

    Raises InputError for an id that is not there and if no row would be left; then nothing has changed.
    """
    read_manifest(path)
    with writing(path):
        manifest = read_manifest(path)
        writer = IndexWriter(path, manifest)
        try:
            wanted = list(dict.fromkeys(ids))
            absent = sorted(one for one in wanted if not writer.holds(one))
            if absent:
                named = ", ".join(map(quoted, absent[:MOST_NAMED])) + (", ..." if len(absent) > MOST_NAMED else "")
                counts = f"{len(absent):,} of {len(wanted):,} ids"
                raise InputError(f"{path}: has no {named} ({counts}); nothing was removed")
            if len(wanted) == writer.documents:
                raise InputError(f"{path}: no row would be left; delete the folder instead")
            writer.remove(wanted)
            writer.commit()
        except BaseException:
            writer.close(undo=True)
            raise
        writer.close()
        zero_rows(path / manifest.generation / VECTORS, manifest.dimensions, writer.removed)
        return writer.documents - len(wanted)


def check_model(manifest: IndexManifest, embedder: Embedder, path: Path) -> None:
    """Raise InputError unless the embedder is the model of an index's vectors."""
    if embedder.digest != manifest.digest:
        raise InputError(
            f"{path}: was made with {quoted(manifest.model)} {manifest.digest[:12]}, not with "
            f"{embedder.name} {embedder.digest[:12]}; name that model, or build the index again"
        )
    if embedder.dimension != manifest.dimensions:
        raise InputError(
            f"{path}: a damaged index (vectors of {manifest.dimensions} numbers, and its model makes"
            f" {embedder.dimension}); build it again"
        )


def _raise_stopped(error: BaseException, said: str) -> None:
    """Raise what KeyboardInterrupt and OSError become, with what is left of the work."""
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted(f"stopped; {said}") from error
    if isinstance(error, OSError):
        raise BulkError(f"{error.strerror or error}; {said}") from error


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


def _left(output: Path, job: dict[str, Any]) -> tuple[IndexManifest, list[Checkpoint]] | None:
    """Return the manifest and the checkpoints of a build that was stopped; None where there is none."""
    try:
        journal = _Journal.model_validate_json(read_bounded(output / JOURNAL, MOST_MANIFEST << 4))
        for one in journal.checkpoints:
            BadLines.from_json(one.bad)
    except FileNotFoundError:
        return None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{output / JOURNAL}: damaged; start again without --resume") from error
    if journal.manifest.generation == _current(output):
        return None
    check_same_job(output, job, journal.job)
    return journal.manifest, journal.checkpoints


def _current(output: Path) -> str:
    """Return the generation that an index has; "" where there is no index yet."""
    try:
        return read_manifest(output).generation
    except InputError:
        return ""


def _make_folder(output: Path) -> bool:
    """Return True if the folder was made. Raises InputError where other files are in the way."""
    if output.is_file() or output.is_symlink():
        raise InputError(f"{output}: is a file, and an index is a folder; choose another --output (0.1 had files)")
    try:
        if not output.is_dir():
            output.mkdir()
            return True
        names = {one.name for one in output.iterdir()}
    except OSError as error:
        raise InputError(f"{output}: not writable ({error.strerror}); choose another --output") from error
    ours = names & {MANIFEST, JOURNAL} or all(name.startswith(".") or len(name) == 16 for name in names)
    if not ours:
        raise InputError(f"{output}: holds other files than an index; choose another --output")
    return False
