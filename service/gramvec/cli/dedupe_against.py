"""What `gramvec dedupe --against` found: rows of the input that nearly repeat a row of an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.bulk.dedupe_io import Ids, Texts, units_of
from gramvec.cli.options import bar
from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.search.filters import text_of
from gramvec.search.index import Index
from gramvec.search.scan import TILE_QUERIES, kernels


def open_known(path: Path, embedder: Embedder, threads: int) -> Index:
    """The index, with this model. Raises InputError where it is another one's, and without numkong."""
    kernels()
    return Index(path, model=embedder, threads=threads)


class AgainstIndex:
    """By the nearest row of the index for each of a file's different texts; see `compared.Compared`."""

    def __init__(self, found: Texts, index: Index, embedder: Embedder, threshold: float, *, truncate: bool) -> None:
        self.rows, self.unit, self.bad = len(found.numbers), found.unit, found.bad
        self.remarks: list[str] = []
        self._found = found
        self._view = index.view()
        self._column = index.header.column
        texts = found.different
        self._rows = np.full(len(texts), -1, np.int64)
        self._scores = np.zeros(len(texts), np.float32)
        with bar("comparing", len(texts), " texts") as shown:
            for start in range(0, len(texts), TILE_QUERIES):
                some = slice(start, start + TILE_QUERIES)
                units = units_of(embedder, texts[some], truncate=truncate, watch=lambda _: None)
                rows, scores = self._view.nearest(units, 1)
                near = scores[:, 0] >= np.float32(threshold)
                self._rows[some] = np.where(near, rows[:, 0], -1)
                self._scores[some] = scores[:, 0]
                shown.update(len(units))

    def pairs(self) -> Iterator[dict[str, Any]]:
        """In order of their lines: `line`, `id` in the index, `score`, both `texts`."""
        for number, text in zip(self._found.numbers, self._found.of_row, strict=True):
            if text >= 0 and self._rows[text] >= 0:
                (hit,) = self._view.hits(self._rows[text : text + 1], self._scores[text : text + 1])
                texts = [self._found.different[text], text_of(hit.record.get(self._column))]
                yield {"line": number, "id": hit.id, "score": hit.score, "texts": texts}

    def groups(self) -> Iterator[dict[str, Any]]:
        """There are none. Raises InputError."""
        raise InputError("--against lists lines beside rows of the index, which are no groups; leave --groups out")

    def dropped(self) -> Ids:
        """int64, ascending: the numbers of the rows that the index has already."""
        texts = np.array(self._found.of_row, np.int64)
        known = (texts >= 0) & (self._rows[texts] >= 0)
        numbers: Ids = np.array(self._found.numbers, np.int64)[known]
        return numbers
