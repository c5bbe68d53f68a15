"""Counters, histograms and gauges of requests and of the model's batches, and their form for Prometheus."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gramvec.server.batching.batcher import BatchResult, Timings
from gramvec.server.telemetry.shared_counters import Key, SharedCounters

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

# Bounds of the histograms, from a short text to a deadline, and from one text to the most in a request.
SECONDS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TEXTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0)
SECONDS_SUM = len(SECONDS) + 1
TEXTS_SUM = len(TEXTS) + 1
# How long a worker may be silent before it counts as dead.
SILENT_SECONDS = 5.0
UNKNOWN_ROUTE = "unknown"
# The status that is counted where the client left before an answer; it is never sent.
CLIENT_GONE = 499
# Reasons of refusals by the protocol, by status.
UNREAD_REASONS = {400: "validation", 408: "timeout", 431: "too_large", 503: "connections"}


class Family(NamedTuple):
    """Metric family: its type, its name without the suffix of the type, its labels, its help text.

    A row of SharedCounters has the name and the values of the labels as its key. For a histogram with `bounds` it holds
    a count for each bound, one for larger values, and the sum of all values; else it is one number. `together` combines
    those of several workers.
    """

    type: Literal["counter", "gauge", "histogram"]
    name: str
    labels: tuple[str, ...]
    help: str
    bounds: tuple[float, ...] = ()
    together: Callable[[Iterable[float]], float] = sum

    @property
    def width(self) -> int:
        """The number of numbers in a row."""
        return len(self.bounds) + 2 if self.bounds else 1


def _seconds(name: str, label: str, text: str) -> Family:
    return Family("histogram", f"gramvec_{name}_duration_seconds", (label,), text, SECONDS)


def _of_model(kind: Literal["counter", "gauge"], name: str, text: str) -> Family:
    return Family(kind, f"gramvec_{name}", ("model",), text)


REQUESTS = Family("counter", "gramvec_requests", ("route", "status"), "Answers; status 499: the client had gone.")
REJECTED = Family("counter", "gramvec_rejected", ("reason",), "Requests refused.")
TOTALS = (
    _of_model("counter", "texts", "Texts computed."),
    _of_model("counter", "characters", "Characters in the texts computed."),
    _of_model("counter", "texts_without_known_features", "Texts computed that held nothing the model knows."),
    _of_model(
        "counter", "unknown_features", "Characters outside the model's alphabet, and words outside its vocabulary."
    ),
)
DURATION = _seconds("request", "route", "Time from a request's head to its answer's.")
QUEUED = _seconds("queue", "model", "Time that a request waits for the model.")
INFERRED = _seconds("inference", "model", "Time of the model's calls that a request took part in.")
ENCODED = _seconds("encode", "model", "Time from the model's answer to the finished body.")
CALL_SECONDS = _seconds("call", "model", "Time of a call of the model.")
FEATURIZED = _seconds("featurize", "model", "Time from texts to rows of the table, per call.")
CALL_TEXTS = Family("histogram", "gramvec_call_texts", ("model",), "Texts in one call of the model.", TEXTS)
QUEUES = (
    _of_model("gauge", "queue_texts", "Texts that wait for the model."),
    _of_model("gauge", "queue_characters", "Characters of the texts that wait."),
    _of_model("gauge", "queue_oldest_seconds", "How long the oldest request has waited.")._replace(together=max),
)
FAMILIES = (
    *(REQUESTS, REJECTED, *TOTALS),
    *(DURATION, QUEUED, INFERRED, ENCODED, CALL_SECONDS, FEATURIZED, CALL_TEXTS),
    *QUEUES,
)
# A row of each worker: when it last reported, its process and whether it takes requests.
WORKER = "worker"
GAUGES = {WORKER, *(family.name for family in QUEUES)}

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
        self.counters = SharedCounters(workers)
        self._forget()

    def claim(self, worker: int) -> None:
        """Count as this worker from now on, continuing where its predecessor stopped."""
        self.counters.claim(worker)
        self._forget()
        # The queues of the predecessor are gone.
        for part, key, numbers in self.counters.read():
            if part == worker and key[0] in GAUGES:
                place = self.counters.row(key, len(numbers))
                self._numbers[place : place + len(numbers)] = _doubles(*[0.0] * len(numbers))

    def _forget(self) -> None:
        self._numbers = self.counters.numbers
        self._statuses: dict[str, dict[int, int]] = {}
        self._durations: dict[str, int] = {}
        self._models: dict[bytes, tuple[int, int, int]] = {}
        self._queues: set[str] = set()

    def _row(self, family: Family, *values: str) -> int:
        return self.counters.row((family.name, *values), family.width)

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Count an answer.

        Args:
            route: template of the route, never a path: each name is kept forever.
            status: of the answer.
            seconds: from the first line of the request to that of the answer.
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

    def observe_model(self, label: bytes, timings: Timings, encode_seconds: float) -> None:
        """Count the part of a model in an answer.

        Args:
            label: of the model.
            timings: of the request.
            encode_seconds: from the model's result to the finished body.
        """
        numbers = self._numbers
        queued, inferred, encoded = self._models.get(label) or self._model(label)
        seconds = timings.queue_ms * 1e-3
        numbers[queued + bisect_left(SECONDS, seconds)] += 1
        numbers[queued + SECONDS_SUM] += seconds
        seconds = timings.inference_ms * 1e-3
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
            self._numbers[self._row(REQUESTS, UNKNOWN_ROUTE, str(status))] += 1
        self.reject(UNREAD_REASONS.get(status, "validation"))

    def reject(self, reason: str) -> None:
        """Count a refusal; see `errors.reason_of` for the reasons."""
        self._numbers[self._row(REJECTED, reason)] += 1

    def calls_of(self, model: str) -> Callable[[BatchResult], None]:
        """Return a function that counts each batch of this model."""
        numbers = self._numbers
        texts, seconds, featurizing = (self._row(family, model) for family in (CALL_TEXTS, CALL_SECONDS, FEATURIZED))
        all_texts, characters, empty, unknown = (self._row(family, model) for family in TOTALS)

        def observe_call(record: BatchResult) -> None:
            numbers[texts + bisect_left(TEXTS, record.texts)] += 1
            numbers[texts + TEXTS_SUM] += record.texts
            numbers[seconds + bisect_left(SECONDS, record.seconds)] += 1
            numbers[seconds + SECONDS_SUM] += record.seconds
            numbers[featurizing + bisect_left(SECONDS, record.featurize_seconds)] += 1
            numbers[featurizing + SECONDS_SUM] += record.featurize_seconds
            numbers[all_texts] += record.texts
            numbers[characters] += record.characters
            numbers[empty] += record.empty
            numbers[unknown] += record.unknown

        return observe_call

    def publish(self, ready: bool, queues: Mapping[str, tuple[int, int, float]]) -> None:
        """Publish the state of this process to the other workers; call it twice a second.

        Args:
            ready: requests are taken.
            queues: of each model the texts that wait, their characters, and the seconds of the oldest request.
        """
        numbers = self._numbers
        place = self.counters.row((WORKER,), 3)
        # All processes of a host share the zero of perf_counter.
        numbers[place : place + 3] = _doubles(time.perf_counter(), os.getpid(), float(ready))
        self._queues.update(queues)
        for model in self._queues:
            for family, number in zip(QUEUES, queues.get(model, (0, 0, 0.0)), strict=True):
                numbers[self._row(family, model)] = number

    def read(self) -> MetricRows:
        """Return the counters of all workers, and the gauges of those that are not silent."""
        found: dict[Key, list[tuple[int, list[float]]]] = {}
        for worker, key, numbers in self.counters.read():
            found.setdefault(key, []).append((worker, list(numbers)))
        limit = time.perf_counter() - SILENT_SECONDS
        heard = [(worker, numbers) for worker, numbers in found.get((WORKER,), ()) if numbers[0] >= limit]
        alive = {worker for worker, _ in heard}
        for key in [key for key in found if key[0] in GAUGES]:
            found[key] = [row for row in found[key] if row[0] in alive]
        found[WORKER,] = heard
        return found

    def _status(self, route: str, status: int) -> int:
        place = self._row(REQUESTS, route, str(status))
        self._statuses.setdefault(route, {})[status] = place
        self._durations[route] = self._row(DURATION, route)
        return place

    def _model(self, label: bytes) -> tuple[int, int, int]:
        # A label ends in the digest, which a reload changes; the name does not.
        name = label.rpartition(b"@")[0].decode()
        queued, inferred, encoded = (self._row(family, name) for family in (QUEUED, INFERRED, ENCODED))
        if len(self._models) >= 64:
            self._models.clear()
        self._models[label] = queued, inferred, encoded
        return queued, inferred, encoded


def _doubles(*values: float) -> memoryview[float]:
    return memoryview(array("d", values))


def expose(rows: MetricRows) -> Iterator[Metric]:
    """Yield the families of all workers as prometheus_client has them."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.utils import floatToGoString

    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}
    for family in FAMILIES:
        metric: Any = kinds[family.type](family.name, family.help, labels=family.labels)
        names = [*map(floatToGoString, family.bounds), "+Inf"]
        for (name, *values), of_workers in sorted(rows.items()):
            if name == family.name and of_workers:
                columns = zip(*(numbers for _, numbers in of_workers), strict=True)
                *counts, total = (family.together(column) for column in columns)
                buckets = [list(zip(names, accumulate(counts), strict=True))] if family.bounds else []
                metric.add_metric(values, *buckets, total)
        yield metric
    workers = rows.get((WORKER,), [])
    for name, text, number in (
        ("gramvec_workers", "Serving processes heard from in the last seconds.", len(workers)),
        ("gramvec_workers_ready", "Serving processes that take requests.", sum(ready for _, (_, _, ready) in workers)),
    ):
        yield GaugeMetricFamily(name, text, number)


def expose_processes(rows: MetricRows, *, labeled: bool) -> Iterator[Metric]:
    """Yield memory, CPU time and open files of each worker, with its number where there are several."""
    from prometheus_client.process_collector import ProcessCollector

    found: dict[str, Metric] = {}
    for worker, (_, pid, _) in sorted(rows.get((WORKER,), [])):
        labels = {"worker": str(worker + 1)} if labeled else {}
        for metric in ProcessCollector(pid=partial(int, int(pid)), registry=None).collect():
            samples = [sample._replace(labels=labels) for sample in metric.samples]
            metric.samples = []
            found.setdefault(metric.name, metric).samples += samples
    yield from found.values()
