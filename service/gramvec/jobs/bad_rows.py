"""Bad rows of a file: the error that stops a job, and the account of those that are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from gramvec.errors import InputError

OnError = Literal["stop", "skip"]

MAX_REASONS = 20
MAX_RANGES = 1_000


def bad_row(unit: str, number: int, why: str, where: str = "") -> InputError:
    """Return the error of a run that stops at a bad row of a file."""
    return InputError(f"{where}{unit} {number}: {why}; --on-error skip goes on without such {unit}s")


class BadLines:
    """Account of what was not read as it stands, in bounded memory.

    Bad rows are counted, with the reasons of the first 20 and at most 1,000 ranges of other numbers; blank lines that
    were skipped are counted; notes are about the header.
    """

    def __init__(self) -> None:
        self.count = 0
        self.blank = 0
        self.notes: list[str] = []
        self.reasons: list[tuple[int, str]] = []
        self.ranges: list[list[int]] = []
        self.unnamed = 0

    def add(self, number: int, why: str) -> None:
        """Count a row. Numbers must ascend."""
        self.count += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append((number, why))
        elif self.ranges and self.ranges[-1][1] == number - 1:
            self.ranges[-1][1] = number
        elif len(self.ranges) < MAX_RANGES:
            self.ranges.append([number, number])
        else:
            self.unnamed += 1

    def report(self, rows: int, unit: str, outcome: str = "could not be embedded and got no vector") -> Iterator[str]:
        """Yield sentences about the header, the blank lines and the bad rows, if there are any.

        Args:
            rows: how many rows were read.
            unit: "line" or "row", what the numbers count.
            outcome: what became of the bad rows.
        """
        yield from self.notes
        if self.blank:
            yield f"{self.blank:,} blank {unit}{' was' if self.blank == 1 else 's were'} skipped"
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
        """Return the account that `as_json` was called on.

        Raises ValueError, KeyError, TypeError or AttributeError for anything else: a journal may be forged.
        """
        made = cls()
        if value.keys() != vars(made).keys():
            raise ValueError("names other than those of an account")
        made.count, made.blank, made.unnamed = (whole_number(value[name]) for name in ("count", "blank", "unnamed"))
        made.notes = [str(note) for note in _short_list(value["notes"], MAX_RANGES)]
        reasons, ranges = _short_list(value["reasons"], MAX_REASONS), _short_list(value["ranges"], MAX_RANGES)
        made.reasons = [(whole_number(number), str(why)) for number, why in reasons]
        made.ranges = [[whole_number(first), whole_number(last)] for first, last in ranges]
        return made


def whole_number(value: Any) -> int:
    """Return a whole number from 0 to 2^63 - 1. Raises ValueError for anything else."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("not a whole number from 0")
    return value


def _short_list(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"not a list of at most {most}")
    return value
