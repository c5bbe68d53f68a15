"""A file of named arrays that are used as they lie: magic, version, directory, aligned data.

Layout (little-endian): 8 bytes magic, u32 version, u32 number of arrays, u64 size of the whole file, then for
each array 16 bytes name, 8 bytes dtype, u64 offset, u64 count; then the data, each array aligned to 64 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import BundleError

_HEADER = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<16s8sQQ")
_ALIGNMENT = 64

Array = NDArray[Any]


def write_arrays(path: Path, magic: bytes, version: int, arrays: Mapping[str, Array]) -> None:
    """Write the arrays (one dimension each) to `path`, in the order given."""
    directory = []
    end = _HEADER.size + len(arrays) * _ENTRY.size
    for name, array in arrays.items():
        offset = -(-end // _ALIGNMENT) * _ALIGNMENT
        directory.append(_ENTRY.pack(name.encode(), array.dtype.str.encode(), offset, array.size))
        end = offset + array.nbytes
    with path.open("wb") as file:
        file.write(_HEADER.pack(magic, version, len(arrays), end))
        file.write(b"".join(directory))
        for array in arrays.values():
            file.write(bytes(-file.tell() % _ALIGNMENT))
            file.write(np.ascontiguousarray(array).tobytes())


def bytes_of(path: Path) -> bytes:
    """All of a file of ours. Raises BundleError, naming it, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror or error}); export the bundle again") from error


def read_arrays(path: Path, data: bytes, magic: bytes, version: int, dtypes: Mapping[str, str]) -> dict[str, Array]:
    """Read-only views of the arrays in a file's bytes; nothing is copied, and nothing of the file is evaluated.

    path: what sentences name. dtypes: the arrays that there must be, and no others, in numpy's notation.

    Raises BundleError, naming the file, if it is of another kind or version, not as long as it says, or holds other
    arrays.
    """
    if data[:8] != magic:
        raise BundleError(f"{path}: not a gramvec vocabulary file; export the bundle again")
    if len(data) < _HEADER.size:
        raise BundleError(f"{path}: cut off in its header; copy or export the bundle again")
    _, found, count, size = _HEADER.unpack_from(data)
    if found != version:
        raise BundleError(f"{path}: version {found}, but this gramvec reads version {version}; export the bundle again")
    if size != len(data):
        raise BundleError(f"{path}: {len(data)} bytes where its header says {size}; copy or export it again")
    begin = _HEADER.size + count * _ENTRY.size
    if count != len(dtypes) or begin > size:
        raise BundleError(f"{path}: its directory is damaged; copy or export the bundle again")
    arrays = {}
    for place in range(_HEADER.size, begin, _ENTRY.size):
        name, dtype, offset, length = _ENTRY.unpack_from(data, place)
        array = _array(data, dtypes.get(_text(name), ""), _text(dtype), offset, length) if offset >= begin else None
        if array is None:
            raise BundleError(f"{path}: its directory is damaged; copy or export the bundle again")
        arrays[_text(name)] = array
    if len(arrays) < count:
        raise BundleError(f"{path}: its directory names an array twice; copy or export the bundle again")
    return arrays


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("ascii", "replace")


def _array(data: bytes, expected: str, dtype: str, offset: int, length: int) -> Array | None:
    # Only what is expected is given to numpy, which would take "(2,3)f4" for a type, too.
    if dtype != expected or not expected or offset % _ALIGNMENT:
        return None
    if offset + length * np.dtype(expected).itemsize > len(data):
        return None
    return np.frombuffer(data, expected, length, offset)
