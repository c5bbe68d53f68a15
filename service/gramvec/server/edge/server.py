"""Serving process: uvicorn's server with limits on connections, reloads, a graceful end, and its memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

import uvicorn

from gramvec.errors import InputError
from gramvec.server.app import Application
from gramvec.server.edge.protocol import Guard, LimitedProtocol, Limits, limit_protocol
from gramvec.server.edge.tls import new_context, state_of_files, tls_options
from gramvec.server.errors import HttpError, reload_failed_error
from gramvec.server.settings import Settings
from gramvec.server.state.models import Reloaded
from gramvec.server.state.service import Process, Service
from gramvec.server.telemetry.logs import FIELDS
from gramvec.server.telemetry.metrics import UNKNOWN_ROUTE

log = logging.getLogger("gramvec.server")
access_log = logging.getLogger("gramvec.access")

BACKLOG = 2048
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
RELOAD_PAUSE_SECONDS = 0.1
# Uvicorn's ticks, a tenth of a second each.
SWEEP_TICKS = 5
TRIM_TICKS = 200
TURN_SECONDS = 0.01
# How long connections that are idle at the end are still read: a request may be on its way, and closing would answer it
# with a reset. A busy client or proxy uses all that it keeps within that time.
QUIET_SECONDS = 0.5
# How long handshakes that have begun get to end before the listening socket is closed.
HANDSHAKE_SECONDS = 0.05
# How long cancelled requests get to send their last answer.
CANCELLED_SECONDS = 1.0
# Reference counts free what a request makes, so the collector finds next to nothing and may run seldom.
YOUNG_OBJECTS = 5_000
# Messages of the supervisor to a worker. The first is answered with its condition.
PING, RELOAD, LEAVE = b"ping", b"reload", b"leave"

LOOPBACK = b"lo"
# Options of Linux, by which packets are dropped that come from further away than so many hops (RFC 5082).
IP_MINTTL, IPV6_MINHOPCOUNT, MOST_HOPS = 21, 73, 255

_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


class Condition(NamedTuple):
    """State that a worker tells its supervisor.

    Attributes:
        started: it serves.
        reloads: how many it has done since it started.
        refused: the last one could not be done.
    """

    started: bool
    reloads: int
    refused: bool


def settle() -> None:
    """Collect garbage once, then exempt every living object from later collections.

    It takes 40 ms. Without it a request of one text costs 10 % more, because the collector walks the 60,000 objects of
    modules and models again and again. Forked workers keep sharing the pages of these objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    trim()


def trim() -> None:
    """Return free memory to the system, where the C library can; takes about a millisecond.

    glibc keeps freed memory in fragments, which grow by half a megabyte a minute under load.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


def limits_of(settings: Settings) -> Limits:
    """Return the limits of a connection that the settings give."""
    return Limits(
        connections=settings.max_connections,
        header_bytes=settings.max_header_bytes,
        header_lines=settings.max_header_lines,
        unread_bytes=settings.max_unread_bytes,
        header_seconds=settings.header_timeout_seconds,
        body_seconds=settings.body_timeout_seconds,
        send_seconds=settings.send_timeout_seconds,
        keep_alive_seconds=settings.keep_alive_seconds,
    )


class Server(uvicorn.Server, Process):
    """A server that refuses no request that reaches it until the end, and ends with exit code 0 after a signal.

    From the signal on it accepts no connection, which a proxy takes for a reason to ask another server at once, and
    answers what comes over open ones with Connection: close, until all are idle or the grace time is over. uvicorn by
    itself resets connections in the queue and closes idle ones at once, under requests that are on their way, and
    ends by raising the signal again, which would make the exit code 143.

    Args:
        app: the application.

    Raises:
        InputError: a file of the TLS settings cannot be used.
    """

    # Whether /health answers while the models are being loaded.
    listens_while_loading = True

    def __init__(self, app: Application) -> None:
        self._service: Service = app.state.gramvec
        settings = self._service.settings
        self._guard = Guard(limits_of(settings), self._count_refused)
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=limit_protocol(self._guard),
                ws="none",
                lifespan="on",
                interface="asgi3",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                **tls_options(settings),
            )
        )
        self.loop: asyncio.AbstractEventLoop | None = None
        self._sockets: list[socket.socket] = []
        self._connecting: set[asyncio.Task[None]] = set()
        self._reload: asyncio.Task[None] | None = None
        self._reload_again = self.reload_refused = False
        self.reloads = 0
        self._certificate_state = state_of_files(settings)

    def _count_refused(self, status: int, *, begun: bool, request_id: bytes) -> None:
        """Count an answer that the application never gave, and log it where all requests are."""
        self._service.metrics.count_unread(status, begun=begun)
        if self._service.logs_all and not begun:
            fields = {"request_id": request_id.decode(), "method": "-", "route": UNKNOWN_ROUTE, "status": status}
            access_log.info("request refused", extra={FIELDS: fields})

    @property
    def connections(self) -> set[LimitedProtocol]:
        """The open connections."""
        return self._guard.members

    def on_loaded(self) -> None:
        """Keep what is alive now from the garbage collector."""
        settle()

    def on_failed(self, reason: str) -> None:
        """Leave."""
        self.stop()

    def unsent_bytes(self) -> int:
        """Return the number of bytes of responses that lie in the buffers of connections."""
        return self._guard.unsent_bytes()

    def stop(self) -> None:
        """Fail readiness from now on, and leave; callable from any thread. A second call does not wait for requests."""
        self._service.drain()
        if self.loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self._request_stop)

    def _request_stop(self) -> None:
        # A second signal ends the process at once.
        self.force_exit, self.should_exit = self.should_exit, True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the loop; the caller blocks them until then (see `block_signals`), and none is lost."""
        yield

    def on_begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Handle signals; the loop runs, and nothing is accepted yet."""
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                loop.add_signal_handler(number, self.stop)
            loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS | {signal.SIGHUP})

    def on_ready(self) -> None:
        """Do what is due once connections are accepted."""

    def on_sweep(self) -> None:
        """Do what is due twice a second."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Run the application's lifespan, then accept connections."""
        self.loop = asyncio.get_running_loop()
        self._sockets = sockets or []
        self.on_begin(self.loop)
        self.should_exit = self._service.draining
        self._service.host = self
        await super().startup([])  # uvicorn's own listening gives a handshake of TLS the 60 s of asyncio
        await self._listen()
        self.on_ready()

    async def _listen(self) -> None:
        """Accept connections at every socket, over TLS by the context that the configuration has now."""
        # A server closes its socket, and where a certificate is renewed one follows the other: each has a copy.
        self.servers = [
            await asyncio.get_running_loop().create_server(
                self._make_protocol, sock=listener.dup(), backlog=BACKLOG, **self._tls
            )
            for listener in self._sockets
        ]

    @property
    def _tls(self) -> dict[str, Any]:
        """The options of asyncio for a connection: where it is by TLS, the context, and the seconds of a handshake."""
        if self.config.ssl is None:
            return {}
        limit = self._service.settings.header_timeout_seconds
        return {"ssl": self.config.ssl, "ssl_handshake_timeout": limit}

    async def on_tick(self, counter: int) -> bool:
        """Do what is due at every tenth of a second."""
        # libuv accepts one connection in a turn, and where many ask for much a turn is long.
        for listener in self._sockets:
            for connection in accept_waiting(listener):
                connecting = asyncio.create_task(self._connect(connection))
                self._connecting.add(connecting)
                connecting.add_done_callback(self._connecting.discard)
        if counter % SWEEP_TICKS == 0:
            self.on_sweep()
        if counter % TRIM_TICKS == 0:
            trim()
            await self._renew_certificate()
        return await super().on_tick(counter)

    # Reloads

    async def _reload_here(self) -> Reloaded:
        """Reload the certificate, then the models. Raises HttpError 422 for a file that cannot be used."""
        if self.config.ssl is not None and not self._service.draining:
            try:
                context = new_context(self._service.settings)
            except InputError as error:
                log.error("not reloaded, the old certificate stays: %s", error)
                raise reload_failed_error(str(error)) from None
            await self._listen_with(context)
        return await self._service.renew()

    async def _renew_certificate(self) -> None:
        """Take a certificate whose files have changed, once they fit together; the old one serves until then."""
        settings = self._service.settings
        state = state_of_files(settings)
        if state == self._certificate_state or self._service.draining or (self._reload and not self._reload.done()):
            return
        self._certificate_state = state
        try:
            context = new_context(settings)
        except InputError as error:
            log.error("the certificate was not renewed, the old one stays: %s", error)
        else:
            await self._listen_with(context)
            log.info("the certificate was renewed")

    async def _listen_with(self, context: ssl.SSLContext) -> None:
        """Use another context for connections to come; it knows neither sessions nor authorities of the old one."""
        old = self.servers
        self.config.ssl = context
        self._certificate_state = state_of_files(self._service.settings)
        await self._listen()
        for server in old:
            server.close()

    async def reload(self, service: Service) -> Reloaded:
        """Reload the certificate and the models. Raises HttpError, see `Service.renew`."""
        return await self._reload_here()

    def _on_hangup(self) -> None:
        if self._reload is None or self._reload.done():
            self._reload = asyncio.create_task(self._reload_on_hangup())
        else:
            # The folders may have changed since the reload under way has read them.
            self._reload_again = True

    async def _reload_on_hangup(self) -> None:
        again = True
        while again:
            self._reload_again = self.reload_refused = False
            try:
                await self._reload_here()
            except HttpError as error:
                if error.status == 409:  # requested over HTTP, and soon done
                    self._reload_again = True
                    await asyncio.sleep(RELOAD_PAUSE_SECONDS)
                else:
                    self.reload_refused = True
                    if error.status != 422:  # which is in the log
                        log.error("not reloaded: %s", error)
            again = self._reload_again
        self.reloads += 1

    # The end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain the connections until the grace time is over, end all of them, then the application's lifespan."""
        log.info("shutting down")
        deadline = self._now() + self._service.settings.graceful_shutdown_seconds
        self._guard.drain()
        await self._close_listeners()
        quiet_since = self._now()
        while self.connections and not self.force_exit and self._now() < deadline:
            if self._busy:
                quiet_since = self._now()
            elif self._now() - quiet_since > QUIET_SECONDS:
                break
            await asyncio.sleep(TURN_SECONDS)
        for connection in list(self.connections):
            connection.shutdown()
        while self._busy and not self.force_exit and self._now() < deadline:
            await asyncio.sleep(TURN_SECONDS)
        self._service.stop()
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCELLED_SECONDS)
        await self.lifespan.shutdown()

    @property
    def _busy(self) -> bool:
        return bool(self.server_state.tasks) or self._guard.busy

    async def _close_listeners(self) -> None:
        """Accept what has connected, and nothing else."""
        listeners_at_stop: list[socket.socket] = []
        with suppress(OSError):  # this process may have no more files open
            for listener in self._sockets:
                listeners_at_stop.append(listener.dup())
        for server in self.servers:  # uvloop closes its descriptors in a later turn
            server.close()
        for listener in self._sockets:
            listener.close()
        for refuse, pause in ((refuse_networks, HANDSHAKE_SECONDS), (refuse_loopback, TURN_SECONDS)):
            for listener in listeners_at_stop:
                with suppress(OSError):  # another worker has done it
                    refuse(listener)
            await asyncio.sleep(pause)
            for listener in listeners_at_stop:
                await self._accept_pending(listener)
        for listener in listeners_at_stop:
            listener.close()

    async def _accept_pending(self, listener: socket.socket) -> None:
        for connection in accept_waiting(listener):
            with suppress(OSError):
                if connection.family != socket.AF_UNIX:
                    require_hops(connection, 0)
                await self._connect(connection)

    async def _connect(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted."""
        connection.setblocking(False)
        with suppress(OSError):  # its handshake has failed
            await asyncio.get_running_loop().connect_accepted_socket(self._make_protocol, connection, **self._tls)

    def _make_protocol(self) -> LimitedProtocol:
        kind: type[LimitedProtocol] = self.config.http_protocol_class  # type: ignore[assignment]
        return kind(self.config, self.server_state, self.lifespan.state)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def accept_waiting(listener: socket.socket) -> list[socket.socket]:
    """Return the connections that wait at a socket, `BACKLOG` at most, as far as this process may have them open."""
    accepted: list[socket.socket] = []
    with suppress(OSError):  # there are no more, or no more descriptors
        listener.setblocking(False)
        for _ in range(BACKLOG):  # who connects as fast as they are accepted does not keep the process
            accepted.append(listener.accept()[0])
    return accepted


def refuse_networks(listener: socket.socket) -> None:
    """Let nobody connect to this socket over a network, or to a path; whose handshake has begun can still be accepted.

    Closing it at once would reset them, and a proxy does not send their requests a second time. Bound to the loopback
    device, a socket is none of other devices, so the system refuses who asks there, and ends what has begun. This holds
    for all processes that share the socket.

    Raises:
        OSError: the system cannot do it, or an unprivileged process has done it before.
    """
    if listener.family == socket.AF_UNIX:
        listener.shutdown(socket.SHUT_RD)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LOOPBACK)


def refuse_loopback(listener: socket.socket) -> None:
    """Let nobody connect to this socket over loopback, where a handshake takes no time. Raises OSError."""
    if listener.family != socket.AF_UNIX:
        require_hops(listener, MOST_HOPS)


def require_hops(sock: socket.socket, hops: int) -> None:
    """Drop packets of this socket that have fewer hops left. A connection has what its listener had. Raises OSError."""
    sock.setsockopt(socket.IPPROTO_IP, IP_MINTTL, hops)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MINHOPCOUNT, hops)


class WorkerServer(Server):
    """The server of one of several workers: it accepts connections once its models are loaded, and obeys a supervisor.

    Args:
        app: the application, made before the fork.
        supervisor: the end of a pipe, over which PING, RELOAD and LEAVE arrive.
    """

    listens_while_loading = False

    def __init__(self, app: Application, supervisor: Pipe) -> None:
        super().__init__(app)
        self._supervisor = supervisor
        self._supervisor_pid = os.getppid()
        self._ready = False

    def on_failed(self, reason: str) -> None:
        """Leave it to the lifespan, which fails and ends the process."""
        log.error(reason)

    def stop(self) -> None:
        """Leave; a worker that has accepted nothing yet has nothing to finish."""
        if not self.started:
            os._exit(0)
        super().stop()

    def on_begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Obey the supervisor, and no signal: it knows whether all are to leave, and share a socket."""
        loop.add_reader(self._supervisor.fileno(), self._hear, loop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS | {signal.SIGHUP})
        self._service.publish()

    def on_ready(self) -> None:
        """Announce the worker: whatever ends a process that has served, it is replaced."""
        self._ready = True
        with suppress(OSError):
            self._supervisor.send(self._condition)

    def on_sweep(self) -> None:
        """Publish the state of this worker to the others, and leave when the supervisor has died."""
        self._service.publish()
        if os.getppid() != self._supervisor_pid and not self._service.draining:
            log.error("the parent process is gone")
            self.stop()

    @property
    def _condition(self) -> Condition:
        return Condition(self._ready, self.reloads, self.reload_refused)

    def _hear(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while self._supervisor.poll():
                message = self._supervisor.recv()
                if message == RELOAD:
                    self._on_hangup()
                elif message == LEAVE:
                    self.stop()
                else:
                    self._supervisor.send(self._condition)
        except (EOFError, OSError):
            loop.remove_reader(self._supervisor.fileno())

    async def reload(self, service: Service) -> Reloaded:
        """Reload this worker's models, which finds out whether they can be used, then have the others follow."""
        made = await self._reload_here()
        os.kill(self._supervisor_pid, signal.SIGHUP)
        return made
