"""Run the service: listen on the address of the settings, and serve in one process or in several workers."""

from __future__ import annotations

import logging
import signal
import socket
from multiprocessing.connection import Connection as Pipe

from gramvec.errors import GramvecError
from gramvec.server.app import Application, create_app
from gramvec.server.processes.listener import HostAndPort, UnixSocket, allow_descriptors
from gramvec.server.processes.server import BACKLOG, STOP_SIGNALS, Server, WorkerServer
from gramvec.server.processes.supervisor import signals_blocked, supervise
from gramvec.server.processes.tls import tls_options
from gramvec.server.settings import Settings
from gramvec.server.state.models import check_there
from gramvec.server.state.service import Service
from gramvec.server.telemetry import logs
from gramvec.server.telemetry.tracing import check_tracing

log = logging.getLogger("gramvec.server")


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        GramvecError: the address cannot be listened on, a model cannot be loaded, or no worker can start.
    """
    # Until there are models to reload, a hang-up is ignored; by default it would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logs.configure(settings.log_format)
    check_there(settings)
    tls_options(settings)
    if settings.tracing == "on":
        check_tracing()
    allow_descriptors(settings.max_connections)
    with address_of(settings) as address, address.bound() as listener, signals_blocked():
        try:
            address.listen(listener, BACKLOG)
            if settings.workers > 1 and settings.device == "auto":
                settings = settings.model_copy(update={"device": "cpu"})
            app = create_app(settings)
            if settings.workers > 1:
                _serve_with_workers(app, settings, listener)
            else:
                server_for(app).run([listener])
                if (failure := app.state.service.failure) is not None:
                    raise GramvecError(failure)
        finally:
            # The process ends as it was told to: a second signal does not change its exit code.
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def server_for(app: Application) -> Server:
    """Return a server for an application made by `create_app`; call its `run` with the listening sockets."""
    return Server(app)


def address_of(settings: Settings) -> HostAndPort | UnixSocket:
    """Return the address that the settings name."""
    if settings.unix_socket is not None:
        return UnixSocket(settings.unix_socket)
    return HostAndPort(settings.host, settings.port, "http" if settings.tls_certificate is None else "https")


def _serve_with_workers(app: Application, settings: Settings, listener: socket.socket) -> None:
    service: Service = app.state.service

    def work(number: int, supervisor: Pipe, sockets: list[socket.socket]) -> None:
        service.metrics.claim(number)
        WorkerServer(app, supervisor).run(sockets)

    supervise(work, settings, listener)
