"""What holds whatever a server is sent: memory is bounded, /health is answered, each answer is a documented one."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from support.http import PATIENCE, RunningServer
from support.wire import LAST, Served, Wire, ask, forget_peak, is_normal, peak, resident

MB = 2**20
# What /health may take while anything else is under way, on a machine that has nothing else to do.
HEALTH_SECONDS = 0.5
ERROR_TYPES = {"validation", "empty", "too_large", "overloaded", "unhealthy", "backend", "unauthorized", "not_found"}


class Health:
    """Asks /health ten times a second. `worst` is the longest wait for an answer, `usual` the middle one."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._seconds: list[float] = []
        self._bad: list[int] = []

    def _ask(self) -> None:
        while not self._over.wait(0.1):
            began = time.perf_counter()
            answer = httpx.get(f"{self._server.url}/health", timeout=PATIENCE)
            self._seconds.append(time.perf_counter() - began)
            if answer.status_code != 200:
                self._bad.append(answer.status_code)

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def worst(self) -> float:
        assert not self._bad
        return max(self._seconds)

    @property
    def usual(self) -> float:
        return statistics.median(self._seconds)


@contextmanager
def bounded(server: Served, room: int) -> Iterator[None]:
    """/health is answered throughout, and memory grows by so many bytes at most."""
    with Health(server.at) as alone:
        time.sleep(0.5)  # what it takes on this machine, as busy as it is
    forget_peak(server.process)
    before = resident(server.process)
    with Health(server.at) as health:
        yield
        time.sleep(0.3)
    grown = peak(server.process) - before
    assert grown < room, f"{grown / MB:.0f} MB"
    assert health.worst < HEALTH_SECONDS + 20 * alone.usual + alone.worst, f"{health.worst:.2f} s"
    assert is_normal(ask(server.at, LAST)[0])


def check_answer(path: str, answer: httpx.Response) -> None:
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    value = answer.json()
    if answer.status_code == 200:
        assert value
    elif path.startswith("/v1"):
        error = value["error"]
        assert set(value) == {"error"} and set(error) == {"message", "type", "param", "code"}
        assert isinstance(error["message"], str) and error["message"]
        assert isinstance(error["type"], str)
        assert all(error[name] is None or isinstance(error[name], str) for name in ("param", "code"))
    else:
        assert set(value) == {"error", "error_type"}
        assert value["error"] and value["error_type"] in ERROR_TYPES
        assert "\n" not in value["error"]


def is_ours(answer: Wire) -> bool:
    if answer.status < 400:
        return True
    assert answer.headers["content-type"] == "application/json"
    return bool(answer.error_type)
