"""Documents of one commit of an index: what letters and meaning propose, and the sum of both scores."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gramvec.lexical.letters import LETTERS_SHARE, MOST_LOOKED_UP, MOST_SEARCHED, counted, idf
from gramvec.search.filters import Conditions, query_of
from gramvec.search.folder import (
    SIGNS,
    VECTORS,
    damaged,
    digest_of,
    engine_errors,
    open_letters,
    read_manifest,
    readable_letters,
    rows_of,
    schema_of,
    tantivy,
)
from gramvec.search.signs import SignFile, signs_of
from gramvec.search.vectors import VectorFile, rounded
from gramvec.tables import json_bounds
from gramvec.text.arrays import Floats, Int64s
from gramvec.threads import LibraryCalls, ProcessLock, ThreadPool

Only = Literal["letters", "meaning"]

# Rows that either side proposes (benchmarks/search.py).
CANDIDATES = 100
# Above so many rows signs say which ones are compared: at least these, and this many for each one that is wanted.
COMPARED_ROWS, SIGN_CANDIDATES, SIGN_CANDIDATES_EACH = 1 << 15, 2_048, 8
# The most common n-grams are not searched for, if they have less than this share of a query's weight and are in more
# documents than this (benchmarks/search.py has what it costs where no document is too few).
COMMON_SHARE, COMMON_DOCUMENTS = 0.25, 10_000
# Of a sum of two scores that were added in single precision.
ROUNDING = 1e-4
# Conditions whose rows are kept, and all their rows, of 8 bytes.
KEPT_CONDITIONS, KEPT_ROWS = 8, 4_000_000
# Documents that are compared with their vectors when an index is opened.
CHECKED_ROWS = 16
# Into tantivy, which keeps what it read last behind a lock.
ENGINE_CALLS = LibraryCalls()


Record = dict[str, Any]


class Hit(NamedTuple):
    """A document that was found: its id, its score, and what was stored with it.

    The score is the cosine of the meaning plus the share of the query's letters that the text has, weighted by how rare
    they are: BM25 / (1.1 x the sum of the query's idf). It is comparable between queries of one index.
    """

    id: str
    score: float
    record: Record


class Found(NamedTuple):
    """Documents of one query, the best first: their addresses in tantivy, and their scores."""

    addresses: list[Any]
    scores: list[float]


class StoredDocument(NamedTuple):
    """A document as it is stored: its id, its record as JSON, and the record's values."""

    id: str
    data: bytes
    record: Record


class Snapshot:
    """The documents of one commit. Calls may come from several threads."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        self.manifest = read_manifest(path)
        self._engine = tantivy()
        self._query = self._engine.Query
        with readable_letters(path, self.manifest) as folder, engine_errors(path):
            letters = open_letters(path, self.manifest, folder)
            letters.config_reader("manual")
            self.digest = digest_of(path)
            letters.reload()
            self._schema, self._searcher = schema_of(self.manifest), letters.searcher()
            self.documents = int(self._searcher.num_docs)
            rows = rows_of(self._searcher)
        generation, self._threads = path / self.manifest.generation, threads
        self.vectors = VectorFile(generation / VECTORS, self.manifest.dimensions, rows)
        self._signs = SignFile(generation / SIGNS, self.manifest.dimensions, rows)
        self._fields = self.manifest.fields
        self._allowed: OrderedDict[Conditions, Int64s] = OrderedDict()
        self._keeping = ProcessLock()
        self._check()

    def _check(self) -> None:
        """Compare the vectors of some documents with the checksums that these carry."""
        if not self.documents:
            raise damaged(self.path, "it has no document")
        with engine_errors(self.path):
            some = np.linspace(0, len(self.vectors) - 1, CHECKED_ROWS).astype(np.int64)
            query = self._with_rows(np.unique(some).tolist())
            addresses = [one for _, one in self._searcher.search(query, CHECKED_ROWS, count=False).hits]
            rows = self._searcher.fast_field_values("row", addresses)
            expected = self._searcher.fast_field_values("checksum", addresses)
        held = np.array(rows, np.int64)
        if expected != self.vectors.checksums(held):
            raise damaged(self.path, "its vectors are not those of its documents")
        if not np.array_equal(self._signs.signs(held), signs_of(self.vectors.rows(held))):
            raise damaged(self.path, "its signs are not those of its vectors")

    def find(
        self, texts: Sequence[str], units: Floats | None, k: int, conditions: Conditions = (), only: Only | None = None
    ) -> list[Found]:
        """Return the k best documents for each query.

        Args:
            texts: the prepared queries.
            units: float32[q, d], their vectors of length 1 or 0; None to search by letters only.
            k: 1 to 10,000.
            conditions: of `conditions_of`.
            only: "meaning" leaves the letters out.
        """
        with ENGINE_CALLS, engine_errors(self.path):
            allowed = self._rows_within(conditions) if conditions and units is not None else None
            near = self._near(units, max(k, CANDIDATES), allowed) if units is not None else None

            def find_one(at: int) -> Found:
                if units is None or near is None:
                    return self._by_letters(texts[at], conditions, k)[0]
                if only == "meaning":
                    return self._of_rows(*self.vectors.nearest(units[at], k, near[at]))
                return self._by_both(texts[at], units[at], near[at], conditions, k)

            places = range(len(texts))
            return [*(self._pool.map(find_one, places) if len(places) > 1 else map(find_one, places))]

    @cached_property
    def _pool(self) -> ThreadPool:
        return ThreadPool(self._threads, "gramvec-search")

    def _near(self, units: Floats, k: int, allowed: Int64s | None) -> Sequence[Int64s | None]:
        """Return for each query the rows that are compared with it; None for all."""
        if len(self.vectors if allowed is None else allowed) <= COMPARED_ROWS:
            return [allowed] * len(units)
        most = max(SIGN_CANDIDATES, SIGN_CANDIDATES_EACH * k)
        return self._signs.candidates(rounded(units), most, allowed, self._pool, self._threads)

    def hits(self, found: Found) -> list[Hit]:
        """Return the stored documents. Raises InputError where the index is damaged."""
        hits = []
        for address, score in zip(*found, strict=True):
            document = self.document(address)
            hits.append(Hit(document.id, score, document.record))
        return hits

    def document(self, address: Any) -> StoredDocument:
        """Return the document at an address. Raises InputError where the index is damaged."""
        with ENGINE_CALLS, engine_errors(self.path):
            found = self._searcher.doc(address)
            key, data = found.get_first("id"), found.get_first("record")
        return StoredDocument(str(key), data, self._record(data))

    def first_record(self) -> Record:
        """Return what is stored with a document of one of the first rows."""
        with engine_errors(self.path):
            hits = self._searcher.search(self._query.all_query(), 1, count=False).hits
        return self.document(hits[0][1]).record

    def _record(self, data: Any) -> Record:
        try:
            found = json_bounds.parse(data)
        except (ValueError, TypeError):  # TooLarge and JSONDecodeError are ValueErrors
            found = None
        if not isinstance(found, dict):
            raise damaged(self.path, "a record is not a JSON object, or is too large")
        return found

    def _rows_within(self, conditions: Conditions) -> Int64s:
        """Return the rows within conditions, ascending."""
        found = self._allowed.get(conditions)
        if found is None:
            query = query_of(self._engine, self._schema, self._fields, conditions)
            # Tantivy takes memory for as many documents as are asked for.
            number = max(int(self._searcher.search(query, 1).count), 1)
            order = self._engine.Order.Asc
            hits = self._searcher.search(query, number, count=False, order_by_field="row", order=order).hits
            found = np.fromiter((row for row, _ in hits), np.int64)
            with self._keeping:
                self._allowed[conditions] = found
                while len(self._allowed) > 1 and (
                    len(self._allowed) > KEPT_CONDITIONS or sum(map(len, self._allowed.values())) > KEPT_ROWS
                ):
                    self._allowed.popitem(last=False)
        return found

    def _by_letters(self, text: str, conditions: Conditions, k: int) -> tuple[Found, Any, float]:
        """Return the best documents by letters, the query that found them, and what tantivy's scores are divided by."""
        query, weight = self._letters(text)
        share = LETTERS_SHARE * weight or 1.0
        hits = self._searcher.search(self._within(query, conditions), k, count=False).hits
        return Found([one for _, one in hits], [score / share for score, _ in hits]), query, share

    def _of_rows(self, rows: Int64s, cosines: Floats) -> Found:
        """Return the documents of rows, in that order."""
        if not len(rows):
            return Found([], [])
        hits = self._searcher.search(self._with_rows(rows.tolist()), len(rows), count=False).hits
        addresses = [one for _, one in hits]
        by_row = dict(zip(self._rows(addresses), addresses, strict=True))
        there = [row in by_row for row in rows.tolist()]  # a removed document's row may be among them
        return Found([by_row[row] for row in rows[there].tolist()], cosines[there].tolist())

    def _by_both(self, text: str, unit: Floats, among: Int64s | None, conditions: Conditions, k: int) -> Found:
        """Return the best of the union of what letters and meaning propose, by the sum of both scores."""
        most = max(k, CANDIDATES)
        (addresses, letters), query, share = self._by_letters(text, conditions, most)
        rows = self._rows(addresses)
        near, of_near = self.vectors.nearest(unit, most, among)
        cosines = self.vectors.cosines(unit, np.array(rows, np.int64))
        if len(rows) >= most:
            # What letters did not propose has at most the least of their scores: most of it cannot be among the k best.
            sums = cosines + np.array(letters)
            near = near[of_near + letters[-1] >= np.partition(sums, len(sums) - k)[len(sums) - k] - ROUNDING]
        missing = np.setdiff1d(near, rows).tolist()
        if missing:
            # The rows that only meaning proposes: their documents, with the letters' scores of those.
            wanted = self._query.const_score_query(self._with_rows(missing), 0.0)
            occur = self._engine.Occur
            either = self._query.boolean_query([(occur.Must, wanted), (occur.Should, query)])
            others = self._searcher.search(either, len(missing), count=False).hits
            more = [one for _, one in others]
            addresses, letters = addresses + more, letters + [score / share for score, _ in others]
            added = self._rows(more)
            rows = rows + added
            cosines = np.concatenate([cosines, self.vectors.cosines(unit, np.array(added, np.int64))])
        if not rows:
            return Found([], [])
        places = np.array(rows, np.int64)
        scores = cosines.astype(np.float64) + np.array(letters)
        order = np.lexsort((places, -scores))[:k].tolist()
        return Found([addresses[at] for at in order], [float(scores[at]) for at in order])

    def _with_rows(self, rows: Iterable[int]) -> Any:
        # Seven times as fast as a set of terms, for which tantivy walks through all rows.
        should, term = self._engine.Occur.Should, self._query.term_query
        return self._query.boolean_query(
            [(should, term(self._schema, "row", row, index_option="basic")) for row in rows]
        )

    def _rows(self, addresses: list[Any]) -> list[int]:
        rows = self._searcher.fast_field_values("row", addresses) if addresses else []
        if not all(isinstance(row, int) and 0 <= row < len(self.vectors) for row in rows):
            raise damaged(self.path, "a document has no vector")
        return rows

    def _letters(self, text: str) -> tuple[Any, float]:
        """Return the query for the n-grams of a text, and the sum of their idf.

        N-grams that are common in a large index, and of long texts all but the rarest, are left out of both.
        """
        counts = dict(islice(counted(text).items(), MOST_LOOKED_UP))
        names = list(counts)
        holding = np.array([self._searcher.doc_freq("letters", one) for one in names], np.float64)
        weights = idf(holding, self.documents) * list(counts.values())
        order = np.argsort(holding, kind="stable")
        rarest = order[holding[order] > 0]
        weight = np.cumsum(weights[rarest])
        needed = int(np.searchsorted(weight, weight[-1:] * (1 - COMMON_SHARE)).sum()) + 1
        number = max(needed, int(np.searchsorted(holding[rarest], COMMON_DOCUMENTS, "right")))
        searched = np.sort(rarest[: min(number, MOST_SEARCHED)])
        if not len(searched):
            return self._query.empty_query(), 0.0
        parts = []
        for at in searched.tolist():
            one = self._query.term_query(self._schema, "letters", names[at], index_option="freq")
            if counts[names[at]] > 1:
                one = self._query.boost_query(one, float(counts[names[at]]))
            parts.append((self._engine.Occur.Should, one))
        unknown = weights[holding == 0].sum() if len(names) <= MOST_SEARCHED else 0.0
        return self._query.boolean_query(parts), float(weights[searched].sum() + unknown)

    def _within(self, query: Any, conditions: Conditions) -> Any:
        if not conditions:
            return query
        must = self._engine.Occur.Must
        narrowed = query_of(self._engine, self._schema, self._fields, conditions)
        return self._query.boolean_query([(must, narrowed), (must, query)])
