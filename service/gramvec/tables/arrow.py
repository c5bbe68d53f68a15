"""Arrow's part: the column of vectors, the metadata that says which model made it, and pyarrow if it is there."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError

MISSING = "{} needs pyarrow, which is not installed: pip install 'gramvec[bulk]'"


def pyarrow(what: str = "Parquet", module: str = "pyarrow") -> Any:
    """The module, imported when it is first wanted. Raises InputError, with what to install, if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(MISSING.format(what)) from error


def zstd_stream(raw: BinaryIO) -> BinaryIO:
    """The decompressed bytes of a .zst file."""
    pa = pyarrow("zstd")
    return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")))


def vector_column(vectors: NDArray[np.generic], missing: NDArray[np.bool_] | None = None) -> Any:
    """Vectors [n, k] as a pyarrow.FixedSizeListArray of k items; rows where `missing` is true are null."""
    pa = pyarrow()
    columns = vectors.shape[1]
    values = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    mask = None if missing is None or not missing.any() else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(values, columns, mask=mask)


def without_size(vectors: Any) -> Any:
    """A `vector_column` as a pyarrow.ListArray, whose nulls hold no numbers."""
    pa = pyarrow()
    present = vectors.is_valid().to_numpy(zero_copy_only=False)
    ends = np.cumsum(present * vectors.type.list_size, dtype=np.int32)
    starts = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    return pa.ListArray.from_arrays(starts, vectors.flatten(), mask=pa.array(~present))


def vector_type(dtype: np.dtype[Any], columns: int) -> Any:
    """The type of `vector_column`."""
    pa = pyarrow()
    return pa.list_(pa.from_numpy_dtype(dtype), columns)


def with_metadata(schema: Any, entries: dict[str, str]) -> Any:
    """The schema with these added to its metadata."""
    return schema.with_metadata({**(schema.metadata or {}), **{k.encode(): v.encode() for k, v in entries.items()}})


def texts_of(column: Any, name: str) -> list[str | None]:
    """The values of a column of strings of any of Arrow's kinds. Raises InputError for any other type."""
    pa = pyarrow()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InputError(f"column {name!r} is of type {kind}, not of strings; choose another")
    values: list[str | None] = column.to_pylist()
    return values


def plain_schema(schema: Any) -> Any:
    """The schema with dictionaries resolved, so that each batch of it can be written by itself."""
    pa = pyarrow()
    for index, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(index, field.with_type(field.type.value_type))
    return schema
