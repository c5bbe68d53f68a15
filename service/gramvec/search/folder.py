"""Folder of an index: its manifest, its generation, and the checks of both before anything is searched.

INDEX/manifest.json names the generation, a folder with `letters`, an index of tantivy, `vectors.bin` and `signs.bin`.
Tantivy's commit is the only commit: vectors are written before it, and rows behind those of the documents are ignored.
A rebuilt index is another generation, which the manifest's replacement makes the current one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gramvec.errors import InputError, import_extra
from gramvec.search.filters import MOST_COLUMNS, FilterColumn, Label
from gramvec.tables.staging import check_place, whole

FORMAT = 3
MANIFEST, JOURNAL, LOCK = "manifest.json", "building.json", ".lock"
LETTERS, VECTORS, SIGNS, CHECKED = "letters", "vectors.bin", "signs.bin", "checked.json"
MOST_ROWS = 2**31 - 1
# Sizes that are read into memory: of a manifest, of tantivy's list of segments, of the list of files that were checked.
MOST_MANIFEST, MOST_META, MOST_CHECKED = 1 << 16, 1 << 24, 1 << 22
MOST_FILES = 20_000
# The times of files are of a clock that stands still between its steps, which are of two seconds on some file systems.
SETTLED_NS = 2_500_000_000
# The end of a file of tantivy: JSON with the CRC-32 of what stands before it, the JSON's length, a magic number.
MOST_FOOTER, FOOTER_MAGIC, CHUNK_BYTES = 1_000, 1337, 1 << 20
BUILD = "build one with gramvec index build"

_GENERATION = re.compile(r"[0-9a-f]{16}")
_FILE = re.compile(r"[0-9a-f]{32}(\.\d+)?\.\w{1,20}|meta\.json|\.managed\.json|\.tantivy-(writer|meta)\.lock|\.tmp\w*")
_DIGEST = r"[0-9a-f]{64}"


class IndexManifest(BaseModel):
    """manifest.json of an index.

    next: no document has had this row or a higher one when the manifest was written. id: the column of ids, null where
    they are counted.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    generation: Annotated[str, Field(pattern=f"^{_GENERATION.pattern}$")]
    model: Label
    digest: Annotated[str, Field(pattern=f"^{_DIGEST}$")]
    dimensions: Annotated[int, Field(ge=1, le=65_536)]
    column: Label
    id: Label | None
    filters: Annotated[tuple[FilterColumn, ...], Field(max_length=MOST_COLUMNS)] = ()
    next: Annotated[int, Field(ge=0, le=MOST_ROWS)] = 0
    next_id: Annotated[int, Field(ge=0, le=1 << 62)] = 0

    @property
    def fields(self) -> dict[FilterColumn, str]:
        """The names of tantivy's fields of the columns that searches can be narrowed by."""
        return {column: f"filter{at}" for at, column in enumerate(self.filters)}


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
    for column, field in manifest.fields.items():
        if column.kind == "text":
            builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
        elif column.kind == "number":
            builder.add_float_field(field, indexed=True, fast=True)
        else:
            builder.add_date_field(field, indexed=True, fast=True)
    return builder.build()


def read_manifest(path: Path) -> IndexManifest:
    """Return the manifest of the index at `path`. Raises InputError where there is no valid one."""
    if path.is_file():
        raise InputError(f"{path}: is a file, and an index is a folder; build an index of gramvec 0.1 again")
    try:
        data = read_bounded(path / MANIFEST, MOST_MANIFEST)
    except FileNotFoundError:
        half = f"its build was not finished, continue it with --resume, or {BUILD}"
        raise InputError(f"{path}: not an index; {half if (path / JOURNAL).exists() else BUILD}") from None
    except OSError as error:
        raise InputError(f"{path}: unreadable ({error.strerror}); give the folder of an index") from error
    try:
        return IndexManifest.model_validate_json(data)
    except ValidationError:
        raise damaged(path, "its manifest is not valid, or of another version") from None


@contextmanager
def readable_letters(path: Path, manifest: IndexManifest) -> Iterator[Path]:
    """Give the folder of tantivy's files, or one of links to them where this process may not write in it.

    Tantivy locks a folder while it opens it. A mounted index is often read-only, or another user's.
    """
    folder = path / manifest.generation / LETTERS
    if os.access(folder, os.W_OK) or not folder.is_dir():
        yield folder
        return
    with TemporaryDirectory(prefix="gramvec-index-") as made:
        for name in _checked_files(path, folder):
            if not name.endswith(".lock"):
                Path(made, name).symlink_to(folder.resolve() / name)
        yield Path(made)


def open_letters(path: Path, manifest: IndexManifest, opened: Path | None = None) -> Any:
    """Return the opened index of tantivy of an index at `path`, whose files have been checked.

    Args:
        path: the index.
        manifest: of the index.
        opened: what `readable_letters` gives, to read only; None to write.

    Raises:
        InputError: `check_letters` refuses them, or the schema is not the manifest's.
    """
    check_letters(path, manifest)
    with engine_errors(path):
        engine = tantivy()
        # Given a schema, tantivy refuses a folder of another one.
        return engine.Index(schema_of(manifest), str(opened or path / manifest.generation / LETTERS), reuse=True)


def check_letters(path: Path, manifest: IndexManifest) -> None:
    """Check tantivy's files of an index at `path`, and take down which ones hold what their checksums say.

    Raises:
        InputError: anything but regular files of tantivy is there, or one of them is damaged.
    """
    folder = path / manifest.generation / LETTERS
    try:
        for place in (path / manifest.generation, folder):
            if not stat.S_ISDIR(place.lstat().st_mode):
                raise damaged(path, f"{place.name} is not a folder")
        names = _checked_files(path, folder)
        meta = orjson.loads(read_bounded(folder / "meta.json", MOST_META))
        segments = {name.split(".")[0] for name in names}
        held = {str(one["segment_id"]).replace("-", "") for one in meta["segments"]}
        if not held <= segments:
            raise damaged(path, "a segment is missing")
        if not isinstance(meta.get("opstamp"), int):
            raise damaged(path, "its list of segments is not valid")
        _check_sums(path, folder, [name for name in names if name.split(".")[0] in held])
    except OSError as error:
        raise damaged(path, str(error.strerror)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, "its list of segments is not valid") from error


def rows_of(searcher: Any) -> int:
    """Return one more than the highest row of a document."""
    engine = tantivy()
    hits = searcher.search(
        engine.Query.all_query(), 1, count=False, order_by_field="row", order=engine.Order.Desc
    ).hits  # fmt: skip
    return max(int(hits[0][0]) + 1, 0) if hits else 0


def digest_of(path: Path) -> str:
    """Return SHA-256 of the manifest and of tantivy's list of segments: it changes with every commit."""
    manifest = read_manifest(path)
    try:
        meta = read_bounded(path / manifest.generation / LETTERS / "meta.json", MOST_META)
    except OSError as error:
        raise damaged(path, str(error.strerror)) from error
    return hashlib.sha256(manifest.model_dump_json().encode() + meta).hexdigest()


def size_of(path: Path, manifest: IndexManifest) -> int:
    """Return the bytes of the current generation."""
    folder = path / manifest.generation
    return sum(one.lstat().st_size for one in (*folder.iterdir(), *(folder / LETTERS).iterdir()) if one.is_file())


def read_bounded(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file. Raises OSError for a link, another kind of file, or over `most` bytes."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "not a regular file")
        data = opened.read(most + 1)
    if len(data) > most:
        raise OSError(0, f"over {most:,} bytes")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in the place of `path` at once. Raises InputError where something is planted in its way."""
    with whole(path) as file:
        file.write(data)


def write_manifest(path: Path, manifest: IndexManifest) -> None:
    """Make `manifest` the one of the index at `path`."""
    data = manifest.model_dump_json(indent=1).encode()
    if len(data) > MOST_MANIFEST:
        raise InputError("the names of the columns are too long for an index; give shorter ones")
    write_whole(path / MANIFEST, data)


def remove_generations(path: Path, but: str) -> None:
    """Delete all generations but one; whoever has them open keeps reading them."""
    for one in path.iterdir():
        if _GENERATION.fullmatch(one.name) and one.name != but and stat.S_ISDIR(one.lstat().st_mode):
            shutil.rmtree(one, ignore_errors=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Lock an index against a second writer. Raises InputError where there is one, or its files cannot be written."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise InputError(f"{path}: not writable ({error.strerror}); choose another folder") from error
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(f"{path}: another run is writing it; wait for it to end") from error
        for name in (MANIFEST, JOURNAL):
            check_place(path / name)
        yield
    finally:
        os.close(lock)


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
        if "No space left" in str(error) or "writer was killed" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise damaged(path, str(error).split("\n")[0][:200]) from error
    except BaseException as error:  # pyo3's PanicException is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise damaged(path, "its segments are not valid") from error


def damaged(path: Path, why: str) -> InputError:
    """Return the error for a damaged index."""
    return InputError(f"{path}: a damaged index ({why}); copy or build it again")


def _checked_files(path: Path, folder: Path) -> list[str]:
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _FILE.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                raise damaged(path, f"{entry.name[:50]!r} is not a file of an index")
            names.append(entry.name)
            if len(names) > MOST_FILES:
                raise damaged(path, f"over {MOST_FILES:,} files")
    return names


def _check_sums(path: Path, folder: Path, names: list[str]) -> None:
    """Check files that have changed since they were found to hold what their checksums say.

    Files of gigabytes are read once, and not whenever an index is opened. As in git's index, a file is the one that was
    read if its size, inode and times are: nobody sets the time of a file's last change, so a copy is read again. A file
    that has only just changed may change once more at what its file system takes for the same time.
    """
    checked, settled = folder.parent / CHECKED, time.time_ns() - SETTLED_NS
    try:
        known = orjson.loads(read_bounded(checked, MOST_CHECKED))
    except (OSError, ValueError):
        known = {}
    found = {}
    for name in names:
        with suppress(FileNotFoundError):  # a writer has just merged it away: tantivy knows
            state = (folder / name).lstat()
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
        opened.seek(max(size - MOST_FOOTER, 0))
        end = opened.read(MOST_FOOTER)
        length, magic = int.from_bytes(end[-8:-4], "little"), int.from_bytes(end[-4:], "little")
        if magic != FOOTER_MAGIC or length > len(end) - 8:
            raise damaged(path, f"{file.name} is cut off")
        opened.seek(0)
        left, crc = size - 8 - length, 0
        while left and (data := opened.read(min(left, CHUNK_BYTES))):
            left, crc = left - len(data), zlib.crc32(data, crc)
        if crc != orjson.loads(end[-8 - length : -8])["crc"]:
            raise damaged(path, f"the checksum of {file.name} differs")
