"""Probabilities of candidate pairs, block after block, here or by an engine.

There are three passes over the pairs: what two rows have in common, by which rivals are ranked; the first trees, which
say how clean the tables are; and the trees that score. Between them stands what needs all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gramvec.jobs.common.engines import HERE, Engine
from gramvec.jobs.pairs.figures import (
    EVIDENCE,
    FEW,
    FIRST,
    NAMES,
    OF_PAIR,
    OF_TABLES,
    RowTables,
    likeness,
    pair_figures,
    rivals_of,
    table_figures,
)
from gramvec.jobs.pairs.fuller_pairs import find_fuller_pairs
from gramvec.jobs.pairs.model import PairModel
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Floats, Int64s

BLOCK_PAIRS = 1 << 16
# Figures of pairs that stay in memory from one pass to the next; those of more pairs are made again.
KEPT_BYTES = 512 << 20


class CandidateScores(NamedTuple):
    """Candidate pairs with their probabilities.

    Attributes:
        rows: of the tables.
        left: int64[p], rows.
        right: int64[p], rows.
        scores: float32[p], probabilities.
        rivals: float32[p, len(OF_RIVALS)], figures.
        of_tables: float32[len(OF_TABLES)], figures that all of them have.
    """

    rows: RowTables
    left: Int64s
    right: Int64s
    scores: Floats
    rivals: Floats
    of_tables: Floats

    def figures(self, at: Int64s) -> Floats:
        """Return the figures of the pairs at these places, float32[n, len(NAMES)]."""
        return _beside(pair_figures(self.rows, self.left[at], self.right[at]), self.rivals[at], self.of_tables)


class _Block(NamedTuple):
    """Pairs that are scored together: of each two rows and a cosine; and the figures of others, as far as known."""

    number: int
    left: Int64s
    right: Int64s
    cosines: Floats
    rivals: Floats
    of_tables: Floats


class _Scorer:
    """What all blocks need: the rows, and the model. In the process that made it, it keeps figures between passes."""

    def __init__(self, rows: RowTables, model: PairModel) -> None:
        self.rows, self.model = rows, model
        self._kept: dict[int, Floats] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": {}}

    def figures(self, block: _Block) -> Floats:
        """Return the figures of a block's pairs, float32[p, len(NAMES)]; NaN for those that are not known."""
        own = self._kept.get(block.number)
        if own is None:
            own = pair_figures(self.rows, block.left, block.right)
            if (len(self._kept) + 1) * own.nbytes <= KEPT_BYTES:
                self._kept[block.number] = own
        return _beside(own, block.rivals, block.of_tables)


def _beside(own: Floats, rivals: Floats, of_tables: Floats) -> Floats:
    """Return figures of pairs, of rivals, and of the tables, float32[p, len(NAMES)]; NaN for unknown ones."""
    made = np.full((len(own), len(NAMES)), np.nan, np.float32)
    made[:, : len(OF_PAIR)] = own
    made[:, len(OF_PAIR) : len(OF_PAIR) + rivals.shape[1]] = rivals
    made[:, len(FIRST) :] = of_tables
    return made


def score_pairs_of_tables(
    rows: RowTables,
    pairs: tuple[Int64s, Int64s, Floats],
    model: PairModel,
    *,
    same: bool,
    repeated: Int64s | None = None,
    engine: Engine = HERE,
    progress: Progress = NO_PROGRESS,
) -> CandidateScores:
    """Return the probabilities of all candidate pairs of two tables, or of one with `same`.

    Args:
        rows: the tables.
        pairs: int64[p] and int64[p], rows, by the left, then the right one; and float32[p], cosines of their n-grams.
        model: of two tables, or of one.
        same: whether both rows are of one table.
        repeated: int64[r], rows of one table that stand there several times; None for none.
        engine: scores blocks of pairs.
        progress: shows the passes.
    """
    left, right, cosines = pairs
    shared = engine.share(_Scorer(rows, model))

    def blocks(rivals: Floats, of_tables: Floats) -> Iterator[_Block]:
        for start in range(0, len(left), BLOCK_PAIRS):
            part = slice(start, start + BLOCK_PAIRS)
            yield _Block(start, left[part], right[part], cosines[part], rivals[part], of_tables)

    def each(work: Callable[[_Scorer, _Block], Any], rivals: Floats, of_tables: Floats) -> Any:
        made = []
        for part in engine.map(work, shared, blocks(rivals, of_tables)):
            made.append(part)
            progress.advance(len(part))
        return np.concatenate(made)

    nothing, unknown = np.zeros((len(left), 0), np.float32), np.full(len(OF_TABLES), np.nan, np.float32)
    if not len(left):
        return CandidateScores(rows, left, right, np.zeros(0, np.float32), nothing, unknown)
    progress.start("comparing pairs", len(left), "pairs")
    common = each(_compare, nothing, unknown)
    rivals = rivals_of(rows, left, right, common[:, 0], common[:, 1])
    del common
    progress.start("scoring pairs", 2 * len(left), "scores")
    fuller = find_fuller_pairs(rows.facts, left, right, repeated)
    # The first trees do not look at what is not there yet.
    first = fuller.bound(each(_score_first, rivals, unknown))
    # Fewer pairs say no more of their tables than pairs that are given.
    of_tables = table_figures(first, left, right, same=same) if len(left) >= FEW else unknown
    return CandidateScores(rows, left, right, fuller.bound(each(_score, rivals, of_tables)), rivals, of_tables)


def _compare(scorer: _Scorer, block: _Block) -> Floats:
    """Return how alike the pairs of a block are, and what their columns tell, float32[p, 2]."""
    figures = scorer.figures(block)
    return np.stack([likeness(figures, block.cosines), figures[:, EVIDENCE]], axis=1)


def _score_first(scorer: _Scorer, block: _Block) -> Any:
    return scorer.model.first.probabilities(scorer.figures(block))


def _score(scorer: _Scorer, block: _Block) -> Floats:
    return scorer.model.probabilities(scorer.figures(block))
