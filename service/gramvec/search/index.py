"""`Index`: an index file that is open, and what can be asked of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.dedupe_io import units_of
from gramvec.bulk.embed_file import cores
from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.lexical.sketch import LexicalSketch
from gramvec.runtime.base import Device
from gramvec.search.building import add_to_index, build_index, made_by, remove_from_index
from gramvec.search.filters import Narrowing, Where, allowed_rows, narrowing, text_of
from gramvec.search.hybrid import CANDIDATES, Hit, reordered, weights_for
from gramvec.search.layout import IndexHeader, Layout
from gramvec.search.records import Record, spooled
from gramvec.search.scan import TILE_QUERIES, kernels, nearest
from gramvec.search.weighing import Weights
from gramvec.text.inputs import iterated

MOST_HITS = 10_000
# A name from the file is looked for among models, never as a path.
_NAME = re.compile(r"\w[\w.+-]*")


class Index:
    """Texts of a file, searched by cosine; see docs/search.md.

    >>> index = gramvec.Index.build("things.gvi", ["cheap flights", "bananas"])
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
        verify: bool = True,
    ) -> None:
        """Open an index.

        model: a name in models/, a bundle's folder or an Embedder; None takes the name that the index has. It is loaded
        by the first call that needs it. threads: that look through one call's rows, None for all cores. verify: read
        the whole file once and compare its digest.
        Raises InputError for what is no whole index.
        """
        self.path = Path(path)
        self.threads = threads or cores()
        self._model = model
        self._device: Device = device
        self._verify = verify
        self._layout = Layout(self.path, verify=verify)
        self._embedder = made_by(self._layout, model) if isinstance(model, Embedder) else None

    @classmethod
    def open(cls, path: str | os.PathLike[str], **options: Any) -> Index:
        """The same as Index(path, ...)."""
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
        fine: bool = True,
        weights: Weights = "texts",
    ) -> Index:
        """Make an index of texts, or of dicts whose `column` is a text, and open it; a file that is there is replaced.

        records: any iterable, taken once, in bounded memory; or a frame of pandas, polars or pyarrow. id_column: of
        different ids, None to count from 1. filters: columns that a search can be narrowed by. fine: keep what vectors
        are rounded by as well, d bytes a row, so that scores are exact. weights: of n-grams, by these texts or
        the model's, see `build_index`.
        Raises InputError for a record without a text, for two with one id and if there is none.
        """
        embedder = model if isinstance(model, Embedder) else load(model)
        with spooled(records, column) as source:
            build_index(
                embedder, source, Path(path), form="jsonl", column=column, id_column=id_column, filters=[*filters],
                fine=fine, weights=weights,
            )  # fmt: skip
        return cls(path, model=embedder)

    @property
    def header(self) -> IndexHeader:
        """What the index says of itself."""
        return self._layout.header

    @property
    def digest(self) -> str:
        """SHA-256 of the header, which holds that of the rest: 64 hexadecimal digits."""
        return self._layout.digest

    @property
    def embedder(self) -> Embedder:
        """The model. Raises InputError if it is not the one that made the vectors, and what gramvec.load raises."""
        if self._embedder is None:
            model = self._model if self._model is not None else self.header.model
            if self._model is None and _NAME.fullmatch(self.header.model) is None:
                raise InputError(f"{self.path}: the name of its model is no plain name; name the model")
            # Weights of the index take the place of those that the model may not even have.
            space = self.header.space if self.lexical is None else "semantic"
            self._embedder = made_by(self._layout, load(model, device=self._device, space=space))  # type: ignore[arg-type]
        return self._embedder

    @property
    def lexical(self) -> LexicalSketch | None:
        """What weighs n-grams here, by the texts that it was built of; None where the model's does."""
        return self._layout.lexical

    def is_of(self, served: Embedder) -> bool:
        """Whether vectors of this open model can be made into what queries are embedded as; see `asked_with`.

        One that has lexical columns only cannot, but where it made the vectors.
        """
        try:
            found = self.asked_with(served)
        except InputError:
            return False
        return found is served or served.space != "lexical"

    def asked_with(self, served: Embedder) -> Embedder:
        """What embeds queries, given a model that is open: itself, or with the weights of the index.

        Raises InputError where it did not make the vectors.
        """
        return made_by(self._layout, served)

    def __len__(self) -> int:
        return self.header.rows

    @property
    def columns(self) -> list[str]:
        """The names of what is stored with the first row, the text first."""
        column = self.header.column
        return [column, *(name for name in (self._layout.record(0) if len(self) else {}) if name != column)]

    @property
    def filters(self) -> list[str]:
        """The columns that a search can be narrowed by."""
        return [one.column for one in self.header.filters]

    def search(
        self,
        queries: str | Iterable[str],
        k: int = 10,
        *,
        where: Where | None = None,
        truncate: bool = False,
        hybrid: float = 0.0,
    ) -> list[list[Hit]]:
        """The k nearest rows for each query (a text, or any iterable of them), the nearest first.

        Scores are cosines, within 0.0001 (0.01 if the index is not `fine`); 0 for a query without any known feature.
        All rows are looked at. where: column -> the value that a row has there, or a list of such, compared as text; of
        the columns that the index was built to filter by. truncate: cut long queries instead of refusing them.
        hybrid: from 0 to 1, how much the n-grams that a row shares with the query count, beside what both mean: of the
        100 nearest rows, or k, whose scores are then (1 - hybrid) cosine + hybrid overlap. Try 0.5.
        Raises InputError if k is not 1 to 10,000, a query is no text, or `where` names no column to filter by.
        """
        asked = [queries] if isinstance(queries, str) else queries
        return list(self.stream(asked, k, where=where, truncate=truncate, hybrid=hybrid))

    def stream(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        where: Where | None = None,
        truncate: bool = False,
        hybrid: float = 0.0,
    ) -> Iterator[list[Hit]]:
        """`search` for any number of queries, in bounded memory."""
        view = self.view(self.narrowing(where))
        check_k(k)
        kernels()  # what is missing is said before a model is loaded
        lexical = weights_for(self.embedder, hybrid, self.lexical)
        wanted = k if lexical is None else max(k, CANDIDATES)
        waiting = iterated(queries)
        while texts := list(islice(waiting, TILE_QUERIES)):
            units = units_of(self.embedder, texts, truncate=truncate, watch=lambda _: None)
            for text, rows, scores in zip(texts, *view.nearest(units, wanted), strict=True):
                if lexical is None:
                    yield view.hits(rows, scores)
                else:
                    yield view.mixed(rows, scores, text, lexical, hybrid)[:k]

    def narrowing(self, where: Where | None) -> Narrowing:
        """What `view` takes. Raises InputError for what the index cannot be narrowed by."""
        return narrowing(self.filters, where or {})

    def view(self, asked: Narrowing = ()) -> View:
        """The rows as they are now, or those of `narrowing`; adding and removing does not change it."""
        return View(self._layout, self.threads, asked)

    def add(self, records: Iterable[str | Record]) -> int:
        """Add texts, or dicts as `build` takes them; how many rows there are now. The file is replaced as a whole.

        Raises InputError for an id that is there already, or a bad record; then nothing has changed.
        """
        with spooled(records, self.header.column) as source:
            add_to_index(self.embedder, self.path, source, form="jsonl")
        return self._reopened()

    def remove(self, ids: Iterable[str]) -> int:
        """Take rows out by their ids; how many are left. The file is replaced as a whole.

        Raises InputError for an id that is not there, and if no row would be left; then nothing has changed.
        """
        remove_from_index(self.path, [ids] if isinstance(ids, str) else list(ids))
        return self._reopened()

    def _reopened(self) -> int:
        self._layout = Layout(self.path, verify=self._verify)
        return len(self)


class View:
    """Some rows of an index, or all of them, asked with vectors instead of texts."""

    def __init__(self, layout: Layout, threads: int, asked: Narrowing) -> None:
        self._layout = layout
        self._threads = threads
        self._allowed = allowed_rows(layout.filters, asked, layout.header.rows) if asked else None

    def nearest(self, units: Vectors, k: int) -> tuple[NDArray[np.int64], Vectors]:
        """Rows int64[q, <= k] and their cosines for float32[q, d] of length 1 or 0; see `scan.nearest`.

        Raises InputError if k is not 1 to 10,000.
        """
        check_k(k)
        layout = self._layout
        return nearest(
            units, layout.vectors, k, remainders=layout.remainders, threads=self._threads, allowed=self._allowed
        )

    def hits(self, rows: NDArray[np.int64], scores: Vectors) -> list[Hit]:
        """What was stored with these rows. Raises InputError where the file is damaged."""
        layout = self._layout
        return [
            Hit(layout.id(row), score, layout.record(row))
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def mixed(
        self, rows: NDArray[np.int64], scores: Vectors, query: str, lexical: LexicalSketch, hybrid: float
    ) -> list[Hit]:
        """`hits` in another order, by the n-grams that they share with the query as well; see `hybrid.reordered`."""
        hits = self.hits(rows, scores)
        stored = [text_of(hit.record.get(self._layout.header.column)) for hit in hits]
        return reordered(hits, query, stored, lexical, hybrid)

    def ids(self, rows: NDArray[np.int64]) -> list[str]:
        """The ids of these rows."""
        return [self._layout.id(row) for row in rows.tolist()]

    def record_bytes(self, rows: NDArray[np.int64]) -> int:
        """How many bytes the records of these rows have in the file."""
        return self._layout.record_bytes(rows)


def check_k(k: int) -> None:
    """Raise InputError if k is no whole number from 1 to 10,000."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_HITS:
        raise InputError(f"k must be a whole number from 1 to {MOST_HITS:,}, not {k!r}", field="k")
