"""Documents of one commit of an index: what letters and meaning propose, and the sum of both scores."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gramvec.errors import InputError, quote
from gramvec.jobs.search.columns import ColumnFile
from gramvec.jobs.search.documents import Record, StoredDocument, StoredDocuments, text_in, values_by
from gramvec.jobs.search.filters import Conditions, query_of
from gramvec.jobs.search.folder import (
    MANIFEST,
    MAX_MANIFEST,
    REMOVED,
    SIGNS,
    VECTORS,
    IndexManifest,
    damage_error,
    read_bounded,
    read_manifest,
)
from gramvec.jobs.search.rows import RowSet, read_removed
from gramvec.jobs.search.segments import (
    check_letters,
    engine_errors,
    open_letters,
    read_commit,
    readable_letters,
    schema_of,
    tantivy,
)
from gramvec.jobs.search.signs import SignFile, signs_of
from gramvec.jobs.search.vectors import VectorFile, round_units
from gramvec.lexical.demands import Demands
from gramvec.lexical.letters import LETTERS_SHARE, MAX_LOOKED_UP, MAX_SEARCHED, count_ngrams, idf
from gramvec.lexical.top_k import top_k
from gramvec.lexical.units import with_units
from gramvec.text.arrays import Floats, Int64s
from gramvec.threads import LibraryCalls, ProcessLock, ThreadPool

Only = Literal["letters", "meaning"]

# Rows that either side proposes (benchmarks/search.py).
CANDIDATES = 100
# Above this many rows signs select which are compared: at least these, and this many for each wanted row.
COMPARED_ROWS, SIGN_CANDIDATES, SIGN_CANDIDATES_EACH = 1 << 15, 2_048, 8
# The most common n-grams are not searched for, if they have less than this share of a query's weight and are in more
# documents than this (benchmarks/search.py has what it costs where no document is too few).
COMMON_SHARE, COMMON_DOCUMENTS = 0.25, 10_000
# Rounding of a sum of two scores in single precision.
ROUNDING = 1e-4
# Conditions whose rows are kept, a bit for each row of the index.
KEPT_CONDITIONS = 8
# For so long an index is opened again that another process has just changed.
RETRY_SECONDS, PAUSE_SECONDS = 10.0, 0.01
# For a query that leaves texts out, meaning proposes this many times as many rows.
NEAREST_TIMES = 10
# Documents that letters propose are looked through for phrases, this many times as many each time, up to this number.
LOOKED_TIMES, MAX_LOOKED_THROUGH = 4, 10_000
# What stands between the texts of two columns, so that no phrase reaches from one into the next.
BETWEEN_PHRASES = " \0 "
# Documents that are compared with their vectors when an index is opened.
CHECKED_ROWS = 16
# Into tantivy, which keeps what it read last behind a lock.
ENGINE_CALLS = LibraryCalls()


class Hit(NamedTuple):
    """A document that was found: its id, its score, and what was stored with it.

    The score is the cosine of the meaning plus the share of the query's letters that the text has, weighted by how rare
    they are: BM25 / (1.1 x the sum of the query's idf). It is comparable between queries of one index.
    """

    id: str
    score: float
    record: Record


class TopDocuments(NamedTuple):
    """Documents of one query, the best first: their addresses in tantivy, and their scores."""

    addresses: list[Any]
    scores: list[float]


def open_snapshot(path: Path, threads: int) -> Snapshot:
    """Return the documents of the last commit. Opening is tried again where another process has changed the index.

    Raises InputError if it is not a valid index.
    """
    end = time.monotonic() + RETRY_SECONDS
    while True:
        before = _state(path)
        try:
            return Snapshot(path, read_manifest(path), threads)
        except InputError:
            if _state(path) == before or time.monotonic() > end:
                raise
        time.sleep(PAUSE_SECONDS)


def _state(path: Path) -> object:
    """Return what changes with every commit; None where it cannot be read."""
    try:
        return read_bounded(path / MANIFEST, MAX_MANIFEST), read_commit(path, read_manifest(path)).meta
    except (OSError, InputError):
        return None


class Snapshot:
    """The documents of one commit. Calls may come from several threads.

    Args:
        path: the index.
        manifest: names the generation.
        threads: of one search.

    Attributes:
        documents: how many there are.
        counted: how many there were before those that were removed since the index was written anew.
        stored: the documents.
        digest: SHA-256 of the manifest and of tantivy's list of segments, which changes with every commit.

    Raises:
        InputError: the generation is damaged, or has changed meanwhile.
    """

    def __init__(self, path: Path, manifest: IndexManifest, threads: int) -> None:
        self.path, self.manifest, self._threads = path, manifest, threads
        self._engine = tantivy()
        self._query = self._engine.Query
        commit = check_letters(path, manifest)
        with readable_letters(path, manifest, commit) as folder, engine_errors(path):
            letters = open_letters(path, manifest, folder)
            letters.config_reader("manual")
            letters.reload()
            self._schema, self._searcher = schema_of(manifest), letters.searcher()
        self.digest = hashlib.sha256(manifest.model_dump_json().encode() + commit.meta).hexdigest()
        self.documents, self.counted = commit.documents, commit.counted
        generation = path / manifest.generation
        self.stored = StoredDocuments(path, self._schema, self._searcher)
        rows = self.stored.rows
        with engine_errors(path):
            removed = read_removed(generation / REMOVED, 2 * max(rows, manifest.next), self._has_row).rows
        self.vectors = VectorFile(generation / VECTORS, manifest.dimensions, rows)
        self._signs = SignFile(generation / SIGNS, manifest.dimensions, rows)
        self._fields = manifest.fields
        self._columns = {
            column: ColumnFile(generation / f"{name}.bin", column.kind, rows)
            for column, name in manifest.fields.items()
        }
        there = np.ones(rows, np.bool_)
        there[removed[removed < rows]] = False
        # None where all rows have documents.
        self._there = None if there.all() else RowSet.of(there)
        self._allowed: OrderedDict[Conditions, RowSet] = OrderedDict()
        self._keeping = ProcessLock()
        self._check()
        if read_commit(path, manifest).meta != commit.meta:
            raise InputError(f"{path}: another process changes it all the time; open it when that has ended")

    def _has_row(self, row: int) -> bool:
        return bool(self._searcher.search(self._with_rows([row]), 1, count=False).hits)

    def _check(self) -> None:
        """Compare the vectors of some documents with the checksums that these carry."""
        if not self.documents:
            raise damage_error(self.path, "it has no document")
        if self.documents != int(self._searcher.num_docs):
            raise damage_error(self.path, "its list of segments is not that of its documents")
        with engine_errors(self.path):
            checked = np.linspace(0, len(self.vectors) - 1, CHECKED_ROWS).astype(np.int64)
            query = self._with_rows(np.unique(checked).tolist())
            addresses = [address for _, address in self._searcher.search(query, CHECKED_ROWS, count=False).hits]
            if not addresses:
                return
            rows = self._searcher.fast_field_values("row", addresses)
            expected = self._searcher.fast_field_values("checksum", addresses)
        held = np.array(rows, np.int64)
        if expected != self.vectors.checksums(held):
            raise damage_error(self.path, "its vectors are not those of its documents")
        if not np.array_equal(self._signs.signs(held), signs_of(self.vectors.rows(held))):
            raise damage_error(self.path, "its signs are not those of its vectors")
        for row, address in zip(rows, addresses, strict=True):
            record = self.document(address).record if self._columns else {}
            for by, column in self._columns.items():
                if not column.holds(row, values_by(by, record)):
                    raise damage_error(self.path, f"the values of {quote(by.column)} are not those of its documents")

    def find(
        self,
        queries: Sequence[Demands],
        units: Floats | None,
        k: int,
        conditions: Conditions = (),
        only: Only | None = None,
        min_score: float = 0.0,
        names: Sequence[str] = (),
    ) -> list[TopDocuments]:
        """Return the k best documents for each query.

        Args:
            queries: what is searched for, as prepared texts, and what is demanded of texts.
            units: float32[q, d], the vectors of the queries' texts, of length 1 or 0; None to search by letters only.
            k: 1 to 10,000.
            conditions: of `conditions_of`.
            only: "meaning" leaves the letters out.
            min_score: a document with a lower score, or with 0 or less, is not returned.
            names: for each query, its words of which the model knows no meaning, with spaces between, or "".
        """
        with ENGINE_CALLS, engine_errors(self.path):
            allowed = self._rows_within(conditions) if units is not None else None
            near = self._near(units, max(k, CANDIDATES), allowed) if units is not None else None

            def find_one(at: int) -> TopDocuments:
                query, demanded = queries[at], self._query_demands(queries[at])
                unit = None if units is None else units[at]
                if query.phrases:
                    return self._by_phrases(query, unit, conditions, demanded, k, only)
                if unit is None or near is None:
                    return self._by_letters(query.text, conditions, demanded, k)[0]
                if only == "meaning":
                    limit = k if demanded is None else k * NEAREST_TIMES
                    return self._of_rows(*self.vectors.nearest(unit, limit, near[at]), demanded, k)
                return self._by_both(query.text, unit, near[at], conditions, demanded, k, names[at] if names else "")

            def find_above(at: int) -> TopDocuments:
                found = find_one(at)
                # The scores descend.
                kept = sum(score > 0 and score >= min_score for score in found.scores)
                return TopDocuments(found.addresses[:kept], found.scores[:kept])

            places = range(len(queries))
            return [*(self._pool.map(find_above, places) if len(places) > 1 else map(find_above, places))]

    @cached_property
    def _pool(self) -> ThreadPool:
        return ThreadPool(self._threads, "gramvec-search")

    def _near(self, units: Floats, k: int, allowed: RowSet | None) -> Sequence[Int64s | None]:
        """Return for each query the rows that are compared with it; None for all."""
        if (len(self.vectors) if allowed is None else allowed.size) <= COMPARED_ROWS:
            return [None if allowed is None else allowed.rows()] * len(units)
        limit = max(SIGN_CANDIDATES, SIGN_CANDIDATES_EACH * k)
        bits = None if allowed is None else allowed.bits
        return self._signs.candidates(round_units(units), limit, bits, self._pool, self._threads)

    def hits(self, found: TopDocuments) -> list[Hit]:
        """Return the stored documents. Raises InputError where the index is damaged."""
        hits = []
        for address, score in zip(*found, strict=True):
            document = self.document(address)
            hits.append(Hit(document.id, score, document.record))
        return hits

    def document(self, address: Any) -> StoredDocument:
        """Return the document at an address. Raises InputError where the index is damaged."""
        with ENGINE_CALLS:
            return self.stored.at(address)

    def count(self, conditions: Conditions = ()) -> int:
        """Return how many documents meet conditions."""
        within = self._rows_within(conditions) if conditions else None
        return self.documents if within is None else within.size

    def get(self, ids: Sequence[str]) -> list[StoredDocument | None]:
        """Return the document of each id, None for an id that is not there. Raises InputError for a damaged index."""
        return [None if address is None else self.document(address) for address in self.addresses(ids)]

    def addresses(self, ids: Sequence[str]) -> list[Any]:
        """Return the address of each id's document, None for an id that is not there."""
        found = []
        with ENGINE_CALLS, engine_errors(self.path):
            for given_id in ids:
                query = self._query.term_query(self._schema, "id", given_id, index_option="basic")
                hits = self._searcher.search(query, 1, count=False).hits
                found.append(hits[0][1] if hits else None)
        return found

    def page(self, start: int, rows: int) -> tuple[list[Any], int | None]:
        """Return the addresses of the documents in these rows, ascending, and the row that follows, None at the end."""
        stop = min(start + rows, self.stored.rows)
        if start >= stop:
            return [], None
        with ENGINE_CALLS, engine_errors(self.path):
            hits = self._searcher.search(self._with_rows(range(start, stop)), stop - start, count=False).hits
            addresses = [address for _, address in hits]
            by_row = dict(zip(self._rows(addresses), addresses, strict=True))
        return [by_row[row] for row in sorted(by_row)], stop if stop < self.stored.rows else None

    def all_documents(self) -> Iterator[StoredDocument]:
        """Yield all documents, in the order in which they were added."""
        for documents, _ in self.stored.by_row():
            yield from documents

    def first_record(self) -> Record:
        """Return what is stored with a document of one of the first rows."""
        with engine_errors(self.path):
            hits = self._searcher.search(self._query.all_query(), 1, count=False).hits
        return self.document(hits[0][1]).record

    def _rows_within(self, conditions: Conditions) -> RowSet | None:
        """Return the rows that have documents within conditions; None for all rows."""
        if not conditions:
            return self._there
        rows = self._allowed.get(conditions)
        if rows is None:
            within = (
                self._there.flags(len(self.vectors))
                if self._there is not None
                else np.ones(len(self.vectors), np.bool_)
            )
            for condition in conditions:
                within &= self._columns[condition.column].within(condition)
            rows = RowSet.of(within)
            with self._keeping:
                self._allowed[conditions] = rows
                while len(self._allowed) > KEPT_CONDITIONS:
                    self._allowed.popitem(last=False)
        return rows

    def _by_letters(self, text: str, conditions: Conditions, demanded: Any, k: int) -> tuple[TopDocuments, Any, float]:
        """Return the best documents by letters, the query that found them, and what tantivy's scores are divided by."""
        query, weight = self._letters(text)
        share = LETTERS_SHARE * weight or 1.0
        hits = self._searcher.search(self._within(query, conditions, demanded), k, count=False).hits
        return TopDocuments([address for _, address in hits], [score / share for score, _ in hits]), query, share

    def _by_phrases(
        self, query: Demands, unit: Floats | None, conditions: Conditions, demanded: Any, k: int, only: Only | None
    ) -> TopDocuments:
        """Return the best of the documents that have all phrases of a query, as letters propose them."""
        limit, looked = max(k, CANDIDATES), max(k, CANDIDATES)
        letters, share = self._letters(query.text)
        asked = self._within(letters, conditions, demanded)
        seen: list[tuple[float, Any]] = []
        kept: list[tuple[float, Any]] = []
        while True:
            hits = self._searcher.search(asked, looked, count=False).hits
            for score, address in hits[len(seen) :]:
                text = text_in(self.document(address).record, self.manifest, BETWEEN_PHRASES)
                kept += [(score, address)] if query.is_met_by(text) else []
            seen = hits
            if len(kept) >= limit or len(hits) < looked or looked >= MAX_LOOKED_THROUGH:
                break
            looked = min(looked * LOOKED_TIMES, MAX_LOOKED_THROUGH)
        kept = kept[:limit]
        if not kept:
            return TopDocuments([], [])
        places = np.array(self._rows([address for _, address in kept]), np.int64)
        scores = np.zeros(len(kept))
        if only != "meaning":
            scores += np.array([score for score, _ in kept]) / (LETTERS_SHARE * share or 1.0)
        if unit is not None:
            scores += self.vectors.cosines(unit, places)
        order = top_k(scores, k, places).tolist()
        return TopDocuments([kept[at][1] for at in order], [float(scores[at]) for at in order])

    def _of_rows(self, rows: Int64s, cosines: Floats, demanded: Any, k: int) -> TopDocuments:
        """Return the documents of the first k rows that have one, in that order."""
        if not len(rows):
            return TopDocuments([], [])
        query = self._within(self._with_rows(rows.tolist()), (), demanded)
        hits = self._searcher.search(query, len(rows), count=False).hits
        addresses = [address for _, address in hits]
        by_row = dict(zip(self._rows(addresses), addresses, strict=True))
        there = [at for at, row in enumerate(rows.tolist()) if row in by_row][:k]
        return TopDocuments([by_row[row] for row in rows[there].tolist()], cosines[there].tolist())

    def _by_both(
        self, text: str, unit: Floats, among: Int64s | None, conditions: Conditions, demanded: Any, k: int, name: str
    ) -> TopDocuments:
        """Return the best of the union of what letters and meaning propose, by the sum of both scores.

        Where documents have a word of `name`, of which the model knows no meaning, the cosine of a document counts by
        how much of it the document has: of "betadine ointment" the common word decides the meaning, and may not decide
        alone. A word that no document has may be a misspelt one, and changes nothing.
        """
        limit = max(k, CANDIDATES)
        (addresses, letters), query, share = self._by_letters(text, conditions, demanded, limit)
        rows = self._rows(addresses)
        if known := " ".join(word for word in name.split() if self._has_word(word)):
            named = self._by_letters(known, conditions, demanded, limit)[0]
            if named.scores:
                return self._by_name(unit, named, TopDocuments(addresses, letters), (query, share), demanded, k)
        near, of_near = self.vectors.nearest(unit, limit if demanded is None else limit * NEAREST_TIMES, among)
        cosines = self.vectors.cosines(unit, np.array(rows, np.int64))
        if len(rows) >= limit:
            # What letters did not propose has at most the least of their scores: most of it cannot be among the k best.
            sums = cosines + np.array(letters)
            near = near[of_near + letters[-1] >= np.partition(sums, len(sums) - k)[len(sums) - k] - ROUNDING]
        missing = np.setdiff1d(near, rows).tolist()
        if missing:
            # The rows that only meaning proposes: their documents, with the letters' scores of those.
            other_hits = self._searcher.search(self._among(missing, query, demanded), len(missing), count=False).hits
            more = [address for _, address in other_hits]
            addresses, letters = addresses + more, letters + [score / share for score, _ in other_hits]
            added = self._rows(more)
            rows = rows + added
            cosines = np.concatenate([cosines, self.vectors.cosines(unit, np.array(added, np.int64))])
        if not rows:
            return TopDocuments([], [])
        places = np.array(rows, np.int64)
        scores = cosines.astype(np.float64) + np.array(letters)
        order = top_k(scores, k, places).tolist()
        return TopDocuments([addresses[at] for at in order], [float(scores[at]) for at in order])

    def _by_name(
        self, unit: Floats, named: TopDocuments, found: TopDocuments, letters: tuple[Any, float], demanded: Any, k: int
    ) -> TopDocuments:
        """Return the best of what letters propose for a query and for its name; meaning counts by the name's share.

        Args:
            unit: float32[d], the query's vector.
            named: what the name's letters propose.
            found: what all letters propose.
            letters: the query of all letters, and what its scores are divided by.
            demanded: as of `_by_letters`.
            k: how many are wanted.
        """
        shares = dict(zip(self._rows(named.addresses), named.scores, strict=True))
        of_letters = dict(zip(self._rows(found.addresses), found.scores, strict=True))
        by_row = dict(zip(self._rows(named.addresses), named.addresses, strict=True))
        by_row |= dict(zip(of_letters, found.addresses, strict=True))
        if missing := [row for row in shares if row not in of_letters]:
            query, share = letters
            hits = self._searcher.search(self._among(missing, query, demanded), len(missing), count=False).hits
            of_letters |= dict(
                zip(self._rows([address for _, address in hits]), (score / share for score, _ in hits), strict=True)
            )
        places = np.array([*by_row], np.int64)
        cosines = self.vectors.cosines(unit, places).astype(np.float64)
        has = np.minimum(np.array([shares.get(row, 0.0) for row in by_row]) / named.scores[0], 1.0)
        scores = cosines * has + np.array([of_letters.get(row, 0.0) for row in by_row])
        order = top_k(scores, k, places).tolist()
        addresses = [*by_row.values()]
        return TopDocuments([addresses[at] for at in order], [float(scores[at]) for at in order])

    def _has_word(self, word: str) -> bool:
        """Return True if a document has all n-grams of a word."""
        parts = [(self._engine.Occur.Must, self._ngram(name)) for name in count_ngrams(word)]
        return bool(parts) and bool(self._searcher.search(self._query.boolean_query(parts), 1, count=False).hits)

    def _among(self, rows: Sequence[int], query: Any, demanded: Any) -> Any:
        """Return a query that scores these rows alone."""
        wanted = self._query.const_score_query(self._with_rows(rows), 0.0)
        occur = self._engine.Occur
        return self._within(self._query.boolean_query([(occur.Must, wanted), (occur.Should, query)]), (), demanded)

    def _with_rows(self, rows: Iterable[int]) -> Any:
        # Seven times as fast as a set of terms, for which tantivy walks through all rows.
        should, term = self._engine.Occur.Should, self._query.term_query
        return self._query.boolean_query(
            [(should, term(self._schema, "row", row, index_option="basic")) for row in rows]
        )

    def _rows(self, addresses: list[Any]) -> list[int]:
        rows: list[int] = self._searcher.fast_field_values("row", addresses) if addresses else []
        if not all(isinstance(row, int) and 0 <= row < len(self.vectors) for row in rows):
            raise damage_error(self.path, "a document has no vector")
        return rows

    def _letters(self, text: str) -> tuple[Any, float]:
        """Return the query for the n-grams of a text, and the sum of their idf.

        N-grams that no document has, that are common in a large index, and of long texts all but the rarest, are left
        out of both. Removed documents count until they are merged away, here and in tantivy's own sums.
        """
        counts = dict(islice(count_ngrams(with_units(text)).items(), MAX_LOOKED_UP))
        names = list(counts)
        holding = np.array([self._searcher.doc_freq("letters", name) for name in names], np.float64)
        weights = idf(np.minimum(holding, self.counted), self.counted) * list(counts.values())
        order = np.argsort(holding, kind="stable")
        rarest = order[holding[order] > 0]
        weight = np.cumsum(weights[rarest])
        needed = int(np.searchsorted(weight, weight[-1:] * (1 - COMMON_SHARE)).sum()) + 1
        number = max(needed, int(np.searchsorted(holding[rarest], COMMON_DOCUMENTS, "right")))
        searched = np.sort(rarest[: min(number, MAX_SEARCHED)])
        if not len(searched):
            return self._query.empty_query(), 0.0
        parts = []
        for at in searched.tolist():
            part = self._ngram(names[at])
            if counts[names[at]] > 1:
                part = self._query.boost_query(part, float(counts[names[at]]))
            parts.append((self._engine.Occur.Should, part))
        return self._query.boolean_query(parts), float(weights[searched].sum())

    def _query_demands(self, query: Demands) -> Any:
        """Return the query of tantivy, with the score 0, for what a query demands; None for nothing."""
        build, occur = self._query, self._engine.Occur

        def all_of(phrase: str) -> Any:
            return build.boolean_query([(occur.Must, self._ngram(name)) for name in count_ngrams(phrase)])

        parts = [(occur.Must, self._ngram(name)) for phrase in query.phrases for name in count_ngrams(phrase)]
        parts += [(occur.MustNot, all_of(phrase)) for phrase in query.without]
        if not parts:
            return None
        return build.const_score_query(build.boolean_query([(occur.Must, build.all_query()), *parts]), 0.0)

    def _ngram(self, name: str) -> Any:
        return self._query.term_query(self._schema, "letters", name, index_option="freq")

    def _within(self, query: Any, conditions: Conditions, demanded: Any) -> Any:
        must = self._engine.Occur.Must
        narrowed = [(must, demanded)] if demanded is not None else []
        if conditions:
            narrowed.append((must, query_of(self._engine, self._schema, self._fields, conditions)))
        return self._query.boolean_query([*narrowed, (must, query)]) if narrowed else query
