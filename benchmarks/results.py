"""Results of the benchmarks: groups of rows, printed as they come and stored as JSON.

    {"machine": {...}, "settings": {...}, "parts": {part: {"notes": [...], "groups": {name: group}}}}

Failed parts are listed under "failed".

A group has a title, a unit, the baseline row of its ratios (or null), and rows: {"name": ..., column: number}.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Rows that were measured together. `against` names the baseline, None if there are no ratios."""

    title: str
    unit: str
    rows: list[Row]
    against: str | None = None

    def lines(self) -> list[str]:
        """Return the group as text: a title and a line for each row."""
        versus = f"; ratio to {self.against}" if self.against else ""
        width = max((len(row["name"]) for row in self.rows), default=0)
        cells = [
            "  ".join(f"{key} {number(value)}" for key, value in row.items() if key not in ("name", "x"))
            for row in self.rows
        ]
        body = [f"  {row['name']:<{width}}  {text}" for row, text in zip(self.rows, cells, strict=True)]
        return ["", f"{self.title} ({self.unit}{versus})", *body]


@dataclass
class Part:
    """Groups of one part by name, and notes such as a library that is not installed."""

    groups: dict[str, Group] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, name: str, group: Group) -> None:
        """Store and print a group."""
        self.groups[name] = group
        print("\n".join(group.lines()), flush=True)

    def note(self, line: str) -> None:
        """Store and print a note."""
        self.notes.append(line)
        print(line, flush=True)

    @contextmanager
    def failures_noted(self, what: str) -> Iterator[None]:
        """Turn a failure in the block into a note and a failed part; later blocks still run."""
        try:
            yield
        except (Exception, SystemExit) as error:
            traceback.print_exc(file=sys.stderr)
            self.failed.append(what)
            self.note(f"{what} failed: {type(error).__name__}: {error}")

    def as_json(self) -> dict[str, Any]:
        """Return the part as in the JSON file."""
        return {"notes": self.notes, "groups": {name: asdict(group) for name, group in self.groups.items()}}


def rate_rows(values: Mapping[str, Mapping[str, float]], against: str, by: str) -> list[Row]:
    """Return rows of per_cpu_second, per_second, ratio (of the column `by`) and spread."""
    base = values[against][by]
    return [
        {
            "name": name,
            "per_cpu_second": round(one["per_cpu_second"], 1),
            "per_second": round(one["per_second"], 1),
            "ratio": round(one[by] / base, 3),
            "spread": round(one["spread"], 3),
        }
        for name, one in values.items()
    ]


def number(value: float) -> str:
    """Format a figure: whole with commas from 100 on, else three significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value and abs(value) < 1 else f"{value:.2f}"
