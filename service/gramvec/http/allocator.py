"""Give memory back: glibc keeps what large answers have freed, in pieces that grow by half a megabyte a minute."""

from __future__ import annotations

import ctypes


def trim() -> None:
    """Give free memory back to the system, where the C library has a way; takes about a millisecond."""
    if _malloc_trim is not None:
        _malloc_trim(0)


_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
