"""What `gramvec dedupe` found: pairs, groups and rows to drop, by comparing all pairs or through an index."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gramvec.bulk.dedupe import Pairs, groups, join
from gramvec.bulk.dedupe_io import Ids, Texts
from gramvec.cli.embed import progress
from gramvec.cli.options import Bars
from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.search.building import build_index
from gramvec.search.duplicates import Recall, near_rows
from gramvec.search.layout import Layout
from gramvec.search.scan import kernels
from gramvec.search.weighing import Weights
from gramvec.tables.bad_rows import BadLines
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import Form

# Pairs that are held before groups are joined by them, 80 MB.
HELD_PAIRS = 4_000_000


class Compared(Protocol):
    """What is listed. rows: of the input, the bad ones included; unit: what one is called; remarks: to be said."""

    rows: int
    unit: str
    bad: BadLines
    remarks: list[str]

    def pairs(self) -> Iterator[dict[str, Any]]:
        """In order of their numbers: `lines`, `score`, `texts`. Raises InputError if there are too many."""
        ...

    def groups(self) -> Iterator[dict[str, Any]]:
        """In order of their first line: `lines`, `texts`."""
        ...

    def dropped(self) -> Ids:
        """int64, ascending: the numbers of all rows that are not the first of their group."""
        ...


class AllCompared:
    """By the pairs of a file's different texts; at most `most` pairs of lines are listed."""

    def __init__(self, found: Texts, pairs: Pairs, most: int) -> None:
        self.rows, self.unit, self.bad = len(found.numbers), found.unit, found.bad
        self.remarks: list[str] = []
        self._found = found
        self._pairs = pairs
        self._most = most

    def pairs(self) -> Iterator[dict[str, Any]]:
        """See Compared: equal texts, and the rows of near ones."""
        found, pairs = self._found, self._pairs
        rows: list[list[int]] = [[] for _ in found.different]
        for row, text in enumerate(found.of_row):
            if text >= 0:
                rows[text].append(row)
        sizes = np.array([len(one) for one in rows], np.int64)
        total = int((sizes * (sizes - 1) // 2).sum() + (sizes[pairs.left] * sizes[pairs.right]).sum())
        if total > self._most:
            raise InputError(
                f"{total:,} pairs of lines, with equal ones; take --groups or --keep, or raise --threshold or "
                "--max-pairs"
            )
        near: list[tuple[int, int, float]] = []
        for one in rows:
            near += [(a, b, 1.0) for at, a in enumerate(one) for b in one[at + 1 :]]
        for left, right, score in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.scores.tolist(), strict=True):
            near += [(min(a, b), max(a, b), score) for a, b in product(rows[left], rows[right])]
        for a, b, score in sorted(near):
            yield {
                "lines": [found.numbers[a], found.numbers[b]],
                "score": score,
                "texts": [found.different[found.of_row[row]] for row in (a, b)],
            }

    def groups(self) -> Iterator[dict[str, Any]]:
        """See Compared."""
        found = self._found
        members: dict[int, list[int]] = {}
        for row, root in enumerate(self._roots().tolist()):
            members.setdefault(root, []).append(row)
        for rows in members.values():
            if len(rows) > 1:
                yield {
                    "lines": [found.numbers[row] for row in rows],
                    "texts": [found.different[found.of_row[row]] for row in rows],
                }

    def dropped(self) -> Ids:
        """See Compared."""
        roots = self._roots()
        numbers: Ids = np.array(self._found.numbers, np.int64)[roots != np.arange(len(roots))]
        return numbers

    def _roots(self) -> Ids:
        """int64[rows]: the first row of each row's group; a bad row is a group of its own."""
        first = groups(len(self._found.different), self._pairs.left, self._pairs.right)
        seen: dict[int, int] = {}
        return np.array(
            [
                row if text < 0 else seen.setdefault(int(first[text]), row)
                for row, text in enumerate(self._found.of_row)
            ],
            np.int64,
        )


class _Indexed:
    """By pairs of rows of an index, whose ids are the numbers; `first` is each row's group."""

    def __init__(self, layout: Layout, rows: int, unit: str, bad: BadLines, pairs: Pairs | None, first: Ids) -> None:
        self.rows, self.unit, self.bad = rows, unit, bad
        self.remarks: list[str] = []
        self._layout = layout
        self._pairs = pairs
        self._first = first
        self._column = layout.header.column

    def pairs(self) -> Iterator[dict[str, Any]]:
        """See Compared; equal texts are pairs with the first of them alone."""
        assert self._pairs is not None
        left, right, scores = self._pairs
        for at in np.lexsort((right, left)).tolist():
            rows = self._rows([int(left[at]), int(right[at])])
            yield {"lines": rows["lines"], "score": float(scores[at]), "texts": rows["texts"]}

    def groups(self) -> Iterator[dict[str, Any]]:
        """See Compared."""
        order = np.argsort(self._first, kind="stable")
        edges = np.flatnonzero(np.diff(self._first[order], prepend=-1, append=-1))
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if end - begin > 1:
                yield self._rows(order[begin:end].tolist())

    def dropped(self) -> Ids:
        """See Compared."""
        rows = np.flatnonzero(self._first != np.arange(len(self._first)))
        return np.fromiter((int(self._layout.id(row)) for row in rows.tolist()), np.int64, len(rows))

    def _rows(self, rows: list[int]) -> dict[str, Any]:
        return {
            "lines": [int(self._layout.id(row)) for row in rows],
            "texts": [self._layout.record(row)[self._column] for row in rows],
        }


def through_an_index(
    file: Path,
    folder: Path,
    form: Form,
    column: str,
    embedder: Embedder,
    threshold: float,
    *,
    truncate: bool,
    on_error: OnError,
    threads: int,
    weights: Weights,
    most: int | None,
) -> Compared:
    """What `search.near_rows` finds in an index of the file, which is made in `folder`.

    most: pairs that are to be listed, at most; None if only groups are wanted. Raises InputError without numkong.
    """
    kernels()  # what is missing is said before the work
    path = folder / "texts.gvi"
    try:
        with progress("embedding") as watch:
            done = build_index(
                embedder, file, path, form=form, column=column, truncate=truncate, on_error=on_error, threads=threads,
                watch=watch, fine=False,
                weights="model" if embedder.space == "semantic" else weights,
            )  # fmt: skip
    except OSError as error:
        # Nobody has named this folder, so nobody knows it.
        why = error.strerror or error
        raise InputError(f"no index could be made in {folder} ({why}); name a folder with room in TMPDIR") from error
    embedder.close()
    layout = Layout(path, verify=False)
    held = _Held(len(layout.vectors), most)
    _join_equal_texts(layout, held)
    with Bars() as shown:
        recall = near_rows(layout.vectors, threshold, held.take, threads=threads, watch=shown.watch)
    pairs, first = held.result()
    found = _Indexed(layout, done.rows, done.unit, done.bad, pairs, first)
    found.remarks.append(_remark(recall))
    return found


class _Held:
    """Pairs, all of them or until their groups are joined."""

    def __init__(self, rows: int, most: int | None) -> None:
        self._most = most
        self._first = np.arange(rows)
        self._pairs: list[Pairs] = []
        self._count = 0

    def take(self, pairs: Pairs) -> None:
        self._pairs.append(pairs)
        self._count += len(pairs.left)
        if self._most is not None and self._count > self._most:
            raise InputError(
                f"more than {self._most:,} pairs; take --groups or --keep, or raise --threshold or --max-pairs"
            )
        if self._most is None and self._count >= HELD_PAIRS:
            self._join()

    def _join(self) -> None:
        for pairs in self._joined():
            join(self._first, pairs.left, pairs.right)
        self._pairs, self._count = [], 0

    def _joined(self) -> Iterator[Pairs]:
        if self._pairs:
            yield Pairs(*(np.concatenate(arrays) for arrays in zip(*self._pairs, strict=True)))

    def result(self) -> tuple[Pairs | None, Ids]:
        none = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        pairs = None if self._most is None else next(self._joined(), none)
        self._join()
        return pairs, self._first


def _join_equal_texts(layout: Layout, held: _Held) -> None:
    """Of texts without any known feature, whose vectors are zeros; of all others the vectors say it."""
    seen: dict[str, int] = {}
    for start in range(0, len(layout.vectors), 65_536):
        for at in np.flatnonzero(~layout.vectors[start : start + 65_536].any(axis=1)).tolist():
            row = start + at
            first = seen.setdefault(layout.record(row)[layout.header.column], row)
            if first != row:
                held.take(Pairs(np.array([first]), np.array([row]), np.ones(1, np.float32)))


def _remark(recall: Recall) -> str:
    if recall.found == recall.pairs:
        return f"all pairs that {recall.rows:,} of the rows have were found"
    share = 100 * recall.found / recall.pairs
    return (
        f"about {share:.1f} % of the pairs were found ({recall.found:,} of the {recall.pairs:,} that {recall.rows:,} "
        "rows have, which were compared with all)"
    )
