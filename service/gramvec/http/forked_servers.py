"""The servers of forked processes: a worker's, and that of the one which answers while the parent loads."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from gramvec.http.channel import Message
from gramvec.http.errors import not_reloaded, reload_under_way, unhealthy
from gramvec.http.models import Change, Wanted
from gramvec.http.orderly_server import Server
from gramvec.http.service import Service
from gramvec.http.workers import HELD_SIGNALS, Parent

log = logging.getLogger("gramvec.http")


class WorkerServer(Server):
    """The server of one worker: its parent hears when it has started, and is the one that tells it to stop."""

    def __init__(self, config: uvicorn.Config, service: Service, parent: Parent) -> None:
        super().__init__(config, service)
        self._parent = parent
        self._answer: asyncio.Future[Message] | None = None
        self._renewal: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let the signals in that were held back since before the fork, now that they are handled."""
        with super().capture_signals():
            self._parent.release_signals()
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at the parent's word only: Ctrl-C reaches all processes, and the parent passes it on."""
        if sig != signal.SIGINT:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell the parent."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._parent.lifeline, self._orphaned, loop)
        loop.add_reader(self._parent.channel, self._hear)
        self._service.reload = self._ask_parent
        self._service.metrics.keep_publishing(self._service, loop)
        self._parent.tell_started()

    def _listen_for_hang_up(self) -> None:
        """The parent does, and tells its workers."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the requests in flight, but not for a parent that is stopping too."""
        self._service.stop()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result({"stopping": True})
        await super().shutdown(sockets)

    async def _ask_parent(self) -> list[Change]:
        if self._answer is not None:
            raise reload_under_way()
        self._service.check_accepting()
        self._answer = asyncio.get_running_loop().create_future()
        self._parent.ask_renewal()
        try:
            answer = await self._answer
        finally:
            self._answer = None
        if "stopping" in answer:
            raise unhealthy("the service is shutting down")
        if "busy" in answer:
            raise reload_under_way()
        if "error" in answer:
            raise not_reloaded(answer["error"])
        return [Change(**one) for one in answer["models"]]

    def _hear(self) -> None:
        for message in self._parent.channel.receive():
            if "running" in message:
                self._service.workers_running = message["running"]
            elif "renew" in message:
                self._renewal = asyncio.create_task(self._renew(message["renew"]))
            elif self._answer is not None and not self._answer.done():
                self._answer.set_result(message["answer"])

    async def _renew(self, wanted: list[list[str]]) -> None:
        error = None
        try:
            await self._service.renew([Wanted(*one) for one in wanted])
        except Exception as failure:
            error = str(failure)
            self._service.last_words = "this worker could not reload its models and is replaced; send the request again"
        self._parent.tell_renewed(error)

    def _orphaned(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._parent.lifeline)
        loop.remove_reader(self._parent.channel)
        log.error("the parent process is gone")
        self.handle_exit(signal.SIGTERM, None)


class Doorman(Server):
    """The server of the process that answers while its parent loads."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config, service)
        service.last_words = service.unready or service.last_words
        self._parent = os.getppid()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let the signals in that were held back since before the fork, now that they are handled."""
        with super().capture_signals():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)
            yield

    async def on_tick(self, counter: int) -> bool:
        """Leave with the parent."""
        return await super().on_tick(counter) or os.getppid() != self._parent
