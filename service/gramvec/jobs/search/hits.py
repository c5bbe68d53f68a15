"""Hits of several queries: a list for each, and all of them as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.search.snapshot import Hit
from gramvec.jobs.tables.outputs import free_names

# The columns of a hit, before those of its row.
HIT_COLUMNS = ("query", "rank", "score", "id")


class QueryHits(list[list[Hit]], ResultTable):
    """Hits of each query, the best first.

    Args:
        queries: n texts.
        hits: n lists.
        column: of the documents' texts.
    """

    def __init__(self, queries: Sequence[str], hits: Iterable[list[Hit]], column: str) -> None:
        super().__init__(hits)
        self._queries, self._column = queries, column

    def columns(self) -> dict[str, FrameColumn]:
        """Return what `gramvec search` writes of each hit: query, rank from 1, score, id, and what was stored."""
        ranked = [
            (query, rank, hit)
            for query, hits in zip(self._queries, self, strict=True)
            for rank, hit in enumerate(hits, start=1)
        ]
        stored = dict.fromkeys([self._column, *(name for _, _, hit in ranked for name in hit.record)])
        found: dict[str, FrameColumn] = {
            "query": [query for query, _, _ in ranked],
            "rank": np.array([rank for _, rank, _ in ranked], np.int64),
            "score": np.array([hit.score for _, _, hit in ranked], np.float64),
            "id": [hit.id for _, _, hit in ranked],
        }
        for name, free in free_names(stored, "record_", HIT_COLUMNS).items():
            found[free] = [hit.record.get(name) for _, _, hit in ranked]
        return found

    def facts(self) -> dict[str, float]:
        """Return nothing: scores of hits promise nothing."""
        return {}
