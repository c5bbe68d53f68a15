"""Run pytest while all its processes stand still now and then, as on a machine that others use: make test-stalls.

What is sent then arrives in other pieces and in another order, and what waits for a fixed time has waited in vain. The
arguments are pytest's. GRAMVEC_STALLS seeds the pauses; the seed is told at the end.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

RUNS_SECONDS = 0.05, 0.6
STANDS_SECONDS = 0.01, 0.4
# Programs that stop themselves when the process that they wait for is stopped.
STOP_WITH_THEIR_CHILD = {"nsenter", "unshare"}


def descendants(root: int) -> list[int]:
    """`root` and all below it but those that a test has stopped; Linux alone tells."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
                state, parent = rest.split()[:2]
                if state != "T" or name in STOP_WITH_THEIR_CHILD:
                    children.setdefault(int(parent), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def send(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)


def main() -> int:
    seed = int(os.environ.get("GRAMVEC_STALLS", random.SystemRandom().randrange(1_000_000)))
    randomness = random.Random(seed)
    pauses = 0
    tests = subprocess.Popen([sys.executable, "-m", "pytest", *sys.argv[1:]])
    while tests.poll() is None:
        time.sleep(randomness.uniform(*RUNS_SECONDS))
        stopped = descendants(tests.pid)
        send(stopped, signal.SIGSTOP)
        time.sleep(randomness.uniform(*STANDS_SECONDS))
        send(stopped, signal.SIGCONT)
        pauses += 1
    print(f"{pauses} pauses, GRAMVEC_STALLS={seed}")  # noqa: T201
    return tests.returncode


if __name__ == "__main__":
    sys.exit(main())
