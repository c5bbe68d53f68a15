"""Documents of an index: of the rows of an input, with all that belongs to them, and as they are stored."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError, quote
from gramvec.jobs.bulk.embed_file import find_refused
from gramvec.jobs.common.account import BlockRows
from gramvec.jobs.common.bad_rows import BadRows
from gramvec.jobs.search.filters import (
    MAX_VALUES,
    FilterColumn,
    FilterValue,
    is_code,
    value_of,
    values_in,
)
from gramvec.jobs.search.folder import IndexManifest, damage_error
from gramvec.jobs.search.segments import check_letters, engine_errors, open_letters, rows_of, tantivy
from gramvec.jobs.search.signs import signs_of
from gramvec.jobs.search.vectors import Bytes, checksums, quantize_rows, unit_vectors
from gramvec.jobs.tables.batches import MISSING, Block, list_names, value_at
from gramvec.jobs.tables.columns import text_of, value_or_none
from gramvec.jobs.tables.writers import json_line, records_of
from gramvec.lexical.letters import tokens
from gramvec.text import json_bounds
from gramvec.text.arrays import Int64s

MAX_ID = 256
# Of a whole number that JSON's readers keep as it is: less than 2^53.
MAX_WHOLE_DIGITS = 15
_is_plain = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?", re.ASCII).fullmatch
# Documents that are read together when all are.
TOGETHER = 2_048


Record = dict[str, Any]


class StoredDocument(NamedTuple):
    """A document as it is stored: its id, its record as JSON, and the record's values."""

    id: str
    data: bytes
    record: Record


class RawDocument(NamedTuple):
    """A row that goes into an index: its id, its record as JSON, its n-grams, and each column's values to filter by."""

    id: str
    record: bytes
    letters: str
    values: list[list[FilterValue]]


class EncodedBlock(NamedTuple):
    """The rows of a block: documents, their vectors with checksums and signs, and what becomes of the rows."""

    documents: list[RawDocument]
    vectors: Bytes
    checksums: list[int]
    signs: NDArray[np.uint8]
    rows: BlockRows = BlockRows()


class DocumentEncoder:
    """Blocks of an input into documents. Calls may run in several threads.

    guessed: the columns whose kind followed from their first values: in those a number has no leading zero.
    """

    def __init__(
        self,
        embedder: Embedder,
        manifest: IndexManifest,
        bad: BadRows,
        truncate: bool,
        guessed: Collection[str] = (),
    ) -> None:
        self._embedder, self._manifest, self._bad, self._guessed = embedder, manifest, bad, guessed
        self._truncate = truncate

    def encode(self, block: Block) -> EncodedBlock:
        """Return the rows of a block.

        Raises InputError with the row's number for a bad row, unless bad rows are skipped.
        """
        bad = dict(block.bad)
        records = records_of(block)
        texts = self._texts(block, records, bad)
        documents: list[RawDocument] = []
        kept: list[str] = []
        try:
            self._embedder.prepare(texts, truncate=self._truncate)
        except InputError:
            bad = find_refused(self._embedder, texts, truncate=self._truncate) | bad
        for at, (number, text, record) in enumerate(zip(block.numbers, texts, records, strict=True)):
            try:
                if at in bad:
                    raise InputError(bad[at])
                document = self._document(number, text, record)
            except InputError as error:
                bad[at] = str(error)
                continue
            documents.append(document)
            kept.append(text)
        rows = BlockRows.of(block, bad)
        self._bad.check(rows.bad)
        units = unit_vectors(self._embedder, self._embedder.prepare(kept, truncate=self._truncate))
        vectors = quantize_rows(units)
        signs = signs_of(vectors[:, : self._manifest.dimensions])
        return EncodedBlock(documents, vectors, checksums(vectors), signs, rows)

    def _texts(self, block: Block, records: Sequence[Record], bad: dict[int, str]) -> list[str]:
        """Return the texts of a block, "" for a row that has none, of which `bad` then says why."""
        if not self._manifest.also:
            return list(block.texts)
        texts = []
        for at, record in enumerate(records):
            try:
                texts.append("" if at in bad else self._text(record))
            except InputError as error:
                bad[at] = str(error)
                texts.append("")
        return texts

    def _text(self, record: Record) -> str:
        values = {name: value_at(record, name) for name in self._manifest.columns}
        there = {name: value for name, value in values.items() if value is not None and value is not MISSING}
        if not there:
            raise InputError(f"has no text in {list_names(values)}; there is {list_names(record)}")
        for name, value in there.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InputError(f"{name!r} is of type {type(value).__name__}, not a text or a number")
        return text_in(record, self._manifest)

    def _document(self, number: int, text: str, record: Record) -> RawDocument:
        try:
            line = json_line(number, self._with_numbers(record))[:-1]
            if b"[" in line or line.count(b"{") > 1:
                json_bounds.parse(line)
        except json_bounds.TooLarge as error:
            raise InputError(str(error)) from None
        except InputError as error:
            raise InputError(str(error).removeprefix(f"line {number}: ")) from None
        values = [values_by(by, record, guessed=by.column in self._guessed) for by in self._manifest.filters]
        return RawDocument(self._id(number, record), line, tokens(text), values)

    def _with_numbers(self, record: Record) -> Record:
        """Return a record whose columns that are filtered by as numbers hold numbers: a file of CSV has texts only."""
        texts = {
            by.column: value
            for by in self._manifest.filters
            if by.kind == "number" and isinstance(value := record.get(by.column), str) and not is_code(value)
        }
        if not texts:
            return record
        return record | {column: plain_number(value) for column, value in texts.items() if value.strip()}

    def _id(self, number: int, record: Record) -> str:
        name = self._manifest.id
        if name is None:
            return str(self._manifest.next_id + number)
        value = value_at(record, name)
        if value is MISSING:
            raise InputError(f"no {name!r} to take the id from; name another one with `id`")
        if isinstance(value, bool) or not isinstance(value, str | int) or not 0 < len(str(value)) <= MAX_ID:
            raise InputError(
                f"{name!r}: is not a valid id (a number, or a text of 1 to {MAX_ID} characters); mend it, or name"
                " another one with `id`"
            )
        return str(value)


def values_by(by: FilterColumn, record: Mapping[str, Any], *, guessed: bool = False) -> list[FilterValue]:
    """Return a record's values of a column, at most 100.

    guessed: the column's kind followed from its first values.

    Raises InputError where one is not of the column's kind.
    """
    values = values_in(value_or_none(record, by.column))
    if len(values) > MAX_VALUES:
        raise InputError(f"{len(values)} values in {quote(by.column)}; a row is filtered by at most {MAX_VALUES}")
    found: list[FilterValue] = []
    for value in values:
        shown = f"{quote(str(value)[:100])} in {quote(by.column)}"
        if guessed and by.kind == "number" and is_code(value):
            raise InputError(
                f'{shown} is no plain number, as the first ones are; build with `filter="{by.column}:text"`, or :number'
            )
        try:
            found.append(value_of(by.kind, value))
        except (ValueError, TypeError, OverflowError):
            raise InputError(
                f'{shown} is not a {by.kind} to filter by; mend it, or build with `filter="{by.column}:text"`'
            ) from None
    return list(dict.fromkeys(found))


def plain_number(text: str) -> int | float | str:
    """Return the number that a text of digits is; the text itself where no number has just these digits and sign.

    >>> plain_number("193.73"), plain_number("7"), plain_number("1.50"), plain_number("12345678901234567890.1")
    (193.73, 7, 1.5, '12345678901234567890.1')
    """
    stripped = text.strip()
    if not _is_plain(stripped):
        return text
    try:
        if not any(sign in stripped for sign in ".eE") and len(stripped) <= MAX_WHOLE_DIGITS:
            return int(stripped)
        number = float(stripped)
        return number if Decimal(repr(number)) == Decimal(stripped) else text
    except (ValueError, ArithmeticError):
        return text


def encode_stored(documents: Sequence[StoredDocument], manifest: IndexManifest, vectors: Bytes) -> EncodedBlock:
    """Return documents that an index has, with their vectors, as they go into another one.

    Args:
        documents: those of a commit.
        manifest: of the other index.
        vectors: int8[n, stride].
    """
    made = [
        RawDocument(
            document.id,
            document.data,
            tokens(text_in(document.record, manifest)),
            [values_by(by, document.record) for by in manifest.filters],
        )
        for document in documents
    ]
    return EncodedBlock(made, vectors, checksums(vectors), signs_of(vectors[:, : manifest.dimensions]))


def text_in(record: Mapping[str, Any], manifest: IndexManifest, between: str = "\n") -> str:
    """Return the text of a record: those of its columns that are not empty, with `between` between them."""
    return between.join(filter(None, (text_of(value_or_none(record, name)) for name in manifest.columns)))


class StoredDocuments:
    """The documents behind a searcher of tantivy.

    Attributes:
        rows: one more than the highest row of a document.
    """

    def __init__(self, path: Path, schema: Any, searcher: Any) -> None:
        self._path, self._schema, self._searcher = path, schema, searcher
        with engine_errors(path):
            self.rows = rows_of(searcher)

    def at(self, address: Any) -> StoredDocument:
        """Return the document at an address. Raises InputError where the index is damaged."""
        with engine_errors(self._path):
            found = self._searcher.doc(address)
            key, data = found.get_first("id"), found.get_first("record")
        return StoredDocument(str(key), data, self._record(data))

    def by_row(self) -> Iterator[tuple[list[StoredDocument], Int64s]]:
        """Yield all documents, by row, with their rows, some thousands at a time."""
        engine = tantivy()
        for start in range(0, self.rows, TOGETHER):
            with engine_errors(self._path):
                query = engine.Query.range_query(
                    self._schema, "row", engine.FieldType.Integer, start, start + TOGETHER - 1
                )
                hits = self._searcher.search(
                    query, TOGETHER, count=False, order_by_field="row", order=engine.Order.Asc
                ).hits  # fmt: skip
            if hits:
                yield [self.at(address) for _, address in hits], np.array([row for row, _ in hits], np.int64)

    def _record(self, data: Any) -> Record:
        try:
            record = json_bounds.parse(data)
        except (ValueError, TypeError):  # TooLarge and JSONDecodeError are ValueErrors
            record = None
        if not isinstance(record, dict):
            raise damage_error(self._path, "a record is not a JSON object, or is too large")
        return record


def open_documents(path: Path, manifest: IndexManifest) -> tuple[StoredDocuments, int]:
    """Return the documents of an index, whose lock must be held, and how many there are.

    Raises InputError where it is damaged.
    """
    commit = check_letters(path, manifest)
    with engine_errors(path):
        letters = open_letters(path, manifest)
        documents = StoredDocuments(path, letters.schema, letters.searcher())
    return documents, commit.documents
