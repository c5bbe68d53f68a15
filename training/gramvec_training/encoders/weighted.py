"""Averages of fixed word vectors, each times a number that is learned (Wieting et al., 2016b, footnote 19)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.encoders.base import Encoder
from gramvec_training.types import Floats


class Weighted(Encoder):
    """g(x) = the mean of a_w v_w over the words w of x, in which the v_w are given and the numbers a_w learned.

    A row of the table is v_w and behind it a_w, so that a number is learned lazily, as rows are; v_w has no gradient.
    table: float32[rows, d], the vectors, to which are added numbers that begin at one; or float32[rows, d + 1].
    A text without words has zeros.
    """

    def __init__(self, table: Tensor, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        if table.shape[1] == dimension:
            table = torch.cat([table, torch.ones(len(table), 1)], dim=1)
        self.table = nn.Parameter(table)  # [rows, d + 1]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        rows = self.table if table is None else table
        weighted = rows[:, :-1].detach() * rows[:, -1:]  # [rows, d]
        return functional.embedding_bag(ids, weighted, offsets, mode="mean", include_last_offset=True)  # [n, d]

    def parameter_counts(self) -> dict[str, int]:
        """See Encoder; the given vectors are no parameters."""
        return {"table": len(self.table)}


def folded(table: Floats) -> Floats:
    """float32[rows, d], the rows a_w v_w of a table of the above: a bag with the same vectors has these."""
    return table[:, :-1] * table[:, -1:]
