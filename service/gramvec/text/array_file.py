"""Files of named arrays in safetensors' layout, read without a copy; every size is checked before it is used.

The layout (https://github.com/huggingface/safetensors): u64 length of a JSON header, the header, then the data. The
header maps each name to `dtype`, `shape` and `data_offsets`, which tile the data without gaps; `__metadata__` maps
strings to strings. The safetensors library copies each array for numpy, so this module reads and writes the layout
itself; a test reads its files with the library.

Files of gramvec name their kind and version in the metadata, start the data at a multiple of 64 bytes, and order arrays
by the size of their numbers, so that each one is aligned.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from gramvec.errors import BundleError, GramvecError, quote
from gramvec.text.arrays import Array

MAX_HEADER_BYTES = 2**20
MAX_ARRAYS, MAX_EXTENTS = 1_000, 4
MAX_NUMBERS = 2**40
_ALIGNMENT = 64
_LENGTH_BYTES = 8

# An array that a file must have: its dtype in numpy's notation, with the number of its dimensions where that is not 1.
ArraySpec = str | tuple[str, int]

_DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "BF16": "<u2", "U32": "<u4",
    "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items() if name != "BF16"}


class ArrayFile(NamedTuple):
    """Contents of a file.

    Attributes:
        arrays: read-only views of the file's bytes, by name; bfloat16 as uint16.
        values: the metadata, without kind and version; the checksum that was compared is `sha256`.
        dtypes: the layout's name of each array's type.
    """

    arrays: dict[str, Array]
    values: dict[str, str]
    dtypes: dict[str, str]


class _DamagedError(Exception):
    """Description of what is wrong with a file."""


def pack_arrays(
    kind: str,
    version: int,
    arrays: Mapping[str, Array],
    *,
    values: Mapping[str, str] | None = None,
    checksum: bool = False,
) -> bytes:
    """Return the bytes of a file of these arrays.

    Args:
        kind: what the file is, such as "vocabulary".
        version: of this kind of file.
        arrays: by name, of little-endian numbers or bytes.
        values: further strings for the metadata.
        checksum: store a SHA-256 of everything else, which `read_arrays` then checks. Files of a bundle need none,
            because its manifest has theirs.
    """
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    metadata = {"format": f"gramvec {kind}", "version": str(version), **(values or {})}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype.str], "shape": list(array.shape), "data_offsets": [begin, end]}
    data = b"".join(np.ascontiguousarray(array).tobytes() for _, array in ordered)
    if checksum:
        metadata["sha256"] = _checksum(header, data)
    text = orjson.dumps(header)
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + data


def file_bytes(path: Path) -> bytes:
    """Return the bytes of a bundle's file. Raises BundleError, naming it, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror or error}); export the bundle again") from error


def read_arrays(
    path: Path,
    data: bytes | mmap | memoryview,
    kind: str,
    version: int,
    arrays: Mapping[str, ArraySpec],
    *,
    check: Callable[[Mapping[str, Array]], None] = lambda arrays: None,
    checksum: bool = False,
    error: type[GramvecError] = BundleError,
    remedy: str = "export the bundle again",
) -> ArrayFile:
    """Return views of the arrays in a file's bytes. Nothing is copied, and nothing of the file is evaluated.

    Args:
        path: the file's name, for messages.
        data: its bytes.
        kind: what it must be, as given to `pack_arrays`.
        version: the only version that is read.
        arrays: the arrays that it must have, and no others.
        check: raises ValueError, with the rest of a sentence, if the arrays do not fit together.
        checksum: require and check the file's SHA-256.
        error: class of the exception.
        remedy: the end of a message.

    Raises:
        error: the file is of another kind or version, cut, or damaged, or has other arrays.
    """
    try:
        header, file = _read(memoryview(data))
        metadata = header.get("__metadata__", {})
        if metadata.get("format") != f"gramvec {kind}":
            raise _DamagedError(f"it is not a gramvec {kind} file")
        if metadata.get("version") != str(version):
            version_written = quote(metadata.get("version", "0"))
            raise _DamagedError(f"it is of version {version_written}, but this gramvec reads version {version}")
        if checksum:
            _check_checksum(header, memoryview(data))
        _check_specs(file.arrays, arrays)
    except _DamagedError as damaged:
        raise error(f"{path}: {damaged}; {remedy}") from None
    try:
        check(file.arrays)
    except ValueError as wrong:
        raise error(f"{path}: its arrays do not fit together: {wrong}; {remedy}") from wrong
    return file._replace(values={name: value for name, value in metadata.items() if name not in ("format", "version")})


def read_tensors(path: Path, data: bytes | mmap | memoryview, *, remedy: str) -> ArrayFile:
    """Return views of the arrays in any safetensors file, of any names and types.

    Raises:
        BundleError: it is not a valid safetensors file.
    """
    try:
        return _read(memoryview(data))[1]
    except _DamagedError as damaged:
        raise BundleError(f"{path}: {damaged}; {remedy}") from None


def _read(data: memoryview) -> tuple[dict[str, Any], ArrayFile]:
    header, begin = _header(data)
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _DamagedError("its metadata are not strings")
    spans: list[tuple[int, int]] = []
    arrays: dict[str, Array] = {}
    dtypes: dict[str, str] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, span = _entry(name, entry)
        if not 0 <= span[0] <= span[1] <= len(data) - begin:
            raise _DamagedError(f"array {quote(name)} does not lie inside of the file")
        count = math.prod(shape)
        if span[1] - span[0] != count * np.dtype(_DTYPES[dtype]).itemsize:
            raise _DamagedError(f"array {quote(name)} has other bytes than its shape needs")
        array = np.frombuffer(data, _DTYPES[dtype], count, begin + span[0]) if count else np.zeros(0, _DTYPES[dtype])
        array = array.reshape(shape)
        array.setflags(write=False)
        arrays[name], dtypes[name] = array, dtype
        spans.append(span)
    end = 0
    for start, stop in sorted(spans):
        if start != end:
            raise _DamagedError("its arrays overlap, or leave a gap")
        end = stop
    if end != len(data) - begin:
        raise _DamagedError("bytes follow its last array")
    return header, ArrayFile(arrays, dict(metadata), dtypes)


def _header(data: memoryview) -> tuple[dict[str, Any], int]:
    if len(data) < _LENGTH_BYTES:
        raise _DamagedError("it is cut off in its header")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise _DamagedError(f"it does not begin with a header of at most {MAX_HEADER_BYTES} bytes")
    if length > len(data) - _LENGTH_BYTES:
        raise _DamagedError("it is cut off in its header")
    text = bytes(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    if text.count(b"{") + text.count(b"[") > 3 * MAX_ARRAYS + 2:
        raise _DamagedError(f"its header lists more than {MAX_ARRAYS} arrays")
    try:
        header = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or too deep
        raise _DamagedError("its header is not JSON") from None
    if not isinstance(header, dict):
        raise _DamagedError("its header is not an object")
    return header, _LENGTH_BYTES + length


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise _DamagedError("its header names an array twice")
    return entries


def _entry(name: str, entry: Any) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _DamagedError(f"the entry of array {quote(name)} does not have dtype, shape and data_offsets")
    dtype, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise _DamagedError(f"array {quote(name)} is of the unknown type {quote(dtype)}")
    if not (_are_sizes(shape) and _are_sizes(span) and len(span) == 2):
        raise _DamagedError(f"the shape or place of array {quote(name)} is not a list of sizes")
    return dtype, tuple(shape), (span[0], span[1])


def _are_sizes(values: Any) -> bool:
    if not isinstance(values, list) or len(values) > MAX_EXTENTS:
        return False
    return all(type(value) is int and 0 <= value <= MAX_NUMBERS for value in values)


def _check_specs(arrays: Mapping[str, Array], wanted: Mapping[str, ArraySpec]) -> None:
    if arrays.keys() != wanted.keys():
        odd = sorted(arrays.keys() ^ wanted.keys())
        raise _DamagedError(f"it has not the arrays of its kind ({quote(odd[0])} is missing or unknown)")
    for name, spec in wanted.items():
        dtype, dimensions = spec if isinstance(spec, tuple) else (spec, 1)
        array = arrays[name]
        if array.dtype != np.dtype(dtype) or array.ndim != dimensions:
            raise _DamagedError(f"array {name} is not {np.dtype(dtype)} of {dimensions} dimension(s)")
        if not array.flags.aligned:
            raise _DamagedError(f"array {name} is not aligned")


def _checksum(header: Mapping[str, Any], data: bytes | memoryview) -> str:
    digest = hashlib.sha256(orjson.dumps(header))
    digest.update(data)
    return digest.hexdigest()


def _check_checksum(header: dict[str, Any], data: memoryview) -> None:
    metadata = dict(header["__metadata__"])
    checksum = metadata.pop("sha256", None)
    begin = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    if checksum != _checksum({**header, "__metadata__": metadata}, data[begin:]):
        raise _DamagedError("its checksum differs")
