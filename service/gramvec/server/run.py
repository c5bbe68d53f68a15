"""The serving processes: a socket, and a server in one process or in several workers."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable

from gramvec.errors import GramvecError
from gramvec.server.app import Application, create_app
from gramvec.server.http1 import Limits, Tls
from gramvec.server.processes import (
    BACKLOG,
    STOP_SIGNALS,
    HostAndPort,
    Message,
    Parent,
    Server,
    StandbyServer,
    UnixSocket,
    WorkerServer,
    allow_descriptors,
    collector,
    signals_held,
    standing_by,
    supervise,
)
from gramvec.server.settings import NO_WORKERS_ON_CUDA, Settings
from gramvec.server.state.models import check_there, check_whole, close_but, load_models
from gramvec.server.state.resources import Reloaded, renewed_all
from gramvec.server.state.service import Service
from gramvec.server.telemetry import logs
from gramvec.server.telemetry.tracing import check_tracing

log = logging.getLogger("gramvec.server")

# Longer than the 60 s that load balancers keep an idle connection: the side that reuses it must be first to close it.
KEEP_ALIVE_SECONDS = 75
# It has nothing to finish, and the workers wait for it.
STANDBY_GRACE_SECONDS = 0.25


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        GramvecError: the address cannot be listened on, or the model cannot be loaded, or no worker can start.
    """
    # Until there are models to reload, a hang-up is none of our business; by default it would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logs.configure(settings.log_format)
    check_there(settings)
    tls = Tls.of(settings)
    if settings.tracing == "on":
        check_tracing()
    allow_descriptors(settings.max_connections)
    # Signals wait until somebody hears them: with several workers, until the model is loaded.
    with address_of(settings) as address, address.bound() as listener, signals_held():
        try:
            address.listen(listener, BACKLOG)
            if settings.workers > 1:
                _serve_with_workers(settings, listener, tls)
            else:
                _serve_alone(settings, listener, tls)
        finally:
            _ignore_stop_signals()


def address_of(settings: Settings) -> HostAndPort | UnixSocket:
    """Where these settings say that the service listens."""
    if settings.unix_socket is not None:
        return UnixSocket(settings.unix_socket)
    return HostAndPort(settings.host, settings.port, "http" if settings.tls_certificate is None else "https")


def _serve_alone(settings: Settings, listener: socket.socket, tls: Tls | None) -> None:
    app = create_app(settings)
    service: Service = app.state.service
    service.on_loaded = collector.settle
    server_for(app, tls).run([listener])
    if service.failure is not None:
        raise GramvecError(service.failure)


def _serve_with_workers(settings: Settings, listener: socket.socket, tls: Tls | None) -> None:
    def wait() -> None:
        logging.getLogger("gramvec").setLevel(logging.ERROR)  # of its end nobody has to hear
        app = create_app(settings.model_copy(update={"graceful_shutdown_seconds": STANDBY_GRACE_SECONDS}), ())
        StandbyServer(app, _limits(app), tls).run([listener])

    with standing_by(wait):
        embedders = load_models(settings)
        if any(embedder.device == "cuda" for embedder in embedders):
            raise GramvecError(NO_WORKERS_ON_CUDA)
        app = create_app(settings, embedders)
    for embedder in embedders:
        log.info("%s is ready on %s", embedder.name, embedder.device)
    service: Service = app.state.service
    del embedder, embedders  # the old ones go when a reload replaces them

    server_for(app).preload()

    def work(parent: Parent) -> None:
        service.metrics.claim(parent.number - 1)
        WorkerServer(app, _limits(app), parent, tls).run([listener])

    def renew(is_wanted: Callable[[], bool]) -> Message:
        serving, before = service.given, service.given_attached
        try:
            found, attached = renewed_all(settings, serving, before)
        except GramvecError as error:
            log.error("not reloaded, the models go on as they are: %s", error)
            raise
        if not is_wanted():
            close_but(found, serving)
            return {}
        service.given, service.given_attached = found, attached
        close_but(serving, found)
        made = Reloaded.between((serving, before), (found, attached))
        wanted = [(one.digest, str(one.bundle.path.resolve())) for one in found]
        wanted += [(one.digest, str(one.path)) for one in attached]
        return {"renew": wanted, "result": made.told()}

    # With the listener open here, connections would wait for the end behind the last worker's back.
    supervise(
        work,
        settings.workers,
        settings.graceful_shutdown_seconds,
        renew,
        leave=listener.close,
        examine=lambda: check_whole(service.given),
        renewal_seconds=settings.reload_timeout_seconds,
        answer_seconds=settings.worker_timeout_seconds,
    )


def server_for(app: Application, tls: Tls | None = None) -> Server:
    """A server for an application made by `create_app`; call its `run` with the listening sockets."""
    return Server(app, _limits(app), tls)


def _limits(app: Application) -> Limits:
    return Limits.of(app.state.service.settings, KEEP_ALIVE_SECONDS)


def _ignore_stop_signals() -> None:
    """The process ends as it was told to: whoever tells it again is not to change its exit code."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
