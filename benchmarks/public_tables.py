"""`gramvec match` and `dedupe` on public tables of which nothing was learned, beside TF-IDF and RapidFuzz.

python -m benchmarks.public_tables FOLDER. The folder has two repositories of others: `splink_datasets`
(moj-analytical-services, MIT) with people and bank transfers, and `dedupe-examples` (dedupeio, MIT) with patent
applicants. gramvec has its defaults and the columns that are named. TF-IDF and RapidFuzz compare the columns joined, at
fixed thresholds, as one would in twenty lines; RapidFuzz compares all pairs, so it is left out above 20,000 rows. F1 is
of all pairs. The days and the amounts of the transfers were looked at when the levels of cells were chosen; the others
were not.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gramvec
from benchmarks.dedupe import RATIO_THRESHOLD, TFIDF_THRESHOLD, _by_rapidfuzz, _by_tfidf
from gramvec.jobs.matching.nearest import Matches

MOST_COMPARED = 20_000
Columns = Mapping[str, Sequence[str]]
Things = NDArray[np.int64]


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


def compare_tables(name: str, sides: Sequence[Columns], things: Sequence[Things]) -> None:
    """Print F1 of the matches of two tables."""
    expected = len(np.intersect1d(*things))
    rows = len(things[0])

    def across(find: Callable[[Sequence[str]], Matches], threshold: float) -> Matches:
        pairs = find([text for side in sides for text in _join(side)])
        kept = (pairs.left < rows) & (pairs.right >= rows) & (pairs.scores >= threshold)
        return Matches(pairs.left[kept], pairs.right[kept] - rows, pairs.scores[kept])

    def of_gramvec(*, one_to_one: bool) -> Matches:
        return gramvec.match(*sides, on=[*sides[0]], one_to_one=one_to_one).matches

    ways: dict[str, Callable[[], Matches]] = {
        "gramvec match": lambda: of_gramvec(one_to_one=False),
        "gramvec match, one to one": lambda: of_gramvec(one_to_one=True),
    }
    _print(f"{name}, {rows:,} and {len(things[1]):,} rows", ways | _peers(across, rows), things[0], things[1], expected)


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
    _print(f"{name}, {len(things):,} rows", ways | _peers(among, len(things)), things, things, expected)


def _peers(compare: Callable[[Callable[[Sequence[str]], Matches], float], Matches], rows: int) -> dict[
    str, Callable[[], Matches]
]:  # fmt: skip
    ways: dict[str, Callable[[], Matches]] = {"TF-IDF, scikit-learn": lambda: compare(_by_tfidf, TFIDF_THRESHOLD)}
    if rows <= MOST_COMPARED:
        ways["RapidFuzz"] = lambda: compare(_by_rapidfuzz, RATIO_THRESHOLD)
    return ways


def _print(name: str, ways: Mapping[str, Callable[[], Matches]], left: Things, right: Things, expected: int) -> None:
    sys.stdout.write(f"{name}\n")
    for way, find in ways.items():
        began = time.process_time()
        pairs = find()
        correct = int((left[pairs.left] == right[pairs.right]).sum())
        found, seconds = len(pairs.left), time.process_time() - began
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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
