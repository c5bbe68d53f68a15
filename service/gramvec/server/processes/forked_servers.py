"""The servers of forked processes: a worker's, and that of the one which answers while the parent loads."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

from gramvec.server.app import Application
from gramvec.server.errors import not_reloaded, reload_under_way, unhealthy
from gramvec.server.http1 import Limits, Tls
from gramvec.server.processes.channel import Message
from gramvec.server.processes.orderly_server import Server
from gramvec.server.processes.workers import HELD_SIGNALS, Parent
from gramvec.server.state.models import Wanted
from gramvec.server.state.resources import Reloaded

log = logging.getLogger("gramvec.server")


class WorkerServer(Server):
    """The server of one worker: its parent hears when it has started, and is the one that tells it to stop."""

    def __init__(self, app: Application, limits: Limits, parent: Parent, tls: Tls | None = None) -> None:
        super().__init__(app, limits, tls)
        self._parent = parent
        self._answer: asyncio.Future[Message] | None = None
        self._renewal: asyncio.Task[None] | None = None

    def on_begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop at the parent's word only: Ctrl-C reaches all processes, and the parent passes it on."""
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_signal_handler(signal.SIGINT, _do_nothing)
        loop.add_reader(self._parent.lifeline, self._orphaned, loop)
        loop.add_reader(self._parent.channel, self._hear)
        self._service.reload = self._ask_parent
        self._service.metrics.keep_publishing(self._service, loop)
        self._parent.release_signals()

    def on_started(self) -> None:
        """Tell the parent."""
        self._parent.tell_started()

    def on_leave(self) -> None:
        """Do not wait for a parent that is stopping too."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result({"stopping": True})

    async def _ask_parent(self) -> Reloaded:
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
        return Reloaded.of(answer)

    def _hear(self) -> None:
        for message in self._parent.channel.receive():
            if "ping" in message:
                self._parent.answer_ping()
            elif "running" in message:
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
        self.stop()


class StandbyServer(Server):
    """The server of the process that answers while its parent loads."""

    def __init__(self, app: Application, limits: Limits, tls: Tls | None = None) -> None:
        super().__init__(app, limits, tls)
        self._service.last_words = self._service.unready or self._service.last_words
        self._parent = os.getppid()

    def on_begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the signals in that were held back since before the fork, now that they are handled."""
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)

    def on_sweep(self) -> None:
        """Leave with the parent."""
        if os.getppid() != self._parent:
            self.stop()


def _do_nothing() -> None:
    pass
