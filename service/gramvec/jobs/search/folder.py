"""Folder of an index: its manifest, its generations, and what a writer may put in their place.

INDEX/manifest.json names the generation, a folder with `letters`, an index of tantivy, `vectors.bin`, `signs.bin`,
`removed.bin` and a file for each column that searches can be narrowed by. Tantivy's commit is the only commit: all else
is written before it, and what lies behind the rows of its documents is ignored. A rebuilt index is another generation,
which the manifest's replacement makes the current one.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gramvec.errors import InputError
from gramvec.jobs.search.filters import MAX_COLUMNS, FilterColumn, Label
from gramvec.jobs.tables.staging import check_place, new_of, whole

FORMAT, OLDEST = 4, 3
MANIFEST, JOURNAL, LOCK = "manifest.json", "building.json", ".lock"
LETTERS, VECTORS, SIGNS, REMOVED, IDS = "letters", "vectors.bin", "signs.bin", "removed.bin", "ids"
CHECKED = "checked.json"
# Tantivy's list of segments, the files of a segment, and files that it opens though no commit names them.
META = "meta.json"
PARTS = ("term", "idx", "pos", "store", "fast", "fieldnorm")
OPENED = (".managed.json", ".tantivy-meta.lock", ".tantivy-writer.lock")
MAX_ROWS = 2**31 - 1
# Sizes that are read into memory: of a manifest, of the journal of a build.
MAX_MANIFEST, MAX_JOURNAL = 1 << 16, 1 << 20
# Between two attempts to be the writer of an index.
PAUSE_SECONDS = 0.02
BUILD = "build one with gramvec index build"

GENERATION = re.compile(r"[0-9a-f]{16}")
OF_SEGMENT = re.compile(rf"[0-9a-f]{{32}}\.(\d+\.del|temp|{'|'.join(PARTS)})|\.tmp\w*")
_FILE = re.compile(r"(vectors|signs|removed|filter\d+)\.bin|checked\.json")
_IN_GENERATION = re.compile(rf"{_FILE.pattern}|\.({_FILE.pattern})\.new|ids")
_STAGES = tuple(new_of(Path(name)).name for name in (MANIFEST, JOURNAL))
_DIGEST = r"[0-9a-f]{64}"


class WriterBusy(InputError):
    """Another process is writing an index."""


class IndexManifest(BaseModel):
    """manifest.json of an index.

    next: no document has had this row or a higher one when the manifest was written. column: of the texts. also: other
    columns, whose texts are joined to it. id: the column of ids, null where they are counted.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: Annotated[int, Field(ge=OLDEST, le=FORMAT)] = FORMAT
    generation: Annotated[str, Field(pattern=f"^{GENERATION.pattern}$")]
    model: Label
    digest: Annotated[str, Field(pattern=f"^{_DIGEST}$")]
    dimensions: Annotated[int, Field(ge=1, le=65_536)]
    column: Label
    also: Annotated[tuple[Label, ...], Field(max_length=MAX_COLUMNS - 1)] = ()
    id: Label | None
    filters: Annotated[tuple[FilterColumn, ...], Field(max_length=MAX_COLUMNS)] = ()
    next: Annotated[int, Field(ge=0, le=MAX_ROWS)] = 0
    next_id: Annotated[int, Field(ge=0, le=1 << 62)] = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the texts, one or several."""
        return self.column, *self.also

    @property
    def fields(self) -> dict[FilterColumn, str]:
        """The names of tantivy's fields, and of files, of the columns that searches can be narrowed by."""
        return {column: f"filter{at}" for at, column in enumerate(self.filters)}


def read_manifest(path: Path, oldest: int = FORMAT) -> IndexManifest:
    """Return the manifest of the index at `path`. Raises InputError where there is no valid one of this format."""
    if path.is_file():
        raise InputError(f"{path}: is a file, and an index is a folder; give the folder that gramvec index build wrote")
    try:
        data = read_bounded(path / MANIFEST, MAX_MANIFEST)
    except FileNotFoundError:
        half = f"its build was not finished, continue it with `resume`, or {BUILD}"
        raise InputError(f"{path}: not an index; {half if (path / JOURNAL).exists() else BUILD}") from None
    except OSError as error:
        raise InputError(f"{path}: unreadable ({error.strerror}); give the folder of an index") from error
    try:
        found = IndexManifest.model_validate_json(data)
    except ValidationError:
        raise InputError(f"{path}: {_no_manifest(data)}") from None
    if found.format < oldest:
        raise InputError(
            f"{path}: an index of an older version (format {found.format}, and this one reads {FORMAT});"
            " gramvec index rebuild makes it new"
        )
    return found


def _no_manifest(data: bytes) -> str:
    try:
        held: Any = orjson.loads(data)
        number = held["format"] if isinstance(held, dict) and "generation" in held else None
    except ValueError:
        number = None
    if type(number) is int and number > FORMAT:
        return f"an index of a newer version (format {number}, and this one reads {FORMAT}); take that version"
    if type(number) is int and number < OLDEST:
        return f"an index of an older version (format {number}, and this one reads {FORMAT}); build it again elsewhere"
    return "a damaged index (its manifest is not valid, or not an index's); copy or build it again elsewhere"


def size_of(path: Path, manifest: IndexManifest) -> int:
    """Return the bytes of the current generation."""
    folder = path / manifest.generation
    return sum(file.lstat().st_size for file in (*folder.iterdir(), *(folder / LETTERS).iterdir()) if file.is_file())


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises OSError for a link, another kind of file, or a larger file."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "not a regular file")
        data = opened.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(0, f"over {max_bytes:,} bytes")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in the place of `path` at once. Raises InputError where something is planted in its way."""
    with whole(path) as file:
        file.write(data)


def write_manifest(path: Path, manifest: IndexManifest) -> None:
    """Make `manifest` the one of the index at `path`."""
    data = manifest.model_dump_json(indent=1).encode()
    if len(data) > MAX_MANIFEST:
        raise InputError("the names of the columns are too long for an index; give shorter ones")
    write_whole(path / MANIFEST, data)


def make_folder(output: Path) -> bool:
    """Return True if the folder of a new index was made.

    Raises:
        InputError: what is there is neither an empty folder, nor what a build left, nor an index that this version
            reads.
    """
    if output.is_file() or output.is_symlink():
        raise InputError(f"{output}: is a file, and an index is a folder; choose another `output`")
    try:
        if not output.is_dir():
            output.mkdir()
            return True
        names = {file.name for file in output.iterdir()}
        named = MANIFEST in names or JOURNAL in names
        ours = {MANIFEST, JOURNAL, LOCK, *_STAGES}
        others = [name for name in names - ours if not (named and is_generation(output / name))]
    except OSError as error:
        raise InputError(f"{output}: not writable ({error.strerror}); choose another `output`") from error
    if others:
        raise InputError(
            f"{output}: holds other files than an index ({min(others)[:50]!r} is one); choose another `output`"
        )
    if MANIFEST in names:
        try:
            read_manifest(output)
        except InputError as error:
            raise InputError(f"{error}; nothing was changed here, choose another `output` to build one") from None
    return False


def is_generation(folder: Path) -> bool:
    """Return True for a folder with the name of a generation that holds nothing but files of one."""
    if not GENERATION.fullmatch(folder.name) or not stat.S_ISDIR(folder.lstat().st_mode):
        return False
    with os.scandir(folder) as entries:
        return all(
            is_letters(folder / LETTERS)
            if entry.name == LETTERS and entry.is_dir(follow_symlinks=False)
            else entry.is_file(follow_symlinks=False) and _IN_GENERATION.fullmatch(entry.name) is not None
            for entry in entries
        )


def is_letters(folder: Path) -> bool:
    """Return True if a folder holds nothing but files with the names of tantivy's."""
    with os.scandir(folder) as entries:
        return all(
            entry.is_file(follow_symlinks=False)
            and (entry.name in (META, *OPENED) or OF_SEGMENT.fullmatch(entry.name) is not None)
            for entry in entries
        )


def remove_generations(path: Path, *kept: str) -> None:
    """Delete all generations but these; a process that has one open keeps reading it."""
    for entry in path.iterdir():
        if entry.name not in kept and is_generation(entry):
            shutil.rmtree(entry, ignore_errors=True)


def mark_of(path: Path, generation: str) -> tuple[object, ...]:
    """Return what differs after each commit to a generation, and after another has taken its place."""
    found: list[object] = []
    for file in (path / MANIFEST, path / generation / LETTERS / META):
        status = None
        with suppress(OSError):
            status = file.stat()
        found.append(status and (status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)


@contextmanager
def lock_for_writing(path: Path, patience: float = 0.0) -> Iterator[None]:
    """Lock an index against a second writer, whose end is waited for up to `patience` seconds.

    Raises:
        WriterBusy: there is one.
        InputError: the files of the index cannot be written.
    """
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"{path}: not writable ({error.strerror}); choose another folder") from error
    try:
        with suppress(OSError):  # a file system without locks
            _take_lock(lock, path, time.monotonic() + patience)
        for name in (MANIFEST, JOURNAL):
            check_place(path / name)
        yield
    finally:
        os.close(lock)


def _take_lock(lock: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise WriterBusy(f"{path}: another run is writing it; wait for it to end") from error
            time.sleep(PAUSE_SECONDS)
        else:
            return


def damage_error(path: Path, why: str) -> InputError:
    """Return the error for a damaged index."""
    return InputError(f"{path}: a damaged index ({why}); copy or build it again")
