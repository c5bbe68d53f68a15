"""The span of one request, by OpenTelemetry's conventions for HTTP servers (stable since 1.23)."""

from __future__ import annotations

from typing import Any

from starlette.types import Scope

from gramvec.server.contract import shortened
from gramvec.server.middleware.exchange import CLIENT_GONE, Exchange
from gramvec.server.telemetry import UNKNOWN_ROUTE, Spans

METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
# Asked for every few seconds by whoever watches the service: of no interest to anybody who follows a request.
UNTRACED = frozenset({"/health", "/ready", "/metrics"})


def record_span(spans: Spans, scope: Scope, exchange: Exchange) -> None:
    """One span; it has no text, no query, no key and no address of a client."""
    route, status = exchange.route or UNKNOWN_ROUTE, exchange.status
    if route in UNTRACED:
        return
    known = scope["method"] in METHODS
    method = scope["method"] if known else "_OTHER"
    attributes: dict[str, Any] = {
        "http.request.method": method,
        "url.scheme": scope["scheme"],
        "url.path": shortened(scope["path"]),
        "network.protocol.version": scope["http_version"],
        "gramvec.request_id": exchange.request_id.decode(),
    }
    name = method if known else "HTTP"
    if route.startswith("/"):
        name = f"{name} {route}"
        attributes["http.route"] = route
    if server := scope.get("server"):
        attributes |= {"server.address": server[0], "server.port": server[1]}
    if status != CLIENT_GONE:
        attributes["http.response.status_code"] = status
    if exchange.reason is not None:
        attributes["gramvec.reason"] = exchange.reason
    characters, queue_ms, inference_ms, label, texts, _ = exchange.usage
    if texts:
        attributes |= {
            "gramvec.model": label.decode(),
            "gramvec.texts": texts,
            "gramvec.characters": characters,
            "gramvec.queue_seconds": queue_ms / 1e3,
            "gramvec.inference_seconds": inference_ms / 1e3,
        }
    error = exchange.error
    failed = error is not None or (exchange.reason is None and (status >= 500 or status == 424))
    if failed:
        attributes["error.type"] = str(status) if error is None else type(error).__qualname__
    spans.record(name, exchange.age, exchange.headers, attributes, failed=failed)
