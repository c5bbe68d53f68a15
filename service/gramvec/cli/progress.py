"""Progress bars on a terminal's stderr."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm


def bar(title: str, total: int, unit: str) -> Any:
    """One bar; its `update` takes what is done since the last time."""
    return tqdm(desc=title, total=total, unit=unit, unit_scale=True, disable=None, file=sys.stderr)


class Bars:
    """A bar for each thing that is done, one after the other."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._what: str | None = None

    def __enter__(self) -> Bars:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def watch(self, what: str, done: int, total: int) -> None:
        """So much more of `what` is done, of `total` rows, or pairs where pairs are compared."""
        if what != self._what:
            self.__exit__()
            self._what, self._bar = what, bar(what, total, " pairs" if what == "comparing" else " rows")
        self._bar.update(done)
