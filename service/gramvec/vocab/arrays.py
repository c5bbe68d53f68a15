"""A file of named arrays that can be mapped and used as they lie: magic, version, directory, aligned data.

Layout (little-endian): 8 bytes magic, u32 version, u32 number of arrays, u64 size of the whole file, then for
each array 16 bytes name, 8 bytes dtype, u64 offset, u64 count; then the data, each array aligned to 64 bytes.
"""

from __future__ import annotations

import mmap
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
_MAX_ARRAYS = 64


def write_arrays(path: Path, magic: bytes, version: int, arrays: Mapping[str, NDArray[Any]]) -> None:
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


def map_arrays(path: Path, magic: bytes, version: int, dtypes: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Map the file and return read-only views of its arrays; nothing is copied.

    dtypes: the arrays that there must be, in numpy's notation. Raises BundleError, naming the file, if it
    is missing, of another kind or version, shorter than it says, or holds other arrays.
    """
    try:
        with path.open("rb") as file:
            if file.read(8) != magic:
                raise BundleError(f"{path}: not a gramvec vocabulary file; export the bundle again")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror or error}); export the bundle again") from error
    if len(data) < _HEADER.size:
        raise BundleError(f"{path}: cut off in its header; copy or export the bundle again")
    _, found, count, size = _HEADER.unpack_from(data)
    if found != version:
        raise BundleError(f"{path}: version {found}, but this gramvec reads version {version}; export the bundle again")
    if size != len(data) or count > _MAX_ARRAYS or _HEADER.size + count * _ENTRY.size > size:
        raise BundleError(f"{path}: {len(data)} bytes where its header says {size}; copy or export it again")
    arrays = {}
    for index in range(count):
        name, dtype, offset, length = _ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size)
        try:
            array = np.frombuffer(data, np.dtype(dtype.rstrip(b"\0").decode()), length, offset)
        except (TypeError, ValueError) as error:
            raise BundleError(f"{path}: its directory is damaged; copy or export the bundle again") from error
        arrays[name.rstrip(b"\0").decode("ascii", "replace")] = array
    if {name: array.dtype.str for name, array in arrays.items()} != dtypes:
        raise BundleError(f"{path}: its directory is damaged; copy or export the bundle again")
    return arrays
