"""Levels of values on two lists of customers: of one person's cells, and of cells by chance."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gramvec.jobs.pairs.levels import ALIKE, CONTRADICTS, DIFFERENT, EQUAL, compare_values
from gramvec.jobs.pairs.values import read_column

FOLDER = Path(os.environ.get("GRAMVEC_DATA", "/nonexistent")) / "dev" / "registers"
needs_registers = pytest.mark.skipif(not FOLDER.is_dir(), reason="GRAMVEC_DATA has no dev/registers")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def shares(levels: Sequence[int]) -> dict[int, float]:
    return {level: float(np.mean(np.array(levels) == level)) for level in set(levels)}


@needs_registers
@pytest.mark.parametrize("name", ["people11", "people12", "people13", "people14"])
def test_levels_tell_one_person_from_two(name: str) -> None:
    left, right = (read(FOLDER / name / f"{side}.csv") for side in ("left", "right"))
    places = [{row[0]: at for at, row in enumerate(side)} for side in (left, right)]
    i, j = (
        np.array([places[side][row[side]] for row in read(FOLDER / name / "gt.csv")], np.int64) for side in range(2)
    )
    drawn = np.random.default_rng(0)
    x, y = drawn.integers(0, len(left), 20_000), drawn.integers(0, len(right), 20_000)
    for column, most_different in ((1, 0.03), (5, 0.2), (6, 0.2)):  # name, e-mail, phone; some have new ones
        sides = [read_column([row[column] for row in side]) for side in (left, right)]
        same, chance = shares(compare_values(*sides, i, j).tolist()), shares(compare_values(*sides, x, y).tolist())
        assert same.get(DIFFERENT, 0) + same.get(CONTRADICTS, 0) < most_different
        assert same[EQUAL] > 0.3
        assert sum(chance.get(level, 0) for level in range(ALIKE, EQUAL + 1)) < 0.01
