"""Requests over HTTP into answers: `app.create_app` for ASGI servers, `server.serve` for a whole process.

Both are imported when they are asked for, so that the command line can show its options without loading FastAPI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramvec.server.app import create_app, router

__all__ = ["create_app", "router"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gramvec.server import app

    return getattr(app, name)
