"""FastAPI's routers, one a file; imported by the first request for one of them."""

from __future__ import annotations

from gramvec.server.routes import (
    admin,
    docs_page,
    explaining,
    exposition,
    matching,
    operations,
    playground,
    predicting,
    ranking,
    searching,
    shells,
    sparse,
)

# In the order in which /openapi.json has them.
ROUTERS = (
    shells.router,
    sparse.router,
    ranking.router,
    matching.router,
    searching.router,
    predicting.router,
    explaining.router,
    playground.router,
    docs_page.router,
    operations.router,
    admin.router,
    exposition.router,
)
