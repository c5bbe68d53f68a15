"""GET /health and GET /ready: what whoever starts and restarts processes asks, of no framework."""

from __future__ import annotations

from gramvec.server.contract import JSON, Incoming, Reply, reply, to_json, unhealthy
from gramvec.server.state import Service


async def health(service: Service, request: Incoming) -> Reply:
    """200 while the process can answer at all."""
    return reply([to_json({"status": "alive"})], JSON)


async def ready(service: Service, request: Incoming) -> Reply:
    """200 when requests are taken. Raises HttpError 503 with the reason."""
    if reason := service.unready:
        raise unhealthy(reason)
    found: dict[str, str | int] = {"status": "ready"}
    if service.settings.workers > 1:
        # Still 200: where one of several is being replaced, the others serve, and requests should go on to come here.
        found |= {"workers": service.settings.workers, "workers_running": service.workers_running}
    return reply([to_json(found)], JSON)
