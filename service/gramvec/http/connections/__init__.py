"""Bytes of clients -> requests as ASGI has them, and answers -> bytes: HTTP/1.1 (RFC 9112) over httptools.

Imports errors, the settings and the shape of an error's body; nothing of the routes. A new limit goes to `limits`.
"""

from gramvec.http.connections.connection import protocol_of
from gramvec.http.connections.limits import Limits
from gramvec.http.connections.registry import Application, Connections
from gramvec.http.connections.request_response import RequestResponse

__all__ = ["Application", "Connections", "Limits", "RequestResponse", "protocol_of"]
