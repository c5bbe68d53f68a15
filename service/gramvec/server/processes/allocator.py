"""Give memory back: what large answers have freed, and the pages of files that were read once."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_RANGE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-.. \S+ \S+ [1-9]")  # a mapping of a file, not writable


def trim() -> None:
    """Give free memory back to the system, where the C library has a way; takes about a millisecond.

    glibc keeps what was freed, in pieces that grow by half a megabyte a minute.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


def let_go_of_files() -> None:
    """Let go of the pages of mapped files, of libraries too; the system's cache has them, and they come back if used.

    For a process that has loaded what others use. Call it from the only thread: what another maps meanwhile, at an
    address that was a file's, would be lost. Takes 7 ms.
    """
    if _madvise is not None:
        for start, length in list(_unchanged_files()):
            _madvise(start, length, mmap.MADV_DONTNEED)


def _unchanged_files() -> Iterator[tuple[int, int]]:
    """Start and length of the mappings of this process whose pages are a file's, every one.

    A library's page that its loader has changed, and then made read-only, would come back as it is in the file.
    """
    found: tuple[int, int] | None = None
    with suppress(OSError), Path("/proc/self/smaps").open() as lines:
        for line in lines:
            if match := _RANGE.match(line):
                start, end = int(match[1], 16), int(match[2], 16)
                found = start, end - start
            elif "-" in line.partition(" ")[0]:
                found = None
            elif line.startswith("Anonymous:") and found is not None and line.split()[1] == "0":
                yield found


_libc = ctypes.CDLL(None)
_malloc_trim = getattr(_libc, "malloc_trim", None)
_madvise = getattr(_libc, "madvise", None)
if _madvise is not None:
    _madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
