"""Reports of several models side by side, as plain text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gramvec_training.reporting.families import family_tables, number

Report = Mapping[str, Any]
Rows = list[list[str]]

_SCORES = "Pearson/Spearman x 100"
_WINS = "On how many of {} sets a row's model has a higher Pearson than a column's"
_TYPOS = "Mean Pearson x 100 of each task, by the share of words misspelt"
_COVERAGE = "Known n-grams / known words, and texts of which nothing is known"


def to_json(reports: Mapping[str, Report]) -> bytes:
    """The reports as indented JSON, the same bytes for the same scores."""
    return orjson.dumps(dict(reports), option=orjson.OPT_INDENT_2) + b"\n"


def table(reports: Mapping[str, Report]) -> str:
    """Plain text: `pearson/spearman` of each set, mean and pooled; typos and coverage where they were measured."""
    return "\n\n".join(f"{title}\n{_aligned(rows)}" for title, rows in _parts(reports))


def markdown(reports: Mapping[str, Report]) -> str:
    """The same tables as Markdown, each under its heading."""
    return "\n\n".join(f"## {title}\n\n{markdown_table(rows)}" for title, rows in _parts(reports)) + "\n"


def markdown_table(rows: Sequence[Sequence[str]], *, left: bool = False) -> str:
    """Rows of cells, the first the header; the first column to the left, the others to the right unless `left`."""
    ruler = ["---", *["---" if left else "---:"] * (len(rows[0]) - 1)]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [cells[0], ruler, *cells[1:]])


def mean_rows(reports: Mapping[str, Report]) -> Rows:
    """Rows of each task's mean Pearson x 100, clean and, where it was scored so, misspelt; the first is the header."""
    first = next(iter(reports.values()))
    rows: Rows = [["", *reports]]
    for task in first["tasks"]:
        rows.append([f"{task} clean", *(number(one["tasks"][task]["mean"]["pearson"]) for one in reports.values())])
        for percentage, tasks in first.get("typos", {}).items():
            if task in tasks:
                cells = [number(one["typos"][percentage][task]["mean"]["pearson"]) for one in reports.values()]
                rows.append([f"{task} {percentage} %", *cells])
    return rows


def win_rows(reports: Mapping[str, Report]) -> Rows:
    """Rows of each model's wins over each other, the papers' count of sets; the first is the header.

    Equal scores are nobody's win, nor is a score that is not there.
    """
    scores = {
        label: [one["pearson"] for task in report["tasks"].values() for one in task["sets"].values()]
        for label, report in reports.items()
    }

    def wins(mine: Sequence[float | None], other: Sequence[float | None]) -> int:
        return sum(a is not None and b is not None and a > b for a, b in zip(mine, other, strict=True))

    return [
        ["", *reports],
        *(
            [label, *("-" if label == other else str(wins(mine, scores[other])) for other in reports)]
            for label, mine in scores.items()
        ),
    ]


def share(value: float | None) -> str:
    """A share in [0, 1] as a percentage, or - where there is none."""
    return "-" if value is None else f"{value:.1%}"


def _parts(reports: Mapping[str, Report]) -> list[tuple[str, Rows]]:
    parts = []
    if any(report["tasks"] for report in reports.values()):
        parts.append((_SCORES, _score_rows(reports)))
        sets = sum(len(task["sets"]) for task in next(iter(reports.values()))["tasks"].values())
        if len(reports) > 1 and sets > 1:
            parts.append((_WINS.format(sets), win_rows(reports)))
        if all("typos" in report for report in reports.values()):
            parts.append((_TYPOS, mean_rows(reports)))
        counted = {label: report for label, report in reports.items() if "coverage" in report}
        if counted:
            parts.append((_COVERAGE, _coverage_rows(counted)))
    return parts + family_tables(reports)


def _score_rows(reports: Mapping[str, Report]) -> Rows:
    rows: Rows = [["", *reports]]
    for task, first in next(iter(reports.values()))["tasks"].items():
        for name in first["sets"]:
            rows.append([f"{task}/{name}", *(_cell(one["tasks"][task]["sets"][name]) for one in reports.values())])
        for kind in ("mean", "pooled"):
            rows.append([f"{task} {kind}", *(_cell(one["tasks"][task][kind]) for one in reports.values())])
    return rows


def _coverage_rows(reports: Mapping[str, Report]) -> Rows:
    rows: Rows = [["", *reports]]
    for task in next(iter(reports.values()))["coverage"]:
        cells = []
        for report in reports.values():
            known = report["coverage"][task]
            cells.append(f"{share(known['ngrams_known'])} / {share(known['words_known'])}, {known['texts_unknown']:,}")
        rows.append([task, *cells])
    return rows


def _aligned(rows: Rows) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cell(result: Report) -> str:
    return f"{number(result['pearson'])}/{number(result['spearman'])}"
