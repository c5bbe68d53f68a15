"""`gramvec match` and `dedupe` on public tables of which nothing was learned, beside TF-IDF and RapidFuzz.

python -m benchmarks.public_tables FOLDER. The folder has three repositories of others: `splink_datasets`
(moj-analytical-services, MIT) with people and bank transfers, `dedupe-examples` (dedupeio, MIT) with patent applicants,
and `ditto` (megagonlabs, Apache-2.0) with offers of products: of WDC cameras, computers, watches and shoes the medium
size, and Walmart-Amazon. gramvec has its defaults and the columns that are named. TF-IDF and RapidFuzz compare the
columns joined, at fixed thresholds, as one would in twenty lines; RapidFuzz compares all pairs, so it is left out above
20,000 rows. F1 is of all pairs, of products of those that have a label. Of the WDC offers one pair in sixteen that
`match` compares has one, half of them matches, so that who writes more has more; they have a second F1, of all pairs:
two offers are one product if equal titles and labeled matches join them. It misses what nothing joins, takes for one
product what a chain joins against a label (up to eleven pairs of a set), and equal rows alone are a way to match, too,
which is right by definition. Days and amounts of the transfers were looked at when the levels of cells were chosen; the
shoes measured each change of what is learned, but nothing is learned from them; the others were not looked at.
"""

from __future__ import annotations

import csv
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import gramvec
from benchmarks.dedupe import RATIO_THRESHOLD, TFIDF_THRESHOLD, _by_rapidfuzz, _by_tfidf
from gramvec.jobs.matching.nearest import Matches

MOST_COMPARED = 20_000
Columns = Mapping[str, Sequence[str]]
Things = NDArray[np.int64]
# How many of the written pairs count, and how many of these are right.
Judge = Callable[[Matches], tuple[int, int]]
OFFERS = ("wdc/cameras", "wdc/computers", "wdc/watches", "wdc/shoes")
PRODUCTS = (*OFFERS, "er_magellan/Structured/Walmart-Amazon")
_CELL = re.compile(r"COL (\S+) VAL (.*?)(?= COL \S+ VAL |$)")


def main(folder: Path) -> None:
    """Print F1 of each set and each way. Raises FileNotFoundError for a set that FOLDER lacks."""
    data = folder / "splink_datasets" / "data"
    sides = [_read_csv(data / "febrl" / f"dataset4{side}.csv") for side in "ab"]
    owners = [np.array([int(name.split("-")[1]) for name in side.pop("rec_id")]) for side in sides]
    compare_tables("febrl 4", sides, owners)
    sides = [_read_parquet(data / f"transactions_{side}.parquet") for side in ("origin", "destination")]
    transfers = [np.array([*map(int, side.pop("ground_truth"))]) for side in sides]
    compare_tables("bank transfers", [{name: side[name] for name in side if name != "unique_id"} for side in sides],
                   transfers)  # fmt: skip
    people = _read_parquet(data / "historical_figures_with_errors_50k.parquet")
    things = np.unique(people.pop("cluster"), return_inverse=True)[1]
    compare_rows("historical people", {name: people[name] for name in people if name != "unique_id"}, things)
    patents = folder / "dedupe-examples" / "patent_example"
    applicants = _read_csv(patents / "patstat_input.csv")
    known = _read_csv(patents / "patstat_reference.csv")
    of_person = dict(zip(known["person_id"], known["leuven_id"], strict=True))
    things = np.unique([of_person[person] for person in applicants["person_id"]], return_inverse=True)[1]
    compare_rows("patent applicants, Name", {"Name": applicants["Name"]}, things)
    named = ("Name", "Lat", "Lng", "Coauthor", "Class")
    compare_rows("patent applicants, five columns", {name: applicants[name] for name in named}, things)
    for product in PRODUCTS:
        name = product.rpartition("/")[2]
        offers, labels = _read_products(folder / "ditto" / "data" / product)
        compare_labeled(name, offers, labels)
        if product in OFFERS:
            compare_tables(f"{name}, all pairs", offers, join_offers(offers, labels))


def compare_tables(name: str, sides: Sequence[Columns], things: Sequence[Things]) -> None:
    """Print F1 of the matches of two tables."""
    left, right = things
    number = int(max(side.max(initial=-1) for side in things)) + 1
    expected = int(np.bincount(left, minlength=number) @ np.bincount(right, minlength=number))
    _print_tables(name, sides, _judge_things(left, right), expected)


def join_offers(sides: Sequence[Columns], labels: Mapping[tuple[int, int], bool]) -> list[Things]:
    """Return the product of each row of two tables: rows that are equal, or a labeled match, are of one."""
    rows = [[*zip(*side.values(), strict=True)] for side in sides]
    _, equal = np.unique([repr(row) for side in rows for row in side], return_inverse=True)
    left, right = np.array([pair for pair, is_match in labels.items() if is_match], np.int64).reshape(-1, 2).T
    one, other = equal[left], equal[len(rows[0]) + right]
    joined = coo_array((np.ones(len(one)), (one, other)), shape=(len(equal), len(equal)))
    things: Things = connected_components(joined, directed=False)[1][equal].astype(np.int64)
    return [things[: len(rows[0])], things[len(rows[0]) :]]


def compare_labeled(name: str, sides: Sequence[Columns], labels: Mapping[tuple[int, int], bool]) -> None:
    """Print F1 of the matches of two tables of which some pairs have a label; others do not count."""

    def judge(pairs: Matches) -> tuple[int, int]:
        known = [labels.get(pair) for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]
        return len(known) - known.count(None), known.count(True)

    _print_tables(name, sides, judge, sum(labels.values()))


def _judge_things(left: Things, right: Things) -> Judge:
    return lambda pairs: (len(pairs.left), int((left[pairs.left] == right[pairs.right]).sum()))


def _print_tables(name: str, sides: Sequence[Columns], judge: Judge, expected: int) -> None:
    rows, others = (len(next(iter(side.values()))) for side in sides)

    def across(find: Callable[[Sequence[str]], Matches], threshold: float) -> Matches:
        pairs = find([text for side in sides for text in _join(side)])
        kept = (pairs.left < rows) & (pairs.right >= rows) & (pairs.scores >= threshold)
        return Matches(pairs.left[kept], pairs.right[kept] - rows, pairs.scores[kept])

    def of_gramvec(*, one_to_one: bool = False) -> Matches:
        return gramvec.match(*sides, on=[*sides[0]], one_to_one=one_to_one).matches

    ways: dict[str, Callable[[], Matches]] = {
        "gramvec match": of_gramvec,
        "gramvec match, one to one": lambda: of_gramvec(one_to_one=True),
        "equal rows alone": lambda: _match_equal(sides),
    }
    _print(f"{name}, {rows:,} and {others:,} rows", ways | _peers(across, rows), judge, expected)


def _match_equal(sides: Sequence[Columns]) -> Matches:
    """Return the pairs of rows of two tables that have the same text."""
    left, right = map(_join, sides)
    places: dict[str, list[int]] = {}
    for place, text in enumerate(right):
        places.setdefault(text, []).append(place)
    pairs = np.array([(row, place) for row, text in enumerate(left) for place in places.get(text, ())], np.int64)
    one, other = pairs.reshape(-1, 2).T
    return Matches(one, other, np.ones(len(one), np.float32))


def compare_rows(name: str, columns: Columns, things: Things) -> None:
    """Print F1 of the duplicates of a table."""
    counts = np.bincount(things)
    expected = int((counts * (counts - 1) // 2).sum())

    def of_gramvec() -> Matches:
        return Matches(*gramvec.dedupe(columns).pairs)

    def among(find: Callable[[Sequence[str]], Matches], threshold: float) -> Matches:
        pairs = find(_join(columns))
        kept = pairs.scores >= threshold
        return Matches(pairs.left[kept], pairs.right[kept], pairs.scores[kept])

    ways: dict[str, Callable[[], Matches]] = {"gramvec dedupe": of_gramvec}
    _print(f"{name}, {len(things):,} rows", ways | _peers(among, len(things)), _judge_things(things, things), expected)


def _peers(compare: Callable[[Callable[[Sequence[str]], Matches], float], Matches], rows: int) -> dict[
    str, Callable[[], Matches]
]:  # fmt: skip
    ways: dict[str, Callable[[], Matches]] = {"TF-IDF, scikit-learn": lambda: compare(_by_tfidf, TFIDF_THRESHOLD)}
    if rows <= MOST_COMPARED:
        ways["RapidFuzz"] = lambda: compare(_by_rapidfuzz, RATIO_THRESHOLD)
    return ways


def _print(name: str, ways: Mapping[str, Callable[[], Matches]], judge: Judge, expected: int) -> None:
    sys.stdout.write(f"{name}\n")
    for way, find in ways.items():
        began = time.process_time()
        pairs = find()
        seconds = time.process_time() - began
        found, correct = judge(pairs)
        sys.stdout.write(
            f"  {way:<26} precision {100 * correct / max(found, 1):5.1f}  recall {100 * correct / expected:5.1f}"
            f"  F1 {200 * correct / (found + expected):5.1f}  cpu_seconds {seconds:.0f}\n"
        )
        sys.stdout.flush()


def _join(columns: Columns) -> list[str]:
    return [" ".join(filter(None, row)) for row in zip(*columns.values(), strict=True)]


def _read_csv(path: Path) -> dict[str, list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    return {name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}


def _read_parquet(path: Path) -> dict[str, list[str]]:
    columns = import_module("pyarrow.parquet").read_table(path).to_pydict()
    return {name: ["" if value is None else str(value) for value in values] for name, values in columns.items()}


def _read_products(folder: Path) -> tuple[list[Columns], dict[tuple[int, int], bool]]:
    """Return both tables of a set of labeled pairs, each row once, and the labels of pairs of rows."""
    rows: tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]] = ({}, {})
    labels: dict[tuple[int, int], bool] = {}
    names: list[str] = []
    suffix = ".medium" if folder.parent.name == "wdc" else ""
    for part in (f"train.txt{suffix}", f"valid.txt{suffix}", "test.txt"):
        with (folder / part).open(encoding="utf-8") as file:
            for line in file:
                *texts, label = line.rstrip("\n").split("\t")
                cells = [{name: value.strip() for name, value in _CELL.findall(text.strip())} for text in texts]
                names = names or [name for name in cells[0] if name in cells[1]]
                left, right = (
                    known.setdefault(tuple(row.get(name, "") for name in names), len(known))
                    for known, row in zip(rows, cells, strict=True)
                )
                labels[left, right] = label == "1" or labels.get((left, right), False)
    return [dict(zip(names, map(list, zip(*side, strict=True)), strict=True)) for side in rows], labels


if __name__ == "__main__":
    main(Path(sys.argv[1]))
