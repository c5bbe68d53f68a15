"""Records of two tables that are the same thing: F1 on labelled pairs, and how far down a whole table the match stands.

A set is a folder as the benchmark of DeepMatcher (Mudgal et al., 2018) has it: `left.csv` and `right.csv`, a column `id`
and others, and `train.csv`, `valid.csv`, `test.csv` with the columns `left`, `right`, `match` (0 or 1).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.data import open_binary
from gramvec_training.evaluation.comparison import Floats, Ints, Model

Bools = npt.NDArray[np.bool_]

SPLITS = ("train", "valid", "test")
# What is compared of the benchmark's sets, joined by a space; of other sets every column that both tables have.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "abt-buy": ("name",),
    "amazon-google": ("title", "manufacturer"),
    "beer": ("Beer_Name", "Brew_Factory_Name"),
    "dblp-acm": ("title", "authors", "venue", "year"),
    "fodors-zagats": ("name", "addr", "city"),
    "itunes-amazon": ("Song_Name", "Artist_Name", "Album_Name", "Time"),
    "wdc-shoes": ("title",),
}
RECALLS = (1, 10)


@dataclass(frozen=True)
class Pairs:
    """Labelled pairs: `left` and `right` int64[n], rows of the two tables; `match` bool[n]."""

    left: Ints
    right: Ints
    match: Bools

    def __len__(self) -> int:
        return len(self.match)

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(
            np.concatenate([self.left, other.left]),
            np.concatenate([self.right, other.right]),
            np.concatenate([self.match, other.match]),
        )


@dataclass(frozen=True)
class MatchingSet:
    """Two tables as texts, a row each, and the pairs that people labelled."""

    name: str
    columns: tuple[str, ...]
    left: list[str]
    right: list[str]
    train: Pairs
    valid: Pairs
    test: Pairs


@dataclass(frozen=True)
class MatchingScores:
    """F1, precision and recall (0 to 1) on the test pairs at `threshold`, which was best on train and valid together.

    `fitted_f1` is the F1 there. `recalls`: k -> of the left rows with a match among the labelled pairs of all splits,
    the mean share of their matches that are among the k most alike rows of the whole right table.
    """

    f1: float
    precision: float
    recall: float
    threshold: float
    fitted_f1: float
    recalls: Mapping[int, float]


def find_matching_sets(folder: Path, columns: Mapping[str, Sequence[str]] = COLUMNS) -> list[MatchingSet]:
    """The sets below a folder, by name, or the one that it is. Raises InputError where there is none."""
    if (folder / "left.csv").is_file():
        return [read_matching_set(folder, columns.get(folder.resolve().name))]
    found = sorted(path.parent for path in folder.glob("*/left.csv"))
    if not found:
        raise InputError(f"No matching set is in {folder}; a set is a folder with left.csv, right.csv and test.csv.")
    return [read_matching_set(path, columns.get(path.name)) for path in found]


def read_matching_set(folder: Path, columns: Sequence[str] | None = None) -> MatchingSet:
    """One set. columns: what is compared, in this order; without them every column that both tables have.

    Raises InputError, naming file and line, for a file that is missing, a column that is not there, an id that occurs
    twice or in no table, a label other than 0 and 1, and splits that lack matches or other pairs.
    """
    tables = {side: list(_records(folder / f"{side}.csv")) for side in ("left", "right")}
    heads = {side: list(rows[0][1]) if rows else [] for side, rows in tables.items()}
    if columns is None:
        columns = [name for name in heads["left"] if name != "id" and name in heads["right"]]
    for side, names in heads.items():
        for name in ("id", *columns):
            if name not in names:
                raise InputError(f"{folder / side}.csv has no column {name!r}; it has {', '.join(names) or 'no row'}.")
    rows = {side: _row_of_id(folder / f"{side}.csv", table) for side, table in tables.items()}
    texts = {
        side: [" ".join(row[name] for name in columns if row[name]) for _, row in table]
        for side, table in tables.items()
    }
    train, valid, test = (_pairs(folder / f"{split}.csv", rows["left"], rows["right"]) for split in SPLITS)
    for split, pairs in zip(("train.csv and valid.csv", "test.csv"), (train + valid, test), strict=True):
        if pairs.match.all() or not pairs.match.any():
            raise InputError(f"{folder}: {split} need pairs that match and pairs that do not.")
    return MatchingSet(folder.resolve().name, tuple(columns), texts["left"], texts["right"], train, valid, test)


def score_matching(one: MatchingSet, model: Model, *, recalls: Sequence[int] = RECALLS) -> MatchingScores:
    """The scores of a model, made for the two tables' texts."""
    comparison = model([*one.left, *one.right])

    def alike(pairs: Pairs) -> Floats:
        return comparison.pairs(
            [one.left[i] for i in pairs.left.tolist()], [one.right[i] for i in pairs.right.tolist()]
        )

    fitted = one.train + one.valid
    threshold, fitted_f1 = best_threshold(alike(fitted), fitted.match)
    f1, precision, recall = f1_at(threshold, alike(one.test), one.test.match)

    everything = fitted + one.test
    matches: dict[int, set[int]] = {}
    for left, right in zip(everything.left[everything.match], everything.right[everything.match], strict=True):
        matches.setdefault(int(left), set()).add(int(right))
    places = comparison.nearest([one.left[i] for i in matches], one.right, max(recalls, default=0)).tolist()
    found = {
        k: float(np.mean([len(true.intersection(row[:k])) / len(true) for true, row in zip(matches.values(), places, strict=True)]))
        for k in recalls
    }  # fmt: skip
    return MatchingScores(f1, precision, recall, threshold, fitted_f1, found)


def best_threshold(scores: Floats, match: Bools) -> tuple[float, float]:
    """(threshold, F1): where `score >= threshold` as the answer "match" has the highest F1, the highest such threshold.

    It lies in the middle between two scores. scores: float64[n]; match: bool[n], at least one of them true.
    Raises InputError where nothing matches or a score is not a number.
    """
    if not match.any() or not np.isfinite(scores).all():
        raise InputError("A threshold needs at least one pair that matches, and scores that are numbers.")
    order = np.argsort(-scores, kind="stable")
    ranked, true = scores[order], np.cumsum(match[order])
    f1 = 2 * true / (np.arange(1, len(ranked) + 1) + int(match.sum()))
    f1[np.append(ranked[1:] == ranked[:-1], False)] = -1  # no threshold lies between equal scores
    best = int(np.argmax(f1))
    threshold = (ranked[best] + ranked[best + 1]) / 2 if best + 1 < len(ranked) else ranked[best]
    return float(threshold), float(f1[best])


def f1_at(threshold: float, scores: Floats, match: Bools) -> tuple[float, float, float]:
    """(F1, precision, recall) of the answer `score >= threshold`; 0 where nothing is found."""
    said = scores >= threshold
    true = int(np.count_nonzero(said & match))
    if not true:
        return 0.0, 0.0, 0.0
    precision, recall = true / int(said.sum()), true / int(match.sum())
    return 2 * precision * recall / (precision + recall), precision, recall


def _records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    # (line, column -> value); the csv module asks for text whose line ends are as they stand in the file.
    with open_binary(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, strict=True)
        try:
            head = next(reader, None)
            if head is None or len(set(head)) != len(head):
                raise InputError(f"{path} needs a first line with a different name for each column.")
            for values in reader:
                if len(values) != len(head):
                    raise InputError(f"{path} line {reader.line_num}: {len(values)} values for {len(head)} columns.")
                yield reader.line_num, dict(zip(head, values, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path} line {reader.line_num} is not readable as UTF-8 CSV: {error}.") from error


def _row_of_id(path: Path, table: Sequence[tuple[int, dict[str, str]]]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for index, (line, row) in enumerate(table):
        if row["id"] in rows:
            raise InputError(f"{path} line {line}: the id {row['id']!r} occurs twice.")
        rows[row["id"]] = index
    return rows


def _pairs(path: Path, left: Mapping[str, int], right: Mapping[str, int]) -> Pairs:
    found = []
    for line, row in _records(path):
        try:
            label = {"0": False, "1": True}[row["match"]]
            found.append((left[row["left"]], right[row["right"]], label))
        except KeyError as error:
            raise InputError(
                f"{path} line {line}: {error.args[0]!r} is not known; a line has the columns left and right, ids of "
                "the two tables, and match, 0 or 1."
            ) from error
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Pairs(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_))
