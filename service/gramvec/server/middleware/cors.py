"""Which pages of other origins may ask from a browser (the Fetch standard's CORS protocol)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gramvec.server.contract import Headers, Reply
from gramvec.server.settings import ANY

METHODS = b"GET, POST, OPTIONS"
# "*" would not do: it stands for every header but Authorization.
REQUEST_HEADERS = (b"authorization", b"content-type", b"x-request-id")
ANSWER_HEADERS = (
    b"retry-after, www-authenticate, x-compute-characters, x-dtype, x-empty-inputs, x-inference-time, x-model, "
    b"x-queue-time, x-request-id, x-shape, x-total-time, x-unknown-inputs"
)
# Chromium keeps no preflight for longer than two hours.
MAX_AGE_SECONDS = 7200

_header_names = re.compile(rb"[A-Za-z0-9_-]{1,64}(?:[ \t]*,[ \t]*[A-Za-z0-9_-]{1,64}){0,63}").fullmatch


class Cors:
    """The answers to a browser, for a list of origins or for all ("*")."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._any = ANY in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, request: Mapping[bytes, bytes]) -> Headers:
        """What every answer to this request carries, errors included."""
        found: Headers = []
        if not self._any:
            # Also where it has no Origin: a cache must not give that answer to a page.
            found.append((b"vary", b"Origin"))
        allowed = self._allowed(request)
        if allowed:
            found += [(b"access-control-allow-origin", allowed), (b"access-control-expose-headers", ANSWER_HEADERS)]
        return found

    def preflight(self, method: str, request: Mapping[bytes, bytes]) -> Reply | None:
        """The answer to a browser that asks what it may send; None for any other request.

        It needs no key: a browser has none to show before it was told that it may. A page of another origin gets no
        permission, which is all that the standard wants.
        """
        if method != "OPTIONS" or b"origin" not in request or b"access-control-request-method" not in request:
            return None
        answer: Headers = [(b"content-length", b"0")]
        if self._allowed(request):
            # What the page asks for is allowed, too: clients add headers of their own, and none is read here.
            asked = request.get(b"access-control-request-headers", b"")
            more = [name.strip().lower() for name in asked.split(b",")] if _header_names(asked) else []
            names = b", ".join(dict.fromkeys([*REQUEST_HEADERS, *more]))
            answer += [
                (b"access-control-allow-methods", METHODS),
                (b"access-control-allow-headers", names),
                (b"access-control-max-age", b"%d" % MAX_AGE_SECONDS),
            ]
        answer.append((b"vary", b"Access-Control-Request-Headers"))
        return Reply(200, answer, [b""])

    def _allowed(self, request: Mapping[bytes, bytes]) -> bytes:
        origin = request.get(b"origin", b"")
        if self._any and origin:
            return b"*"
        return origin if origin in self._origins else b""
