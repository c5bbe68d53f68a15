"""Bytes of clients into requests as ASGI has them, and answers into bytes: HTTP/1.1 (RFC 9112) over httptools.

May import contract and below. A new limit of what one client may send, hold or delay is a number in `limits`.
"""

from __future__ import annotations

from gramvec.server.http1.limits import Limits
from gramvec.server.http1.registry import Application, Connections
from gramvec.server.http1.request_response import RequestResponse

__all__ = [
    "Application",
    "Connections",
    "Limits",
    "RequestResponse",
]
