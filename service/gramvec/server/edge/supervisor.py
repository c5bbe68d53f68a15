"""Workers under uvicorn's supervisor: forked, watched, replaced when they die, reloaded one after another, stopped.

uvicorn's own `Multiprocess` waits for one worker at a time: a hung one delays every signal, and holds up the end
forever. Here each step is taken at a tick, twice a second, so that nothing waits.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import popen_fork
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkProcess
from multiprocessing.process import BaseProcess
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from gramvec.errors import GramvecError
from gramvec.server.edge.server import LEAVE, PING, RELOAD, STOP_SIGNALS, Condition, settle
from gramvec.server.settings import Settings

log = logging.getLogger("gramvec.server")

# A worker that dies is replaced at once if it had lived for a while or if none is left, else after a doubling pause.
# One that could not start, because a file is damaged, is tried again after a pause in any case.
SETTLED_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_OF_ALL_SECONDS = 4.0  # where no worker is left
# How long workers get to end beyond the grace time of their requests, before they are killed.
MARGIN_SECONDS = 5.0
TICK_SECONDS = 0.5  # uvicorn's

WorkerMain = Callable[[int, Pipe, list[socket.socket]], None]


class Fork(popen_fork.Popen):
    """A fork without a flush of the standard streams, which fails where a log cannot be written (a full disk)."""

    def __init__(self, process: BaseProcess) -> None:
        self.returncode = None
        self.finalizer = None
        self._launch(process)  # type: ignore[attr-defined]


class ForkedProcess(ForkProcess):
    """A forked process of multiprocessing."""

    @staticmethod
    def _Popen(process: BaseProcess) -> Fork:  # noqa: N802
        return Fork(process)


class Worker(Process):
    """A forked worker process.

    Not spawned, as uvicorn's: a fork shares the memory of what the parent has imported, and starts 0.3 s earlier.

    Args:
        work: runs in the process; it gets `number`, its end of a pipe, and the sockets.
        number: its place among the workers, from 0, which its successors take.
        sockets: listening sockets.
        deaths: of its predecessors, in a row.
    """

    def __init__(self, work: WorkerMain, number: int, sockets: list[socket.socket], deaths: int = 0) -> None:
        self._work = work
        self.number = number
        self.deaths = deaths
        self.condition = Condition(started=False, reloads=0, refused=False)
        self.since = time.monotonic()
        self.asked_to_reload: int | None = None  # how many reloads it had done before
        self.replaced_at: float | None = None  # when it is, once it has died
        self._unanswered = 0
        self.parent_conn, self.child_conn = multiprocessing.Pipe()
        self.process: Any = ForkedProcess(target=self.target, args=[sockets])

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Work, in the new process, deaf to the signals that a terminal or systemd sends to all its processes."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        try:
            self._work(self.number, self.child_conn, sockets or [])
        except GramvecError as error:
            log.error("%s", error)
            sys.exit(STARTUP_FAILURE)

    def hear(self) -> int:
        """Read the answers of the worker, and ask it again; returns for how many ticks it has not answered.

        What counts is how often this process has asked, not the clock: on a machine that is paused, all stand still.
        """
        try:
            while self.parent_conn.poll():
                self.condition = self.parent_conn.recv()
                self._unanswered = 0
            if not self._unanswered:
                self.parent_conn.send(PING)
            self._unanswered += 1
        except (EOFError, OSError):  # it has died, as its exit code reports
            pass
        return self._unanswered

    def reload(self) -> None:
        """Ask the worker to reload its models."""
        self.asked_to_reload = self.condition.reloads
        with suppress(OSError):
            self.parent_conn.send(RELOAD)

    def terminate(self) -> None:
        """Ask the worker to leave; the second time, not to wait for its requests."""
        with suppress(OSError):
            self.parent_conn.send(LEAVE)

    @property
    def has_reloaded(self) -> bool:
        """Return True once the worker has done, or refused, what `reload` asked for."""
        return self.asked_to_reload is not None and self.condition.reloads > self.asked_to_reload

    @property
    def started(self) -> bool:
        """Return True once the worker serves."""
        return self.condition.started

    @property
    def ending(self) -> str:
        """Return the end of a log message on how the process ended."""
        code = self.exitcode or 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


class Supervisor(Multiprocess):
    """`settings.workers` processes that run `work` until SIGTERM or SIGINT.

    SIGHUP has each of them reload its models, one after the other, up to the first that cannot. A worker whose event
    loop does not answer for `worker_timeout_seconds` is killed. Where all have died, new ones are tried until they can
    start.

    Args:
        work: see `Worker`.
        settings: for their number and timeouts.
        listeners: listening sockets; closed at the end.
    """

    def __init__(self, work: WorkerMain, settings: Settings, listeners: list[socket.socket]) -> None:
        config = uvicorn.Config("gramvec.server.app:create_app", workers=settings.workers, log_config=None)
        super().__init__(config, listeners)
        self.failure: str | None = None
        self._work = work
        self._grace = settings.graceful_shutdown_seconds + MARGIN_SECONDS
        self._most_unanswered = max(2, round(settings.worker_timeout_seconds / TICK_SECONDS))
        self.processes: list[Worker] = []  # type: ignore[assignment]
        self._any_started = False
        self._outdated: list[Worker] = []  # that are to reload, the first one now
        self._reload_again = False

    def init_processes(self) -> None:
        """Start all workers."""
        settle()
        for number in range(self.processes_num):
            self.processes.append(self._start(number))

    def keep_subprocess_alive(self) -> None:
        """Take one step: kill workers that hang, replace those that have died, continue a reload."""
        if self.should_exit.is_set():
            return
        for worker in self.processes:
            if worker.hear() > self._most_unanswered and worker.exitcode is None:
                seconds = self._most_unanswered * TICK_SECONDS
                log.error("a worker (process %d) has not answered for %.0f s", worker.pid, seconds)
                worker.process.kill()
            self._any_started = self._any_started or worker.started
        for index, worker in enumerate(self.processes):
            if worker.exitcode is not None:
                self._replace(index, worker)
        self._reload()

    def restart_all(self) -> None:
        """Begin a reload of all workers; one that is under way begins again, for files may have changed since."""
        self._reload_again = True

    def terminate_all(self) -> None:
        """Ask all workers to end; with this process's socket open, connections would wait behind the last one."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait for all workers, and kill those that take too long. A second signal ends the wait for their requests."""
        deadline = time.monotonic() + self._grace
        while left := [worker for worker in self.processes if worker.exitcode is None]:
            left[0].process.join(0.05)
            if time.monotonic() > deadline:
                for worker in left:
                    worker.process.kill()
            elif STOP_SIGNALS & set(self.signal_queue):
                self.signal_queue.clear()
                for worker in left:
                    worker.terminate()

    def handle_ttin(self) -> None:
        """Ignore the signal: the number of workers is a setting."""

    def handle_ttou(self) -> None:
        """Ignore the signal: the number of workers is a setting."""

    def _start(self, number: int, deaths: int = 0) -> Worker:
        worker = Worker(self._work, number, self.sockets, deaths)
        with block_signals():  # the worker lets them in, once it handles them
            worker.start()
        return worker

    def _replace(self, index: int, worker: Worker) -> None:
        now, could_start = time.monotonic(), worker.exitcode != STARTUP_FAILURE
        none_left = all(process.exitcode is not None for process in self.processes)
        if worker.replaced_at is None:
            if not self._any_started:
                self.failure = f"a worker could not start ({worker.ending}); the lines above say why"
                self.should_exit.set()
                return
            settled = now - worker.since > SETTLED_SECONDS and could_start
            worker.deaths = 1 if settled else worker.deaths + 1
            pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (worker.deaths - 1))
            worker.replaced_at = now if settled else now + pause
            log.error("a worker (process %d) %s and is replaced", worker.pid, worker.ending)
        at_the_latest = worker.replaced_at
        if none_left:
            at_the_latest = min(at_the_latest, worker.since + LONGEST_PAUSE_OF_ALL_SECONDS) if not could_start else now
        if now >= at_the_latest:
            self.processes[index] = self._start(index, worker.deaths)

    def _reload(self) -> None:
        waiting = self._outdated
        if waiting and waiting[0].has_reloaded:
            done = waiting.pop(0)
            if done.condition.refused:
                log.error("not reloaded, the other workers stay as they are: see the line of process %d", done.pid)
                waiting.clear()
            elif not waiting and not self._reload_again:
                log.info("reloaded: every worker")
        # What was started after the signal has read the files as they are.
        waiting[:] = [process for process in waiting if process in self.processes and process.exitcode is None]
        if self._reload_again and not (waiting and waiting[0].asked_to_reload is not None):
            # Workers that have waited longest come first, so each has its turn however often a reload begins again.
            rest = [process for process in self.processes if process not in waiting]
            self._reload_again, waiting[:] = False, waiting + rest
            for process in waiting:
                process.asked_to_reload = None
        if waiting and waiting[0].started and waiting[0].asked_to_reload is None:
            waiting[0].reload()


def supervise(work: WorkerMain, settings: Settings, listeners: list[socket.socket]) -> None:
    """Run workers until SIGTERM or SIGINT.

    Raises:
        GramvecError: a worker could not start, and no other was running.
    """
    supervisor = Supervisor(work, settings, listeners)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS | {signal.SIGHUP})
    supervisor.run()
    if supervisor.failure is not None:
        raise GramvecError(supervisor.failure)


@contextmanager
def block_signals() -> Iterator[None]:
    """Keep the signals that stop or reload pending until their handlers are set."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS | {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
