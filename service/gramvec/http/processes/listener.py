"""The socket that is listened on, and how many more the process may have."""

from __future__ import annotations

import logging
import resource
import socket

from gramvec.errors import GramvecError

log = logging.getLogger("gramvec.http")

# Descriptors beside those of connections: the models' files, the listening socket, the log.
OTHER_DESCRIPTORS = 128


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


def bound(host: str, port: int) -> socket.socket:
    """A socket with this address; port 0 lets the system choose one. Raises GramvecError if it cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
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
        raise _no_address(host, port, error) from error
    return listener


def listen(listener: socket.socket, host: str, port: int, backlog: int) -> None:
    """Listen, and say where. `host` and `port` are those asked for; raises GramvecError, which names them."""
    try:
        listener.listen(backlog)
    except OSError as error:
        raise _no_address(host, port, error) from error
    address, number = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    log.info("listening on http://%s:%d (try /docs)", shown, number)


def _no_address(host: str, port: int, error: OSError) -> GramvecError:
    return GramvecError(f"cannot listen on {host} port {port}: {error.strerror}; choose another")
