"""`Index`: the folder of an index, opened, and searches of it by letters and meaning."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gramvec.bulk.embed_file import cores
from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.lexical.letters import LETTERS_SHARE, MOST_LOOKED_UP, MOST_SEARCHED, counted, idf
from gramvec.runtime.base import Device
from gramvec.search.build import add_to_index, build_index, check_model, remove_from_index
from gramvec.search.filters import Conditions, Where, conditions_of, query_of
from gramvec.search.folder import (
    VECTORS,
    IndexManifest,
    damaged,
    digest_of,
    engine_errors,
    open_letters,
    read_manifest,
    readable_letters,
    rows_of,
    schema_of,
    size_of,
    tantivy,
)
from gramvec.search.records import Record, spooled
from gramvec.search.vectors import VectorFile, kernels, unit_vectors
from gramvec.tables import json_bounds
from gramvec.text.arrays import Floats, Int64s
from gramvec.text.inputs import iterated

Only = Literal["letters", "meaning"]

MOST_HITS = 10_000
# Rows that either side proposes (benchmarks/search.py).
CANDIDATES = 100
# Queries that are answered together.
TOGETHER = 8
# Above so many rows exact meaning takes more than 50 ms: the candidates of letters take its place.
EXACT_ROWS, LETTERS_CANDIDATES = 4_000_000, 1_000
# Conditions whose rows are kept, and all their rows, of 8 bytes.
KEPT_CONDITIONS, KEPT_ROWS = 8, 4_000_000
# Documents that are compared with their vectors when an index is opened.
CHECKED_ROWS = 16
# A name from an untrusted file is looked for among models, never as a path.
_NAME = re.compile(r"\w[\w.+-]*")


class Hit(NamedTuple):
    """A document that was found: its id, its score, and what was stored with it.

    The score is the cosine of the meaning plus the share of the query's letters that the text has, weighted by how rare
    they are: BM25 / (1.1 x the sum of the query's idf). It is comparable between queries of one index.
    """

    id: str
    score: float
    record: Record


class Index:
    """Index of texts, searched by letters and meaning; see docs/search.md.

    >>> index = gramvec.Index.build("things.index", ["cheap flights", "bananas"])
    >>> index.search("cheap flihgts", k=1)[0][0].record
    {'text': 'cheap flights'}
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str | os.PathLike[str] | Embedder | None = None,
        device: Device = "auto",
        threads: int | None = None,
    ) -> None:
        """Open an index.

        Args:
            path: the folder.
            model: a name in models/, a bundle's folder or an Embedder; None takes the name that the index has. It is
                loaded by the first call that needs it.
            device: where the model runs.
            threads: threads of one search; None for one per core.

        Raises:
            InputError: the folder is not a valid index, or of another model.
        """
        self.path = Path(path)
        self.threads = threads or cores()
        self._model = model
        self._device: Device = device
        self._snapshot = Snapshot(self.path, self.threads)
        self._embedder: Embedder | None = None
        self._loading = threading.Lock()
        if isinstance(model, Embedder):
            check_model(self.manifest, model, self.path)
            self._embedder = model

    def __reduce__(self) -> tuple[object, ...]:
        return _opened_again, (self.path, self._model, self._device, self.threads)

    @classmethod
    def open(cls, path: str | os.PathLike[str], **options: Any) -> Index:
        """Return Index(path, ...)."""
        return cls(path, **options)

    @classmethod
    def build(
        cls,
        path: str | os.PathLike[str],
        records: Iterable[str | Record],
        *,
        model: str | os.PathLike[str] | Embedder = "gramvec-en",
        column: str = "text",
        id_column: str | None = None,
        filters: Iterable[str] = (),
    ) -> Index:
        """Build an index of texts, or of dicts whose `column` is a text, and open it; an index that is there goes.

        Args:
            path: the folder.
            records: any iterable, read once, in bounded memory; or a frame of pandas, polars or pyarrow.
            model: what makes the vectors.
            column: the texts.
            id_column: ids, all different; None counts from 1.
            filters: columns that searches can be narrowed by, as NAME or NAME:text, NAME:number, NAME:date.

        Raises:
            InputError: a record has no text, two have one id, or there is none.
        """
        embedder = model if isinstance(model, Embedder) else load(model)
        with spooled(records, column) as source:
            build_index(
                embedder, source, Path(path), form="jsonl", column=column, id_column=id_column, filters=[*filters]
            )
        return cls(path, model=embedder)

    @property
    def manifest(self) -> IndexManifest:
        """The manifest."""
        return self._snapshot.manifest

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest and the list of segments, 64 hexadecimal digits; it changes with every commit."""
        return self._snapshot.digest

    @property
    def embedder(self) -> Embedder:
        """The model. Raises InputError if it is not the one that made the vectors, and what gramvec.load raises."""
        with self._loading:
            if self._embedder is None:
                model = self._model if self._model is not None else self.manifest.model
                if self._model is None and _NAME.fullmatch(self.manifest.model) is None:
                    raise InputError(f"{self.path}: the name of its model is not a plain name; name the model")
                embedder = load(model, device=self._device)  # type: ignore[arg-type]
                check_model(self.manifest, embedder, self.path)
                self._embedder = embedder
            return self._embedder

    def __len__(self) -> int:
        return self._snapshot.documents

    @property
    def columns(self) -> list[str]:
        """The names of what is stored with one of the rows, the text first."""
        column = self.manifest.column
        return [column, *(name for name in self._snapshot.first_record() if name != column)]

    @property
    def filters(self) -> list[str]:
        """The columns that searches can be narrowed by."""
        return [one.column for one in self.manifest.filters]

    @property
    def bytes(self) -> int:
        """The size of the index on disk."""
        return size_of(self.path, self.manifest)

    @property
    def is_exact(self) -> bool:
        """False where an index is so large that meaning is compared with the 1,000 best by letters only."""
        return len(self._snapshot.vectors) <= EXACT_ROWS

    def search(
        self,
        queries: str | Iterable[str],
        k: int = 10,
        *,
        where: Where | None = None,
        only: Only | None = None,
        truncate: bool = False,
    ) -> list[list[Hit]]:
        """Return the k best documents for each query, the best first.

        Args:
            queries: a text, or any iterable of texts.
            k: 1 to 10,000.
            where: conditions on columns that the index can be narrowed by, all of which hold: a value, a list of values
                one of which a row has, or bounds as in {"gte": 10, "lt": 20}.
            only: "letters" or "meaning" for one of both; scores are then that part of the sum.
            truncate: cut long queries instead of refusing them.

        Raises:
            InputError: an argument is not valid.
        """
        asked = [queries] if isinstance(queries, str) else queries
        return list(self.stream(asked, k, where=where, only=only, truncate=truncate))

    def stream(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        where: Where | None = None,
        only: Only | None = None,
        truncate: bool = False,
    ) -> Iterator[list[Hit]]:
        """Yield what `search` returns for each of any number of queries, in bounded memory."""
        snapshot = self.snapshot()
        check_k(k)
        check_only(only)
        conditions = conditions_of(self.manifest.columns, where)
        waiting = iterated(queries)
        while texts := list(islice(waiting, TOGETHER)):
            prepared = self.embedder.prepare(texts, truncate=truncate)
            units = None
            if only != "letters":
                units = unit_vectors(self.embedder, prepared)
            for found in snapshot.find(prepared, units, k, conditions, only):
                yield snapshot.hits(found)

    def snapshot(self) -> Snapshot:
        """Return the documents as they are now; a commit does not change it."""
        return self._snapshot

    def add(self, records: Iterable[str | Record], *, replace: bool = False) -> int:
        """Add texts, or dicts as `build` takes them; return how many documents there are now.

        Args:
            records: as in `build`.
            replace: a record whose id is there takes the place of that document.

        Raises:
            InputError: an id is there already, or a record is not valid; then nothing has changed.
        """
        with spooled(records, self.manifest.column) as source:
            add_to_index(self.embedder, self.path, source, form="jsonl", replace=replace)
        return self.reload()

    def remove(self, ids: str | Iterable[str]) -> int:
        """Remove documents by their ids; return how many are left.

        Raises InputError for an id that is not there, and if no document would be left; then nothing has changed.
        """
        remove_from_index(self.path, [ids] if isinstance(ids, str) else list(ids))
        return self.reload()

    def reload(self) -> int:
        """Open the last commit, of another process perhaps; return how many documents there are."""
        self._snapshot = Snapshot(self.path, self.threads)
        return len(self)


def _opened_again(path: Path, model: Any, device: Device, threads: int) -> Index:
    return Index(path, model=model, device=device, threads=threads)


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
        kernels()
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
        self.vectors = VectorFile(path / self.manifest.generation / VECTORS, self.manifest.dimensions, rows, threads)
        self._fields = self.manifest.fields
        self._allowed: OrderedDict[Conditions, Int64s] = OrderedDict()
        self._keeping = threading.Lock()
        self._check()

    def _check(self) -> None:
        """Compare the vectors of some documents with the checksums that these carry."""
        if not self.documents:
            raise damaged(self.path, "it has no document")
        with engine_errors(self.path):
            some = np.linspace(0, len(self.vectors) - 1, CHECKED_ROWS).astype(np.int64)
            query = self._query.term_set_query(self._schema, "row", np.unique(some).tolist())
            addresses = [one for _, one in self._searcher.search(query, CHECKED_ROWS, count=False).hits]
            rows = self._searcher.fast_field_values("row", addresses)
            expected = self._searcher.fast_field_values("checksum", addresses)
        if expected != self.vectors.checksums(np.array(rows, np.int64)):
            raise damaged(self.path, "its vectors are not those of its documents")

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
        most = max(k, CANDIDATES)
        allowed = self._rows_within(conditions) if conditions and units is not None else None
        exact = only == "meaning" or len(self.vectors) <= EXACT_ROWS
        with engine_errors(self.path):
            nearest = None
            if units is not None and exact:
                nearest = self.vectors.nearest(units, most, allowed)
            found = []
            for at, text in enumerate(texts):
                near = nearest[at] if nearest is not None else None
                if only == "meaning":
                    assert near is not None
                    found.append(self._of_rows(near[0][:k], near[1][:k]))
                elif units is None:
                    found.append(self._by_letters(text, conditions, k))
                else:
                    found.append(self._by_both(text, units[at], near, conditions, k))
            return found

    def hits(self, found: Found) -> list[Hit]:
        """Return the stored documents. Raises InputError where the index is damaged."""
        hits = []
        for address, score in zip(*found, strict=True):
            document = self.document(address)
            hits.append(Hit(document.id, score, document.record))
        return hits

    def document(self, address: Any) -> StoredDocument:
        """Return the document at an address. Raises InputError where the index is damaged."""
        with engine_errors(self.path):
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
            with engine_errors(self.path):
                query = query_of(self._engine, self._schema, self._fields, conditions)
                order = self._engine.Order.Asc
                # Tantivy takes memory for as many documents as are asked for.
                number = max(int(self._searcher.search(query, 1).count), 1)
                hits = self._searcher.search(query, number, count=False, order_by_field="row", order=order)
                found = np.fromiter((row for row, _ in hits.hits), np.int64)
            with self._keeping:
                self._allowed[conditions] = found
                while len(self._allowed) > 1 and (
                    len(self._allowed) > KEPT_CONDITIONS or sum(map(len, self._allowed.values())) > KEPT_ROWS
                ):
                    self._allowed.popitem(last=False)
        return found

    def _by_letters(self, text: str, conditions: Conditions, k: int) -> Found:
        query, weight = self._letters(text)
        hits = self._searcher.search(self._within(query, conditions), k, count=False).hits if weight else []
        return Found([one for _, one in hits], [score / (LETTERS_SHARE * weight) for score, _ in hits])

    def _of_rows(self, rows: Int64s, cosines: Floats) -> Found:
        """Return the documents of rows, in that order."""
        places = {row: at for at, row in enumerate(rows.tolist())}
        query = self._query.term_set_query(self._schema, "row", list(places))
        hits = self._searcher.search(query, max(len(places), 1), count=False).hits if places else []
        addresses = [one for _, one in hits]
        order = sorted(
            zip((places[row] for row in self._rows(addresses)), addresses, strict=True), key=lambda one: one[0]
        )
        return Found([one for _, one in order], [float(cosines[at]) for at, _ in order])

    def _by_both(
        self, text: str, unit: Floats, near: tuple[Int64s, Floats] | None, conditions: Conditions, k: int
    ) -> Found:
        """Return the best of the union of what letters and meaning propose, by the sum of both scores."""
        query, weight = self._letters(text)
        engine = self._engine
        most = max(k, CANDIDATES) if near is not None else max(k, LETTERS_CANDIDATES)
        hits = self._searcher.search(self._within(query, conditions), most, count=False).hits if weight else []
        addresses = [one for _, one in hits]
        letters = [score for score, _ in hits]
        rows = self._rows(addresses)
        missing = np.setdiff1d(near[0], rows).tolist() if near is not None else []
        if missing:
            # The rows that only meaning proposes: their documents, with the letters' scores of those.
            wanted = self._query.const_score_query(self._query.term_set_query(self._schema, "row", missing), 0.0)
            parts = [(engine.Occur.Must, wanted), *([(engine.Occur.Should, query)] if weight else [])]
            others = self._searcher.search(self._query.boolean_query(parts), len(missing), count=False).hits
            more = [one for _, one in others]
            addresses, letters = addresses + more, letters + [score for score, _ in others]
            rows = rows + self._rows(more)
        if not rows:
            return Found([], [])
        places = np.array(rows, np.int64)
        cosines = self.vectors.cosines(unit, places).astype(np.float64)
        scores = cosines + np.array(letters) / (LETTERS_SHARE * weight if weight else 1.0)
        order = np.lexsort((places, -scores))[:k].tolist()
        return Found([addresses[at] for at in order], [float(scores[at]) for at in order])

    def _rows(self, addresses: list[Any]) -> list[int]:
        rows = self._searcher.fast_field_values("row", addresses) if addresses else []
        if not all(isinstance(row, int) and 0 <= row < len(self.vectors) for row in rows):
            raise damaged(self.path, "a document has no vector")
        return rows

    def _letters(self, text: str) -> tuple[Any, float]:
        """Return the query for the n-grams of a text, and the sum of their idf; of long texts those that are rarest."""
        counts = dict(islice(counted(text).items(), MOST_LOOKED_UP))
        if not counts:
            return self._query.empty_query(), 0.0
        holding = np.array([self._searcher.doc_freq("letters", one) for one in counts], np.float64)
        weights = idf(holding, self.documents) * list(counts.values())
        known = np.flatnonzero(holding > 0)
        if len(known) > MOST_SEARCHED:
            known = np.sort(known[np.argsort(-weights[known], kind="stable")[:MOST_SEARCHED]])
        names = list(counts)
        parts = []
        for at in known.tolist():
            one = self._query.term_query(self._schema, "letters", names[at], index_option="freq")
            if counts[names[at]] > 1:
                one = self._query.boost_query(one, float(counts[names[at]]))
            parts.append((self._engine.Occur.Should, one))
        if not parts:
            return self._query.empty_query(), 0.0
        total = weights.sum() if len(names) <= MOST_SEARCHED else weights[known].sum()
        return self._query.boolean_query(parts), float(total)

    def _within(self, query: Any, conditions: Conditions) -> Any:
        if not conditions:
            return query
        must = self._engine.Occur.Must
        narrowed = query_of(self._engine, self._schema, self._fields, conditions)
        return self._query.boolean_query([(must, narrowed), (must, query)])


def check_k(k: int) -> None:
    """Raise InputError if k is not a whole number from 1 to 10,000."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_HITS:
        raise InputError(f"k: must be a whole number from 1 to {MOST_HITS:,}, got {k!r}", field="k")


def check_only(only: object) -> None:
    """Raise InputError if `only` is not a part of a score."""
    if only is not None and only not in get_args(Only):
        raise InputError(f"only: must be 'letters' or 'meaning', got {only!r}; leave it out for both", field="only")
