"""Python's collector of reference cycles, in a process that serves."""

from __future__ import annotations

import gc

from gramvec.server.processes.allocator import trim

# What a request makes is freed by its reference counts, so the collector finds next to nothing: it may look seldom.
YOUNG_OBJECTS = 5_000


def settle() -> None:
    """Collect now, and look at what is alive at this moment never again.

    It takes 40 ms. Without it a request of one text costs 10 % more: the modules and models are some 60,000 objects,
    and the collector goes through all of them again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    trim()
