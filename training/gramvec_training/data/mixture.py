"""What an epoch is made of: how many pairs each source of paraphrases gives, drawn anew from a seed."""

from __future__ import annotations

from gramvec_training.types import Ints

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError



@dataclass(frozen=True)
class SourceGroups:
    """The groups of one source as numbers of texts.

    `members` int64[texts in groups]; `offsets` int64[groups + 1]; each group has two or more distinct texts.
    An epoch takes `pairs_per_group` pairs of each group, and of all these at most `cap`.
    """

    name: str
    members: Ints
    offsets: Ints
    pairs_per_group: int = 1
    cap: int | None = None

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.offsets) - 1

    @property
    def pairs_per_epoch(self) -> int:
        """How many pairs `draw` gives."""
        available = self.groups * self.pairs_per_group
        return available if self.cap is None else min(available, self.cap)

    def draw(self, rng: np.random.Generator, *, shuffle: bool = True) -> Ints:
        """int64[pairs_per_epoch, 2]: numbers of texts; the groups without replacement, a pair's sides distinct.

        Without `shuffle` the drawn groups are in the order of their file.
        """
        wanted = self.pairs_per_epoch
        chosen = rng.permutation(self.groups)[: -(-wanted // self.pairs_per_group)]
        if not shuffle:
            chosen.sort()
        chosen = np.repeat(chosen, self.pairs_per_group)[:wanted]
        starts = self.offsets[chosen]
        sizes = self.offsets[chosen + 1] - starts
        first = rng.integers(0, sizes)
        second = rng.integers(0, sizes - 1)
        second += second >= first
        return np.stack([self.members[starts + first], self.members[starts + second]], axis=1)


@dataclass(frozen=True)
class LabelGroups(SourceGroups):
    """The texts of each label: an epoch takes each of them once, with another one of its label.

    The only text of a label is its own partner, and so among the others' negatives. `pairs_per_group` has no meaning.
    """

    @property
    def pairs_per_epoch(self) -> int:
        """How many pairs `draw` gives: one for each text."""
        return len(self.members) if self.cap is None else min(len(self.members), self.cap)

    def draw(self, rng: np.random.Generator, *, shuffle: bool = True) -> Ints:
        """int64[pairs_per_epoch, 2]: a text, and another one of its label, uniformly."""
        chosen = rng.permutation(len(self.members))[: self.pairs_per_epoch]
        if not shuffle:
            chosen.sort()
        groups = np.searchsorted(self.offsets, chosen, side="right") - 1
        starts = self.offsets[groups]
        others = self.offsets[groups + 1] - starts - 1
        second = starts + rng.integers(0, np.maximum(others, 1))
        second += (second >= chosen) & (others > 0)
        return np.stack([self.members[chosen], self.members[second]], axis=1)


@dataclass(frozen=True)
class Mixture:
    """Several sources and the seed of all draws. The same seed gives the same epochs.

    Without `shuffle_first_epoch` the first epoch is the sources one after the other, each in the order of its file,
    which for PPDB is from the surest pair to the least.
    """

    sources: Sequence[SourceGroups]
    seed: int
    shuffle_first_epoch: bool = True

    def __post_init__(self) -> None:
        if not self.pairs_per_epoch:
            raise InputError("The data sets give no pair with known features on both sides; check the data.")

    @property
    def pairs_per_epoch(self) -> int:
        """How many pairs `epoch` gives."""
        return sum(source.pairs_per_epoch for source in self.sources)

    def epoch(self, number: int) -> Ints:
        """int64[pairs_per_epoch, 2] of one epoch (from 0), shuffled over the sources but for the first where asked."""
        rng = np.random.default_rng([self.seed, number])
        shuffle = number > 0 or self.shuffle_first_epoch
        pairs = np.concatenate([source.draw(rng, shuffle=shuffle) for source in self.sources])
        return pairs[rng.permutation(len(pairs))] if shuffle else pairs
