"""Labels of texts as pairs of a text and a label: one of each text, or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.text.arrays import Floats, Int64s


@dataclass(frozen=True, eq=False)
class Targets:
    """Pairs of a text and one of its labels.

    Args:
        text: int64[m], ascending.
        label: int64[m], from 0.
        texts: how many there are.
        labels: how many there are.
    """

    text: Int64s
    label: Int64s
    texts: int
    labels: int

    @classmethod
    def of(cls, given: Sequence[Sequence[str]], names: Sequence[str]) -> Targets:
        """Return the labels of each text as their places in `names`.

        Raises:
            InputError: with the text's index, for a text without a label.
        """
        places = {name: place for place, name in enumerate(names)}
        text, label = [], []
        for row, text_labels in enumerate(given):
            if not text_labels:
                raise InputError(f"text {row} has no label", index=row)
            for name in dict.fromkeys(text_labels):
                text.append(row)
                label.append(places[name])
        return cls(np.array(text, np.int64), np.array(label, np.int64), len(given), len(names))

    def select(self, rows: Int64s) -> Targets:
        """Return the pairs of these texts, ascending, which are numbered anew."""
        places = np.full(self.texts, -1, np.int64)
        places[rows] = np.arange(len(rows))
        kept = places[self.text] >= 0
        return Targets(places[self.text[kept]], self.label[kept], len(rows), self.labels)

    @cached_property
    def counts(self) -> Int64s:
        """Texts of each label, int64[labels]."""
        counts: Int64s = np.bincount(self.label, minlength=self.labels)
        return counts

    @cached_property
    def rarest(self) -> Int64s:
        """The label of each text that has the fewest texts, int64[texts]."""
        order = np.lexsort([self.label, self.counts[self.label], self.text])
        first = np.flatnonzero(np.diff(self.text[order], prepend=-1))
        rarest: Int64s = self.label[order[first]]
        return rarest

    @cached_property
    def shares(self) -> Floats:
        """The share of a text that each pair is, float32[m]; those of a text sum to 1."""
        shares: Floats = (1 / np.bincount(self.text, minlength=self.texts)[self.text]).astype(np.float32)
        return shares

    def hold(self, text: Int64s, label: Int64s) -> NDArray[np.bool_]:
        """Return for pairs of a text and a label, int64[k], whether they are among these."""
        return np.isin(text * self.labels + label, self.text * self.labels + self.label)
