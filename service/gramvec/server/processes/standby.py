"""While a parent loads what its workers are to share, another process answers at the door: alive, but not ready."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A client that stalls does not keep the workers from the port.
PATIENCE_SECONDS = 1.0


@contextmanager
def standing_by(work: Callable[[], None]) -> Iterator[None]:
    """Run `work` in a forked process until the block ends; it is told to stop by SIGTERM, then killed.

    Call it from the only thread. `work` has to unblock the signals that it wants, and to end when its parent does.
    """
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)  # nothing of the parent's stack may run here
    try:
        yield
    finally:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                break
            time.sleep(0.005)
