"""The tables of matching, retrieval, classification and spelling: a set a row, a model a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Scores = Mapping[str, Any]
Cell = Callable[[Scores], str]


def number(value: float | None) -> str:
    """A score times 100 with one digit, or - where it is undefined."""
    return "-" if value is None else f"{value:.1f}"


def _spelt(scores: Scores) -> str:
    found, unseen = scores["found_at"]["3"], scores["found_unseen_at"].get("3")
    return number(found) if unseen is None else f"{number(found)} ({number(unseen)})"


# (family, title, cell)
_TABLES: tuple[tuple[str, str, Cell], ...] = (
    (
        "matching",
        "Matching: F1 x 100 on test, at the threshold best on train and valid",
        lambda scores: number(scores["f1"]),
    ),
    (
        "matching",
        "Matching: matches that are the nearest / among the 10 nearest of the whole right table, %",
        lambda scores: "/".join(map(number, scores["recall_at"].values())),
    ),
    ("retrieval", "Retrieval: nDCG@10 x 100", lambda scores: number(scores["ndcg_at_10"])),
    (
        "classification",
        "Classification: accuracy x 100 of nearest neighbour / centroid of 5 / logistic regression",
        lambda scores: "/".join(number(scores[key]) for key in ("nearest", "centroid", "logistic")),
    ),
    (
        "spelling",
        "Spelling: misspelt words whose word is among the 3 nearest, % (in brackets without those of --seen)",
        _spelt,
    ),
)


def family_tables(reports: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """(title, rows) of each table that the reports' `families` fill; the first row is the header."""
    found = {label: report["families"] for label, report in reports.items() if "families" in report}
    first: Mapping[str, Any] = next(iter(found.values()), {})
    return [(title, _rows(found, family, cell)) for family, title, cell in _TABLES if family in first]


def _rows(found: Mapping[str, Mapping[str, Any]], family: str, cell: Cell) -> list[list[str]]:
    rows = [["", *found]]
    for name, first in next(iter(found.values()))[family].items():
        models = [one[family][name] for one in found.values()]
        rows.append([name, *map(cell, models)])
        for percentage in first.get("typos", ()):
            rows.append([f"{name}, {percentage} % misspelt", *(cell(one["typos"][percentage]) for one in models)])
    return rows
