"""The index file: a header of 4,096 bytes, then plain arrays one after the other; docs/search.md has the table.

A file may be a stranger's. Its size must be the one that the header's numbers give, before anything is taken from it;
offsets must rise; all bytes are under a digest. Nothing in it is followed as a pointer or run.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gramvec.embed.spaces import Space
from gramvec.errors import BundleError, InputError
from gramvec.lexical.sketch import LONGEST_ORDER, LexicalSketch
from gramvec.lexical.sketch import MOST_COLUMNS as IDENTITY_COLUMNS
from gramvec.lexical.weights import NgramWeights
from gramvec.search.filters import MOST_COLUMNS, FilterColumn, FilterHeader, padded

MAGIC = b"gvindex1"
HEADER_BYTES = 4096
DIGEST_BYTES = 32
JSON_BEGIN = len(MAGIC) + DIGEST_BYTES
MOST_ROWS = 2**31 - 1
SMALL_NUMBERS = 2**48
MOST_LABEL = 200
MOST_WEIGHTS = 16 << 20

Size = Annotated[int, Field(ge=0, le=SMALL_NUMBERS)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Label = Annotated[str, Field(max_length=MOST_LABEL)]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class WeightsHeader(BaseModel):
    """What weighs n-grams: an lexical.safetensors of so many bytes, and what else its sketches are made with."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    bytes: Annotated[int, Field(ge=1, le=MOST_WEIGHTS)]
    orders: Annotated[tuple[int, ...], Field(max_length=LONGEST_ORDER, strict=False)]
    columns: Annotated[int, Field(ge=1, le=IDENTITY_COLUMNS)]
    scale: Annotated[float, Field(gt=0, le=1_000)]


class IndexHeader(BaseModel):
    """What an index says of itself.

    model, digest, space: what made the vectors. column: of the texts; id: of the ids, None for numbers that were
    counted, of which `next` is the first free one. fine: whether there are the vectors' remainders, for exact scores.
    filters: the columns that a search can be narrowed by. weights: of n-grams, None for the
    model's. body: SHA-256 of all that follows the header.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: Literal[1] = 1
    model: Label
    digest: Digest
    space: Space = "semantic"
    dimensions: Annotated[int, Field(ge=1, le=65_536)]
    column: Label
    id: Label | None = None
    next: Size = 1
    fine: bool = False
    rows: Annotated[int, Field(ge=0, le=MOST_ROWS)] = 0
    id_bytes: Size = 0
    record_bytes: Size = 0
    filters: Annotated[tuple[FilterHeader, ...], Field(max_length=MOST_COLUMNS, strict=False)] = ()
    weights: WeightsHeader | None = None
    body: Digest = "0" * 64

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int]:
        """The bytes of vectors, their remainders, places of ids, ids, places of records, records."""
        places, vectors = 8 * (self.rows + 1), padded(self.rows * self.dimensions)
        # Padded, so that the numbers behind them lie at multiples of eight.
        records = padded(self.record_bytes) if self.filters or self.weights else self.record_bytes
        return vectors, vectors if self.fine else 0, places, padded(self.id_bytes), places, records

    @property
    def filter_sizes(self) -> list[tuple[int, int, int]]:
        """For each column to filter by the bytes of codes, places of values, values."""
        return [one.sizes(self.rows) for one in self.filters]

    def packed(self) -> bytes:
        """The 4,096 bytes. Raises InputError for names that do not fit."""
        text = orjson.dumps(self.model_dump())
        if len(text) > HEADER_BYTES - JSON_BEGIN:
            raise InputError("the names of the columns are too long for an index; give shorter ones")
        text = text.ljust(HEADER_BYTES - JSON_BEGIN)
        return MAGIC + hashlib.sha256(text).digest() + text


class Part(NamedTuple):
    """Some rows: vectors int8[n, d]; lengths of ids and records int64[n] in bytes, and those bytes (uint8).

    remainders: int8[n, d], or [0, d] where they are not kept.
    """

    vectors: NDArray[np.int8]
    remainders: NDArray[np.int8]
    id_lengths: Ints
    ids: Bytes
    record_lengths: Ints
    records: Bytes


class Layout:
    """An index file that is mapped and checked.

    vectors int8[rows, d]: 127 times the components of vectors of length 1, rounded; remainders int8[rows, d]: 254 times
    what that took off, None where they are not kept. id_places, record_places: int64[rows + 1].
    """

    def __init__(self, path: Path, *, verify: bool = True) -> None:
        """verify: compare the digest of the body, which reads all of the file once.

        Raises InputError for what is no whole index.
        """
        self.path = path
        data = _mapped(path)
        self.header, self.digest = _header(path, data)
        vectors, remainders, id_places, ids, record_places, records = self.header.sizes
        filtered = sum(map(sum, self.header.filter_sizes))
        weights = 0 if self.header.weights is None else self.header.weights.bytes
        if HEADER_BYTES + sum(self.header.sizes) + filtered + weights != len(data):
            raise _damaged(path, "its size is not what its header says")
        if verify and hashlib.sha256(data[HEADER_BYTES:].data).hexdigest() != self.header.body:
            raise _damaged(path, "its digest differs")
        rows, d = self.header.rows, self.header.dimensions
        at = HEADER_BYTES
        self.vectors = data[at : at + rows * d].view(np.int8).reshape(rows, d)
        at += vectors
        self.remainders = data[at : at + rows * d].view(np.int8).reshape(rows, d) if self.header.fine else None
        at += remainders
        self.id_places = data[at : at + id_places].view("<i8")
        at += id_places
        self.ids = data[at : at + self.header.id_bytes]
        at += ids
        self.record_places = data[at : at + record_places].view("<i8")
        at += record_places
        self.records = data[at : at + self.header.record_bytes]
        self.filters = self._filters(data, at + records)
        self.weights = data[len(data) - weights :]
        self.lexical = self._lexical()
        _check_places(path, self.id_places, self.header.id_bytes)
        _check_places(path, self.record_places, self.header.record_bytes)

    def _filters(self, data: Bytes, at: int) -> dict[str, FilterColumn]:
        found = {}
        for one, sizes in zip(self.header.filters, self.header.filter_sizes, strict=True):
            codes, places, values = (data[at + sum(sizes[:n]) : at + sum(sizes[: n + 1])] for n in range(3))
            at += sum(sizes)
            column = FilterColumn(
                codes[: 4 * self.header.rows].view("<i4"), places.view("<i8"), values[: one.value_bytes]
            )
            _check_places(self.path, column.places, one.value_bytes)
            found[one.column] = column
        if len(found) < len(self.header.filters):
            raise _damaged(self.path, "two columns to filter by have one name")
        return found

    def _lexical(self) -> LexicalSketch | None:
        """What weighs n-grams. Raises InputError where it cannot be."""
        said = self.header.weights
        if said is None:
            return None
        try:
            weights = NgramWeights.read(self.path, self.weights.tobytes())
            return LexicalSketch(weights, said.orders, said.columns, said.scale)
        except (BundleError, InputError) as error:
            raise _damaged(self.path, "its weights of n-grams cannot be") from error

    def record_bytes(self, rows: Ints) -> int:
        """How many bytes the records of these rows have."""
        return int((self.record_places[rows + 1] - self.record_places[rows]).sum())

    def id(self, row: int) -> str:
        """The id of a row."""
        begin, end = self.id_places[row : row + 2].tolist()
        return self.ids[begin:end].tobytes().decode("utf-8", "replace")

    def record(self, row: int) -> dict[str, Any]:
        """What was stored with a row, the text under the header's column. Raises InputError where that is no JSON."""
        begin, end = self.record_places[row : row + 2].tolist()
        try:
            found = orjson.loads(self.records[begin:end].tobytes())
        except orjson.JSONDecodeError as error:
            raise _damaged(self.path, f"record {row} is no JSON") from error
        if not isinstance(found, dict):
            raise _damaged(self.path, f"record {row} is no object")
        return found

    def every_id(self) -> Iterator[str]:
        """The ids in the order of the rows."""
        for row in range(self.header.rows):
            yield self.id(row)

    def parts(self, kept: NDArray[np.bool_] | None = None) -> Iterator[Part]:
        """The rows in runs; kept: bool[rows], which of them, None for all."""
        kept = np.ones(self.header.rows, np.bool_) if kept is None else kept
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        for first, last in edges.reshape(-1, 2).tolist():
            ids, records = self.id_places[first : last + 1], self.record_places[first : last + 1]
            yield Part(
                self.vectors[first:last],
                self.vectors[:0] if self.remainders is None else self.remainders[first:last],
                np.diff(ids),
                self.ids[int(ids[0]) : int(ids[-1])],
                np.diff(records),
                self.records[int(records[0]) : int(records[-1])],
            )


def _mapped(path: Path) -> Bytes:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < HEADER_BYTES:
                raise InputError(f"{path}: no index of gramvec; build one with gramvec index build")
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot be read ({why}); give a file that gramvec index build made") from error


def _header(path: Path, data: Bytes) -> tuple[IndexHeader, str]:
    magic, digest, text = (part.tobytes() for part in np.split(data[:HEADER_BYTES], [len(MAGIC), JSON_BEGIN]))
    if magic != MAGIC:
        raise InputError(f"{path}: no index of gramvec, or of another version; build one with gramvec index build")
    if hashlib.sha256(text).digest() != digest:
        raise _damaged(path, "the digest of its header differs")
    try:
        return IndexHeader.model_validate(orjson.loads(text)), digest.hex()
    except (ValidationError, orjson.JSONDecodeError) as error:
        raise _damaged(path, "its header has no meaning") from error


def _check_places(path: Path, places: Ints, size: int) -> None:
    if places[0] != 0 or places[-1] != size or (places[1:] < places[:-1]).any():
        raise _damaged(path, "places of its rows are out of order")


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path}: a damaged index ({why}); copy or build it again")
