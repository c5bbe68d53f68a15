"""Blocks of an input into documents: ids, records as JSON, n-grams, values to filter by, vectors and checksums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.embed_file import refused
from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError, quoted
from gramvec.lexical.letters import tokens
from gramvec.search.filters import FilterColumn, value_of
from gramvec.search.folder import IndexManifest
from gramvec.search.signs import signs_of
from gramvec.search.vectors import Bytes, checksums, quantize_rows, unit_vectors
from gramvec.tables import json_bounds
from gramvec.tables.batches import Block
from gramvec.tables.columns import OnError
from gramvec.tables.writers import json_line, records_of

MOST_ID = 256


class RawDocument(NamedTuple):
    """A row that goes into an index: its id, its record as JSON, its n-grams, and its values to filter by."""

    id: str
    record: bytes
    letters: str
    values: list[Any]


class Encoded(NamedTuple):
    """The rows of a block: documents, their vectors with checksums and signs, and what was wrong with the others."""

    block: Block
    documents: list[RawDocument]
    vectors: Bytes
    checksums: list[int]
    signs: NDArray[np.uint8]
    bad: list[tuple[int, str]]


class DocumentEncoder:
    """Blocks of an input into documents. Calls may run in several threads."""

    def __init__(
        self, embedder: Embedder, manifest: IndexManifest, unit: str, truncate: bool, on_error: OnError
    ) -> None:
        self._embedder, self._manifest, self._unit = embedder, manifest, unit
        self._truncate, self._on_error = truncate, on_error

    def encode(self, block: Block) -> Encoded:
        """Return the rows of a block.

        Raises InputError with the row's number for a bad row, unless bad rows are skipped.
        """
        bad = dict(block.bad)
        texts, records = list(block.texts), records_of(block)
        documents: list[RawDocument] = []
        kept: list[str] = []
        try:
            self._embedder.prepare(texts, truncate=self._truncate)
        except InputError:
            bad = refused(self._embedder, texts, truncate=self._truncate) | bad
        for at, (number, text, record) in enumerate(zip(block.numbers, texts, records, strict=True)):
            try:
                if at in bad:
                    raise InputError(bad[at])
                document = self._document(number, text, record)
            except InputError as error:
                bad[at] = str(error)
                if self._on_error == "stop":
                    raise InputError(f"{self._unit} {number}: {error}") from None
                continue
            documents.append(document)
            kept.append(text)
        units = unit_vectors(self._embedder, self._embedder.prepare(kept, truncate=self._truncate))
        vectors = quantize_rows(units)
        said = [(block.numbers[at], bad[at]) for at in sorted(bad)]
        signs = signs_of(vectors[:, : self._manifest.dimensions])
        return Encoded(block, documents, vectors, checksums(vectors), signs, said)

    def _document(self, number: int, text: str, record: dict[str, Any]) -> RawDocument:
        try:
            line = json_line(number, record)[:-1]
            if b"[" in line or line.count(b"{") > 1:
                json_bounds.parse(line)
        except json_bounds.TooLarge as error:
            raise InputError(str(error)) from None
        except InputError as error:
            raise InputError(str(error).removeprefix(f"line {number}: ")) from None
        values = [self._value(by, record) for by in self._manifest.filters]
        return RawDocument(self._id(number, record), line, tokens(text), values)

    def _id(self, number: int, record: dict[str, Any]) -> str:
        name = self._manifest.id
        if name is None:
            return str(self._manifest.next_id + number)
        if name not in record:
            raise InputError(f"no {name!r} to take the id from; name another one with --id")
        value = record[name]
        if isinstance(value, bool) or not isinstance(value, str | int) or not 0 < len(str(value)) <= MOST_ID:
            raise InputError(
                f"{name!r}: is not a valid id (a number, or a text of 1 to {MOST_ID} characters); mend it, or name"
                " another one with --id"
            )
        return str(value)

    def _value(self, by: FilterColumn, record: dict[str, Any]) -> Any:
        value = record.get(by.column)
        if value is None or value == "":
            return None
        try:
            return value_of(by.kind, value)
        except (ValueError, TypeError, OverflowError):
            raise InputError(
                f"{quoted(str(value)[:100])} in {quoted(by.column)} is not a {by.kind} to filter by; mend it, or"
                f" build with --filter {by.column}:text"
            ) from None
