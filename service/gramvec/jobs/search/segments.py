"""Tantivy's files of an index: which ones its commit names, whether they are whole, and how they are opened.

A kill may leave files that no commit names, half-written ones too. They are never read; the next writer deletes them.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from gramvec.errors import InputError, import_extra
from gramvec.jobs.search.folder import (
    CHECKED,
    FORMAT,
    LETTERS,
    META,
    OF_SEGMENT,
    OPENED,
    PARTS,
    IndexManifest,
    damage_error,
    read_bounded,
    write_whole,
)

# Sizes that are read into memory: of tantivy's list of segments, of the list of files that were checked.
MAX_META, MAX_CHECKED = 1 << 24, 1 << 22
MAX_SEGMENTS, MAX_DOCUMENTS = 3_000, 2**31 - 1
# The times of files are of a clock that stands still between its steps, which are of two seconds on some file systems.
SETTLED_NS = 2_500_000_000
# The end of a file of tantivy: JSON with the CRC-32 of what stands before it, the JSON's length, a magic number.
MAX_FOOTER, FOOTER_MAGIC, CHUNK_BYTES = 1_000, 1337, 1 << 20
# Files that a writer of tantivy has open, and some more.
FILES_OF_A_WRITER = 32
# Where links to a folder that cannot be written are made, beside the usual places.
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - only as the last resort, and in a folder of its own


class Commit(NamedTuple):
    """A commit of tantivy.

    Attributes:
        meta: the bytes of its list of segments.
        names: the files that it names.
        counted: documents that its statistics count: the removed ones, too, until they are merged away.
        documents: those that are not removed.
    """

    meta: bytes
    names: tuple[str, ...]
    counted: int
    documents: int


def tantivy() -> Any:
    """Return the module tantivy. Raises InputError where it is not installed."""
    return import_extra("tantivy", "search", "searching")


def schema_of(manifest: IndexManifest) -> Any:
    """Return tantivy's schema of an index."""
    builder = tantivy().SchemaBuilder()
    builder.add_text_field("letters", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("record", stored=True)
    builder.add_integer_field("row", indexed=True, fast=True)
    builder.add_integer_field("checksum", fast=True)
    if manifest.format == FORMAT:
        builder.add_text_field("missing", tokenizer_name="raw", index_option="basic")
    for column, field in manifest.fields.items():
        if column.kind == "text":
            builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
        elif column.kind == "number":
            builder.add_float_field(field, indexed=True, fast=True)
        elif manifest.format == FORMAT:
            builder.add_integer_field(field, indexed=True, fast=True)
        else:
            builder.add_date_field(field, indexed=True, fast=True)
    return builder.build()


def read_commit(path: Path, manifest: IndexManifest) -> Commit:
    """Return the last commit of an index. Raises InputError where its list of segments is not valid."""
    try:
        meta = read_bounded(path / manifest.generation / LETTERS / META, MAX_META)
        found = orjson.loads(meta)
        if type(found["opstamp"]) is not int:
            raise TypeError
        names: list[str] = []
        counted = removed = 0
        for entry in found["segments"]:
            segment, deletes = re.fullmatch(r"[0-9a-f]{32}", entry["segment_id"].replace("-", "")), entry["deletes"]
            if segment is None or len(names) > MAX_SEGMENTS * len(PARTS):
                raise ValueError
            names += [f"{segment[0]}.{part}" for part in PARTS]
            if deletes is not None:
                names.append(f"{segment[0]}.{_count(deletes['opstamp'], 2**64)}.del")
                removed += _count(deletes["num_deleted_docs"])
            counted += _count(entry["max_doc"])
        return Commit(meta, tuple(names), _count(counted), _count(counted - removed))
    except OSError as error:
        raise damage_error(path, f"its list of segments: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damage_error(path, "its list of segments is not valid") from error


def _count(value: Any, limit: int = MAX_DOCUMENTS) -> int:
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError
    return value


def check_letters(path: Path, manifest: IndexManifest) -> Commit:
    """Check the files that the commit of an index names; return it, and take down which ones are as they should be.

    Raises:
        InputError: one of them is missing, no regular file, or does not have its checksum.
    """
    folder = path / manifest.generation / LETTERS
    try:
        for place in (path / manifest.generation, folder):
            if not stat.S_ISDIR(place.lstat().st_mode):
                raise damage_error(path, f"{place.name} is not a folder")
        commit = read_commit(path, manifest)
        for name in OPENED:
            with suppress(FileNotFoundError):
                _check_regular(path, folder / name)
        _check_sums(path, folder, commit.names)
    except FileNotFoundError as error:
        raise damage_error(path, "a file of a segment is missing") from error
    except OSError as error:
        raise damage_error(path, str(error.strerror)) from error
    return commit


def open_letters(path: Path, manifest: IndexManifest, opened: Path | None = None) -> Any:
    """Return the opened index of tantivy of an index at `path`, whose files have been checked.

    Args:
        path: the index.
        manifest: of the index.
        opened: what `readable_letters` gives, to read only; None to write.

    Raises:
        InputError: the schema is not the manifest's, or tantivy cannot read a file.
    """
    with engine_errors(path):
        # Given a schema, tantivy refuses a folder of another one.
        return tantivy().Index(schema_of(manifest), str(opened or path / manifest.generation / LETTERS), reuse=True)


@contextmanager
def readable_letters(path: Path, manifest: IndexManifest, commit: Commit) -> Iterator[Path]:
    """Give the folder of tantivy's files, or one of links to them where this process may not write in it.

    Tantivy locks a folder while it opens it. A mounted index is often read-only, or another user's.

    Raises:
        InputError: links are needed, and there is no folder to make them in.
    """
    folder = path / manifest.generation / LETTERS
    if os.access(folder, os.W_OK):
        yield folder
        return
    with _temporary_folder(path) as made:
        for name in (META, ".managed.json", *commit.names):
            if (folder / name).exists():
                Path(made, name).symlink_to(folder.resolve() / name)
        yield Path(made)


def _temporary_folder(path: Path) -> tempfile.TemporaryDirectory[str]:
    for place in (None, SHARED_MEMORY):
        with suppress(OSError):
            return tempfile.TemporaryDirectory(prefix="gramvec-index-", dir=place)
    raise InputError(
        f"{path}: is read-only, and there is no temporary folder to open it through; let TMPDIR name a folder that can"
        " be written, in memory perhaps"
    )


def clear_letters(path: Path, manifest: IndexManifest) -> None:
    """Delete what a killed writer left: files of segments that the commit does not name. Its lock must be held."""
    named = set(read_commit(path, manifest).names)
    folder = path / manifest.generation / LETTERS
    with os.scandir(folder) as entries:
        left = [entry.name for entry in entries if OF_SEGMENT.fullmatch(entry.name) and entry.name not in named]
    for name in left:
        with suppress(OSError):
            (folder / name).unlink()


def rows_of(searcher: Any) -> int:
    """Return one more than the highest row of a document."""
    engine = tantivy()
    hits = searcher.search(
        engine.Query.all_query(), 1, count=False, order_by_field="row", order=engine.Order.Desc
    ).hits  # fmt: skip
    return max(int(hits[0][0]) + 1, 0) if hits else 0


@contextmanager
def engine_errors(path: Path) -> Iterator[None]:
    """Turn what tantivy raises over a damaged index, panics included, into one sentence."""
    try:
        yield
    except (InputError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except ValueError as error:
        if "LockBusy" in str(error):
            raise InputError(f"{path}: another run is writing it; wait for it to end") from error
        killed = "writer was killed" in str(error)  # by what one of its threads could not write
        if "TooManyOpenFiles" in str(error) or (killed and _few_may_be_opened()):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) from error
        if "No space left" in str(error) or killed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise damage_error(path, str(error).split("\n")[0][:200]) from error
    except BaseException as error:  # pyo3's PanicException is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise damage_error(path, "its segments are not valid") from error


def _few_may_be_opened() -> bool:
    """Return True if fewer files may be opened than a writer of an index has."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(FILES_OF_A_WRITER))
    except OSError:
        return True
    finally:
        for file in opened:
            os.close(file)
    return False


def _check_regular(path: Path, file: Path) -> os.stat_result:
    state = file.lstat()
    if not stat.S_ISREG(state.st_mode):
        raise damage_error(path, f"{file.name} is not a regular file")
    return state


def _check_sums(path: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Check files that have changed since they were found to hold what their checksums say.

    Files of gigabytes are read once, and not whenever an index is opened. As in git's index, a file is unchanged if its
    size, inode and times are: no program sets the time of a file's last change, so a copy is read again. A file that
    has only just changed may change once more at what its file system takes for the same time.
    """
    checked, settled = folder.parent / CHECKED, time.time_ns() - SETTLED_NS
    try:
        known = orjson.loads(read_bounded(checked, MAX_CHECKED))
    except (OSError, ValueError):
        known = {}
    found = {}
    for name in names:
        state = _check_regular(path, folder / name)
        seen = [state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns]
        if not isinstance(known, dict) or known.get(name) != seen:
            _check_sum(path, folder / name)
        if state.st_ctime_ns <= settled:
            found[name] = seen
    if found != known:
        with suppress(OSError, InputError):  # not everybody may write here
            write_whole(checked, orjson.dumps(found))


def _check_sum(path: Path, file: Path) -> None:
    """Compare a file with the CRC-32 in its footer: tantivy ends the process over some damaged lengths.

    Raises InputError where they differ.
    """

    def to_read(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)

    with open(file, "rb", opener=to_read) as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(size - MAX_FOOTER, 0))
        end = opened.read(MAX_FOOTER)
        length, magic = int.from_bytes(end[-8:-4], "little"), int.from_bytes(end[-4:], "little")
        if magic != FOOTER_MAGIC or length > len(end) - 8:
            raise damage_error(path, f"{file.name} is cut off")
        opened.seek(0)
        left, crc = size - 8 - length, 0
        while left and (data := opened.read(min(left, CHUNK_BYTES))):
            left, crc = left - len(data), zlib.crc32(data, crc)
        try:
            is_same = crc == orjson.loads(end[-8 - length : -8])["crc"]
        except (KeyError, TypeError, ValueError):
            is_same = False
        if not is_same:
            raise damage_error(path, f"the checksum of {file.name} differs")
