"""Python's collector in a process that serves, by a process of its own: what it does is for the whole of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from gramvec import Embedder
from gramvec.server.settings import Settings
from gramvec.server.state.service import Process, Service

PROGRAM = """
import gc
from gramvec.server.edge.server import YOUNG_OBJECTS, settle

class Knot:
    def __init__(self):
        self.self = self
    def __del__(self):
        print("untied")

before = gc.get_freeze_count()
Knot()
settle()
assert gc.get_freeze_count() > before + 1_000
assert gc.get_threshold()[0] == YOUNG_OBJECTS
Knot()
gc.collect()
print("done")
"""


def test_what_is_alive_is_looked_at_no_more_and_new_knots_are_untied() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["untied", "untied", "done"]


def test_the_process_hears_when_the_models_are_loaded(embedder: Embedder) -> None:
    service = Service(Settings(model=[str(embedder.bundle.path)], device="cpu"))
    seen: list[object] = []

    class Hearing(Process):
        def on_loaded(self) -> None:
            seen.append(service.served and service.served.embedder.name)

    service.host = Hearing()
    service.begin()
    asyncio.run(service.load())
    assert seen == [embedder.name]
