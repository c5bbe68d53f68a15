"""The files of a bundle's folder: each opened once, measured, read no further than its listed size, and digested.

What is used afterwards is what was digested: a file that is held in memory is these bytes, and a file that is mapped is
mapped by the descriptor that was read. Only ONNX Runtime opens a path a second time.

A link is followed, to wherever it leads, because caches of models keep their files elsewhere (huggingface_hub's holds
nothing but links). It gives nothing away: only a regular file is opened, and it must have the size and the SHA-256 of
the manifest, so the maker of the bundle knew every byte of it. The manifest itself, which has no digest, must parse.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gramvec.bundle.manifest import (
    CPU_GRAPH,
    GRAPH,
    LEXICAL,
    MAX_MANIFEST_BYTES,
    MEMO,
    TOKENIZER,
    VOCABULARY,
    Manifest,
    read_manifest,
)
from gramvec.bundle.resolve import MANIFEST
from gramvec.errors import BundleError

# Files that are held in memory as a whole, and their largest sizes. A graph of bags of rows has 4 KB, or a byte a row;
# weights lie apart. 10 million n-grams take 0.2 GB of a table.
MAX_BYTES_IN_MEMORY = {VOCABULARY: 2**30, MEMO: 2**30, LEXICAL: 2**20, TOKENIZER: 2**26}
MAX_BYTES_IN_MEMORY |= dict.fromkeys((GRAPH, CPU_GRAPH), 2**26)
REMEDY = "copy or export the model again"

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # neither waits for a FIFO nor takes a terminal
_PIECE = 2**18


@dataclass
class VerifiedFiles:
    """Result of `Folder.verify`: `contents` of the files that are used whole, and memory-mapped `weights` or None."""

    contents: dict[str, bytes] = field(default_factory=dict)
    weights: mmap.mmap | None = None


class Folder:
    """The folder of a bundle, open: what its path means by now, or what a link in it has become, does not matter."""

    def __init__(self, path: Path, descriptor: int, remedy: str = REMEDY) -> None:
        self.path = path
        self._descriptor = descriptor
        self._remedy = remedy

    def manifest(self) -> tuple[Manifest, str]:
        """Return the manifest and its digest. Raises BundleError."""
        path = self.path / MANIFEST
        with self._file(MANIFEST) as (file, size):
            if size > MAX_MANIFEST_BYTES:
                raise BundleError(f"{path}: {size} bytes, and a manifest has at most {MAX_MANIFEST_BYTES}; {REMEDY}")
            data = _read(file, size)
        return read_manifest(path, data)

    def map_extra(self, name: str, max_bytes: int) -> mmap.mmap:
        """Map a file that no manifest lists, of 1 to `max_bytes` bytes. Raises BundleError."""
        with self._file(name) as (file, size):
            if not 0 < size <= max_bytes:
                raise BundleError(f"{self.path / name}: not a file of 1 to {max_bytes} bytes; {self._remedy}")
            return _map_file(self.path / name, file, size)

    def verify(self, manifest: Manifest) -> VerifiedFiles:
        """Verify every listed file, at 1 ms a megabyte, without the interpreter's lock. Raises BundleError."""
        stored = manifest.graph.stored
        verified = VerifiedFiles()
        for name, record in manifest.files.items():
            with self._file(name) as (file, size):
                if size != record.bytes:
                    raise BundleError(f"{self.path / name}: {size} bytes, the manifest has {record.bytes}; {REMEDY}")
                if (max_bytes := MAX_BYTES_IN_MEMORY.get(name)) is not None:
                    if record.bytes > max_bytes:
                        raise BundleError(
                            f"{self.path / name}: {record.bytes} bytes, and may have {max_bytes}; {REMEDY}"
                        )
                    verified.contents[name] = data = _read(file, record.bytes)
                    digest = hashlib.sha256(data).hexdigest()
                else:
                    digest = _digest(file, record.bytes)
                if digest != record.sha256:
                    raise BundleError(f"{self.path / name}: its SHA-256 is not the manifest's; {REMEDY}")
                if stored is not None and name == stored.file:
                    verified.weights = _map_file(self.path / name, file, record.bytes)
        return verified

    @contextmanager
    def _file(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of a regular file and its size. An error inside of the block names the file."""
        try:
            # Twice: to open a device can do something, and what was opened may be another file by then.
            _size_of_regular(os.stat(name, dir_fd=self._descriptor))
            file = os.open(name, _FLAGS, dir_fd=self._descriptor)
            try:
                yield file, _size_of_regular(os.fstat(file))
            finally:
                os.close(file)
        except OSError as error:
            raise BundleError(f"{self.path / name}: cannot be read ({error.strerror}); {self._remedy}") from error


@contextmanager
def open_folder(path: Path, remedy: str = REMEDY) -> Iterator[Folder]:
    """Open a folder for the block; messages about it end in `remedy`. Raises BundleError if it is not a folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); {remedy}") from error
    try:
        yield Folder(path, descriptor, remedy)
    finally:
        os.close(descriptor)


def _size_of_regular(status: os.stat_result) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return status.st_size


def _read(file: int, size: int) -> bytes:
    """Read `size` bytes, or fewer if the file was truncated meanwhile; its digest then differs."""
    with os.fdopen(file, "rb", closefd=False) as opened:
        return opened.read(size)


def _digest(file: int, size: int) -> str:
    digest, piece = hashlib.sha256(), memoryview(bytearray(_PIECE))
    with os.fdopen(file, "rb", buffering=0, closefd=False) as opened:
        while size > 0 and (got := opened.readinto(piece[: min(size, _PIECE)])):
            digest.update(piece[:got])
            size -= got
    return digest.hexdigest()


def _map_file(path: Path, file: int, size: int) -> mmap.mmap:
    try:
        return mmap.mmap(file, size, access=mmap.ACCESS_READ)
    except ValueError as error:  # it is empty, or was cut meanwhile
        raise BundleError(f"{path}: its table cannot be mapped ({error}); {REMEDY}") from error
