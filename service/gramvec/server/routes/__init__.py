"""What each route does: a body in, a finished reply out, of no framework; and their shells for FastAPI.

May import models and below. A new route is a file here, with its router in ROUTERS (routers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramvec.server.routes import embedding, openai, probes
from gramvec.server.routes.passing import DOCS_PATHS, REASON, RESERVE, USAGE, Route, as_response

if TYPE_CHECKING:
    from fastapi import APIRouter

__all__ = [
    "DOCS_PATHS",
    "REASON",
    "RESERVE",
    "USAGE",
    "Route",
    "as_response",
    "embedding",
    "openai",
    "probes",
    "routers",
]


def routers() -> tuple[APIRouter, ...]:
    """All that FastAPI answers; the first call imports FastAPI, which takes 0.2 s and 15 MB."""
    from gramvec.server.routes.routers import ROUTERS

    return ROUTERS
