"""Parquet and Arrow: a reader of blocks, a writer by way of a stage file of record batches, and columns of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError, import_extra, quote
from gramvec.jobs.tables.batches import START, Block, Position, list_names, quote_column
from gramvec.jobs.tables.inputs import FileFormat, Source
from gramvec.jobs.tables.writers import AddedColumns, Writes
from gramvec.text.json_bounds import MAX_DEPTH, TOO_DEEP

# 16,384 vectors of 300 numbers are 20 MB: what is in memory while the stage file becomes Parquet.
GROUP_ROWS = 16_384
BUFFER_BYTES = 1 << 20


class ParquetReader:
    """Reader of Parquet. A block does not cross the end of a row group."""

    unit = "row"
    total_unit = " rows"

    def __init__(self, source: Source, given: FileFormat, column: str | None, *, keep: bool, rows: int) -> None:
        if not source.is_file or source.is_compressed:
            raise InputError(f"{source.name}: Parquet is read from a plain file, whose end comes first; save it to one")
        pq = pyarrow(module="pyarrow.parquet")
        self.source = source
        self.format = given
        with self._readable("not a whole Parquet file"):
            self.file = pq.ParquetFile(source.stream, pre_buffer=False, buffer_size=BUFFER_BYTES)
            self.schema = plain_schema(self.file.schema_arrow)
        if any(depth_of(field.type) > MAX_DEPTH for field in self.schema):
            raise InputError(f"{source.name}: a column is {TOO_DEEP}")
        self.column = column
        self.rows = rows
        self.notes: list[str] = []
        if column is not None:
            self.check_column(column)
        self._columns = None if keep or column is None else [column]
        self.total: int | None = self.file.metadata.num_rows
        self.done = 0

    @property
    def names(self) -> list[str] | None:
        """Columns of the file."""
        return list(self.schema.names)

    def check_column(self, name: str) -> None:
        """Raise InputError where no column, and no path with dots into structs, has this name, or several have it."""
        if self.schema.names.count(name) > 1:
            raise InputError(f"{self.source.name}: has several columns {quote_column(name)}; rename all but one")
        if name not in self.schema.names and not _path_of(self.schema, name):
            raise InputError(
                f"{self.source.name}: has no column {name!r}; it has {list_names(self.schema.names)}: "
                "choose one with `column`"
            )

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (pyarrow().ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the system's own
                raise
            raise InputError(f"{self.source.name}: {what} ({quote(error)}); write the file again") from error

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """Yield blocks from `start` on. Raises InputError, with the file's name, for a damaged page."""
        first_group, skipped = start.offset, start.number - 1
        if first_group > self.file.num_row_groups:
            raise InputError(
                f"{self.source.name}: ends before the place where a run was stopped; start without `resume`"
            )
        self.done = sum(self.file.metadata.row_group(group).num_rows for group in range(first_group)) + skipped
        for group in range(first_group, self.file.num_row_groups):
            row = 0
            batches = self.file.iter_batches(self.rows, row_groups=[group], columns=self._columns)
            while True:
                with self._readable(f"row group {group + 1} of {self.file.num_row_groups} is damaged"):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    row += batch.num_rows
                    block = self._block(batch, Position(group, row + 1)) if row > skipped else None
                if block is not None:
                    yield block
            skipped = 0

    def _block(self, batch: Any, position: Position) -> Block:
        batch, wrong = valid_rows(batch)
        block = Block(position, batch=batch)
        texts: list[str | None] = [""] * batch.num_rows
        if self.column is not None:
            texts = texts_of(column_at(batch, self.column), self.column)
        for row, text in enumerate(texts):
            if row in wrong:
                block.refuse(wrong[row])
            elif text is None:
                block.refuse("null, not a text")
            else:
                block.texts.append(text)
        block.numbers = list(range(self.done + 1, self.done + 1 + len(block.texts)))
        self.done += len(block.texts)
        return block


class ParquetForm(Writes):
    """Blocks to bytes of an Arrow stream, and that to Parquet when all is done: the input's columns, and added ones."""

    in_place = False

    def __init__(self, column: str, added: AddedColumns, metadata: dict[str, str]) -> None:
        self.pa = pyarrow()
        self._column = column
        self._added = added
        self._metadata = metadata
        self.schema: Any = None

    def begin(self, block: Block | None, columns: Any, names: Sequence[str] | None = None) -> bytes:
        """Return the first bytes of the stage file, with types of columns from the input or the first block."""
        pa = self.pa
        if columns is None:
            columns = self._infer_schema([record for record in (block.records or [] if block else []) if record])
            for index, field in enumerate(columns):
                if pa.types.is_null(field.type):
                    columns = columns.set(index, field.with_type(pa.string()))
        self._added.check(columns.names)
        for name, kind in zip(self._added.names, self._added.types(pa), strict=True):
            columns = columns.append(pa.field(name, kind))
        self.schema = with_metadata(columns, self._metadata)
        return bytes(self.schema.serialize())

    def _infer_schema(self, records: list[dict[str, Any]]) -> Any:
        pa = self.pa
        try:
            return pa.schema(pa.array([self._with_text(record) for record in records] or [{self._column: ""}]).type)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise InputError(
                f"the first {len(records):,} lines have no common types ({error}); give one type, or write .jsonl"
            ) from error

    def _with_text(self, record: dict[str, Any]) -> dict[str, Any]:
        # The text of a bad line may be a number, and would be of another type than the others.
        if "." in self._column and self._column not in record:
            return record  # the text is in a member
        return record if isinstance(record.get(self._column), str) else {**record, self._column: None}

    def resume(self, stage: Path) -> None:
        """Take the types from a stage file that `begin` began."""
        with self.pa.OSFile(str(stage)) as file:
            self.schema = self.pa.ipc.read_schema(file)

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the rows as bytes of the stage file. Raises InputError, with the line, for a value of another type."""
        pa = self.pa
        columns = pa.schema(list(self.schema)[: -len(self._added.names)])
        batch = self._batch(block, columns) if block.batch is None else block.batch.cast(columns)
        arrays = [*batch.columns, *self._added.arrays(pa, block, vectors, missing)]
        return bytes(pa.RecordBatch.from_arrays(arrays, schema=self.schema).serialize())

    def _batch(self, block: Block, columns: Any) -> Any:
        pa = self.pa
        records = [self._with_text(record) for record in block.records or []]
        names = set(columns.names)
        for number, record in zip(block.numbers, records, strict=True):
            if extra := record.keys() - names:
                raise InputError(
                    f"line {number}: {min(extra)!r} is no column of the first lines; "
                    "name all columns there, or write .jsonl"
                )
        kind = pa.struct(list(columns))
        try:
            return pa.RecordBatch.from_struct_array(pa.array(records, type=kind))
        except (pa.ArrowException, TypeError, OverflowError):
            for number, record in zip(block.numbers, records, strict=True):
                try:
                    pa.array([record], type=kind)
                except (pa.ArrowException, TypeError, OverflowError) as error:
                    raise InputError(
                        f"line {number}: a value is of another type than in the first lines ({error}); "
                        "give one type, or write .jsonl"
                    ) from error
            raise

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """Write the stage file's rows to `out` as Parquet, in groups of 16,384.

        Where a vector, the last column then, is missing, the column is a list of any size: pyarrow before 26 neither
        writes nor reads a null among lists of fixed size.
        """
        pq = pyarrow(module="pyarrow.parquet")
        pa = self.pa
        mapped = pa.BufferReader(mmap(stage.fileno(), 0, access=ACCESS_READ))  # vectors are not read to be counted
        schema, last = self.schema, len(self.schema) - 1
        kind, vectors = schema.field(last).type, schema.names[last]
        has_vectors = pa.types.is_fixed_size_list(kind) and vectors in self._added.names
        has_null = has_vectors and any(batch.column(-1).null_count for batch in self._stage_rows(mapped, rows))
        if has_null:
            schema = schema.set(last, pa.field(vectors, pa.list_(kind.value_type)))
        options: dict[str, Any] = {}
        if has_vectors:  # they do not get smaller by snappy or dictionaries; texts do
            plain = schema.names[:last]
            compression = {**dict.fromkeys(schema.names, "snappy"), f"{vectors}.list.element": "none"}
            options = {"compression": compression, "use_dictionary": plain, "write_statistics": plain}
        with pq.ParquetWriter(out, schema, **options) as writer:
            batches: list[Any] = []
            waiting = 0
            stage.seek(0)
            for batch in self._stage_rows(pa.PythonFile(stage, mode="r"), rows):
                if has_null:
                    batch = batch.set_column(last, schema.field(last), without_size(batch.column(last)))
                batches.append(batch)
                waiting += batch.num_rows
                rows -= batch.num_rows
                if waiting >= GROUP_ROWS or not rows:
                    writer.write_table(pa.Table.from_batches(batches, schema), row_group_size=waiting)
                    batches, waiting = [], 0

    def _stage_rows(self, source: Any, rows: int) -> Iterator[Any]:
        ipc = self.pa.ipc
        schema = ipc.read_schema(source)
        while rows:
            batch = ipc.read_record_batch(ipc.read_message(source), schema)
            rows -= batch.num_rows
            yield batch


class VectorColumn(AddedColumns):
    """The column of vectors [n, k] that `gramvec embed` adds."""

    option = "name another one with `embedding_column`"

    def __init__(self, name: str, dtype: np.dtype[Any], width: int) -> None:
        self.names = (name,)
        self._dtype, self._width = dtype, width

    def values(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> list[list[Any]]:
        """Return the vectors, None for a row without one."""
        return [[None if no else vector for vector, no in zip(vectors, missing.tolist(), strict=True)]]

    def types(self, pa: Any) -> list[Any]:
        """Return a list of fixed size."""
        return [pa.list_(pa.from_numpy_dtype(self._dtype), self._width)]

    def arrays(self, pa: Any, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> list[Any]:
        """Return the vectors without a copy to Python objects."""
        return [vector_column(vectors, missing)]


class DimensionColumns(AddedColumns):
    """A column for each dimension of the vectors [n, k], NAME_0 to NAME_k-1, for forms whose cells hold no list."""

    option = VectorColumn.option

    def __init__(self, name: str, dtype: np.dtype[Any], width: int) -> None:
        self.names = tuple(f"{name}_{place}" for place in range(width))
        self._dtype = dtype

    def values(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> list[list[Any]]:
        """Return the numbers of each dimension, None for a row without a vector."""
        no_vector = missing.tolist()
        return [[None if no else number for number, no in zip(column, no_vector, strict=True)] for column in vectors.T]

    def types(self, pa: Any) -> list[Any]:
        """Return the type of a number for each column."""
        return [pa.from_numpy_dtype(self._dtype)] * len(self.names)


def pyarrow(what: str = "Parquet", module: str = "pyarrow") -> Any:
    """Import and return a module of pyarrow. Raises InputError, with what to install, if it is not installed."""
    return import_extra(module, "bulk", what)


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


def with_metadata(schema: Any, entries: dict[str, str]) -> Any:
    """Return the schema with entries added to its metadata."""
    return schema.with_metadata({**(schema.metadata or {}), **{k.encode(): v.encode() for k, v in entries.items()}})


def _path_of(schema: Any, name: str) -> list[str]:
    """Return a name with dots as the names of a column and of fields of structs in it; [] where there are none."""
    pa = pyarrow()
    first, *rest = name.split(".")
    if schema.names.count(first) != 1:
        return []
    kind = schema.field(first).type
    for field in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(field) < 0:
            return []
        kind = kind.field(kind.get_field_index(field)).type
    return [first, *rest]


def column_at(batch: Any, name: str) -> Any:
    """Return a column of a record batch, or the field of structs that a name with dots leads to."""
    place = batch.schema.get_field_index(name)
    if place >= 0:
        return batch.column(place)
    first, *rest = _path_of(batch.schema, name)
    compute = pyarrow(module="pyarrow.compute")
    return compute.struct_field(batch.column(batch.schema.get_field_index(first)), rest)


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
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
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
        inner, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(inner.field(place).type, depth + 1) for place in range(inner.num_fields)]
    return deepest


def plain_schema(schema: Any) -> Any:
    """Return the schema with dictionaries resolved, so that each batch of it can be written by itself."""
    pa = pyarrow()
    for index, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(index, field.with_type(field.type.value_type))
    return schema
