"""Between the front door and FastAPI's routes: names in the ASGI scope, and a reply as a response of Starlette's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from gramvec.server.contract import Incoming, Reply
from gramvec.server.state import Service

Route = Callable[[Service, Incoming], Awaitable[Reply]]

# Where a reply's `Usage` is left in the ASGI scope, for the headers that the front door adds.
USAGE = "gramvec.usage"
# And why a request was refused, for the metrics and the log.
REASON = "gramvec.reason"
# What counts the bytes that a request is about to hold.
RESERVE = "gramvec.reserve"

# The page at /docs and what it loads, which must open before a key can be typed into it.
DOCS_ASSETS = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "favicon-32x32.png": "image/png",
}
DOCS_PATHS = frozenset({"/docs", "/openapi.json", *(f"/docs/{name}" for name in DOCS_ASSETS)})


def as_response(reply: Reply) -> Response:
    """The same for Starlette."""
    response = Response(b"".join(reply.body), reply.status)
    response.raw_headers = list(reply.headers)
    return response
