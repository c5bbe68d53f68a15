"""What each route does: a body in, a finished reply out, of no framework; and their shells for FastAPI.

May import models and below. A new route is a file here, with its router in ROUTERS.
"""

from __future__ import annotations

from gramvec.http.routes import (
    admin,
    docs_page,
    embedding,
    explaining,
    exposition,
    openai,
    operations,
    playground,
    ranking,
    shells,
)
from gramvec.http.routes.shells import REASON, RESERVE, USAGE, Route, as_response

# In the order in which /openapi.json has them.
ROUTERS = (
    shells.router,
    ranking.router,
    explaining.router,
    playground.router,
    docs_page.router,
    operations.router,
    admin.router,
    exposition.router,
)

__all__ = [
    "REASON",
    "RESERVE",
    "ROUTERS",
    "USAGE",
    "Route",
    "as_response",
    "docs_page",
    "embedding",
    "openai",
]
