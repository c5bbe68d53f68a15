"""`add_to_index`, `remove_from_index` and `rebuild_index`: what changes an index, all of it or nothing."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path

import orjson

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError, quote
from gramvec.jobs.common.account import Account
from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.outcome import BulkError, Done, raise_stopped
from gramvec.jobs.search.build import EMPTY, check_model, finish_generation, open_for_texts, start_generation
from gramvec.jobs.search.documents import (
    DocumentEncoder,
    EncodedBlock,
    StoredDocument,
    encode_stored,
    open_documents,
    text_in,
)
from gramvec.jobs.search.folder import (
    FORMAT,
    JOURNAL,
    MANIFEST,
    MAX_JOURNAL,
    MAX_MANIFEST,
    OLDEST,
    IndexManifest,
    lock_for_writing,
    read_bounded,
    read_manifest,
    remove_generations,
    write_manifest,
)
from gramvec.jobs.search.snapshot import Snapshot
from gramvec.jobs.search.vectors import quantize_rows, unit_vectors
from gramvec.jobs.search.writer import IndexWriter, SeenIds
from gramvec.jobs.tables.inputs import FileFormat, Form, Source, form_of
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.threads import count_cores, map_in_order

MAX_NAMED = 5
# Removed documents, beyond as many as are left, with which an index is written anew.
MIN_REMOVED = 256


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
    patience: float = 0.0,
    progress: Progress = NO_PROGRESS,
) -> Done:
    """Add the rows of a file to an index, all of them or none; its columns of texts and ids are the index's.

    With `replace`, rows whose id is in the index take the place of those; otherwise such an id is an error. The end of
    another writer is waited for up to `patience` seconds. The other arguments and errors are those of `build_index`;
    InputError also for another model, and WriterBusy, which is one.
    """
    check_model(read_manifest(path), embedder, path)
    with lock_for_writing(path, patience), closing(Source(source, form or form_of(source))) as opened:
        manifest = read_manifest(path)
        check_model(manifest, embedder, path)
        if replace and manifest.id is None:
            raise InputError(f"{path}: counts its ids, so no row has another's; build it with `id` to replace rows")
        reader = open_for_texts(opened, form or form_of(source), manifest.columns)
        account = Account.of(reader, on_error, progress, "indexing")
        encoder = DocumentEncoder(embedder, manifest, account.bad, truncate)
        writer = _open_writer(path, manifest)
        seen, last = SeenIds(None, 0), 0
        before = writer.rows
        try:
            for encoded in map_in_order(reader.blocks(), encoder.encode, threads or count_cores()):
                if manifest.id is not None:
                    ids = [document.id for document in encoded.documents]
                    seen.add(ids)
                    writer.make_room(ids, replace=replace)
                writer.append(encoded)
                last = max(last, encoded.rows.last)
                account.add(encoded.rows)
            if writer.rows == before:
                raise InputError(EMPTY)
            # Before the commit: rows and ids are never used twice, even where the commit is lost.
            write_manifest(path, manifest.model_copy(update={"next": writer.rows, "next_id": manifest.next_id + last}))
            writer.commit()
        except BaseException as error:
            writer.close(undo=True)
            raise_stopped(error, "nothing was added")
            raise
        writer.close()
        _drop_removed(path)
    return account.close(reader)


def remove_from_index(path: Path, ids: Collection[str], *, if_there: bool = False, patience: float = 0.0) -> int:
    """Remove rows from an index by their ids; return how many rows are left.

    Args:
        path: the index.
        ids: of the rows.
        if_there: leave out ids that are not there, so that the same call may be made again.
        patience: for how many seconds the end of another writer is waited for.

    Raises:
        InputError: an id is not there, or no row would be left; then nothing has changed.
        WriterBusy: another process writes the index.
    """
    read_manifest(path)
    with lock_for_writing(path, patience):
        manifest = read_manifest(path)
        writer = _open_writer(path, manifest)
        try:
            wanted = list(dict.fromkeys(ids))
            absent = sorted(given_id for given_id in wanted if not writer.holds(given_id))
            if absent and if_there:
                wanted = [given_id for given_id in wanted if writer.holds(given_id)]
            elif absent:
                named = ", ".join(map(quote, absent[:MAX_NAMED])) + (", ..." if len(absent) > MAX_NAMED else "")
                counts = f"{len(absent):,} of {len(wanted):,} ids"
                raise InputError(f"{path}: has no row with the id {named} ({counts}); nothing was removed")
            if wanted and len(wanted) == writer.documents:
                raise InputError(f"{path}: no row would be left; delete the folder instead")
            if wanted:
                writer.remove(wanted)
                writer.commit()
        except BaseException:
            writer.close(undo=True)
            raise
        writer.close()
        _drop_removed(path)
        return writer.documents - len(wanted)


def rebuild_index(
    embedder: Embedder, path: Path, *, threads: int | None = None, progress: Progress = NO_PROGRESS
) -> int:
    """Build an index anew from its records, of this version or an older one; return how many there are.

    Args:
        embedder: makes the vectors; another model than before may.
        path: the index. Its columns and ids stay, and it is replaced when the new one is complete.
        threads: blocks that are embedded at a time; None for one per core.
        progress: shows the rows.

    Raises:
        InputError: it is not an index, or damaged.
        Interrupted: KeyboardInterrupt.
    """
    if embedder.space != "semantic":
        raise InputError("an index compares meaning and letters by itself; leave out space")
    with lock_for_writing(path):
        old = read_manifest(path, OLDEST)
        manifest = old.model_copy(
            update={
                "format": FORMAT, "generation": secrets.token_hex(8), "next": 0,
                "model": embedder.name, "digest": embedder.digest, "dimensions": embedder.dimension,
            }
        )  # fmt: skip

        def encode(documents: list[StoredDocument]) -> EncodedBlock:
            texts = embedder.prepare([text_in(document.record, manifest) for document in documents], truncate=True)
            return encode_stored(documents, manifest, quantize_rows(unit_vectors(embedder, texts)))

        stored, total = open_documents(path, old)
        blocks = map_in_order((documents for documents, _ in stored.by_row()), encode, threads or count_cores())
        return _write_anew(path, manifest, blocks, total, progress)


def _write_anew(
    path: Path,
    manifest: IndexManifest,
    blocks: Iterator[EncodedBlock],
    total: int,
    progress: Progress,
) -> int:
    """Write documents into a new generation, and make it the index's."""
    remove_generations(path, *_list_named(path))
    try:
        writer = start_generation(path, manifest)
        try:
            progress.start("indexing", total)
            for encoded in blocks:
                writer.append(encoded)
                progress.advance(len(encoded.documents))
            writer.commit()
        except BaseException:
            writer.close(undo=True)
            raise
        writer.close()
        finish_generation(path, manifest.model_copy(update={"next": writer.rows}))
    except BaseException as error:
        remove_generations(path, *_list_named(path))
        raise_stopped(error, "nothing has changed")
        raise
    return writer.rows


def _drop_removed(path: Path) -> None:
    """Write an index anew, without the documents that were removed, where these are more than those that are left.

    Until then they count in how rare an n-gram is, and take place on the disk.
    """
    snapshot = Snapshot(path, read_manifest(path), 1)
    if snapshot.counted - snapshot.documents < max(MIN_REMOVED, snapshot.documents):
        return
    manifest = snapshot.manifest.model_copy(update={"generation": secrets.token_hex(8), "next": 0})
    blocks = (
        encode_stored(documents, manifest, snapshot.vectors.raw(rows)) for documents, rows in snapshot.stored.by_row()
    )
    with suppress(BulkError):  # the change is made; the next one tries this again
        _write_anew(path, manifest, blocks, snapshot.documents, NO_PROGRESS)


def _open_writer(path: Path, manifest: IndexManifest) -> IndexWriter:
    remove_generations(path, *_list_named(path))
    return IndexWriter(path, manifest)


def _list_named(path: Path) -> list[str]:
    """Return the generations that the manifest and the journal of a stopped build name."""
    found = []
    for name, max_bytes in ((MANIFEST, MAX_MANIFEST), (JOURNAL, MAX_JOURNAL)):
        with suppress(OSError, ValueError, KeyError, TypeError):
            held = orjson.loads(read_bounded(path / name, max_bytes))
            found.append(str((held if name == MANIFEST else held["manifest"])["generation"]))
    return found
