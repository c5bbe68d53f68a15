"""One serving process: a socket, uvicorn, an orderly end."""

from __future__ import annotations

import asyncio
import logging
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from gramvec.errors import GramvecError
from gramvec.http import logs
from gramvec.http.app import create_app
from gramvec.http.service import Service
from gramvec.http.settings import Settings

log = logging.getLogger("gramvec.http")

# Longer than the 60 s that load balancers keep an idle connection: the side that reuses it must be first to close it.
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


class Server(uvicorn.Server):
    """uvicorn that leaves in order: not ready at once, requests in flight finished, exit code 0 after a signal.

    From the signal until the requests in flight are done it goes on accepting connections, so that /ready can say no
    and new requests are told to go elsewhere. uvicorn alone closes its socket at once, and ends by raising the signal
    again, which would make the exit code 143.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        service.on_failure = self._give_up

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Not ready from this moment on."""
        self._service.stop()
        # A second signal is somebody who does not want to wait.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the requests in flight as long as the grace time lasts, then cancel what is left."""
        self._service.stop()
        log.info("shutting down")
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._service.settings.graceful_shutdown_seconds
        while self.server_state.tasks and not self.force_exit and clock() < deadline:
            await asyncio.sleep(0.02)
        # uvicorn types whole seconds; it hands the number to asyncio.wait_for.
        self.config.timeout_graceful_shutdown = max(0.0, deadline - clock())  # type: ignore[assignment]
        await super().shutdown(sockets)

    def _give_up(self, reason: str) -> None:
        self.should_exit = True


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        GramvecError: the address cannot be listened on, or the model cannot be loaded.
    """
    logs.configure(settings.log_format)
    with _listen(settings.host, settings.port) as listener:
        host, port = listener.getsockname()[:2]
        app = create_app(settings)
        shown = f"[{host}]" if ":" in host else host
        log.info("listening on http://%s:%d (try /docs)", shown, port)
        server_for(app).run(sockets=[listener])
        service: Service = app.state.service
        if service.failure is not None:
            raise GramvecError(service.failure)


def server_for(app: FastAPI) -> Server:
    """A server for an application made by `create_app`; call its `run` with the listening sockets."""
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    return Server(config, app.state.service)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise GramvecError(f"cannot listen on {host} port {port}: {error.strerror}; choose another") from error
    return listener
