"""Lines that could not be embedded: how many, which, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_REASONS = 20
MOST_RANGES = 1_000


class BadLines:
    """Counts bad lines in bounded memory: the reasons of the first 20, the numbers of at most 1,000 runs of them."""

    def __init__(self) -> None:
        self.count = 0
        self.reasons: list[tuple[int, str]] = []
        self.ranges: list[list[int]] = []
        self.unnamed = 0

    def add(self, number: int, why: str) -> None:
        """Take down a line; numbers must rise."""
        self.count += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append((number, why))
        elif self.ranges and self.ranges[-1][1] == number - 1:
            self.ranges[-1][1] = number
        elif len(self.ranges) < MOST_RANGES:
            self.ranges.append([number, number])
        else:
            self.unnamed += 1

    def report(self, rows: int, unit: str) -> Iterator[str]:
        """Sentences for people, none if there is nothing to tell. `unit`: "line" or "row", what the numbers count."""
        if not self.count:
            return
        yield f"{self.count:,} of {rows:,} could not be embedded and have no vector:"
        yield from (f"{unit} {number}: {why}" for number, why in self.reasons)
        if self.ranges:
            named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in self.ranges)
            yield f"{unit}s {named}" + (f", and {self.unnamed:,} more" if self.unnamed else "")

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BadLines:
        """The count as it was when `as_json` was called."""
        made = cls()
        vars(made).update(value, reasons=[(int(number), str(why)) for number, why in value["reasons"]])
        return made
