"""Routes for operators: GET /health, /ready, /info and /metrics, and POST /admin/reload."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gramvec import __version__
from gramvec.embed.embedder import Embedder
from gramvec.server.errors import HttpError, unhealthy
from gramvec.server.request import Request
from gramvec.server.responses import Response, to_json
from gramvec.server.state.models import Attached, Served
from gramvec.server.state.service import Service
from gramvec.server.telemetry import metrics
from gramvec.server.telemetry.metrics import SECONDS, TEXTS, MetricRows

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MOST_LABELS_SHOWN = 1_000


async def health(request: Request, body: None) -> Response:
    """Report liveness: 200 while the process can answer at all, also while the model loads."""
    return Response([to_json({"status": "alive"})])


async def ready(request: Request, body: None) -> Response:
    """Report readiness: 200 when requests are taken, else 503 with the reason."""
    service = request.service
    if reason := service.unready:
        raise unhealthy(reason)
    found: dict[str, str | int] = {"status": "ready"}
    if service.settings.workers > 1:
        # Still 200 while one of several is replaced: the others serve, and requests should keep coming here.
        found |= {"workers": service.settings.workers, "workers_running": service.workers_running}
    return Response([to_json(found)])


async def reload(request: Request, body: None) -> Response:
    """Reload the models and indexes from their files without a pause; needs an API key to be set.

    Each bundle is opened and checked beside the old one. If all are good, those that have changed take their place at
    once, and requests under way are finished on the old ones; if one is not, nothing changes and the answer says why.
    """
    service = request.service
    if not service.settings.api_key:
        raise HttpError(
            403,
            "unauthorized",
            "models are reloaded over HTTP only where an API key is set; start with --api-key, or send SIGHUP",
        )
    return Response([to_json(await service.reload())])


async def info(request: Request, body: None) -> Response:
    """Describe the service: models, indexes, heads, limits, device and versions."""
    service = request.service
    service.check_accepting()
    default = service.admit().embedder
    settings = service.settings
    value = {
        "models": [_model(served) for served in service.models.values()],
        "default_model": default.name,
        "indexes": [_index(served) for served in service.indexes.values()],
        "heads": [_head(served) for served in service.heads.values()],
        "aliases": dict(service.aliases),
        "limits": {
            "max_texts": settings.max_texts,
            "max_characters": default.max_characters,
            "max_body_bytes": settings.max_body_bytes,
            "queue_texts": settings.queue_texts,
            "queue_characters": settings.queue_characters,
            "request_deadline_seconds": settings.request_deadline_seconds,
        },
        "device": {
            "requested": settings.device,
            "in_use": default.device,
            "provider": default.provider,
            "runtime": default.runtime,
        },
        "versions": {
            "gramvec": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in ("numpy", "onnxruntime", "onnxruntime-gpu")},
        },
    }
    return Response([to_json(value)])


def _index(served: Attached) -> dict[str, Any]:
    index = served.held
    return {
        "name": served.name,
        "model": served.model,
        "digest": served.digest,
        "rows": len(index),
        "text_column": index.manifest.column,
        "id_column": index.manifest.id,
        "filters": index.filters,
    }


def _head(served: Attached) -> dict[str, Any]:
    head = served.held
    return {
        "name": served.name,
        "model": served.model,
        "digest": served.digest,
        "labels": head.labels[:MOST_LABELS_SHOWN],
        "number_of_labels": len(head.labels),
        "threshold": head.threshold,
    }


def _model(served: Served) -> dict[str, Any]:
    embedder = served.embedder
    manifest = embedder.manifest
    return {
        "name": embedder.name,
        "kind": embedder.kind,
        "digest": embedder.digest,
        "dimension": embedder.dimension,
        "space": embedder.space,
        "vocabulary_size": manifest.rows,
        "max_characters": embedder.max_characters,
        "precision": manifest.graph.precision,
        "device": embedder.device,
        "provider": embedder.provider,
        "runtime": embedder.runtime,
        "license": manifest.provenance.get("license"),
        "training_data": manifest.provenance.get("data"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


Samples = Iterable[tuple[Sequence[str], float]]


class Family(NamedTuple):
    """Metric family: its type, its name without the suffix of the type, its labels, and its help text."""

    type: Literal["counter", "gauge", "histogram", "info"]
    name: str
    labels: tuple[str, ...]
    help: str


REQUESTS = Family("counter", "gramvec_requests", ("route", "status"), "Answers; status 499: the client had gone.")
REJECTED = Family("counter", "gramvec_rejected", ("reason",), "Requests refused.")
# The columns of a call's totals.
CALL_TOTALS = (
    Family("counter", "gramvec_texts", ("model",), "Texts computed."),
    Family("counter", "gramvec_characters", ("model",), "Characters in the texts computed."),
    Family(
        "counter",
        "gramvec_texts_without_known_features",
        ("model",),
        "Texts computed that held nothing the model knows.",
    ),
    Family(
        "counter",
        "gramvec_unknown_features",
        ("model",),
        "Characters outside the model's alphabet, and words outside its vocabulary.",
    ),
)
HISTOGRAMS = {
    metrics.DURATION: Family(
        "histogram", "gramvec_request_duration_seconds", ("route",), "From a request's head to its answer's."
    ),
    metrics.QUEUED: Family(
        "histogram", "gramvec_queue_duration_seconds", ("model",), "A request's wait for the model."
    ),
    metrics.INFERRED: Family(
        "histogram", "gramvec_inference_duration_seconds", ("model",), "The calls that a request took part in."
    ),
    metrics.ENCODED: Family(
        "histogram", "gramvec_encode_duration_seconds", ("model",), "From the model's answer to the finished body."
    ),
    metrics.CALL_SECONDS: Family("histogram", "gramvec_call_duration_seconds", ("model",), "One call of the model."),
    metrics.FEATURIZED: Family(
        "histogram", "gramvec_featurise_duration_seconds", ("model",), "Of a call, from texts to rows of the table."
    ),
    metrics.CALL_TEXTS: Family("histogram", "gramvec_call_texts", ("model",), "Texts in one call of the model."),
}
# The columns of a queue's state.
QUEUE_TEXTS = Family("gauge", "gramvec_queue_texts", ("model",), "Texts that wait for the model.")
QUEUE_CHARACTERS = Family("gauge", "gramvec_queue_characters", ("model",), "Characters of the texts that wait.")
QUEUE_OLDEST = Family("gauge", "gramvec_queue_oldest_seconds", ("model",), "How long the oldest request has waited.")
WORKERS = Family("gauge", "gramvec_workers", (), "Serving processes heard from in the last seconds.")
WORKERS_READY = Family("gauge", "gramvec_workers_ready", (), "Serving processes that take requests.")
MODEL = Family(
    "info",
    "gramvec_model",
    ("model", "digest", "kind", "precision", "device", "provider", "runtime"),
    "1 for each model that is loaded.",
)
BUILD = Family("info", "gramvec_build", ("version", "python"), "1; the versions.")
EXPOSITION_SECONDS = 0.002
ENDINGS = {"counter": "_total", "gauge": "", "info": "_info"}


async def get_metrics(request: Request, body: None) -> Response:
    """Return counters, histograms and gauges of all workers for Prometheus.

    The format is OpenMetrics where `Accept` asks for it.
    """
    service = request.service
    if service.settings.metrics == "off":
        raise HttpError(
            404, "not_found", "metrics are switched off; start the service with --metrics open to have them"
        )
    service.publish()
    accept = request.headers.get(b"accept", b"").decode("latin-1")
    # In a thread: the import of the library, which the first request waits for, takes 60 ms.
    with request.admit(EXPOSITION_SECONDS) as job:
        text, media_type = await request.in_thread(job, lambda: exposed(service, accept))
    return Response([text], media_type)


def exposed(service: Service, accept: str) -> tuple[bytes, str]:
    """Return all metrics as text, and the media type of the format that `accept` chose."""
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector

    class Collected(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from _collected(service, service.metrics.read())

    try:
        encode, media_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is no number
        encode, media_type = choose_encoder("")
    return encode(Collected()), media_type


def _collected(service: Service, rows: MetricRows) -> Iterator[Metric]:
    yield _metric(REQUESTS, _column(rows, metrics.REQUESTS))
    yield _metric(REJECTED, _column(rows, metrics.REJECTED))
    for column, family in enumerate(CALL_TOTALS):
        yield _metric(family, _column(rows, metrics.CALL_TOTALS, column))
    for kind, family in HISTOGRAMS.items():
        yield _histogram(family, TEXTS if kind == metrics.CALL_TEXTS else SECONDS, rows, kind)
    yield _metric(QUEUE_TEXTS, _column(rows, metrics.WAITING, 0))
    yield _metric(QUEUE_CHARACTERS, _column(rows, metrics.WAITING, 1))
    yield _metric(QUEUE_OLDEST, _column(rows, metrics.WAITING, 2, max))
    workers = rows.get((metrics.WORKER,), [])
    yield _metric(WORKERS, [((), len(workers))])
    yield _metric(WORKERS_READY, [((), sum(ready for _, (_, _, ready) in workers))])
    yield _metric(MODEL, [(_described(one.embedder), 1) for one in service.models.values()])
    yield _metric(BUILD, [((__version__, platform.python_version()), 1)])
    yield from _processes({worker: int(pid) for worker, (_, pid, _) in workers}, labeled=service.metrics.workers > 1)


def _column(
    rows: MetricRows, kind: str, column: int = 0, together: Callable[[Iterable[float]], float] = sum
) -> list[tuple[Sequence[str], float]]:
    """Return one number of each row of this kind, combined over the workers."""
    return [
        (key[1:], together([numbers[column] for _, numbers in of_workers]))
        for key, of_workers in sorted(rows.items())
        if key[0] == kind and of_workers
    ]


def _metric(family: Family, samples: Samples) -> Metric:
    from prometheus_client.metrics_core import Metric

    metric = Metric(family.name, family.help, family.type)
    for values, number in samples:
        metric.add_sample(family.name + ENDINGS[family.type], dict(zip(family.labels, values, strict=True)), number)
    return metric


def _histogram(family: Family, bounds: Sequence[float], rows: MetricRows, kind: str) -> Metric:
    from prometheus_client.metrics_core import HistogramMetricFamily
    from prometheus_client.utils import floatToGoString

    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    names = [*map(floatToGoString, bounds), "+Inf"]
    for key, of_workers in sorted(rows.items()):
        if key[0] == kind:
            *counts, total = (sum(column) for column in zip(*(numbers for _, numbers in of_workers), strict=True))
            metric.add_metric(key[1:], list(zip(names, accumulate(counts), strict=True)), total)
    return metric


def _described(embedder: Embedder) -> tuple[str, ...]:
    precision, provider = embedder.manifest.graph.precision, embedder.provider
    return embedder.name, embedder.digest, embedder.kind, precision, embedder.device, str(provider), embedder.runtime


def _processes(pids: dict[int, int], *, labeled: bool) -> Iterator[Metric]:
    """Yield memory, CPU time and open files of each worker, with its number where there are several."""
    from prometheus_client.process_collector import ProcessCollector

    found: dict[str, Metric] = {}
    for worker, pid in sorted(pids.items()):
        labels = {"worker": str(worker + 1)} if labeled else {}
        for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            samples = [sample._replace(labels=labels) for sample in metric.samples]
            metric.samples = []
            found.setdefault(metric.name, metric).samples += samples
    yield from found.values()
