"""`Index`: the folder of an index, opened, and searches of it by letters and meaning."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

import orjson

from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.jobs.search.build import build_index, check_model, columns_of_text
from gramvec.jobs.search.changes import add_to_index, remove_from_index
from gramvec.jobs.search.documents import Record
from gramvec.jobs.search.filters import Where, conditions_of
from gramvec.jobs.search.folder import IndexManifest, size_of
from gramvec.jobs.search.hits import QueryHits
from gramvec.jobs.search.snapshot import Hit, Only, Snapshot, TopDocuments, open_snapshot
from gramvec.jobs.search.vectors import unit_vectors
from gramvec.jobs.tables.batches import MISSING, list_names, value_at
from gramvec.jobs.tables.inputs import nameless_file
from gramvec.lexical.demands import Demands, demands_of
from gramvec.runtime.base import Device
from gramvec.text.frames import is_missing, rows_of, to_plain
from gramvec.text.inputs import is_whole, iterate_texts, list_texts, not_a_text
from gramvec.text.vocabulary import Vocabulary
from gramvec.threads import ProcessLock, count_cores

MAX_HITS = 10_000
# Queries that are answered together.
TOGETHER = 32
# Words of a query whose unknown ones are taken for names, letters of each at most, and letters of a name at least.
MAX_SHORT, MAX_WORD, MIN_NAME = 4, 64, 4
_WORD = re.compile(r"[^\W_]+")
# A name from an untrusted file is looked for among models, never as a path.
_NAME = re.compile(r"\w[\w.+-]*")


class Index:
    """Index of texts, searched by letters and meaning; see docs/search.md.

    Example:
        >>> index = gramvec.Index.build("things.index", ["cheap flights", "bananas"])
        >>> (hits,) = index.search(["cheap flihgts"], k=1)
        >>> hits[0].record
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
        self.threads = threads or count_cores()
        self._model = model
        self._device: Device = device
        self._snapshot = open_snapshot(self.path, self.threads)
        self._embedder: Embedder | None = None
        self._loading = ProcessLock()
        if isinstance(model, Embedder):
            check_model(self.manifest, model, self.path)
            self._embedder = model

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Index, model=self._model, device=self._device, threads=self.threads), (self.path,)

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
        column: str | Sequence[str] = "text",
        id: str | None = None,  # noqa: A002 - the name of the option
        filter: Iterable[str] = (),  # noqa: A002 - likewise
    ) -> Index:
        """Build an index of texts, or of dicts whose `column` is a text, and open it; an index that is there goes.

        Of several columns, those of a record that are there make one text.

        Args:
            path: the folder.
            records: any iterable, read once, in bounded memory; or a frame of pandas, polars or pyarrow.
            model: what makes the vectors.
            column: the texts; one name or several.
            id: column of ids, all different; None counts from 1.
            filter: columns that searches can be narrowed by, as NAME or NAME:text, NAME:number, NAME:date.

        Raises:
            InputError: a record has no text, two have one id, or there is none.
        """
        embedder = model if isinstance(model, Embedder) else load(model)
        columns = columns_of_text(column)
        with spool_records(records, columns) as source:
            build_index(embedder, source, Path(path), form="jsonl", column=columns, id_column=id, filters=[*filter])
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
                model = self._model if self._model is not None else find_model(self.path, self.manifest)
                embedder = load(model, device=self._device)  # type: ignore[arg-type]
                check_model(self.manifest, embedder, self.path)
                self._embedder = embedder
            return self._embedder

    def __len__(self) -> int:
        return self._snapshot.documents

    @property
    def columns(self) -> list[str]:
        """The names of what is stored with one of the rows, those of the text first."""
        texts = self.manifest.columns
        return [*texts, *(name for name in self._snapshot.first_record() if name not in texts)]

    @property
    def filters(self) -> list[str]:
        """The columns that searches can be narrowed by."""
        return [column.column for column in self.manifest.filters]

    @property
    def bytes(self) -> int:
        """The size of the index on disk."""
        return size_of(self.path, self.manifest)

    def search(
        self,
        queries: str | Iterable[str],
        k: int = 10,
        *,
        offset: int = 0,
        where: Where | None = None,
        only: Only | None = None,
        min_score: float = 0.0,
        literal: bool = False,
        truncate: bool = False,
    ) -> QueryHits:
        """Return the k best documents for each query, the best first: a list of lists of hits, and a table, too.

        Args:
            queries: a text, or any iterable of texts.
            k: 1 to 10,000.
            offset: how many of the best are left out, for the next page; with k at most 10,000.
            where: conditions on columns that the index can be narrowed by, all of which hold: a value, a list of values
                one of which a row has, None for a row without one, or bounds as in {"gte": 10, "lt": 20}, and "ne" for
                not equal.
            only: "letters" or "meaning" for one of both; scores are then that part of the sum.
            min_score: documents with a lower score are left out, as those with 0 or less always are.
            literal: take `-word` and `"a phrase"` as they are, instead of leaving out texts that have the word, and
                those that do not have the phrase.
            truncate: cut long queries instead of refusing them.

        Raises:
            InputError: an argument is not valid.
        """
        asked = [queries] if isinstance(queries, str) else list_texts(queries)
        hits = self.stream(
            asked, k, offset=offset, where=where, only=only, min_score=min_score, literal=literal, truncate=truncate
        )
        return QueryHits(asked, hits, self.manifest.column)

    def stream(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        offset: int = 0,
        where: Where | None = None,
        only: Only | None = None,
        min_score: float = 0.0,
        literal: bool = False,
        truncate: bool = False,
    ) -> Iterator[list[Hit]]:
        """Yield what `search` returns for each of any number of queries, in bounded memory."""
        snapshot = self.snapshot()
        check_page(k, offset)
        check_min_score(min_score)
        if only is not None and only not in get_args(Only):
            raise InputError(f"only: must be 'letters' or 'meaning', got {only!r}; leave it out for both", field="only")
        conditions = conditions_of(self.manifest.filters, where)
        waiting = iterate_texts(queries)
        while texts := list(islice(waiting, TOGETHER)):
            prepared = self.embedder.prepare(texts, truncate=truncate)
            asked = [Demands(text) if literal else demands_of(text) for text in prepared]
            units = None if only == "letters" else unit_vectors(self.embedder, [query.text for query in asked])
            names = (
                () if units is None or only is not None else [names_in(query.text, self.embedder) for query in asked]
            )
            for found in snapshot.find(asked, units, k + offset, conditions, only, min_score, names):
                yield snapshot.hits(TopDocuments(found.addresses[offset:], found.scores[offset:]))

    def count(self, where: Where | None = None) -> int:
        """Return how many documents meet conditions, as of `search`: the total of a narrowed list.

        Raises InputError for a condition that is not valid.
        """
        return self._snapshot.count(conditions_of(self.manifest.filters, where))

    def get(self, ids: str | int | Iterable[str | int]) -> list[Record | None]:
        """Return the record of each id, None for an id that is not there.

        Raises InputError for ids that are neither texts nor whole numbers.
        """
        found = self._snapshot.get(ids_in(ids))
        return [None if document is None else document.record for document in found]

    def items(self) -> Iterator[tuple[str, Record]]:
        """Yield the id and the record of every document, in the order in which they were added."""
        return ((document.id, document.record) for document in self._snapshot.all_documents())

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
        with spool_records(records, self.manifest.columns) as source:
            add_to_index(self.embedder, self.path, source, form="jsonl", replace=replace)
        return self.reload()

    def remove(self, ids: str | int | Iterable[str | int]) -> int:
        """Remove documents by their ids; return how many are left.

        Raises InputError for an id that is not there, and if no document would be left; then nothing has changed.
        """
        remove_from_index(self.path, ids_in(ids))
        return self.reload()

    def reload(self) -> int:
        """Open the last commit, of another process perhaps; return how many documents there are."""
        self._snapshot = open_snapshot(self.path, self.threads)
        return len(self)


def names_in(query: str, embedder: Embedder) -> str:
    """Return the words of a short query of which a model knows no meaning, such as a brand's; "" for none."""
    words = _WORD.findall(query.casefold()) if len(query) <= MAX_SHORT * MAX_WORD else []
    known = model_words(embedder) if 1 < len(words) <= MAX_SHORT else frozenset()
    names = [word for word in words if word not in known and len(word) >= MIN_NAME] if known else []
    return " ".join(names) if len(names) < len(words) else ""


def model_words(embedder: Embedder) -> frozenset[str]:
    """Return the words whose meaning a model has; none of a model of other units."""
    vocabulary: Any = embedder.bundle.vocabulary
    if not isinstance(vocabulary, Vocabulary):
        return frozenset()
    return _words_of(vocabulary)


@lru_cache(4)
def _words_of(vocabulary: Vocabulary) -> frozenset[str]:
    return frozenset(vocabulary.word_texts)


def find_model(path: Path, manifest: IndexManifest) -> str:
    """Return the name of an index's model, which is looked for among models. Raises InputError for any other name."""
    if _NAME.fullmatch(manifest.model) is None:
        raise InputError(f"{path}: the name of its model is not a plain name; name the model")
    return manifest.model


def check_page(k: int, offset: int) -> None:
    """Raise InputError if k is not a whole number from 1 to 10,000, or the offset none from 0 to 10,000 less k."""
    if not is_whole(k) or not 1 <= k <= MAX_HITS:
        raise InputError(f"k: must be a whole number from 1 to {MAX_HITS:,}, got {k!r}", field="k")
    if not is_whole(offset) or not 0 <= offset <= MAX_HITS - k:
        raise InputError(
            f"offset: must be a whole number from 0 to {MAX_HITS:,} less k, got {offset!r}", field="offset"
        )


def ids_in(given: Any) -> list[str]:
    """Return one id or several as texts; a number is the text of its digits. Raises InputError for anything else."""
    ids: list[Any] = (
        [given] if isinstance(given, str | Integral) else [*(given if isinstance(given, set) else iterate_texts(given))]
    )
    for given_id in ids:
        if isinstance(given_id, bool) or not isinstance(given_id, str | Integral):
            raise InputError(
                f"ids: must be texts or whole numbers, got {given_id!r}; give the ids of documents", field="ids"
            )
    return [str(given_id) for given_id in ids]


def check_min_score(score: float) -> None:
    """Raise InputError if the least score is not a finite number from 0."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score < math.inf:
        raise InputError(f"min_score: must be a number from 0, got {score!r}", field="min_score")


@contextmanager
def spool_records(records: Any, columns: Sequence[str]) -> Iterator[Path]:
    """Give a file of JSON lines with these records. It has no name in its folder, so that a kill leaves nothing."""
    rows = rows_of(records)
    with nameless_file() as (file, path):
        file.writelines(_line(place, record, columns) for place, record in enumerate(rows))
        file.flush()
        yield path


def _line(place: int, given: object, columns: Sequence[str]) -> bytes:
    record = {columns[0]: str(given)} if isinstance(given, str) and len(columns) == 1 else given
    if not isinstance(record, dict):
        sentence = (
            str(not_a_text(place, given)).replace("text", "record", 1).replace("give str", "give a text or a dict")
        )
        raise InputError(sentence, index=place)
    values = [value_at(record, name) for name in columns]
    if all(value is MISSING for value in values):
        raise InputError(
            f"record {place} has no {' or '.join(map(repr, columns))}; it has {list_names(map(str, record))}: name"
            " the column of the texts",
            index=place,
        )
    if all(value is MISSING or is_missing(value) for value in values):
        raise InputError(
            f"record {place}: {' or '.join(map(repr, columns))} is missing ({values[0] if len(values) == 1 else None});"
            " leave the record out, or give ''",
            index=place,
        )
    try:
        return orjson.dumps(record, to_plain, orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise InputError(f"record {place} has no form in JSON ({error})", index=place) from error
