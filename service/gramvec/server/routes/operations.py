"""GET /info."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec import __version__
from gramvec.server.contract import JSON, openapi, reply, to_json
from gramvec.server.routes.passing import as_response
from gramvec.server.state import Attached, Served, Service

router = APIRouter()

MOST_LABELS_TOLD = 1_000


@router.get("/info", responses=openapi.INFO)
async def info(request: Request) -> Response:
    """What is served, with which limits, on which device, from which versions."""
    service: Service = request.app.state.service
    service.check_accepting()
    default = service.admit().embedder
    settings = service.settings
    return _json(
        {
            "models": [_model(served) for served in service.models.values()],
            "default_model": default.name,
            "indexes": [_index(searches.served) for searches in service.indexes.values()],
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
    )


def _json(value: Any) -> Response:
    return as_response(reply([to_json(value)], JSON))


def _index(served: Attached) -> dict[str, Any]:
    index = served.held
    return {
        "name": served.name,
        "model": served.model,
        "digest": served.digest,
        "rows": len(index),
        "text_column": index.header.column,
        "id_column": index.header.id,
        "filters": index.filters,
    }


def _head(served: Attached) -> dict[str, Any]:
    head = served.held
    return {
        "name": served.name,
        "model": served.model,
        "digest": served.digest,
        "labels": head.labels[:MOST_LABELS_TOLD],
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
        "licence": manifest.provenance.get("licence"),
        "training_data": manifest.provenance.get("data"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
