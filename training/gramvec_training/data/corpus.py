"""The training texts, turned into ids once, and batches cut from them without a loop over texts."""

from __future__ import annotations

from gramvec_training.types import Bools, Ids, Ints

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt



class Features(Protocol):
    """What a featurizer returns: flat `ids` int32[rows] and `offsets` int64[n + 1]."""

    @property
    def ids(self) -> Ids:
        """Rows of the table, text after text."""
        ...

    @property
    def offsets(self) -> Ints:
        """Where each text's ids begin, and the number of all ids."""
        ...


Featurize = Callable[[Sequence[str]], Features]


@dataclass(frozen=True)
class Batch:
    """The bags of a batch, numbered within its own few rows.

    `rows` int64[u]: the distinct rows of the table that the batch touches, ascending. `ids` int32[m]: positions in
    `rows`. `offsets` int32[n + 1]: where each text's ids begin. `texts` int64[n]: the texts' numbers in the corpus.
    """

    rows: Ints
    ids: Ids
    offsets: Ids
    texts: Ints


class Corpus:
    """All texts as flat ids and offsets: 4 bytes a feature and 8 a text, and as much again while it is made.

    A million distinct pairs of 69 n-grams a side take 0.6 GB; of sentences of 120 characters, orders 2 to 4, 2.9 GB.
    """

    def __init__(self, ids: Ids, offsets: Ints, rows: int) -> None:
        self.ids = ids  # int32[features of all texts]
        self.offsets = offsets  # int64[texts + 1]
        self._place = np.zeros(rows, dtype=np.int32)  # scratch of `batch`: row of the table -> position

    @classmethod
    def of(
        cls, texts: Sequence[str], featurize: Featurize, rows: int, *, chunk: int = 4096,
        progress: Callable[[int], object] = lambda done: None,
    ) -> Corpus:  # fmt: skip
        """Featurize `texts` for a table of `rows` rows; `progress` is told the number of texts after each chunk."""
        ids: list[Ids] = []
        lengths: list[Ints] = []
        for start in range(0, len(texts), chunk):
            part = texts[start : start + chunk]
            features = featurize(part)
            ids.append(features.ids)
            lengths.append(np.diff(features.offsets))
            progress(len(part))
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        if texts:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        return cls(np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32), offsets, rows)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """int64[texts]: the number of features of each text."""
        return np.diff(self.offsets)

    def cut(self, texts: Ints) -> tuple[Ids, Ids]:
        """`ids` int32[m] into the table and `offsets` int32[n + 1] of the texts with these numbers, in this order."""
        starts = self.offsets[texts]
        lengths = self.offsets[texts + 1] - starts
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        flat = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return self.ids[flat], offsets.astype(np.int32)

    def batch(self, texts: Ints, kept: Callable[[Ids], Bools] | None = None) -> Batch:
        """The batch of the texts with these numbers, its rows found without sorting the ids.

        kept: int32[m] ids -> bool[m], which features stay; None for all.
        """
        ids, offsets = self.cut(texts)
        if kept is not None:
            stays = kept(ids)
            ids, offsets = ids[stays], np.append(0, np.cumsum(stays))[offsets].astype(np.int32)
        order = np.arange(len(ids), dtype=np.int32)
        self._place[ids] = order
        rows = np.sort(ids[self._place[ids] == order])
        self._place[rows] = np.arange(len(rows), dtype=np.int32)
        return Batch(rows.astype(np.int64), self._place[ids], offsets, texts)

    @property
    def digest(self) -> str:
        """64 hex digits over ids and offsets: two corpora with one digest train the same model."""
        state = hashlib.sha256(self.offsets.tobytes())
        state.update(np.ascontiguousarray(self.ids).data)
        return state.hexdigest()
