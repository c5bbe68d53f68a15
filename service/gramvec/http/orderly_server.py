"""uvicorn's server, made to start, reload and end in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from contextlib import suppress
from types import FrameType

import uvicorn

from gramvec.http.allocator import trim
from gramvec.http.errors import HttpError
from gramvec.http.patience import PatientProtocol
from gramvec.http.service import Service

log = logging.getLogger("gramvec.http")

RELOAD_PAUSE_SECONDS = 0.1
SWEEP_TICKS = 5
TRIM_TICKS = 200  # every 20 s
# How long a connection that was taken, and has not asked for anything yet, is listened to at the end. Its request is
# mostly on its way, and would be answered with a reset.
NEWCOMER_SECONDS = 0.25
TURN_SECONDS = 0.01


class Server(uvicorn.Server):
    """uvicorn that leaves in order: not ready at once, requests in flight finished, exit code 0 after a signal.

    From the signal until the requests in flight are done it goes on accepting connections, so that /ready can say no
    and new requests are told to go elsewhere. uvicorn alone closes its socket at once, and ends by raising the signal
    again, which would make the exit code 143.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._reload: asyncio.Task[None] | None = None
        self._reload_again = False
        service.on_failure = self._give_up

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Not ready from this moment on."""
        self._service.stop()
        # A second signal is somebody who does not want to wait.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start; from then on SIGHUP reloads the models."""
        await super().startup(sockets)
        self._service.traffic.count_unsent = self._unsent_bytes
        self._listen_for_hang_up()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; some of them a look at every connection."""
        if counter % SWEEP_TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in self._connections():
                connection.sweep(now)
        if counter % TRIM_TICKS == TRIM_TICKS - 1:
            trim()
        return await super().on_tick(counter)

    def _unsent_bytes(self) -> int:
        return sum(one.transport.get_write_buffer_size() for one in self._connections())

    def _in_steps(self) -> bool:
        # A request that is answered without a task is known to its connection alone.
        return any(one.under_way for one in self._connections())

    def _connections(self) -> list[PatientProtocol]:
        return [one for one in self.server_state.connections if isinstance(one, PatientProtocol)]

    def _listen_for_hang_up(self) -> None:
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)

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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the requests in flight as long as the grace time lasts, then cancel what is left."""
        self._service.stop()
        log.info("shutting down")
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._service.settings.graceful_shutdown_seconds
        while (self.server_state.tasks or self._in_steps()) and not self.force_exit and clock() < deadline:
            await asyncio.sleep(0.02)
        await self._hear_newcomers(sockets or [])
        # uvicorn types whole seconds; it hands the number to asyncio.wait_for.
        self.config.timeout_graceful_shutdown = max(0.0, deadline - clock())  # type: ignore[assignment]
        await super().shutdown(sockets)

    async def _hear_newcomers(self, sockets: list[socket.socket]) -> None:
        """Take no more connections than have come by now, and read what they have sent or are about to send."""
        doors: list[socket.socket] = []
        with suppress(OSError):  # this process may have no more files open
            doors += [listener.dup() for listener in sockets]
        for server in self.servers:
            server.close()
        for listener in sockets:
            listener.close()
        # uvloop closes its descriptor in a later turn. What comes until then would be reset with the last one.
        await asyncio.sleep(TURN_SECONDS)
        for door in doors:
            await self._take_last(door)
        clock = asyncio.get_running_loop().time
        deadline = clock() + NEWCOMER_SECONDS
        heard = False
        while not heard and not self.force_exit and clock() < deadline:
            await asyncio.sleep(TURN_SECONDS)
            heard = not any(one.is_new for one in self._connections())

    async def _take_last(self, door: socket.socket) -> None:
        taken: list[socket.socket] = []
        with door, suppress(OSError):  # there are no more, or there may be no more
            door.setblocking(False)
            while True:
                taken.append(door.accept()[0])
        for connection in taken:
            connection.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        # As uvicorn makes one.
        protocol: asyncio.Protocol = self.config.http_protocol_class(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,  # type: ignore[call-arg]
        )
        return protocol

    def _give_up(self, reason: str) -> None:
        self.should_exit = True
