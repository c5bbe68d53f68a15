"""SIGINT and SIGTERM, noted instead of obeyed at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """The signals caught so far; a second one acts as it would have without us."""
    caught: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        signal.signal(number, before[signal.Signals(number)])

    try:
        for number in before:
            signal.signal(number, note)
    except ValueError:  # not the main thread: signals stay as they are
        yield caught
        return
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
