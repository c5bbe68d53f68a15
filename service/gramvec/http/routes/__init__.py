"""What each route does: a body in, a finished reply out, of no framework; and their shells for FastAPI.

May import models and below. A new route is a function here, with a shell and what contract says of it.
"""

from __future__ import annotations

from gramvec.http.routes.shells import REASON, RESERVE, USAGE, Route, as_response

__all__ = [
    "REASON",
    "RESERVE",
    "USAGE",
    "Route",
    "as_response",
]
