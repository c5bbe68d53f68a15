"""The serving processes: a socket, and uvicorn in one process or in several workers."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from functools import partial

import uvicorn

from gramvec.errors import GramvecError
from gramvec.http import collector, logs
from gramvec.http.app import create_app
from gramvec.http.channel import Message
from gramvec.http.doorman import doorman
from gramvec.http.forked_servers import Doorman, WorkerServer
from gramvec.http.front_door import FrontDoor
from gramvec.http.heads import Heads
from gramvec.http.listener import allow_descriptors, bound, listen
from gramvec.http.models import changes, check_whole, close_but, load_models, renewed
from gramvec.http.orderly_server import Server
from gramvec.http.patience import Limits, PatientProtocol
from gramvec.http.service import Service
from gramvec.http.settings import NO_WORKERS_ON_CUDA, Settings
from gramvec.http.workers import Parent, signals_held, supervise

log = logging.getLogger("gramvec.http")

# Longer than the 60 s that load balancers keep an idle connection: the side that reuses it must be first to close it.
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
# The doorman has nothing to finish, and the workers wait for it.
DOORMAN_GRACE_SECONDS = 0.25


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        GramvecError: the address cannot be listened on, or the model cannot be loaded, or no worker can start.
    """
    # Until there are models to reload, a hang-up is none of our business; by default it would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logs.configure(settings.log_format)
    allow_descriptors(settings.max_connections)
    with bound(settings.host, settings.port) as listener:
        if settings.workers > 1:
            _serve_with_workers(settings, listener)
            return
        listen(listener, settings.host, settings.port, BACKLOG)
        app = create_app(settings)
        service: Service = app.state.service
        service.on_loaded = collector.settle
        server_for(app).run(sockets=[listener])
        if service.failure is not None:
            raise GramvecError(service.failure)


def _serve_with_workers(settings: Settings, listener: socket.socket) -> None:
    # Signals wait from here on: one that comes while the model loads ends the process once it is loaded.
    with signals_held():
        listen(listener, settings.host, settings.port, BACKLOG)

        def wait() -> None:
            logging.getLogger("gramvec").setLevel(logging.ERROR)  # of its end nobody has to hear
            app = create_app(settings.model_copy(update={"graceful_shutdown_seconds": DOORMAN_GRACE_SECONDS}), ())
            Doorman(_config(app), app.state.service).run(sockets=[listener])

        with doorman(wait):
            embedders = load_models(settings)
        if any(embedder.device == "cuda" for embedder in embedders):
            raise GramvecError(NO_WORKERS_ON_CUDA)
        for embedder in embedders:
            log.info("%s is ready on %s", embedder.name, embedder.device)
        app = create_app(settings, embedders)
        service: Service = app.state.service
        del embedder, embedders  # the old ones go when a reload replaces them

        # What uvicorn would import later is imported once, here.
        config = _config(app)
        config.load()
        config.get_loop_factory()

        def work(parent: Parent) -> None:
            service.metrics.claim(parent.number - 1)
            WorkerServer(config, service, parent).run(sockets=[listener])

        def renew(is_wanted: Callable[[], bool]) -> Message:
            serving = service.given
            try:
                found = renewed(settings, serving)
            except GramvecError as error:
                log.error("not reloaded, the models go on as they are: %s", error)
                raise
            if not is_wanted():
                close_but(found, serving)
                return {}
            service.given = found
            close_but(serving, found)
            made = [change._asdict() for change in changes(serving, found)]
            wanted = [(one.digest, str(one.bundle.path.resolve())) for one in found]
            return {"renew": wanted, "result": {"models": made}}

        # With the listener open here, connections would wait for the end behind the last worker's back.
        supervise(
            work,
            settings.workers,
            settings.graceful_shutdown_seconds,
            renew,
            leave=listener.close,
            examine=lambda: check_whole(service.given),
            renewal_seconds=settings.reload_timeout_seconds,
        )


def server_for(app: FrontDoor) -> Server:
    """A server for an application made by `create_app`; call its `run` with the listening sockets."""
    return Server(_config(app), app.state.service)


def _config(app: FrontDoor) -> uvicorn.Config:
    limits = Limits.of(app.state.service.settings, KEEP_ALIVE_SECONDS)
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=partial(PatientProtocol, limits=limits, heads=Heads()),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
