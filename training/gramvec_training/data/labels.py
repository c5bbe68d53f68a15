"""Texts by label: which are trained on, by which the kept model is chosen, and of which the report is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramvec_training.data.held_out import LEAST_ROWS, MOST
from gramvec_training.readers import Labelled, same_text

_KEPT = 2  # texts of a label that are never held out: what is left can still be a pair


@dataclass(frozen=True)
class LabelTexts:
    """Texts, and of each the numbers of its labels, ascending: one, or all that the file gives it."""

    texts: list[str]
    labels: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """int64[n]: the number of each text's label, -1 where it has several."""
        return np.array([one[0] if len(one) == 1 else -1 for one in self.labels], np.int64)

    def of(self, places: Sequence[int]) -> LabelTexts:
        """Those at these places."""
        return LabelTexts([self.texts[i] for i in places], [self.labels[i] for i in places])


@dataclass(frozen=True)
class LabelSplit:
    """The texts of a file in three parts; no text is in two of them. names: the labels, by number."""

    names: tuple[str, ...]
    train: LabelTexts
    chosen_by: LabelTexts
    reported: LabelTexts


def split_labels(rows: Sequence[Labelled], share: float, seed: int) -> LabelSplit:
    """Hold out `share` of the texts of every label, one half to choose by and the other to report.

    Rows whose texts differ in case and white space alone are one text; it has the labels of all of them. A label keeps
    two texts at least, so that one with two or fewer has none held out; nor have files of fewer than ten texts.
    """
    numbers: dict[str, int] = {}
    texts: dict[str, str] = {}
    labels: dict[str, set[int]] = {}
    for label, (text, *_) in rows:
        key = same_text(text)
        texts.setdefault(key, text)
        labels.setdefault(key, set()).add(numbers.setdefault(label, len(numbers)))
    found = LabelTexts(list(texts.values()), [tuple(sorted(one)) for one in labels.values()])
    held = _held(found, len(numbers), share, seed)
    train = np.setdiff1d(np.arange(len(found)), held)
    return LabelSplit(
        tuple(numbers), found.of(train.tolist()), found.of(np.sort(held[1::2]).tolist()),
        found.of(np.sort(held[::2]).tolist()),
    )  # fmt: skip


def _held(found: LabelTexts, labels: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """int64[held]: places of texts, label after label, so that every other one is half of each label."""
    if not share or len(found) < LEAST_ROWS:
        return np.zeros(0, np.int64)
    share = min(share, 2 * MOST / len(found))
    rng = np.random.default_rng([seed, 2**32])
    own = np.array([one[0] for one in found.labels])
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
