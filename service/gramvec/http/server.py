"""The serving processes: a socket, uvicorn in one process or in several workers, an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import uvicorn

from gramvec.errors import GramvecError
from gramvec.http import logs
from gramvec.http.allocator import trim
from gramvec.http.app import create_app
from gramvec.http.channel import Message
from gramvec.http.doorman import doorman
from gramvec.http.errors import HttpError, not_reloaded, reload_under_way, unhealthy
from gramvec.http.front_door import FrontDoor
from gramvec.http.listener import allow_descriptors, bound, listen
from gramvec.http.models import Change, changes, close_but, load_models, renewed
from gramvec.http.patience import Limits, PatientProtocol
from gramvec.http.service import Service
from gramvec.http.settings import NO_WORKERS_ON_CUDA, Settings
from gramvec.http.workers import HELD_SIGNALS, Parent, signals_held, supervise

log = logging.getLogger("gramvec.http")

# Longer than the 60 s that load balancers keep an idle connection: the side that reuses it must be first to close it.
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
RELOAD_PAUSE_SECONDS = 0.1
SWEEP_TICKS = 5
TRIM_TICKS = 200  # every 20 s


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
            for connection in list(self.server_state.connections):
                if isinstance(connection, PatientProtocol):
                    connection.sweep(now)
        if counter % TRIM_TICKS == TRIM_TICKS - 1:
            trim()
        return await super().on_tick(counter)

    def _unsent_bytes(self) -> int:
        connections = list(self.server_state.connections)
        return sum(one.transport.get_write_buffer_size() for one in connections if isinstance(one, PatientProtocol))

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
        while self.server_state.tasks and not self.force_exit and clock() < deadline:
            await asyncio.sleep(0.02)
        # uvicorn types whole seconds; it hands the number to asyncio.wait_for.
        self.config.timeout_graceful_shutdown = max(0.0, deadline - clock())  # type: ignore[assignment]
        await super().shutdown(sockets)

    def _give_up(self, reason: str) -> None:
        self.should_exit = True


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

    async def _renew(self, wanted: list[str]) -> None:
        error = None
        try:
            await self._service.renew(wanted)
        except Exception as failure:
            error = str(failure)
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
        server_for(app).run(sockets=[listener])
        service: Service = app.state.service
        if service.failure is not None:
            raise GramvecError(service.failure)


def _serve_with_workers(settings: Settings, listener: socket.socket) -> None:
    # Signals wait from here on: one that comes while the model loads ends the process once it is loaded.
    with signals_held():
        listen(listener, settings.host, settings.port, BACKLOG)

        def wait() -> None:
            logging.getLogger("gramvec").setLevel(logging.ERROR)  # of its end nobody has to hear
            app = create_app(settings, ())
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

        def renew() -> Message:
            serving = service.given
            try:
                found = renewed(settings, serving)
            except GramvecError as error:
                log.error("not reloaded, the models go on as they are: %s", error)
                raise
            service.given = found
            close_but(serving, found)
            made = [change._asdict() for change in changes(serving, found)]
            return {"renew": [one["digest"] for one in made], "result": {"models": made}}

        supervise(work, settings.workers, settings.graceful_shutdown_seconds, renew)


def server_for(app: FrontDoor) -> Server:
    """A server for an application made by `create_app`; call its `run` with the listening sockets."""
    return Server(_config(app), app.state.service)


def _config(app: FrontDoor) -> uvicorn.Config:
    limits = Limits.of(app.state.service.settings, KEEP_ALIVE_SECONDS)
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=partial(PatientProtocol, limits=limits),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
