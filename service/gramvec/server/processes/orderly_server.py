"""A serving process: uvicorn's loop, socket and lifespan around our connections; started and ended in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from contextlib import suppress
from itertools import count

import uvicorn
from starlette.types import Message, Receive, Scope, Send

from gramvec.server.app import Application
from gramvec.server.errors import HttpError
from gramvec.server.http1 import Connections, Limits, Tls, protocol_of
from gramvec.server.processes.allocator import trim
from gramvec.server.processes.workers import HELD_SIGNALS, STOP_SIGNALS
from gramvec.server.state.service import Service

log = logging.getLogger("gramvec.server")

BACKLOG = 2048
RELOAD_PAUSE_SECONDS = 0.1
SWEEP_SECONDS = 0.5
TRIM_SWEEPS = 40  # every 20 s
TLS_SWEEPS = 20
# How long a connection that was taken, and has not asked for anything yet, is listened to at the end. Its request is
# mostly on its way, and would be answered with a reset.
NEWCOMER_SECONDS = 0.25
TURN_SECONDS = 0.01
# What requests get to say their last words once they are cancelled.
CANCELLED_SECONDS = 1.0


class Server:
    """Leaves in order: not ready at once, requests in flight finished, exit code 0 after a signal.

    From the signal until the requests in flight are done it goes on accepting connections, so that /ready can say no
    and new requests are told to go elsewhere. uvicorn by itself closes its socket at once, and ends by raising the
    signal again, which would make the exit code 143.

    Of uvicorn there is no more here than `Config`, `Server.run`, `started` and `should_exit`, and that it tells the
    lifespan to start before it listens, and to shut down after it has closed its sockets.

    Args:
        app: answers. uvicorn hears of its lifespan alone; requests go to it from our connections.
        limits: for these.
        tls: what they are encrypted with, if they are.
    """

    def __init__(self, app: Application, limits: Limits, tls: Tls | None = None) -> None:
        self._app = app
        self._service: Service = app.state.service
        self._service.on_failure = self._give_up
        self.connections = Connections(app, limits)
        self._tls = tls
        self._config = uvicorn.Config(
            self._lifespan,
            loop="uvloop",
            http=protocol_of(self.connections, tls),
            ws="none",
            lifespan="on",
            interface="asgi3",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
        )
        self._uvicorn = uvicorn.Server(self._config)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._sockets: list[socket.socket] = []
        self._last_doors: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._reload: asyncio.Task[None] | None = None
        self._reload_again = False
        self._leaving: asyncio.Task[None] | None = None
        self._forced = False
        self._deadline = 0.0

    def preload(self) -> None:
        """Import what `run` needs, once for all processes that are forked from this one."""
        self._config.load()

    def run(self, sockets: list[socket.socket]) -> None:
        """Serve these listening sockets until a signal comes or `stop` is called; closes them.

        In the main thread signals are handled from the moment at which the loop runs: hold them back until then (see
        `workers.signals_held`), so that none is lost or taken for uvicorn's.
        """
        self._sockets = sockets
        self._uvicorn.run(sockets=sockets)

    @property
    def started(self) -> bool:
        """Whether connections are accepted, or were."""
        return self._uvicorn.started

    def stop(self) -> None:
        """Not ready from this moment on; may be called from any thread. The second time, do not wait for anybody."""
        self._service.stop()
        if self.loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self._begin_to_leave)

    # For those that do a little more

    def on_begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop runs, nothing is accepted yet."""
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                loop.add_signal_handler(number, self.stop)
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)

    def on_started(self) -> None:
        """Connections are accepted."""

    def on_sweep(self) -> None:
        """Half a second has gone by."""

    def on_leave(self) -> None:
        """It was told to stop; requests in flight are finished first."""

    # The lifespan

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def received() -> Message:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._begin()
            else:
                await self._end()
            return message

        await self._app(scope, received, send)

    def _begin(self) -> None:
        loop = self.loop = asyncio.get_running_loop()
        self._service.memory.count_unsent = self.connections.unsent_bytes
        self._tasks = [loop.create_task(self._look_now_and_then()), loop.create_task(self._see_it_start())]
        self.on_begin(loop)
        if self._service.stopping:
            self._begin_to_leave()

    async def _see_it_start(self) -> None:
        while not self.started:
            await asyncio.sleep(TURN_SECONDS)
        self.on_started()

    async def _look_now_and_then(self) -> None:
        for number in count(1):
            await asyncio.sleep(SWEEP_SECONDS)
            self.connections.sweep(self._now())
            self.on_sweep()
            if number % TRIM_SWEEPS == 0:
                trim()
            if self._tls is not None and number % TLS_SWEEPS == 0:
                self._tls.renew()

    # Reloads

    def _hang_up(self) -> None:
        if self._reload is None or self._reload.done():
            self._reload = asyncio.create_task(self._reload_at_hang_up())
        else:
            # The folders may have changed since the one under way has looked.
            self._reload_again = True

    async def _reload_at_hang_up(self) -> None:
        again = True
        while again:
            self._reload_again = False
            try:
                await self._service.reload()
            except HttpError as error:
                if error.status == 409:  # asked for over HTTP, and soon over
                    self._reload_again = True
                    await asyncio.sleep(RELOAD_PAUSE_SECONDS)
                elif error.status != 422:  # which is in the log
                    log.error("not reloaded: %s", error)
            again = self._reload_again

    # The end

    def _begin_to_leave(self) -> None:
        # A second time it is somebody who does not want to wait.
        self._forced = self._leaving is not None
        if self._leaving is None:
            self.on_leave()
            self._leaving = asyncio.create_task(self._leave())

    async def _leave(self) -> None:
        """Wait for the requests in flight as long as the grace time lasts, then let uvicorn close its sockets."""
        log.info("shutting down")
        self._deadline = self._now() + self._service.settings.graceful_shutdown_seconds
        await self._while_busy()
        with suppress(OSError):  # this process may have no more files open
            for listener in self._sockets:
                self._last_doors.append(listener.dup())
        self._uvicorn.should_exit = True

    async def _while_busy(self) -> None:
        while self.connections.busy and not self._forced and self._now() < self._deadline:
            await asyncio.sleep(2 * TURN_SECONDS)

    async def _end(self) -> None:
        """Hear the last connections, then end all of them, by force where the grace time is over."""
        self._service.stop()
        # uvloop closes its descriptors in a later turn. What comes until then would be reset with the last one.
        await asyncio.sleep(TURN_SECONDS)
        for door in self._last_doors:
            await self._take_last(door)
        await self._hear_newcomers()
        self.connections.shut_down()
        await self._while_busy()
        for task in self.connections.tasks:
            task.cancel()
        if self.connections.tasks:
            await asyncio.wait(self.connections.tasks, timeout=CANCELLED_SECONDS)
        for task in self._tasks:
            task.cancel()

    async def _take_last(self, door: socket.socket) -> None:
        taken: list[socket.socket] = []
        with door, suppress(OSError):  # there are no more, or there may be no more
            door.setblocking(False)
            while True:
                taken.append(door.accept()[0])
        protocol = protocol_of(self.connections, self._tls)
        for connection in taken:
            connection.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)

    async def _hear_newcomers(self) -> None:
        deadline = self._now() + NEWCOMER_SECONDS
        while self.connections.has_new and not self._forced and self._now() < deadline:
            await asyncio.sleep(TURN_SECONDS)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _give_up(self, reason: str) -> None:
        self.stop()
