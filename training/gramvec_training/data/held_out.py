"""Pairs that are kept out of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramvec_training.configuration import DataSet
from gramvec_training.readers import BadRows, Group, read_paraphrases

MOST = 2_000  # pairs held out of one data set: more cost time and tell little
LEAST_ROWS = 10  # a data set of fewer has none to spare


@dataclass(frozen=True)
class HeldOut:
    """Pairs of texts, and `meanings` int64[n]: pairs with one number share a text, directly or through others."""

    left: list[str]
    right: list[str]
    meanings: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.left)


def read_kept(one: DataSet, data: Path, seed: int) -> tuple[list[Group], BadRows]:
    """The groups of a data set that are trained on, and its bad rows; see gramvec_training.readers."""
    groups, bad = read_paraphrases(data / one.path, layout=one.layout, on_bad=one.bad_rows)
    held = _held(groups, one.held_out, seed)[0]
    return [group for group, out in zip(groups, held, strict=True) if not out], bad


def read_held_out(sets: Sequence[DataSet], data: Path, seed: int) -> HeldOut:
    """The first two wordings of every group that `read_kept` leaves out of these data sets."""
    pairs = HeldOut([], [], np.zeros(0, np.int64))
    for one in sets:
        if one.held_out:
            groups, _ = read_paraphrases(data / one.path, layout=one.layout)
            held, meanings = _held(groups, one.held_out, seed)
            places = np.flatnonzero(held).tolist()
            pairs = HeldOut(
                [*pairs.left, *(groups[i][0] for i in places)],
                [*pairs.right, *(groups[i][1] for i in places)],
                np.append(pairs.meanings, meanings[places] + pairs.meanings.max(initial=-1) + 1),
            )
    return pairs


def _held(groups: Sequence[Group], share: float, seed: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which groups are held out, bool[n], and the meaning of each, int64[n].

    Groups that share a text are held out together or not at all: no held-out text is ever trained on.
    """
    held, meanings = np.zeros(len(groups), bool), np.arange(len(groups))
    if not share or len(groups) < LEAST_ROWS:
        return held, meanings
    from scipy.sparse import coo_array  # half a second, which a small file need not wait
    from scipy.sparse.csgraph import connected_components

    numbers: dict[str, int] = {}
    edges = [(row, numbers.setdefault(text, len(numbers))) for row, group in enumerate(groups) for text in group]
    rows, texts = np.array(edges).T
    size = len(groups) + len(numbers)
    graph = coo_array((np.ones(len(edges), bool), (rows, texts + len(groups))), shape=(size, size))
    meanings = connected_components(graph, directed=False)[1][: len(groups)].astype(np.int64)

    wanted = min(max(round(share * len(groups)), 2), MOST)
    sizes = np.bincount(meanings)
    chosen = np.zeros(len(sizes), bool)
    taken = 0
    for meaning in np.random.default_rng([seed, 2**32]).permutation(len(sizes)).tolist():
        if taken + sizes[meaning] <= wanted:
            chosen[meaning] = True
            taken += sizes[meaning]
    if chosen.sum() > 1:  # among wordings of one meaning there is nothing to confuse
        held = chosen[meanings]
    return held, meanings
