"""`Index`: an index file that is open, and what can be asked of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gramvec.bulk import cores, units_of
from gramvec.embedding import Embedder, iterated, load
from gramvec.errors import InputError
from gramvec.runtime import Device
from gramvec.search.building import add_to_index, build_index, check_model, remove_from_index
from gramvec.search.layout import IndexHeader, Layout
from gramvec.search.records import Record, spooled
from gramvec.search.scan import TILE_QUERIES, kernels, nearest

MOST_HITS = 10_000
# A name from the file is looked for among models, never as a path.
_NAME = re.compile(r"\w[\w.+-]*")


class Hit(NamedTuple):
    """A row that was found: its id, its cosine in [-1, 1] with the query, and what was stored with it."""

    id: str
    score: float
    record: Record


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
        self._embedder = model if isinstance(model, Embedder) else None
        self._layout = Layout(self.path, verify=verify)
        if self._embedder is not None:
            check_model(self._layout, self._embedder)

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
    ) -> Index:
        """Make an index of texts, or of dicts whose `column` is a text, and open it; a file that is there is replaced.

        records: any iterable, taken once, in bounded memory; or a frame of pandas, polars or pyarrow. id_column: of
        different ids, None to count from 1.
        Raises InputError for a record without a text, for two with one id and if there is none.
        """
        embedder = model if isinstance(model, Embedder) else load(model)
        with spooled(records, column) as source:
            build_index(embedder, source, Path(path), form="jsonl", column=column, id_column=id_column)
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
            embedder = load(model, device=self._device)  # type: ignore[arg-type]
            check_model(self._layout, embedder)
            self._embedder = embedder
        return self._embedder

    def __len__(self) -> int:
        return self.header.rows

    @property
    def columns(self) -> list[str]:
        """The names of what is stored with the first row, the text first."""
        column = self.header.column
        return [column, *(name for name in (self._layout.record(0) if len(self) else {}) if name != column)]

    def search(self, queries: str | Iterable[str], k: int = 10, *, truncate: bool = False) -> list[list[Hit]]:
        """The k nearest rows for each query (a text, or any iterable of them), the nearest first.

        Scores are cosines of the query's float32 vector with the stored int8 one; 0 for a query without any known
        feature. All rows are looked at. truncate: cut long queries instead of refusing them.
        Raises InputError if k is not 1 to 10,000, or a query is no text.
        """
        return list(self.stream([queries] if isinstance(queries, str) else queries, k, truncate=truncate))

    def stream(self, queries: Iterable[str], k: int = 10, *, truncate: bool = False) -> Iterator[list[Hit]]:
        """`search` for any number of queries, in bounded memory."""
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_HITS:
            raise InputError(f"k must be a whole number from 1 to {MOST_HITS:,}, not {k!r}", field="k")
        kernels()  # what is missing is said before a model is loaded
        layout, waiting = self._layout, iterated(queries)
        while texts := list(islice(waiting, TILE_QUERIES)):
            units = units_of(self.embedder, texts, truncate=truncate, watch=lambda _: None)
            rows, scores = nearest(units, layout.vectors, k, threads=self.threads)
            for some, cosines in zip(rows.tolist(), scores.tolist(), strict=True):
                yield [
                    Hit(layout.id(row), score, layout.record(row))
                    for row, score in zip(some, cosines, strict=True)
                ]  # fmt: skip

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
