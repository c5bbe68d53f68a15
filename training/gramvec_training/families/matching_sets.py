"""Two tables of records and the pairs that people labelled, read from a folder of CSV files.

The layout is the one of DeepMatcher's benchmark (Mudgal et al., 2018): `left.csv` and `right.csv` with a column `id`
and others; `train.csv`, `valid.csv` and `test.csv` with the columns `left`, `right` and `match` (0 or 1). Its own names
(and Magellan's) are taken as well: `tableA.csv` and `tableB.csv`, `ltable_id`, `rtable_id` and `label`.
"""

from __future__ import annotations

from gramvec_training.types import Bools

import csv
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.families.comparison import Ints
from gramvec_training.readers import open_binary

Records = list[tuple[int, dict[str, str]]]  # (line, column -> value)

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
class _Names:
    """How a layout calls the two tables and the three columns of a labelled pair."""

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
    """The sets below a folder, by name, or the one that it is. Raises InputError where there is none.

    columns: name of a set -> what is compared of it; COLUMNS has those of the benchmark's sets.
    """
    wanted = {**COLUMNS, **(columns or {})}
    if any((folder / names.left_table).is_file() for names in _LAYOUTS):
        return [read_matching_set(folder, wanted.get(folder.resolve().name))]
    found = sorted({path.parent for names in _LAYOUTS for path in folder.glob(f"*/{names.left_table}")})
    if not found:
        raise InputError(f"No matching set is in {folder}; a set is a folder with left.csv and right.csv.")
    return [read_matching_set(path, wanted.get(path.name)) for path in found]


def read_matching_set(folder: Path, columns: Sequence[str] | None = None) -> MatchingSet:
    """One set. columns: what is compared, in this order; without them every column that both tables have.

    Raises InputError, naming file and line, for a file that is missing, a column that is not there, an id that occurs
    twice or in no table, a label other than 0 and 1, and splits that lack matches or other pairs.
    """
    names = next((one for one in _LAYOUTS if (folder / one.left_table).is_file()), _LAYOUTS[0])
    paths = (folder / names.left_table, folder / names.right_table)
    heads, tables = zip(*(_table(path) for path in paths), strict=True)
    if columns is None:
        columns = [name for name in heads[0] if name != "id" and name in heads[1]]
        if not columns:
            raise InputError(f"{paths[0]} and {paths[1].name} share no column but the id, so nothing can be compared.")
    for path, head in zip(paths, heads, strict=True):
        _check_columns(path, head, ("id", *columns))
    left, right = ([" ".join(row[name] for name in columns if row[name]) for _, row in table] for table in tables)
    rows = [_row_of_id(path, table) for path, table in zip(paths, tables, strict=True)]
    train, valid, test = (_pairs(folder / f"{split}.csv", names, *rows) for split in ("train", "valid", "test"))
    for split, pairs in (("train.csv and valid.csv", train + valid), ("test.csv", test)):
        if pairs.match.all() or not pairs.match.any():
            raise InputError(f"{folder}: {split} must have pairs that match and pairs that do not.")
    return MatchingSet(folder.resolve().name, tuple(columns), left, right, train, valid, test)


def _table(path: Path) -> tuple[list[str], Records]:
    # The csv module asks for text whose line ends are as they stand in the file.
    with open_binary(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, strict=True)
        try:
            head = next(reader, [])
            if not head or len(set(head)) != len(head):
                raise InputError(f"{path} must have a first line with a different name for each column.")
            return head, list(_records(path, reader, head))
        except (csv.Error, UnicodeDecodeError, EOFError, zlib.error, BadGzipFile) as error:
            raise InputError(f"{path} is no CSV in UTF-8 after line {reader.line_num}: {error}.") from error


def _records(path: Path, reader: Iterator[list[str]], head: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    for values in reader:
        line: int = reader.line_num  # type: ignore[attr-defined]
        if len(values) != len(head):
            raise InputError(f"{path} line {line}: {len(values)} values for {len(head)} columns.")
        yield line, dict(zip(head, values, strict=True))


def _check_columns(path: Path, head: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in head:
            raise InputError(f"{path} has no column {name!r}; it has {', '.join(head)}.")


def _row_of_id(path: Path, table: Records) -> dict[str, int]:
    rows: dict[str, int] = {}
    for index, (line, row) in enumerate(table):
        if row["id"] in rows:
            raise InputError(f"{path} line {line}: the id {row['id']!r} occurs twice.")
        rows[row["id"]] = index
    return rows


def _pairs(path: Path, names: _Names, left: Mapping[str, int], right: Mapping[str, int]) -> Pairs:
    head, table = _table(path)
    _check_columns(path, head, (names.left, names.right, names.match))
    found = []
    for line, row in table:
        for table_name, column, ids in ((names.left_table, names.left, left), (names.right_table, names.right, right)):
            if row[column] not in ids:
                raise InputError(f"{path} line {line}: no row of {table_name} has the id {row[column]!r}.")
        if row[names.match] not in ("0", "1"):
            raise InputError(f"{path} line {line}: {names.match} is {row[names.match]!r}; it is 0 or 1.")
        found.append((left[row[names.left]], right[row[names.right]], int(row[names.match])))
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Pairs(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_))
