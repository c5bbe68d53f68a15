"""Workers that are ended by SIGBUS, and when it is no use to replace them.

A table is mapped from its file. Where that was cut short, whoever reads what is gone is ended, and so is the worker
that takes the dead one's place.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from gramvec.errors import GramvecError

# So many in a row, none of whose workers had lived for long, though nothing is seen to be wrong: a disk that cannot be
# read, or memory that fails.
MOST_FAULTS = 8


class Faults:
    """The faults of all workers together.

    Args:
        examine: raises GramvecError if what the workers share is not whole any more.
    """

    def __init__(self, examine: Callable[[], None]) -> None:
        self._examine = examine
        self._in_a_row = 0

    def count(self, code: int, *, settled: bool) -> None:
        """A worker has ended with this exit code, negative for a signal. settled: whether it had lived for a while.

        Raises:
            GramvecError: others would end in the same way.
        """
        if code != -signal.SIGBUS:
            return
        self._examine()
        self._in_a_row = 1 if settled else self._in_a_row + 1
        if self._in_a_row >= MOST_FAULTS:
            raise GramvecError(
                f"{self._in_a_row} workers in a row were ended by SIGBUS, though the models' files have their sizes; "
                "see whether the disk can be read, and run gramvec verify"
            )
