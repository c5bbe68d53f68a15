"""Matching of two tables: labeled pairs in CSV files, F1 at the best threshold, recall among the nearest.

The layout is the one of DeepMatcher's benchmark (Mudgal et al., 2018): `left.csv` and `right.csv` with a column `id`
and others; `train.csv`, `valid.csv` and `test.csv` with the columns `left`, `right` and `match` (0 or 1). Its own names
(and Magellan's) are taken as well: `tableA.csv` and `tableB.csv`, `ltable_id`, `rtable_id` and `label`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec.jobs.tables.columns import TableRows
from gramvec.jobs.tables.inputs import FileFormat
from gramvec_training.evaluation.backend import ModelForTexts, TextComparison
from gramvec_training.evaluation.similarity import correlate
from gramvec_training.evaluation.verdict import f1_of, judge, pearson_of
from gramvec_training.readers.lines import check_exists
from gramvec_training.shared import Bools, Doubles, Ints

NumberedRecords = list[tuple[int, dict[str, str]]]  # (line, column -> value)

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


@dataclass(frozen=True)
class PairPlaces:
    """Labeled pairs: `left` and `right` int64[n] rows of the two tables, `match` bool[n]."""

    left: Ints
    right: Ints
    match: Bools

    def __len__(self) -> int:
        return len(self.match)

    def __add__(self, other: PairPlaces) -> PairPlaces:
        return PairPlaces(
            np.concatenate([self.left, other.left]),
            np.concatenate([self.right, other.right]),
            np.concatenate([self.match, other.match]),
        )


@dataclass(frozen=True)
class MatchingSet:
    """Two tables as texts, one a row, and labeled pairs."""

    name: str
    columns: tuple[str, ...]
    left: list[str]
    right: list[str]
    train: PairPlaces
    valid: PairPlaces
    test: PairPlaces


@dataclass(frozen=True)
class _Names:
    """File and column names of a layout."""

    left_table: str
    right_table: str
    left: str
    right: str
    match: str


_LAYOUTS = (
    _Names("left.csv", "right.csv", "left", "right", "match"),
    _Names("tableA.csv", "tableB.csv", "ltable_id", "rtable_id", "label"),
)


def find_matching_sets(folder: Path, columns: Mapping[str, Sequence[str]] | None = None) -> list[MatchingSet]:
    """Find the sets below a folder, by name, or the one that it is.

    columns: name of a set -> what is compared of it; COLUMNS has those of the benchmark's sets.

    Raises:
        InputError: There is none.
    """
    wanted = {**COLUMNS, **(columns or {})}
    if any((folder / names.left_table).is_file() for names in _LAYOUTS):
        return [read_matching_set(folder, wanted.get(folder.resolve().name))]
    folders = sorted({path.parent for names in _LAYOUTS for path in folder.glob(f"*/{names.left_table}")})
    if not folders:
        raise InputError(f"{folder}: no matching set; a set is a folder with left.csv and right.csv")
    return [read_matching_set(path, wanted.get(path.name)) for path in folders]


def read_matching_set(folder: Path, columns: Sequence[str] | None = None) -> MatchingSet:
    """Read one set; `columns` are compared in this order, by default all that both tables have.

    Raises:
        InputError: At file and line: a file that is missing, a column that is not there, an id that occurs
            twice or in no table, a label other than 0 and 1, and splits that lack matches or other pairs.
    """
    names = next((layout for layout in _LAYOUTS if (folder / layout.left_table).is_file()), _LAYOUTS[0])
    paths = (folder / names.left_table, folder / names.right_table)
    heads, tables = zip(*(_read_table(path) for path in paths), strict=True)
    if columns is None:
        columns = [name for name in heads[0] if name != "id" and name in heads[1]]
        if not columns:
            raise InputError(f"{paths[0]} and {paths[1].name}: share no column but the id, so nothing can be compared")
    for path, head in zip(paths, heads, strict=True):
        _check_columns(path, head, ("id", *columns))
    left, right = ([" ".join(row[name] for name in columns if row[name]) for _, row in table] for table in tables)
    rows = [_index_ids(path, table) for path, table in zip(paths, tables, strict=True)]
    train, valid, test = (_read_pairs(folder / f"{split}.csv", names, *rows) for split in ("train", "valid", "test"))
    for split, pairs in (("train.csv and valid.csv", train + valid), ("test.csv", test)):
        if pairs.match.all() or not pairs.match.any():
            raise InputError(f"{folder}: {split} must have pairs that match and pairs that do not")
    return MatchingSet(folder.resolve().name, tuple(columns), left, right, train, valid, test)


def _read_table(path: Path) -> tuple[list[str], NumberedRecords]:
    check_exists(path)
    with TableRows(path, FileFormat("csv", delimiter=",")) as rows:
        if not rows.names or rows.reader.notes:
            raise InputError(f"{path}: must have a first line with a different name for each column")
        table: NumberedRecords = []
        for number, record, why in rows:
            if why is not None:
                raise InputError(f"{path} line {number}: {why}")
            table.append((number, record))
        return rows.names, table


def _check_columns(path: Path, head: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in head:
            raise InputError(f"{path}: no column {name!r}; it has {', '.join(head)}")


def _index_ids(path: Path, table: NumberedRecords) -> dict[str, int]:
    rows: dict[str, int] = {}
    for index, (line, row) in enumerate(table):
        if row["id"] in rows:
            raise InputError(f"{path} line {line}: the id {row['id']!r} occurs twice")
        rows[row["id"]] = index
    return rows


def _read_pairs(path: Path, names: _Names, left: Mapping[str, int], right: Mapping[str, int]) -> PairPlaces:
    head, table = _read_table(path)
    _check_columns(path, head, (names.left, names.right, names.match))
    pairs = []
    for line, row in table:
        for table_name, column, ids in ((names.left_table, names.left, left), (names.right_table, names.right, right)):
            if row[column] not in ids:
                raise InputError(f"{path} line {line}: no row of {table_name} has the id {row[column]!r}")
        if row[names.match] not in ("0", "1"):
            raise InputError(f"{path} line {line}: {names.match} is {row[names.match]!r}; it is 0 or 1")
        pairs.append((left[row[names.left]], right[row[names.right]], int(row[names.match])))
    columns = np.array(pairs, np.int64).reshape(-1, 3)
    return PairPlaces(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_))


RECALLS = (1, 10)


@dataclass(frozen=True)
class MatchingScores:
    """F1, precision and recall (0 to 1) on the test pairs at the `threshold` that is best on train and valid.

    `fitted_f1` is the F1 there. `recalls`: k -> of the left rows with a match among the labeled pairs of all splits,
    the mean share of their matches that are among the k most alike rows of the whole right table. A right row of the
    very same text that has no label does not compete: it is a match that the labels do not know.
    """

    f1: float
    precision: float
    recall: float
    threshold: float
    fitted_f1: float
    recalls: Mapping[int, float]


def score_matching(
    matching_set: MatchingSet,
    model: ModelForTexts,
    *,
    left: Sequence[str] | None = None,
    recalls: Sequence[int] = RECALLS,
) -> MatchingScores:
    """Score a model made for the two tables' texts; `left` replaces the left table's texts, for example misspelled."""
    typed = matching_set.left if left is None else left
    comparison = model([*typed, *matching_set.right])

    def alike(pairs: PairPlaces) -> Doubles:
        return comparison.pairs(
            [typed[i] for i in pairs.left.tolist()], [matching_set.right[i] for i in pairs.right.tolist()]
        )

    fitted = matching_set.train + matching_set.valid
    threshold, fitted_f1 = find_best_threshold(alike(fitted), fitted.match)
    f1, precision, recall = f1_at(threshold, alike(matching_set.test), matching_set.test.match)
    return MatchingScores(
        f1, precision, recall, threshold, fitted_f1, _measure_recalls(matching_set, typed, comparison, recalls)
    )


def find_best_threshold(scores: Doubles, match: Bools) -> tuple[float, float]:
    """Return (threshold, F1): the highest threshold with the best F1 for the answer `score >= threshold`.

    It lies in the middle between two scores. scores: float64[n]; match: bool[n], at least one of them true.

    Raises:
        InputError: Nothing matches or a score is not a number.
    """
    if not match.any() or not np.isfinite(scores).all():
        raise InputError("a threshold needs at least one pair that matches, and scores that are numbers")
    order = np.argsort(-scores, kind="stable")
    ranked, true = scores[order], np.cumsum(match[order])
    f1 = 2 * true / (np.arange(1, len(ranked) + 1) + int(match.sum()))
    f1[np.append(ranked[1:] == ranked[:-1], False)] = -1  # no threshold lies between equal scores
    best = int(np.argmax(f1))
    return _between(ranked, best), float(f1[best])


def f1_at(threshold: float, scores: Doubles, match: Bools) -> tuple[float, float, float]:
    """Return (F1, precision, recall) of the answer `score >= threshold`; 0 where nothing is found."""
    predicted = scores >= threshold
    true = int(np.count_nonzero(predicted & match))
    if not true:
        return 0.0, 0.0, 0.0
    precision, recall = true / int(predicted.sum()), true / int(match.sum())
    return 2 * precision * recall / (precision + recall), precision, recall


def _between(ranked: Doubles, last: int) -> float:
    """Return a threshold at or below ranked[last] and above the next lower score."""
    if last + 1 == len(ranked):
        return float(ranked[last])
    middle = (ranked[last] + ranked[last + 1]) / 2
    return float(middle if middle > ranked[last + 1] else ranked[last])  # neighboring floats have no middle


def _measure_recalls(
    matching_set: MatchingSet, typed: Sequence[str], comparison: TextComparison, depths: Sequence[int]
) -> dict[int, float]:
    labeled = matching_set.train + matching_set.valid + matching_set.test
    matches: dict[int, set[int]] = {}
    for left, right in zip(labeled.left[labeled.match], labeled.right[labeled.match], strict=True):
        matches.setdefault(int(left), set()).add(int(right))
    same = max(Counter(matching_set.right).values())  # this many may have to be passed over
    places = comparison.nearest([typed[i] for i in matches], matching_set.right, max(depths, default=0) + same).tolist()
    ranked_places = [
        [i for i in row if i in true or matching_set.right[i] != matching_set.left[left]]
        for (left, true), row in zip(matches.items(), places, strict=True)
    ]

    def share(true: set[int], ranked: Sequence[int]) -> float:
        return len(true.intersection(ranked)) / len(true)

    return {
        k: float(np.mean([share(true, row[:k]) for true, row in zip(matches.values(), ranked_places, strict=True)]))
        for k in depths
    }


def score_pairs(
    cosines: npt.NDArray[np.floating[Any]], labels: Doubles, parts: Ints, *, binary: bool
) -> dict[str, float]:
    """Return `f1`, `precision`, `recall` in percent and `threshold` for binary labels, else `pearson` and `spearman`.

    cosines, labels: [n]. parts: int64[n]; the pairs of a part are judged at the threshold that is best for all others,
    so that no part chooses its own threshold; `threshold` is the best one for all.
    """
    if not binary:
        pearson, spearman = (
            0.0 if np.isnan(correlation) else 100 * correlation for correlation in correlate(cosines, labels)
        )
        return {"pearson": pearson, "spearman": spearman}
    match, scores = labels == 1, np.asarray(cosines, np.float64)
    f1, precision, recall = f1_at(0.0, scores - _thresholds(scores, match, parts), match)
    threshold, _ = find_best_threshold(scores, match)
    return {"f1": 100 * f1, "precision": 100 * precision, "recall": 100 * recall, "threshold": threshold}


def _thresholds(scores: Doubles, match: npt.NDArray[np.bool_], parts: Ints) -> Doubles:
    """Return the threshold of each pair, float64[n]: that which is best for the pairs of all other parts."""
    least = np.full(len(match), np.inf)
    for part in np.unique(parts).tolist():
        elsewhere = parts != part
        if match[elsewhere].any():
            least[parts == part] = find_best_threshold(scores[elsewhere], match[elsewhere])[0]
    return least


def judge_pairs(
    before: npt.NDArray[np.floating[Any]],
    after: npt.NDArray[np.floating[Any]],
    labels: Doubles,
    parts: Ints,
    groups: Ints,
    *,
    binary: bool,
) -> dict[str, Any]:
    """Return the verdict on cosines [n] of pairs before and after, judged as in pair_scores.

    groups: int64[n], from 0, of the pairs that are drawn together.
    """
    each = [np.asarray(scores, np.float64) for scores in (before, after)]
    if not binary:
        ones = np.ones(len(labels))
        sums = [np.stack([ones, x, labels, x * x, labels * labels, x * labels], axis=1) for x in each]
        return judge("Pearson x 100 of cosines and labels", sums, groups, pearson_of)
    match = labels == 1
    predicted = [scores >= _thresholds(scores, match, parts) for scores in each]
    sums = [np.stack([above & match, above, match], axis=1).astype(np.float64) for above in predicted]
    return judge("F1 of pairs", sums, groups, f1_of)


def show_pair_report(report: dict[str, Any]) -> str:
    """Return a text table of `pairs` and, for each model under `scores`, its `pair_scores`."""
    columns = ("f1", "precision", "recall", "threshold") if report["binary"] else ("pearson", "spearman")
    heads = {"f1": "F1", "pearson": "Pearson", "spearman": "Spearman"}
    lines = [
        f"{report['pairs']:,} labeled pairs".ljust(26)
        + "".join(f"{heads.get(column, column):>11}" for column in columns)
    ]
    for name, scores in report["scores"].items():
        cells = [
            f"{scores[column]:11.3f}" if column == "threshold" else f"{scores[column]:11.1f}" for column in columns
        ]
        lines.append(name.ljust(26) + "".join(cells))
    return "\n".join(lines)
