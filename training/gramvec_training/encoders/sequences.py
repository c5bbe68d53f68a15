"""Texts of any lengths in step: no padding, and so nothing that a mask could let through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

LONGEST = 4_096  # a text is read up to this position: what bounds the memory of a text that a stranger sends


class Steps(NamedTuple):
    """The positions of n texts by step: the first of each, then the second of those that have one, and so on.

    Within a step the longer texts come first, so the texts of a step are the first ones of the step before. places
    int64[m]: of each, its index in the flat ids. sizes: how many texts each step has. last int64[n]: of each text, in
    the order in which they came, the index of its last position among the m, or -1 for an empty one; rank int64[n]: how
    many texts come before it.
    """

    places: Tensor
    sizes: list[int]
    last: Tensor
    rank: Tensor

    @classmethod
    def of(cls, offsets: Tensor, *, backwards: bool = False) -> Steps:
        """Of texts whose ids begin at `offsets` [n + 1]; backwards: each from its last position to its first."""
        bounds = offsets.cpu().numpy().astype(np.int64)
        lengths = np.minimum(np.diff(bounds), LONGEST)
        order = np.argsort(-lengths, kind="stable")
        ranked = lengths[order]
        steps = int(ranked[0]) if len(ranked) else 0
        sizes = np.searchsorted(-ranked, -np.arange(steps), side="left")  # how many are longer than each step
        begins = np.cumsum(sizes) - sizes
        step = np.repeat(np.arange(steps), sizes)
        rank = np.arange(len(step)) - begins[step]
        places = bounds[order][rank] + (ranked[rank] - 1 - step if backwards else step)
        last = np.full(len(lengths), -1, np.int64)
        known = np.flatnonzero(ranked)
        last[order[known]] = begins[ranked[known] - 1] + known
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(len(order))
        at, ends, ranks = (torch.from_numpy(one).to(offsets.device) for one in (places, last, rank_of))
        return cls(at, sizes.tolist(), ends, ranks)

    def last_of(self, states: Tensor) -> Tensor:
        """float32[n, h]: of each text its last state, of float32[m, h]; zeros for an empty one."""
        if not len(states):
            return states.new_zeros(len(self.last), states.shape[1])
        found = states[self.last.clamp(min=0)]
        return found * (self.last >= 0).unsqueeze(1)


def projected(rows: Tensor, ids: Tensor, matrix: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Values float32[v, k] and int64[m], which of them each position has: rows[ids] @ matrix + bias.

    A position's product depends on its row alone, so each row is multiplied once: a batch of words has some thirty
    different characters in thousands of positions. Where there are more rows than positions, each position is.
    """
    if len(rows) <= len(ids):
        return torch.addmm(bias, rows, matrix), ids
    return torch.addmm(bias, rows[ids], matrix), torch.arange(len(ids), device=ids.device)
