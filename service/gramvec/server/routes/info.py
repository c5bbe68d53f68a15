"""GET /health, /ready and /info, and POST /admin/reload: routes for operators."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gramvec import __version__
from gramvec.server.errors import HttpError, unhealthy
from gramvec.server.request import Request
from gramvec.server.responses import Response, to_json
from gramvec.server.state.models import Served
from gramvec.server.state.resources import Attached

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
    made = await service.reload()
    return Response([to_json(made.told())])


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
