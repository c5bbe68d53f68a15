"""Run the service: listen on the addresses of the settings, and serve in one process or in several workers."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_address
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from gramvec.errors import GramvecError
from gramvec.server.app import Application, create_app
from gramvec.server.edge.server import BACKLOG, STOP_SIGNALS, Server, WorkerServer
from gramvec.server.edge.supervisor import block_signals, supervise
from gramvec.server.edge.tls import tls_options
from gramvec.server.settings import Settings, warn_of_unknown_variables
from gramvec.server.state.models import check_there
from gramvec.server.telemetry import logs
from gramvec.server.telemetry.tracing import check_tracing

log = logging.getLogger("gramvec.server")

# Descriptors beside those of connections: the models' files, the listening socket, the log.
OTHER_DESCRIPTORS = 128
EVERY_ADDRESS, EVERY_ADDRESS_OF_IPV4 = "::", "0.0.0.0"  # noqa: S104 (asked for by a setting)
# The system does not have an address, or its whole family.
NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
OPEN_TO_ALL = 0o666
# A service that is starting, too, has bound its path a moment before it listens.
UNTIL_LISTENING_SECONDS = 0.5


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        GramvecError: an address cannot be listened on, a model cannot be loaded, or no worker can start.
    """
    logs.open_missing_streams()
    # Until there are models to reload, a hang-up is ignored; by default it would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logs.configure(settings.log_format)
    warn_of_unknown_variables(os.environ)
    check_there(settings)
    tls_options(settings)
    if settings.tracing == "on":
        check_tracing()
    allow_descriptors(settings.max_connections)
    with block_signals(), listen_at_addresses(settings) as listeners:
        try:
            if settings.workers > 1 and settings.device == "auto":
                settings = settings.model_copy(update={"device": "cpu"})
            app = create_app(settings)
            if settings.workers > 1:
                _serve_with_workers(app, settings, listeners)
            else:
                Server(app).run(listeners)
                if (failure := app.state.gramvec.failure) is not None:
                    raise GramvecError(failure)
        finally:
            # A second signal does not change the exit code of a process that ends.
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def _serve_with_workers(app: Application, settings: Settings, listeners: list[socket.socket]) -> None:
    def work(number: int, supervisor: Pipe, sockets: list[socket.socket]) -> None:
        app.state.gramvec.metrics.claim(number)
        WorkerServer(app, supervisor).run(sockets)

    supervise(work, settings, listeners)


def allow_descriptors(connections: int) -> None:
    """Raise this process's limit of open files for this number of connections, as far as the system allows."""
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
def listen_at_addresses(settings: Settings) -> Iterator[list[socket.socket]]:
    """Listen at the addresses of the settings, and log them; port 0 lets the system choose one, for all of them.

    The path of a Unix socket goes when the block ends, in the process that has made it.

    Raises:
        GramvecError: an address is unavailable.
    """
    with ExitStack() as held:
        if settings.unix_socket is not None:
            listeners = [held.enter_context(_listen_at_path(settings.unix_socket))]
            log.info("listening on %s", settings.unix_socket)
        else:
            listeners = _listen_at_hosts(settings.host, settings.port, held)
            scheme = "http" if settings.tls_certificate is None else "https"
            for listener in listeners:
                address, number = listener.getsockname()[:2]
                shown = f"[{address}]" if ":" in address else address
                log.info("listening on %s://%s:%d (try /docs)", scheme, shown, number)
        yield listeners


def _address_error(asked: object, error: OSError) -> GramvecError:
    # `create_server` adds the address to the system's words.
    why = (error.strerror or str(error)).partition(" (while")[0]
    return GramvecError(f"cannot listen on {asked}: {why}; choose another")


def _listen_at_hosts(hosts: Sequence[str], port: int, held: ExitStack) -> list[socket.socket]:
    """Listen at the same port of every host. Raises GramvecError."""
    # The address of all hosts takes IPv4, too, but where an address of IPv4 has a socket of its own.
    with_ipv4 = not any(_is_ipv4(host) for host in hosts)
    listeners: list[socket.socket] = []
    for host in hosts:
        try:
            for listener in _listen_at_host(host, port, with_ipv4=with_ipv4):
                listeners.append(held.enter_context(listener))
                port = listener.getsockname()[1]
        except OSError as error:
            raise _address_error(f"{host} port {port}", error) from error
    return listeners


def _is_ipv4(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).version == 4
    return False


def _listen_at_host(host: str, port: int, *, with_ipv4: bool) -> Iterator[socket.socket]:
    """Listen at every address of a host that this system has. Raises OSError where it has none, or one is taken."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = dict.fromkeys((family, address[0]) for family, *_, address in found)
    is_dual = host == EVERY_ADDRESS and with_ipv4 and socket.has_dualstack_ipv6()
    if host == EVERY_ADDRESS and with_ipv4 and not is_dual:
        addresses[socket.AF_INET, EVERY_ADDRESS_OF_IPV4] = None
    missing: OSError | None = None
    for family, address in addresses:
        try:
            listener = socket.create_server((address, port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dual)
        except OSError as error:
            if error.errno not in NOT_HERE:
                raise
            missing = error
        else:
            addresses[family, address] = port = listener.getsockname()[1]
            yield listener
    if missing is not None and not any(addresses.values()):
        raise missing


@contextmanager
def _listen_at_path(path: Path) -> Iterator[socket.socket]:
    """Listen at a path of this host; raises GramvecError.

    As TCP's addresses, it takes everybody of this host who can reach it: a proxy is mostly another user.
    """
    try:
        listener = _bind(path)
        made = os.getpid(), path.lstat().st_ino
    except OSError as error:
        raise _address_error(path, error) from error
    try:
        with listener:
            yield listener
    finally:
        with suppress(OSError):
            if made == (os.getpid(), path.lstat().st_ino):
                path.unlink()


def _is_refused(path: Path) -> bool:
    """Return True if nothing listens at this path, also after a moment. Raises OSError."""
    for pause in (UNTIL_LISTENING_SECONDS, 0.0):
        with socket.socket(socket.AF_UNIX) as asking:
            try:
                asking.connect(str(path))
            except (ConnectionRefusedError, FileNotFoundError):
                time.sleep(pause)
            else:
                return False
    return True


def _bind(path: Path) -> socket.socket:
    """Return a socket that listens at a path; what a service that was killed has left there is replaced."""
    if os.path.lexists(path):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.EEXIST, "something else is there")
        if not _is_refused(path):
            raise OSError(errno.EADDRINUSE, "another process listens there")
        path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(OPEN_TO_ALL)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
