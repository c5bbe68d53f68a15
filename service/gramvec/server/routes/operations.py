"""Routes for operators: GET /health, /ready, /info and /metrics, and POST /admin/reload."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from gramvec import __version__
from gramvec.server.errors import HttpError, unhealthy_error
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import model_router, open_router
from gramvec.server.openapi import errors, ok
from gramvec.server.request import Request
from gramvec.server.responses import Response
from gramvec.server.state.models import AttachedFile, LoadedModel, Reloaded
from gramvec.server.state.service import Service
from gramvec.server.telemetry import metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MAX_LABELS_SHOWN = 1_000


TAG = "operations"
# Routes of the first router need no key.
probes, router = open_router(TAG), model_router(TAG)


class Alive(BaseModel):
    """The response of /health."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """The response of /ready."""

    status: Literal["ready"] = "ready"


class ReadyWorkers(Ready):
    """The response of /ready where there are several workers."""

    workers: int
    workers_running: int


@probes.get("/health", responses=ok("The process answers.", Alive))
async def health() -> Alive:
    """Report liveness: 200 while the process can answer at all, also while the model loads."""
    return Alive()


@probes.get(
    "/ready",
    responses=ok("Requests are taken.", ReadyWorkers | Ready)
    | errors(e503="They are not; the message gives the reason."),
)
async def ready(work: ModelWork) -> ReadyWorkers | Ready:
    """Report readiness: 200 when requests are taken, else 503 with the reason."""
    service = work.service
    if reason := service.unready:
        raise unhealthy_error(reason)
    if service.settings.workers == 1:
        return Ready()
    # Still 200 while one of several is replaced: the others serve, and requests should keep coming here.
    return ReadyWorkers(workers=service.settings.workers, workers_running=service.workers_running)


class RequestLimits(BaseModel):
    """Limits of a request, by the settings of the same names."""

    max_texts: int
    max_characters: int
    max_body_bytes: int
    queue_texts: int
    queue_characters: int
    request_deadline_seconds: float


class DeviceInfo(BaseModel):
    """Device that was asked for, and that of the default model."""

    requested: str
    in_use: str
    provider: str
    runtime: str


class LoadedModelInfo(BaseModel):
    """A served model; the license, languages and training data are as its bundle states them."""

    name: str
    kind: str
    digest: str
    dimension: int
    space: str
    vocabulary_size: int
    max_characters: int
    precision: str
    device: str
    provider: str
    runtime: str
    license: Any = None
    languages: Any = None
    training_data: Any = None


class IndexInfo(BaseModel):
    """A served index, and its columns."""

    name: str
    model: str
    digest: str
    rows: int
    text_columns: list[str]
    id_column: str | None
    filters: list[str]


class HeadInfo(BaseModel):
    """A served head; its labels are the first thousand."""

    name: str
    model: str
    digest: str
    labels: list[str]
    number_of_labels: int
    threshold: float


class Info(BaseModel):
    """The response of /info: first Text Embeddings Inference's fields, by which clients cut their batches."""

    model_id: str
    model_sha: str
    model_dtype: str
    model_type: dict[str, dict[str, str]]
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    models: list[LoadedModelInfo]
    default_model: str
    indexes: list[IndexInfo]
    heads: list[HeadInfo]
    aliases: dict[str, str]
    limits: RequestLimits
    device: DeviceInfo
    versions: dict[str, str | None]


@router.post(
    "/admin/reload",
    responses=ok("Each model's name and digest, and whether it is another one than before.", Reloaded)
    | errors(
        *(401, 500, 503),
        e403="No API key is set, without which nothing is reloaded over HTTP.",
        e409="Another reload is under way.",
        e422="A model's folder holds no usable bundle; all models stay as they were.",
    ),
)
async def reload(work: ModelWork) -> Reloaded:
    """Reload the models and indexes from their files without a pause; needs an API key to be set.

    Each bundle is opened and checked beside the old one. If all are good, those that have changed take their place at
    once, and requests under way are finished on the old ones. Else nothing changes, and the answer gives the reason.
    """
    service = work.service
    if not service.settings.needs_key:
        raise HttpError(
            403,
            "unauthorized",
            "models are reloaded over HTTP only where an API key is set; start with --api-key, or send SIGHUP",
        )
    return await service.process.reload(service)


@router.get("/info", responses=ok("Models, limits, device and versions.", Info) | errors(401, 500, 503))
async def info(work: ModelWork) -> Info:
    """Describe the service: models, indexes, heads, limits, device and versions."""
    service = work.service
    service.check_accepting()
    default, settings = service.admit().embedder, service.settings
    return Info(
        model_id=default.name,
        model_sha=default.digest,
        model_dtype=default.manifest.graph.precision,
        model_type={"embedding": {"pooling": "mean"}},
        max_concurrent_requests=settings.max_connections,
        max_input_length=default.max_characters,
        max_batch_tokens=settings.queue_characters,
        max_client_batch_size=settings.max_texts,
        auto_truncate=settings.truncate == "on",
        tokenization_workers=1,
        version=__version__,
        models=[_model(served) for served in service.models.values()],
        default_model=default.name,
        indexes=[_index(await service.current_index(name)) for name in [*service.indexes]],
        heads=[_head(served) for served in service.heads.values()],
        aliases=dict(service.aliases),
        limits=RequestLimits(
            max_texts=settings.max_texts,
            max_characters=default.max_characters,
            max_body_bytes=settings.max_body_bytes,
            queue_texts=settings.queue_texts,
            queue_characters=settings.queue_characters,
            request_deadline_seconds=settings.request_deadline_seconds,
        ),
        device=DeviceInfo(
            requested=settings.device, in_use=default.device, provider=default.provider, runtime=default.runtime
        ),
        versions={
            "gramvec": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in ("numpy", "onnxruntime", "onnxruntime-gpu")},
        },
    )


def _index(served: AttachedFile) -> IndexInfo:
    index = served.held
    return IndexInfo(
        name=served.name,
        model=served.model,
        digest=served.digest,
        rows=len(index),
        text_columns=index.manifest.columns,
        id_column=index.manifest.id,
        filters=index.filters,
    )


def _head(served: AttachedFile) -> HeadInfo:
    head = served.held
    return HeadInfo(
        name=served.name,
        model=served.model,
        digest=served.digest,
        labels=head.labels[:MAX_LABELS_SHOWN],
        number_of_labels=len(head.labels),
        threshold=head.threshold,
    )


def _model(served: LoadedModel) -> LoadedModelInfo:
    embedder = served.embedder
    manifest = embedder.manifest
    return LoadedModelInfo(
        name=embedder.name,
        kind=embedder.kind,
        digest=embedder.digest,
        dimension=embedder.dimension,
        space=embedder.space,
        vocabulary_size=manifest.rows,
        max_characters=embedder.max_characters,
        precision=manifest.graph.precision,
        device=embedder.device,
        provider=embedder.provider,
        runtime=embedder.runtime,
        license=manifest.provenance.get("license"),
        languages=manifest.provenance.get("languages"),
        training_data=manifest.provenance.get("data"),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# In characters of work.
EXPOSITION_COST = 6_000
# Fields of a model in /metrics.
SHOWN = ("digest", "kind", "precision", "device", "provider", "runtime")


@probes.get(
    "/metrics",
    responses=ok(
        "Metrics of all workers.",
        content={"text/plain": {"schema": {"type": "string"}}, "application/openmetrics-text": {}},
    )
    | errors(401, e404="Metrics are switched off."),
)
async def get_metrics(request: Request, work: ModelWork) -> Response:
    """Return counters, histograms and gauges of all workers for Prometheus.

    The format is OpenMetrics where `Accept` asks for it.
    """
    service = work.service
    if service.settings.metrics == "key":
        request.check(needs_key=True)
    if service.settings.metrics == "off":
        raise HttpError(
            404, "not_found", "metrics are switched off; start the service with --metrics open to have them"
        )
    service.publish()
    accept = request.sent.get(b"accept", b"").decode("latin-1")
    # In a thread: the import of the library, which the first request waits for, takes 60 ms.
    with work.admit("expositions", EXPOSITION_COST) as job:
        text, media_type = await job.run(lambda: expose_metrics(service, accept))
    return Response([text], media_type)


def expose_metrics(service: Service, accept: str) -> tuple[bytes, str]:
    """Return all metrics as text, and the media type of the format that `accept` chose."""
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.metrics_core import InfoMetricFamily
    from prometheus_client.registry import Collector

    class ServiceCollector(Collector):
        def collect(self) -> Iterator[Metric]:
            rows = service.metrics.read()
            yield from metrics.expose(rows)
            models = InfoMetricFamily("gramvec_model", "1 for each model that is loaded.")
            for served in service.models.values():
                described = _model(served)
                labels = {name: str(getattr(described, name)) for name in SHOWN}
                models.add_metric((), {"model": described.name, **labels})
            yield models
            versions = {"version": __version__, "python": platform.python_version()}
            yield InfoMetricFamily("gramvec_build", "1; the versions.", versions)
            yield from metrics.expose_processes(rows, labeled=service.metrics.workers > 1)

    try:
        encode, media_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is no number
        encode, media_type = choose_encoder("")
    return encode(ServiceCollector()), media_type
