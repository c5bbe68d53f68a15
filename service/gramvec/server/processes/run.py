"""Run the service: listen on the address of the settings, and serve in one process or in several workers."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from gramvec.errors import GramvecError
from gramvec.server.app import Application, create_app
from gramvec.server.processes.server import BACKLOG, STOP_SIGNALS, Server, WorkerServer
from gramvec.server.processes.supervisor import signals_blocked, supervise
from gramvec.server.processes.tls import tls_options
from gramvec.server.settings import Settings
from gramvec.server.state.models import check_there
from gramvec.server.telemetry import logs
from gramvec.server.telemetry.tracing import check_tracing

log = logging.getLogger("gramvec.server")

# Descriptors beside those of connections: the models' files, the listening socket, the log.
OTHER_DESCRIPTORS = 128


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
    with signals_blocked(), listening(settings) as listener:
        try:
            if settings.workers > 1 and settings.device == "auto":
                settings = settings.model_copy(update={"device": "cpu"})
            app = create_app(settings)
            if settings.workers > 1:
                _serve_with_workers(app, settings, listener)
            else:
                Server(app).run([listener])
                if (failure := app.state.service.failure) is not None:
                    raise GramvecError(failure)
        finally:
            # The process ends as it was told to: a second signal does not change its exit code.
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def _serve_with_workers(app: Application, settings: Settings, listener: socket.socket) -> None:
    def work(number: int, supervisor: Pipe, sockets: list[socket.socket]) -> None:
        app.state.service.metrics.claim(number)
        WorkerServer(app, supervisor).run(sockets)

    supervise(work, settings, listener)


def allow_descriptors(connections: int) -> None:
    """Raise this process's limit of open files to what so many connections need, as far as the system lets it."""
    # The usual soft limit of 1024 would refuse connections without a word.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OTHER_DESCRIPTORS
    if soft < needed and soft != resource.RLIM_INFINITY:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        if allowed < needed:
            log.warning(
                "this process may have %d files open, too few for max_connections; raise its limit (ulimit -n)", allowed
            )


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """Listen at the address of the settings, and log it; port 0 lets the system choose one.

    The path of a Unix socket goes when the block ends, in the process that has made it.

    Raises:
        GramvecError: the address is unavailable.
    """
    path = settings.unix_socket
    try:
        listener = _at_port(settings.host, settings.port) if path is None else _at_path(path)
        made = None if path is None else (os.getpid(), path.lstat().st_ino)
    except OSError as error:
        asked = f"{settings.host} port {settings.port}" if path is None else path
        # `create_server` adds the address to the system's words.
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise GramvecError(f"cannot listen on {asked}: {why}; choose another") from error
    if path is None:
        address, number = listener.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        scheme = "http" if settings.tls_certificate is None else "https"
        log.info("listening on %s://%s:%d (try /docs)", scheme, shown, number)
    else:
        log.info("listening on %s", path)
    try:
        with listener:
            yield listener
    finally:
        with suppress(OSError):
            if path is not None and made == (os.getpid(), path.lstat().st_ino):
                path.unlink()


def _at_port(host: str, port: int) -> socket.socket:
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=BACKLOG)


def _at_path(path: Path) -> socket.socket:
    """Listen at a path of this host; what a service that was killed has left there is replaced."""
    if os.path.lexists(path):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.EEXIST, "something else is there")
        with socket.socket(socket.AF_UNIX) as asking:
            try:
                asking.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
            else:
                raise OSError(errno.EADDRINUSE, "another process listens there")
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
