"""Counters and histograms of requests and of the model's batches; `routes/operations.py` writes them for Prometheus."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping

from gramvec.server.batching.batcher import BatchResult
from gramvec.server.responses import Usage
from gramvec.server.telemetry.shared_counters import Key, SharedCounters

# Bounds of the histograms, from a short text to a deadline, and from one text to the most in a request.
SECONDS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TEXTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0)
# The row of a histogram: a count for each bound, one for larger values, and the sum of all values.
SECONDS_WIDTH = len(SECONDS) + 2
TEXTS_WIDTH = len(TEXTS) + 2
SECONDS_SUM = len(SECONDS) + 1
TEXTS_SUM = len(TEXTS) + 1
# How long a worker may be silent before it counts as dead.
SILENT_SECONDS = 5.0
UNKNOWN_ROUTE = "unknown"
# Reasons of refusals by the protocol, by status.
UNREAD_REASONS = {400: "validation", 408: "timeout", 431: "too_large", 503: "connections"}

# Names of rows of SharedCounters, which begin with one of these words.
REQUESTS, DURATION, REJECTED = "requests", "duration", "rejected"
QUEUED, INFERRED, ENCODED, FEATURIZED = "queued", "inferred", "encoded", "featurized"
CALL_TEXTS, CALL_SECONDS, CALL_TOTALS = "call_texts", "call_seconds", "call_totals"
WAITING, WORKER = "waiting", "worker"

# (worker, numbers) of each row with this name.
MetricRows = Mapping[Key, list[tuple[int, list[float]]]]


class Metrics:
    """Counters of one process, in memory that the other workers read.

    A request takes 1.6 us here. prometheus_client takes 4.9 us for the same counter and four histograms, and 12.6 us in
    its multiprocess mode, more than a tenth of a short request.

    Args:
        workers: number of serving processes; each calls `claim` with its number once it is forked.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        # A worker and the one that replaces it run side by side for a while.
        self.counters = SharedCounters(2 * workers if workers > 1 else 1)
        self._withdrawn = False
        self._forget()

    def claim(self, worker: int) -> None:
        """Count as this worker from now on, continuing where its predecessor stopped."""
        self.counters.claim(worker)
        self._forget()
        # The queues of the predecessor are gone.
        for part, key, numbers in self.counters.read():
            if part == worker and key[0] in (WAITING, WORKER):
                place = self.counters.row(key, len(numbers))
                self._numbers[place : place + len(numbers)] = _doubles(*[0.0] * len(numbers))

    def _forget(self) -> None:
        self._numbers = self.counters.numbers
        self._statuses: dict[str, dict[int, int]] = {}
        self._durations: dict[str, int] = {}
        self._models: dict[bytes, tuple[int, int, int]] = {}
        self._queues: dict[str, int] = {}

    def observe_request(self, route: str, status: int, seconds: float, encode_seconds: float, usage: Usage) -> None:
        """Count an answer.

        Args:
            route: template of the route, never a path: each name is kept forever.
            status: of the answer.
            seconds: from the first line of the request to that of the answer.
            encode_seconds: from the model's result to the finished body; counted, like `usage`, if a model took part.
            usage: of the model.
        """
        numbers = self._numbers
        try:
            place = self._statuses[route][status]
        except KeyError:
            place = self._status(route, status)
        numbers[place] += 1
        place = self._durations[route]
        numbers[place + bisect_left(SECONDS, seconds)] += 1
        numbers[place + SECONDS_SUM] += seconds
        if usage.answered:
            queued, inferred, encoded = self._models.get(usage.label) or self._model(usage.label)
            seconds = usage.queue_ms * 1e-3
            numbers[queued + bisect_left(SECONDS, seconds)] += 1
            numbers[queued + SECONDS_SUM] += seconds
            seconds = usage.inference_ms * 1e-3
            numbers[inferred + bisect_left(SECONDS, seconds)] += 1
            numbers[inferred + SECONDS_SUM] += seconds
            numbers[encoded + bisect_left(SECONDS, encode_seconds)] += 1
            numbers[encoded + SECONDS_SUM] += encode_seconds

    def count_unread(self, status: int, *, begun: bool) -> None:
        """Count a refusal by the protocol.

        Args:
            status: of the answer.
            begun: the application has seen the request, and counts it with the status of a client that has gone.
        """
        if not begun:
            self._numbers[self.counters.row((REQUESTS, UNKNOWN_ROUTE, str(status)), 1)] += 1
        self.reject(UNREAD_REASONS.get(status, "validation"))

    def reject(self, reason: str) -> None:
        """Count a refusal; see `errors.reason_of` for the reasons."""
        self._numbers[self.counters.row((REJECTED, reason), 1)] += 1

    def calls_of(self, model: str) -> Callable[[BatchResult], None]:
        """Return a function that counts each batch of this model."""
        numbers = self._numbers
        row = self.counters.row
        texts = row((CALL_TEXTS, model), TEXTS_WIDTH)
        seconds = row((CALL_SECONDS, model), SECONDS_WIDTH)
        featurizing = row((FEATURIZED, model), SECONDS_WIDTH)
        totals = row((CALL_TOTALS, model), 4)

        def observe_call(record: BatchResult) -> None:
            numbers[texts + bisect_left(TEXTS, record.texts)] += 1
            numbers[texts + TEXTS_SUM] += record.texts
            numbers[seconds + bisect_left(SECONDS, record.seconds)] += 1
            numbers[seconds + SECONDS_SUM] += record.seconds
            numbers[featurizing + bisect_left(SECONDS, record.featurize_seconds)] += 1
            numbers[featurizing + SECONDS_SUM] += record.featurize_seconds
            numbers[totals] += record.texts
            numbers[totals + 1] += record.characters
            numbers[totals + 2] += record.empty
            numbers[totals + 3] += record.unknown

        return observe_call

    def publish(self, ready: bool, queues: Mapping[str, tuple[int, int, float]]) -> None:
        """Publish the state of this process to the other workers; call it twice a second.

        Args:
            ready: requests are taken.
            queues: of each model the texts that wait, their characters, and the seconds of the oldest request.
        """
        if self._withdrawn:
            return
        numbers = self._numbers
        place = self.counters.row((WORKER,), 3)
        # All processes of a host share the zero of perf_counter.
        numbers[place : place + 3] = _doubles(time.perf_counter(), os.getpid(), float(ready))
        for model in {*self._queues, *queues}:
            place = self._queues.setdefault(model, self.counters.row((WAITING, model), 3))
            numbers[place : place + 3] = _doubles(*queues.get(model, (0, 0, 0.0)))

    def withdraw(self) -> None:
        """Stop counting this process as one that serves."""
        self._withdrawn = True
        place = self.counters.row((WORKER,), 3)
        self._numbers[place : place + 3] = _doubles(0.0, 0.0, 0.0)

    def read(self) -> MetricRows:
        """Return the counters of all workers, and the gauges of those that are not silent."""
        found: dict[Key, list[tuple[int, list[float]]]] = {}
        for worker, key, numbers in self.counters.read():
            found.setdefault(key, []).append((worker, list(numbers)))
        limit = time.perf_counter() - SILENT_SECONDS
        heard = [(worker, numbers) for worker, numbers in found.get((WORKER,), ()) if numbers[0] >= limit]
        alive = {worker for worker, _ in heard}
        for key in [key for key in found if key[0] == WAITING]:
            found[key] = [one for one in found[key] if one[0] in alive]
        found[WORKER,] = heard
        return found

    def _status(self, route: str, status: int) -> int:
        place = self.counters.row((REQUESTS, route, str(status)), 1)
        self._statuses.setdefault(route, {})[status] = place
        self._durations[route] = self.counters.row((DURATION, route), SECONDS_WIDTH)
        return place

    def _model(self, label: bytes) -> tuple[int, int, int]:
        # A label ends in the digest, which a reload changes; the name does not.
        name = label.rpartition(b"@")[0].decode()
        queued, inferred, encoded = (
            self.counters.row((kind, name), SECONDS_WIDTH) for kind in (QUEUED, INFERRED, ENCODED)
        )
        if len(self._models) >= 64:
            self._models.clear()
        self._models[label] = queued, inferred, encoded
        return queued, inferred, encoded


def _doubles(*values: float) -> memoryview[float]:
    return memoryview(array("d", values))
