"""Array types of training, files written atomically, and digests of files."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gramvec.text.arrays import Bools as Bools
from gramvec.text.arrays import Doubles as Doubles
from gramvec.text.arrays import Floats as Floats

Halves = npt.NDArray[np.float16]
Ints = npt.NDArray[np.int64]

# n texts to float32[n, d].
Encode = Callable[[Sequence[str]], Floats]
# n texts and n others to their cosines, [n].
Similarity = Callable[[Sequence[str], Sequence[str]], npt.NDArray[np.floating[Any]]]


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a temporary name beside `path`, flush it to disk, and rename it to `path`.

    A link that is planted under the temporary name is removed, not followed.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    try:
        with partial.open("xb") as handle:
            write(handle)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@functools.cache
def digest(path: Path) -> str:
    """Return the SHA-256, 64 hex digits, of a file, or of the names and digests of the files below a folder.

    Python's own files are left out. The result is cached for the process, so a file that changes later keeps its
    digest.
    """
    state = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(member for member in path.rglob("*") if member.is_file()):
        if file.suffix in (".py", ".pyc"):
            continue
        if path.is_dir():
            state.update(file.relative_to(path).as_posix().encode() + b"\0")
        with file.open("rb") as handle:
            state.update(hashlib.file_digest(handle, "sha256").digest())
    return state.hexdigest()
