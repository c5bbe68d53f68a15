"""Bad rows of a file: the first one ends a job, or all are skipped and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Literal

from gramvec.errors import InputError

OnError = Literal["stop", "skip"]
# Number of a row, and why it is bad.
BadRow = tuple[int, str]

MAX_REASONS = 20
MAX_RANGES = 1_000


class RowError(InputError):
    """A row of a file is not usable, and the job stops at it.

    Attributes:
        number: of the row, from 1.
        why: it is bad.
    """

    def __init__(self, message: str, number: int, why: str) -> None:
        super().__init__(message)
        self.number, self.why = number, why


class BadRows:
    """Account of the rows of a file that a job does not use, in bounded memory.

    The reasons of the first 20 bad rows are kept, and at most 1,000 ranges of the numbers of others. Blank lines that
    were skipped are counted; notes are about the header.

    Args:
        on_error: "stop" at a bad row, or "skip" it.
        unit: what the numbers of rows count, "line" or "row".
        where: what a message has before the row's number, such as "a.csv: ".
        remedy: what to do about a bad row that ends the job; None for on_error="skip".
    """

    def __init__(
        self, on_error: OnError = "skip", unit: str = "line", where: str = "", remedy: str | None = None
    ) -> None:
        self.on_error, self.unit, self._where = on_error, unit, where
        self._remedy = f'; `on_error="skip"` goes on without such {unit}s' if remedy is None else remedy
        self.count = 0
        self.blank = 0
        self.notes: list[str] = []
        self.reasons: list[BadRow] = []
        self.ranges: list[list[int]] = []
        self.unnamed = 0

    def check(self, rows: Sequence[BadRow]) -> None:
        """Raise RowError for the first of these bad rows, if the job stops at one. Any thread may call this."""
        if rows and self.on_error == "stop":
            number, why = rows[0]
            raise RowError(f"{self._where}{self.unit} {number}: {why}{self._remedy}", number, why)

    def add(self, number: int, why: str) -> None:
        """Count a row. Numbers must ascend. Raises as `check` does."""
        self.check([(number, why)])
        self.count += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append((number, why))
        elif self.ranges and self.ranges[-1][1] == number - 1:
            self.ranges[-1][1] = number
        elif len(self.ranges) < MAX_RANGES:
            self.ranges.append([number, number])
        else:
            self.unnamed += 1

    def report(self, rows: int, outcome: str = "could not be embedded and got no vector") -> Iterator[str]:
        """Yield sentences about the header, the blank lines and the bad rows, if there are any.

        Args:
            rows: how many rows were read.
            outcome: what became of the bad rows.
        """
        yield from self.notes
        if self.blank:
            yield f"{self.blank:,} blank {self.unit}{' was' if self.blank == 1 else 's were'} skipped"
        if not self.count:
            return
        yield f"{self.count:,} of {rows:,} {outcome}:"
        yield from (f"{self.unit} {number}: {why}" for number, why in self.reasons)
        if self.ranges:
            named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in self.ranges)
            yield f"{self.unit}s {named}" + (f", and {self.unnamed:,} more" if self.unnamed else "")

    def as_json(self) -> dict[str, Any]:
        """Return the argument of `restore`; later rows do not change it."""
        names = ("count", "blank", "notes", "reasons", "ranges", "unnamed")
        return {name: deepcopy(getattr(self, name)) for name in names}

    def restore(self, value: dict[str, Any]) -> None:
        """Take the counts of an account that `as_json` was called on.

        Raises ValueError, KeyError, TypeError or AttributeError for anything else: a journal may be forged.
        """
        if value.keys() != self.as_json().keys():
            raise ValueError("names other than those of an account")
        self.count, self.blank, self.unnamed = (whole_number(value[name]) for name in ("count", "blank", "unnamed"))
        self.notes = [str(note) for note in _short_list(value["notes"], MAX_RANGES)]
        reasons, ranges = _short_list(value["reasons"], MAX_REASONS), _short_list(value["ranges"], MAX_RANGES)
        self.reasons = [(whole_number(number), str(why)) for number, why in reasons]
        self.ranges = [[whole_number(first), whole_number(last)] for first, last in ranges]


def whole_number(value: Any) -> int:
    """Return a whole number from 0 to 2^63 - 1. Raises ValueError for anything else."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("not a whole number from 0")
    return value


def _short_list(value: Any, max_items: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > max_items:
        raise ValueError(f"not a list of at most {max_items}")
    return value
