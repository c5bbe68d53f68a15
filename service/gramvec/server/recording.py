"""The line in the log and the span of a request that has ended."""

from __future__ import annotations

import logging
import re
from typing import Any

from gramvec.server.errors import shorten
from gramvec.server.request import Request
from gramvec.server.telemetry.logs import FIELDS
from gramvec.server.telemetry.metrics import CLIENT_GONE
from gramvec.server.telemetry.tracing import Spans

log = logging.getLogger("gramvec.access")

HTTP_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
# Probes arrive every few seconds and are of no interest to those who follow a request.
UNTRACED = frozenset({"/health", "/ready", "/metrics"})

# W3C Trace Context, section 3.2: a version other than ff, and ids that are not all zeros.
_traceparent = re.compile(rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]{2}").fullmatch


def log_request(request: Request, *, failed: bool) -> None:
    """Write one line: the route, the status, the reason of a refusal and the time, under the request's id.

    A line costs 8 us and a write to standard error, 3 % of a request of one text, so only failures have one by default.
    The method is one that the HTTP parser knows, the route is a template, and the id was checked.
    """
    timings = request.timings
    status = request.status
    fields: dict[str, str | int | float] = {
        "request_id": request.request_id.decode(),
        "method": request.scope["method"],
        "route": request.template,
        "status": status,
        "total_ms": round(request.seconds * 1e3, 3),
    }
    if (trace := _traceparent(request.sent.get(b"traceparent", b""))) is not None:
        fields |= {"trace_id": trace[1].decode(), "parent_id": trace[2].decode()}
    if timings.texts:
        fields |= {
            "queue_ms": round(timings.queue_ms, 3),
            "inference_ms": round(timings.inference_ms, 3),
            "texts": timings.texts,
            "characters": timings.characters,
            "model": request.label.decode(),
        }
    if request.reason is not None:
        fields["reason"] = request.reason
    if failed:
        log.error("request %s failed", fields["request_id"], exc_info=request.error, extra={FIELDS: fields})
    else:
        log.info("request %s", "served" if request.reason is None else "refused", extra={FIELDS: fields})


def record_span(spans: Spans, request: Request, *, failed: bool) -> None:
    """Record one span by OpenTelemetry's conventions for HTTP servers (stable since 1.23).

    It holds no text, no query, no key and no address of a client.
    """
    scope, template, status = request.scope, request.template, request.status
    if template in UNTRACED:
        return
    known = scope["method"] in HTTP_METHODS
    method = scope["method"] if known else "_OTHER"
    attributes: dict[str, Any] = {
        "http.request.method": method,
        "url.scheme": scope["scheme"],
        "url.path": shorten(scope["path"]),
        "network.protocol.version": scope["http_version"],
        "gramvec.request_id": request.request_id.decode(),
    }
    name = method if known else "HTTP"
    if template.startswith("/"):
        name = f"{name} {template}"
        attributes["http.route"] = template
    if server := scope.get("server"):
        attributes |= {"server.address": server[0], "server.port": server[1]}
    if status != CLIENT_GONE:
        attributes["http.response.status_code"] = status
    if request.reason is not None:
        attributes["gramvec.reason"] = request.reason
    timings = request.timings
    if timings.texts:
        attributes |= {
            "gramvec.model": request.label.decode(),
            "gramvec.texts": timings.texts,
            "gramvec.characters": timings.characters,
            "gramvec.queue_seconds": timings.queue_ms / 1e3,
            "gramvec.inference_seconds": timings.inference_ms / 1e3,
        }
    if failed:
        error = request.error
        attributes["error.type"] = str(status) if error is None else type(error).__qualname__
    spans.record(name, request.age, request.sent, attributes, failed=failed)
