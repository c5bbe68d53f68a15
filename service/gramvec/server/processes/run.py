"""Run the service: listen on the address of the settings, and serve in one process or in several workers."""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import stat
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Self

from gramvec.errors import GramvecError
from gramvec.server.app import Application, create_app
from gramvec.server.processes.server import BACKLOG, STOP_SIGNALS, Server, WorkerServer
from gramvec.server.processes.supervisor import signals_blocked, supervise
from gramvec.server.processes.tls import tls_options
from gramvec.server.settings import Settings
from gramvec.server.state.models import check_there
from gramvec.server.state.service import Service
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


class HostAndPort:
    """An address of TCP; port 0 lets the system choose one. `scheme` is what is said of it."""

    def __init__(self, host: str, port: int, scheme: str = "http") -> None:
        self._host = host
        self._port = port
        self._scheme = scheme

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def bound(self) -> socket.socket:
        """Return a bound socket. Raises GramvecError if the address is unavailable."""
        try:
            family, *_, address = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind(address[:2])
            except OSError:
                listener.close()
                raise
        except OSError as error:
            raise self._refusal(error) from error
        return listener

    def listen(self, listener: socket.socket, backlog: int) -> None:
        """Listen, and say where. Raises GramvecError, which names what was asked for."""
        try:
            listener.listen(backlog)
        except OSError as error:
            raise self._refusal(error) from error
        address, number = listener.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        log.info("listening on %s://%s:%d (try /docs)", self._scheme, shown, number)

    def _refusal(self, error: OSError) -> GramvecError:
        return GramvecError(f"cannot listen on {self._host} port {self._port}: {error.strerror}; choose another")


class UnixSocket:
    """A path of this host, which nobody listens on: what a service that was killed has left there is replaced.

    It goes when the block ends, in the process that has made it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._made: tuple[int, int] | None = None  # process and inode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            if self._made == (os.getpid(), self._path.lstat().st_ino):
                self._path.unlink()

    def bound(self) -> socket.socket:
        """Return a bound socket. Raises GramvecError if the address is unavailable."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            self._remove_what_is_left()
            listener.bind(str(self._path))
            self._made = os.getpid(), self._path.lstat().st_ino
        except OSError as error:
            listener.close()
            raise self._refusal(error.strerror or str(error)) from error
        except GramvecError:
            listener.close()
            raise
        return listener

    def listen(self, listener: socket.socket, backlog: int) -> None:
        """Listen, and say where. Raises GramvecError."""
        try:
            listener.listen(backlog)
        except OSError as error:
            raise self._refusal(error.strerror or str(error)) from error
        log.info("listening on %s", self._path)

    def _remove_what_is_left(self) -> None:
        try:
            if not stat.S_ISSOCK(self._path.lstat().st_mode):
                raise self._refusal("something else is there")
        except FileNotFoundError:
            return
        with socket.socket(socket.AF_UNIX) as asking:
            try:
                asking.connect(str(self._path))
            except ConnectionRefusedError:
                self._path.unlink()
            else:
                raise self._refusal("another process listens there")

    def _refusal(self, why: str) -> GramvecError:
        return GramvecError(f"cannot listen on {self._path}: {why}; choose another")
