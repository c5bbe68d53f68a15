"""The one writer of an index: vectors behind each other, documents into tantivy, one commit for both."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.errors import InputError, quote
from gramvec.jobs.search.columns import ColumnWriter
from gramvec.jobs.search.documents import EncodedBlock
from gramvec.jobs.search.folder import LETTERS, MAX_ROWS, REMOVED, SIGNS, VECTORS, IndexManifest
from gramvec.jobs.search.rows import RemovedLog, read_removed
from gramvec.jobs.search.segments import (
    check_letters,
    clear_letters,
    engine_errors,
    open_letters,
    rows_of,
    tantivy,
)
from gramvec.jobs.search.signs import SignWriter
from gramvec.jobs.search.vectors import open_behind, read_file, stride_of

TANTIVY_LISTS = ("meta.json", ".managed.json")
# Memory of tantivy's writer, beyond which its threads write segments. Two threads take a fifth less time of a processor
# than one, whose tables are too large for the caches.
WRITER_BYTES, WRITER_THREADS = 768 << 20, 2


class IndexWriter:
    """The one writer of an index. Rows are visible after `commit`, all of them or none.

    Attributes:
        documents: number of the last commit.
        rows: the next row.
    """

    def __init__(self, path: Path, manifest: IndexManifest) -> None:
        self._path, self._manifest = path, manifest
        self._fields = [*manifest.fields.values()]
        generation = path / manifest.generation
        engine = tantivy()
        with engine_errors(path):
            clear_letters(path, manifest)
            check_letters(path, manifest)
            letters = open_letters(path, manifest)
            self._schema, self._searcher = letters.schema, letters.searcher()
            self._writer = letters.writer(WRITER_BYTES, WRITER_THREADS)
            self.documents, used = int(self._searcher.num_docs), rows_of(self._searcher)
        self._document, self._query = engine.Document, engine.Query
        self.rows = max(used, manifest.next)
        with engine_errors(path):
            removed = read_removed(generation / REMOVED, self.rows, self._has_row)
        # Rows that a lost commit took have vectors and no document, and come into the log with the next commit.
        lost = np.ones(self.rows - used, np.bool_)
        lost[removed.rows[removed.rows >= self.rows - len(lost)] - self.rows] = False
        self._lost: list[int] = (np.flatnonzero(lost) + self.rows - len(lost)).tolist()
        self._removed: list[int] = []
        self._vectors = open_behind(generation / VECTORS, self.rows * stride_of(manifest.dimensions))
        self._signs = SignWriter(generation / SIGNS, manifest.dimensions, self.rows)
        self._log = RemovedLog(generation / REMOVED, removed.size)
        self._columns = [
            ColumnWriter(generation / f"{name}.bin", column.kind, self.rows) for column, name in manifest.fields.items()
        ]

    def _has_row(self, row: int) -> bool:
        query = self._query.term_query(self._schema, "row", row, index_option="basic")
        return bool(self._searcher.search(query, 1, count=False).hits)

    def append(self, encoded: EncodedBlock) -> None:
        """Add the documents of a block."""
        if self.rows + len(encoded.documents) > MAX_ROWS:
            raise InputError(f"an index holds at most {MAX_ROWS:,} rows; make several")
        self._vectors.write(encoded.vectors.tobytes())
        self._signs.append(encoded.signs)
        make, add, fields = self._document, self._writer.add_document, self._fields
        with engine_errors(self._path):
            for row, (document, checksum) in enumerate(
                zip(encoded.documents, encoded.checksums, strict=True), self.rows
            ):
                made = make()
                made.add_text("letters", document.letters)
                made.add_text("id", document.id)
                made.add_bytes("record", document.record)
                made.add_integer("row", row)
                made.add_integer("checksum", checksum)
                for field, values in zip(fields, document.values, strict=True):
                    for value in values:
                        if isinstance(value, str):
                            made.add_text(field, value)
                        elif isinstance(value, float):
                            made.add_float(field, value)
                        else:
                            made.add_integer(field, value)
                    if not values:
                        made.add_text("missing", field)
                add(made)
        for at, column in enumerate(self._columns):
            column.append(self.rows, [document.values[at] for document in encoded.documents])
        self.rows += len(encoded.documents)

    def holds(self, key: str) -> bool:
        """Return True if a committed document has this id."""
        with engine_errors(self._path):
            return bool(self._searcher.doc_freq("id", key)) and bool(self._hits(key))

    def make_room(self, ids: Sequence[str], *, replace: bool) -> None:
        """Delete the documents that have one of these ids. Raises InputError for one, unless they are replaced."""
        there = [given_id for given_id in ids if self.holds(given_id)]
        if there and not replace:
            raise InputError(
                f"{self._path}: has the id {quote(there[0])} already; nothing was added: leave the row out, or replace"
                " rows with `replace`"
            )
        self.remove(there)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete documents by their ids."""
        with engine_errors(self._path):
            for given_id in ids:
                self._removed += self._searcher.fast_field_values("row", self._hits(given_id))
                self._writer.delete_documents_by_term("id", given_id)

    def _hits(self, key: str) -> list[Any]:
        query = self._query.term_query(self._schema, "id", key, index_option="basic")
        return [address for _, address in self._searcher.search(query, 2, count=False).hits]

    def commit(self) -> None:
        """Make everything since the last commit visible, vectors first."""
        self._vectors.flush()
        os.fsync(self._vectors.fileno())
        self._signs.save()
        for column in self._columns:
            column.save()
        self._log.save([*self._removed, *self._lost])
        with engine_errors(self._path):
            self._writer.commit()
        self._removed, self._lost = [], []

    def close(self, *, undo: bool = False) -> None:
        """Release the lock; wait for segments that are being merged. Raises InputError where the disk damaged one."""
        if undo:
            with suppress(Exception):
                self._writer.rollback()
        with suppress(Exception):
            self._writer.wait_merging_threads()
        with suppress(OSError):
            # Tantivy's lists of segments are its owner's only, unlike all else here, so that no other user could serve.
            mode = stat.S_IMODE(os.fstat(self._vectors.fileno()).st_mode)
            for name in TANTIVY_LISTS:
                (self._path / self._manifest.generation / LETTERS / name).chmod(mode)
        with suppress(OSError):
            self._vectors.close()
            self._signs.close()
            self._log.close()
            for column in self._columns:
                column.close()
        if not undo:
            check_letters(self._path, self._manifest)  # here, and not when the index is first opened


class SeenIds:
    """Hashes of all ids so far, 8 bytes each, in a file that a resumed build reads again."""

    def __init__(self, path: Path | None, rows: int) -> None:
        self._path = path
        data = read_file(path, 8 * MAX_ROWS) if path is not None and rows else b""
        self._known = np.sort(np.frombuffer(data[: len(data) // 8 * 8], np.uint64)[:rows])
        self._recent: dict[int, str] = {}
        if len(self._known) < rows:
            raise InputError(f"{path}: cut off; start again without `resume`")
        if path is not None:
            open_behind(path, 8 * rows).close()
        self._unsaved: list[int] = []

    def add(self, ids: list[str]) -> None:
        """Take ids down. Raises InputError for one that was there before."""
        digests = [hashlib.blake2b(given_id.encode("utf-8", "replace"), digest_size=8).digest() for given_id in ids]
        found = np.frombuffer(b"".join(digests), np.uint64)
        hashes = found.tolist()
        at = np.minimum(np.searchsorted(self._known, found), max(len(self._known) - 1, 0))
        known = self._known[at] == found if len(self._known) else np.zeros(len(found), np.bool_)
        for given_id, hashed, is_known in zip(ids, hashes, known.tolist(), strict=True):
            if is_known or hashed in self._recent:
                raise InputError(f"two rows have the id {quote(given_id)}; ids must differ")
            self._recent[hashed] = given_id
        self._unsaved += hashes
        if len(self._recent) > 1 << 17:
            self._known = np.sort(np.concatenate([self._known, np.fromiter(self._recent, np.uint64)]), kind="stable")
            self._recent = {}

    def save(self) -> None:
        """Append the new hashes to the file."""
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(np.array(self._unsaved, np.uint64).tobytes())
                file.flush()
                os.fsync(file.fileno())
        self._unsaved = []
