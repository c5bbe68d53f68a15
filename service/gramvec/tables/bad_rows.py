"""Account of rows that could not be used: how many, which, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_REASONS = 20
MOST_RANGES = 1_000


class BadLines:
    """Count of bad rows in bounded memory: the reasons of the first 20, and at most 1,000 ranges of other numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.reasons: list[tuple[int, str]] = []
        self.ranges: list[list[int]] = []
        self.unnamed = 0

    def add(self, number: int, why: str) -> None:
        """Count a row. Numbers must ascend."""
        self.count += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append((number, why))
        elif self.ranges and self.ranges[-1][1] == number - 1:
            self.ranges[-1][1] = number
        elif len(self.ranges) < MOST_RANGES:
            self.ranges.append([number, number])
        else:
            self.unnamed += 1

    def report(self, rows: int, unit: str, outcome: str = "could not be embedded and have no vector") -> Iterator[str]:
        """Yield sentences about the bad rows, none if there are none.

        Args:
            rows: how many rows were read.
            unit: "line" or "row", what the numbers count.
            outcome: what became of the bad rows.
        """
        if not self.count:
            return
        yield f"{self.count:,} of {rows:,} {outcome}:"
        yield from (f"{unit} {number}: {why}" for number, why in self.reasons)
        if self.ranges:
            named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in self.ranges)
            yield f"{unit}s {named}" + (f", and {self.unnamed:,} more" if self.unnamed else "")

    def as_json(self) -> dict[str, Any]:
        """Return the argument of `from_json`."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BadLines:
        """Return the account that `as_json` was called on."""
        made = cls()
        vars(made).update(value, reasons=[(int(number), str(why)) for number, why in value["reasons"]])
        return made
