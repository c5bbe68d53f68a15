"""Samplers: the pairs of each epoch by source or label, and what is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.readers.labels import Labeled, fold_text
from gramvec_training.readers.pairs import Group
from gramvec_training.shared import Ints


@dataclass(frozen=True)
class SourceGroups:
    """Groups of one source, as numbers of texts.

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
        """Return the number of groups."""
        return len(self.offsets) - 1

    @property
    def pairs_per_epoch(self) -> int:
        """Return the number of pairs that `draw` returns."""
        available = self.groups * self.pairs_per_group
        return available if self.cap is None else min(available, self.cap)

    def draw(self, rng: np.random.Generator, *, shuffle: bool = True) -> Ints:
        """Draw int64[pairs_per_epoch, 2] numbers of texts: groups without replacement, distinct sides.

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
    """Texts by label: an epoch pairs each text once with another one of its label.

    The only text of a label is its own partner, and so among the others' negatives. `pairs_per_group` has no meaning.
    """

    @property
    def pairs_per_epoch(self) -> int:
        """Return the number of pairs that `draw` returns: one for each text."""
        return len(self.members) if self.cap is None else min(len(self.members), self.cap)

    def draw(self, rng: np.random.Generator, *, shuffle: bool = True) -> Ints:
        """Draw int64[pairs_per_epoch, 2]: each text with another one of its label, uniformly."""
        chosen = rng.permutation(len(self.members))[: self.pairs_per_epoch]
        if not shuffle:
            chosen.sort()
        groups = np.searchsorted(self.offsets, chosen, side="right") - 1
        starts = self.offsets[groups]
        partners = self.offsets[groups + 1] - starts - 1
        second = starts + rng.integers(0, np.maximum(partners, 1))
        second += (second >= chosen) & (partners > 0)
        return np.stack([self.members[chosen], self.members[second]], axis=1)


@dataclass(frozen=True)
class Mixture:
    """Several sources and the seed of all draws; the same seed gives the same epochs.

    Without `shuffle_first_epoch` the first epoch is the sources one after the other, each in the order of its file,
    which for PPDB is from the surest pair to the least.
    """

    sources: Sequence[SourceGroups]
    seed: int
    shuffle_first_epoch: bool = True

    def __post_init__(self) -> None:
        if not self.pairs_per_epoch:
            raise InputError("the data sets give no pair with known features on both sides; check the data")

    @property
    def pairs_per_epoch(self) -> int:
        """Return the number of pairs that `epoch` returns."""
        return sum(source.pairs_per_epoch for source in self.sources)

    def epoch(self, number: int) -> Ints:
        """Draw int64[pairs_per_epoch, 2] for an epoch counted from 0, shuffled over the sources.

        The first epoch stays in order where `shuffle_first_epoch` is false.
        """
        rng = np.random.default_rng([self.seed, number])
        shuffle = number > 0 or self.shuffle_first_epoch
        pairs = np.concatenate([source.draw(rng, shuffle=shuffle) for source in self.sources])
        return pairs[rng.permutation(len(pairs))] if shuffle else pairs


MAX_HELD_OUT = 2_000  # pairs held out of one data set: more cost time and tell little
MIN_ROWS = 10  # a data set of fewer has none to spare


@dataclass(frozen=True)
class HeldOut:
    """Held-out pairs, and `meanings` int64[n]: pairs that share a text, directly or through others, have one number."""

    left: list[str]
    right: list[str]
    meanings: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.left)


def split_held_out(groups: Sequence[Group], share: float, seed: int) -> tuple[list[Group], HeldOut]:
    """Return the groups that are trained on, and the first two wordings of those that are held out."""
    held, meanings = _hold_out(groups, share, seed)
    places = np.flatnonzero(held).tolist()
    pairs = HeldOut([groups[i][0] for i in places], [groups[i][1] for i in places], meanings[places])
    return [group for group, out in zip(groups, held, strict=True) if not out], pairs


def join_held_out(parts: Sequence[HeldOut]) -> HeldOut:
    """Return the held-out pairs of several data sets, whose meanings stay apart."""
    joined = HeldOut([], [], np.zeros(0, np.int64))
    for part in parts:
        meanings = np.append(joined.meanings, part.meanings + joined.meanings.max(initial=-1) + 1)
        joined = HeldOut([*joined.left, *part.left], [*joined.right, *part.right], meanings)
    return joined


def _hold_out(groups: Sequence[Group], share: float, seed: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return bool[n], which groups are held out, and int64[n], the meaning of each.

    Groups that share a text are held out together or not at all: no held-out text is ever trained on.
    """
    held, meanings = np.zeros(len(groups), bool), np.arange(len(groups))
    if not share or len(groups) < MIN_ROWS:
        return held, meanings
    from scipy.sparse import coo_array  # half a second, which a small file need not wait
    from scipy.sparse.csgraph import connected_components

    numbers: dict[str, int] = {}
    edges = [(row, numbers.setdefault(text, len(numbers))) for row, group in enumerate(groups) for text in group]
    rows, texts = np.array(edges).T
    size = len(groups) + len(numbers)
    graph = coo_array((np.ones(len(edges), bool), (rows, texts + len(groups))), shape=(size, size))
    meanings = connected_components(graph, directed=False)[1][: len(groups)].astype(np.int64)

    wanted = min(max(round(share * len(groups)), 2), MAX_HELD_OUT)
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


_KEPT = 2  # texts of a label that are never held out: what is left can still be a pair


@dataclass(frozen=True)
class LabelTexts:
    """Texts, and for each the ascending numbers of all its labels."""

    texts: list[str]
    labels: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """Return int64[n]: the label number of each text, -1 where it has several."""
        return np.array([labels[0] if len(labels) == 1 else -1 for labels in self.labels], np.int64)

    def take(self, places: Sequence[int]) -> LabelTexts:
        """Return the texts at these places."""
        return LabelTexts([self.texts[i] for i in places], [self.labels[i] for i in places])


@dataclass(frozen=True)
class LabelSplit:
    """Texts of a file in three parts without overlap; `names` are the labels, by number."""

    names: tuple[str, ...]
    train: LabelTexts
    chosen_by: LabelTexts
    reported: LabelTexts


def split_labels(rows: Sequence[Labeled], share: float, seed: int) -> LabelSplit:
    """Hold out `share` of the texts of every label: one half for model selection, the other for the report.

    Rows whose texts differ only in case and white space are one text with the labels of all of them. A label keeps
    two texts at least, so that one with two or fewer has none held out; nor have files of fewer than ten texts.
    """
    numbers: dict[str, int] = {}
    texts: dict[str, str] = {}
    labels: dict[str, set[int]] = {}
    for label, (text, *_) in rows:
        key = fold_text(text)
        texts.setdefault(key, text)
        labels.setdefault(key, set()).add(numbers.setdefault(label, len(numbers)))
    all_texts = LabelTexts(list(texts.values()), [tuple(sorted(own)) for own in labels.values()])
    held = _hold_out_labels(all_texts, len(numbers), share, seed)
    train = np.setdiff1d(np.arange(len(all_texts)), held)
    return LabelSplit(
        tuple(numbers), all_texts.take(train.tolist()), all_texts.take(np.sort(held[1::2]).tolist()),
        all_texts.take(np.sort(held[::2]).tolist()),
    )  # fmt: skip


def _hold_out_labels(texts: LabelTexts, labels: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Return int64[held]: places of held-out texts, label after label, so that every other place is half of each
    label.
    """
    if not share or len(texts) < MIN_ROWS:
        return np.zeros(0, np.int64)
    share = min(share, 2 * MAX_HELD_OUT / len(texts))
    rng = np.random.default_rng([seed, 2**32])
    own = np.array([labels[0] for labels in texts.labels])
    order = np.lexsort([rng.random(len(own)), own])
    by_label = np.split(order, np.cumsum(np.bincount(own, minlength=labels))[:-1])
    held: list[npt.NDArray[np.int64]] = []
    due = 0.0
    for number in rng.permutation(labels).tolist():
        members = by_label[number]
        due += share * len(members)
        taken = min(round(due), max(len(members) - _KEPT, 0))
        due -= min(taken, due)
        held.append(members[:taken])
    return np.concatenate(held)
