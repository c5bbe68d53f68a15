"""POST /admin/reload."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.server.contract import JSON, HttpError, openapi, reply, to_json
from gramvec.server.routes.passing import as_response
from gramvec.server.state import Service

router = APIRouter()


@router.post("/admin/reload", responses=openapi.RELOAD)
async def reload(request: Request) -> Response:
    """Serve the models and indexes that are there now, without a pause; needs an API key to be set.

    Each bundle is opened and checked beside the old one. If all are good, those that have changed take their place at
    once, and requests under way are finished on the old ones; if one is not, nothing changes and the answer says why.
    """
    service: Service = request.app.state.service
    if not service.settings.api_key:
        raise HttpError(
            403,
            "unauthorized",
            "models are reloaded over HTTP only where an API key is set; start with --api-key, or send SIGHUP",
        )
    made = await service.reload()
    return as_response(reply([to_json(made.told())], JSON))
