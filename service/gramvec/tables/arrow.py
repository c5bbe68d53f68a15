"""Arrow: columns of vectors and of texts, metadata, and pyarrow imported where it is installed."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError

MISSING = "{} needs pyarrow, which is not installed: pip install 'gramvec[bulk]'"


def pyarrow(what: str = "Parquet", module: str = "pyarrow") -> Any:
    """Import and return a module of pyarrow. Raises InputError, with what to install, if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(MISSING.format(what)) from error


def zstd_stream(raw: BinaryIO) -> BinaryIO:
    """Return a stream of the decompressed bytes of a .zst file."""
    pa = pyarrow("zstd")
    return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")))


def vector_column(vectors: NDArray[np.generic], missing: NDArray[np.bool_] | None = None) -> Any:
    """Return vectors [n, k] as a pyarrow.FixedSizeListArray of k items; rows where `missing` is true are null."""
    pa = pyarrow()
    columns = vectors.shape[1]
    values = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    mask = None if missing is None or not missing.any() else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(values, columns, mask=mask)


def without_size(vectors: Any) -> Any:
    """Return a `vector_column` as a pyarrow.ListArray, whose nulls hold no numbers."""
    pa = pyarrow()
    present = vectors.is_valid().to_numpy(zero_copy_only=False)
    ends = np.cumsum(present * vectors.type.list_size, dtype=np.int32)
    starts = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    return pa.ListArray.from_arrays(starts, vectors.flatten(), mask=pa.array(~present))


def vector_type(dtype: np.dtype[Any], columns: int) -> Any:
    """Return the type of a `vector_column`."""
    pa = pyarrow()
    return pa.list_(pa.from_numpy_dtype(dtype), columns)


def with_metadata(schema: Any, entries: dict[str, str]) -> Any:
    """Return the schema with entries added to its metadata."""
    return schema.with_metadata({**(schema.metadata or {}), **{k.encode(): v.encode() for k, v in entries.items()}})


def texts_of(column: Any, name: str) -> list[str | None]:
    """Return the values of a column of strings. Raises InputError for a column of another type."""
    pa = pyarrow()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InputError(f"column {name!r} is of type {kind}, not of strings; choose another")
    values: list[str | None] = column.to_pylist()
    return values


def valid_rows(batch: Any) -> tuple[Any, dict[int, str]]:
    """Return a record batch with null for every value that holds text which is not UTF-8, and why, by row."""
    pa = pyarrow()
    columns = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in batch.columns]
    schema = plain_schema(batch.schema)
    wrong: dict[int, str] = {}
    for place, column in enumerate(columns):
        if _is_valid(column):
            continue
        bad = [row for row in range(len(column)) if not _is_valid(column.slice(row, 1))]
        for row in bad:
            wrong.setdefault(row, f"column {schema.names[place]!r} is not UTF-8; write it again")
        columns[place] = column.take(
            pa.array([None if row in wrong else row for row in range(len(column))], pa.int64())
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema), wrong


def _is_valid(column: Any) -> bool:
    try:
        column.validate(full=True)
    except pyarrow().ArrowInvalid:
        return False
    return True


def depth_of(kind: Any) -> int:
    """Return how many levels of lists, maps and structs a type has."""
    deepest, waiting = 0, [(kind, 0)]
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(one.field(place).type, depth + 1) for place in range(one.num_fields)]
    return deepest


def plain_schema(schema: Any) -> Any:
    """Return the schema with dictionaries resolved, so that each batch of it can be written by itself."""
    pa = pyarrow()
    for index, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(index, field.with_type(field.type.value_type))
    return schema
