"""Bytes of clients into requests as ASGI has them, and answers into bytes: HTTP/1.1 (RFC 9112) over httptools.

May import contract and below. A new limit of what one client may send, hold or delay is a number in `limits`.
"""

from __future__ import annotations

from gramvec.http.connections.limits import Limits
from gramvec.http.connections.registry import Application, Connections
from gramvec.http.connections.request_response import RequestResponse
from gramvec.http.connections.tls import Tls, protocol_of

__all__ = [
    "Application",
    "Connections",
    "Limits",
    "RequestResponse",
    "Tls",
    "protocol_of",
]
