"""Steps that every request may pass besides its handler: API keys, CORS, the access log and spans."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gramvec.server.errors import HttpError, shortened
from gramvec.server.request import CLIENT_GONE, Request
from gramvec.server.responses import Headers, Response
from gramvec.server.settings import ANY_ORIGIN
from gramvec.server.telemetry.logs import FIELDS
from gramvec.server.telemetry.tracing import Spans

log = logging.getLogger("gramvec.access")

SCHEME = b"Bearer "

CORS_METHODS = b"GET, POST, OPTIONS"
# "*" stands for every header but Authorization, so it is not enough.
CORS_REQUEST_HEADERS = (b"authorization", b"content-type", b"x-request-id")
CORS_RESPONSE_HEADERS = (
    b"retry-after, www-authenticate, x-compute-characters, x-dtype, x-empty-inputs, x-inference-time, x-model, "
    b"x-queue-time, x-request-id, x-shape, x-total-time, x-unknown-inputs"
)
# Chromium keeps a preflight for at most two hours.
CORS_MAX_AGE_SECONDS = 7200

HTTP_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
# Probes arrive every few seconds and are of no interest to those who follow a request.
UNTRACED = frozenset({"/health", "/ready", "/metrics"})

_header_names = re.compile(rb"[A-Za-z0-9_-]{1,64}(?:[ \t]*,[ \t]*[A-Za-z0-9_-]{1,64}){0,63}").fullmatch
# W3C Trace Context, section 3.2: a version other than ff, and ids that are not all zeros.
_traceparent = re.compile(rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]{2}").fullmatch


class Auth:
    """API keys, compared in constant time."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._known = [key.encode() for key in keys]

    def check(self, authorization: bytes) -> None:
        """Accept a request with this Authorization header (RFC 6750, section 2.1), empty if it has none.

        Raises:
            HttpError: 401 that says which part is missing or wrong.
        """
        # Every key is compared, in constant time, so that the time taken says nothing about any of them.
        given = authorization[len(SCHEME) :].strip()
        known = any([hmac.compare_digest(given, key) for key in self._known])
        if known and authorization[: len(SCHEME)].title() == SCHEME:
            return
        raise HttpError(401, "unauthorized", _auth_problem(authorization), {"WWW-Authenticate": "Bearer"})


def _auth_problem(authorization: bytes) -> str:
    scheme, _, key = authorization.partition(b" ")
    if not authorization:
        return "an API key is needed; send it as 'Authorization: Bearer KEY'"
    if scheme.title() != SCHEME.strip():
        # The header is not repeated: it may hold a key.
        return "the Authorization header does not begin with 'Bearer '; send the key as 'Authorization: Bearer KEY'"
    if not key.strip():
        return "the Authorization header ends after 'Bearer'; send the key as 'Authorization: Bearer KEY'"
    return "the API key is wrong; send one that this service was started with"


class Cors:
    """The Fetch standard's CORS protocol for a list of origins, or for all ("*")."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._any = ANY_ORIGIN in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, request: Mapping[bytes, bytes]) -> Headers:
        """Return the headers of every response to this request, errors included."""
        found: Headers = []
        if not self._any:
            # Also without an Origin: a cache must not give that response to a page.
            found.append((b"vary", b"Origin"))
        allowed = self._allowed(request)
        if allowed:
            found += [
                (b"access-control-allow-origin", allowed),
                (b"access-control-expose-headers", CORS_RESPONSE_HEADERS),
            ]
        return found

    def preflight(self, method: str, request: Mapping[bytes, bytes]) -> Response | None:
        """Return the response to a preflight; None for any other request.

        A preflight needs no key: a browser has none to show before it was told that it may. A page of another origin
        gets no permission, which is all that the standard asks for.
        """
        if method != "OPTIONS" or b"origin" not in request or b"access-control-request-method" not in request:
            return None
        headers: Headers = []
        if self._allowed(request):
            # All headers that the page asks for are allowed: clients add their own, and none is read here.
            asked = request.get(b"access-control-request-headers", b"")
            more = [name.strip().lower() for name in asked.split(b",")] if _header_names(asked) else []
            names = b", ".join(dict.fromkeys([*CORS_REQUEST_HEADERS, *more]))
            headers += [
                (b"access-control-allow-methods", CORS_METHODS),
                (b"access-control-allow-headers", names),
                (b"access-control-max-age", b"%d" % CORS_MAX_AGE_SECONDS),
            ]
        headers.append((b"vary", b"Access-Control-Request-Headers"))
        return Response([b""], "", headers=headers)

    def _allowed(self, request: Mapping[bytes, bytes]) -> bytes:
        origin = request.get(b"origin", b"")
        if self._any and origin:
            return b"*"
        return origin if origin in self._origins else b""


def log_request(request: Request, *, failed: bool) -> None:
    """Write one line: the route, the status, the reason of a refusal and the time, under the request's id.

    A line costs 8 us and a write to standard error, 3 % of a request of one text, so only failures have one by default.
    The method is one that the HTTP parser knows, the route is a template, and the id was checked.
    """
    characters, queue_ms, inference_ms, label, texts, _ = request.usage
    status = request.status
    fields: dict[str, str | int | float] = {
        "request_id": request.request_id.decode(),
        "method": request.scope["method"],
        "route": request.template,
        "status": status,
        "total_ms": round(request.seconds * 1e3, 3),
    }
    if (trace := _traceparent(request.headers.get(b"traceparent", b""))) is not None:
        fields |= {"trace_id": trace[1].decode(), "parent_id": trace[2].decode()}
    if texts:
        fields |= {
            "queue_ms": round(queue_ms, 3),
            "inference_ms": round(inference_ms, 3),
            "texts": texts,
            "characters": characters,
            "model": label.decode(),
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
        "url.path": shortened(scope["path"]),
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
    characters, queue_ms, inference_ms, label, texts, _ = request.usage
    if texts:
        attributes |= {
            "gramvec.model": label.decode(),
            "gramvec.texts": texts,
            "gramvec.characters": characters,
            "gramvec.queue_seconds": queue_ms / 1e3,
            "gramvec.inference_seconds": inference_ms / 1e3,
        }
    if failed:
        error = request.error
        attributes["error.type"] = str(status) if error is None else type(error).__qualname__
    spans.record(name, request.age, request.headers, attributes, failed=failed)
