"""Processes that share what their parent has loaded: fork, watch, replace, stop. Knows nothing of what they do.

A worker and its parent send each other lines (`channel`): the worker that it has started, that a renewal is asked for,
how its own went, and that it still answers; the parent what to renew, what came of it all, and whether it still does.
"""

from __future__ import annotations

import logging
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

from gramvec.errors import GramvecError
from gramvec.server.processes import collector
from gramvec.server.processes.allocator import let_go_of_files, trim
from gramvec.server.processes.channel import Channel, Message
from gramvec.server.processes.faults import Faults
from gramvec.server.processes.renewals import DOORBELL, Renewals

log = logging.getLogger("gramvec.server")

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
HELD_SIGNALS = STOP_SIGNALS | {signal.SIGCHLD, signal.SIGHUP, DOORBELL}
# A worker that dies is replaced at once if it had lived for a while, else after a pause that doubles.
SETTLED_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# What workers get to end beyond the grace time of their requests, before they are killed.
MARGIN_SECONDS = 5.0
# How often a worker is asked whether it still answers, and how long it may stay silent.
PING_SECONDS = 1.0
ANSWER_SECONDS = 30.0
FAILED = 70


class Parent:
    """What a worker knows of its parent.

    `number` counts the workers from 1, and is the same for one that replaces another. `lifeline` is a descriptor that
    becomes readable when the parent is gone. `channel` is what both send each other messages over.
    """

    def __init__(self, number: int, process: int, lifeline: int, channel: Channel) -> None:
        self.number = number
        self.lifeline = lifeline
        self.channel = channel
        self._process = process

    def tell_started(self) -> None:
        """A worker that ends before this is one that cannot start."""
        self._tell({"started": True})

    def ask_renewal(self) -> None:
        """Ask for a renewal; the message that comes back has an `answer`."""
        self._tell({"ask": True})

    def tell_renewed(self, error: str | None) -> None:
        """Say how the renewal went that the parent has ordered."""
        self._tell({"renewed": error})

    def answer_ping(self) -> None:
        """Say that the event loop still goes round. The parent looks for it by itself."""
        self.channel.send({"pong": True})

    def _tell(self, message: Message) -> None:
        self.channel.send(message)
        if os.getppid() == self._process:
            os.kill(self._process, DOORBELL)

    def release_signals(self) -> None:
        """Let the signals in; call it once those that stop are handled."""
        # A terminal that is closed tells all processes; the parent sees to it.
        for number in (signal.SIGHUP, DOORBELL):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)


@dataclass
class _Worker:
    number: int
    pid: int
    channel: Channel
    since: float
    deaths: int  # in a row
    started: bool = False
    told: int = 0  # how many workers there are, when it was last told
    pings: int = 0  # that have come due since it answered last, the one that was sent included


@contextmanager
def signals_held() -> Iterator[None]:
    """Keep the signals that stop, and those of children, for `supervise` to take one by one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def supervise(
    work: Callable[[Parent], None],
    count: int,
    grace_seconds: float,
    renew: Callable[[Callable[[], bool]], Message] = lambda _: {"result": {}},
    leave: Callable[[], None] = lambda: None,
    examine: Callable[[], None] = lambda: None,
    renewal_seconds: float = 120.0,
    answer_seconds: float = ANSWER_SECONDS,
) -> None:
    """Run `work` in so many forked processes until SIGTERM or SIGINT; a process that ends sooner is replaced.

    SIGHUP, or a worker that asks for it, begins a renewal: `renew` makes anew what the processes share, in a thread,
    and its message goes to the workers one after the other (see `renewals.Renewals`); it has `renewal_seconds`. `leave`
    lets go of what this process holds for workers to come: it is called when there will be none. `examine` is called
    when a worker was ended by SIGBUS (see `faults`), and raises GramvecError if the next would be too. A worker whose
    loop has not answered for `answer_seconds` is killed, and replaced as one that died.

    Call it under `signals_held`, from the only thread, with all that the processes are to share in memory.

    Raises:
        GramvecError: a worker ended before it had ever started, or those that replace others are ended by SIGBUS.
    """
    # To look at an object is to write to it, and so to copy its page.
    collector.settle()
    trim()
    # What loading has read, 20 MB, is none of this process's business any more, and workers map their own.
    let_go_of_files()
    _Supervisor(work, grace_seconds, renew, leave, Faults(examine), renewal_seconds, answer_seconds).run(count)


class _Supervisor:
    def __init__(
        self,
        work: Callable[[Parent], None],
        grace_seconds: float,
        renew: Callable[[Callable[[], bool]], Message],
        leave: Callable[[], None],
        faults: Faults,
        renewal_seconds: float,
        answer_seconds: float,
    ) -> None:
        self._work = work
        self._leave = leave
        self._faults = faults
        self._grace_seconds = grace_seconds
        # Only the parent holds the end that is written to, so its death ends the file for all workers.
        self._lifeline, self._held = os.pipe()
        self._workers: dict[int, _Worker] = {}
        self._due: list[tuple[float, int, int]] = []  # when to fork again, number, deaths
        self._renewals = Renewals(renew, self._channels, self._dismiss, renewal_seconds)
        self._most_pings = max(2, ceil(answer_seconds / PING_SECONDS))
        self._next_ping = time.monotonic() + PING_SECONDS

    def run(self, count: int) -> None:
        try:
            for number in range(1, count + 1):
                self._fork(number, 0)
            while (got := _next_signal(self._patience())) not in STOP_SIGNALS:
                if got == signal.SIGHUP:
                    self._renewals.hang_up()
                for worker in self._workers.values():
                    self._listen(worker)
                self._ping()
                self._replace_dead()
                self._renewals.go_on()
                self._announce()
        finally:
            self._leave()
            self._stop()
            # The thread of a renewal may ring yet, when signals are let in again, and would end the process.
            signal.signal(DOORBELL, signal.SIG_IGN)
            os.close(self._held)
            os.close(self._lifeline)

    def _channels(self) -> dict[int, Channel]:
        return {pid: worker.channel for pid, worker in self._workers.items()}

    def _announce(self) -> None:
        """Tell all workers how many there are, those that have not started yet left out."""
        running = sum(worker.started for worker in self._workers.values())
        for worker in self._workers.values():
            if worker.told != running:
                worker.told = running
                worker.channel.send({"running": running})

    def _listen(self, worker: _Worker) -> None:
        for message in worker.channel.receive():
            if "pong" in message:
                worker.pings = 0
            elif "started" in message:
                worker.started = True
            elif "ask" in message:
                self._renewals.ask(worker.channel)
            else:
                self._renewals.heard(worker.pid, message["renewed"])

    def _patience(self) -> float:
        """Seconds until there is something to do without a signal."""
        due = [self._next_ping - time.monotonic()]
        if self._renewals.preparing:  # nothing is forked before its end
            due.append(max(0.01, self._renewals.seconds_left))
        else:
            due += [when - time.monotonic() for when, _, _ in self._due]
        return max(0.0, min(due))

    def _ping(self) -> None:
        """Ask each worker whether it still answers, and kill those that have not for too long.

        What counts are the times that this process has asked, not the clock: if all of them stand still together, as on
        a machine that is paused, nobody was silent. No second one is sent before the first was answered, so that lines
        do not pile up before one that is stopped.
        """
        now = time.monotonic()
        if now < self._next_ping:
            return
        self._next_ping = now + PING_SECONDS
        for worker in self._workers.values():
            if worker.pings == 0:
                worker.channel.send({"ping": True})
            worker.pings += 1
            if worker.pings > self._most_pings:
                seconds = self._most_pings * PING_SECONDS
                log.error("worker %d (process %d) has not answered for %.0f s", worker.number, worker.pid, seconds)
                os.kill(worker.pid, signal.SIGKILL)

    def _dismiss(self, pid: int) -> None:
        """End a worker; one that was reaped has ended, and its number may be another process's."""
        if pid in self._workers:
            os.kill(pid, signal.SIGTERM)

    def _fork(self, number: int, deaths: int) -> None:
        parent = os.getpid()
        channel, workers_end = Channel.pair()
        with warnings.catch_warnings():
            # The libraries' idle threads (BLAS) are none that a worker would wait for.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.close(self._held)
            for inherited in (channel, *self._channels().values()):
                inherited.close()
            _run_and_exit(self._work, Parent(number, parent, self._lifeline, workers_end))
        workers_end.close()
        self._workers[pid] = _Worker(number, pid, channel, time.monotonic(), deaths)

    def _replace_dead(self) -> None:
        now = time.monotonic()
        for worker, status in self._reap():
            self._listen(worker)  # to its last words
            worker.channel.close()
            how = _ending(status)
            if not worker.started and not worker.deaths:
                raise GramvecError(f"worker {worker.number} could not start ({how}); the lines above say why")
            settled = now - worker.since > SETTLED_SECONDS
            self._faults.count(os.waitstatus_to_exitcode(status), settled=settled)
            deaths = 1 if settled else worker.deaths + 1
            pause = 0.0 if settled else min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (deaths - 1))
            log.error("worker %d (process %d) %s; replaced in %.1f s", worker.number, worker.pid, how, pause)
            self._due.append((now + pause, worker.number, deaths))
        if self._renewals.preparing:
            return
        ready = [one for one in self._due if one[0] <= now]
        self._due = [one for one in self._due if one[0] > now]
        for _, number, deaths in ready:
            self._fork(number, deaths)

    def _reap(self) -> list[tuple[_Worker, int]]:
        ended = []
        for pid, worker in list(self._workers.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                del self._workers[pid]
                ended.append((worker, status))
        return ended

    def _stop(self) -> None:
        deadline = time.monotonic() + self._grace_seconds + MARGIN_SECONDS
        self._send(signal.SIGTERM)
        while self._workers:
            got = _next_signal(max(0.0, deadline - time.monotonic()))
            self._reap()
            if got is None:
                self._send(signal.SIGKILL)
                deadline = time.monotonic() + MARGIN_SECONDS
            elif got in STOP_SIGNALS:
                # Somebody does not want to wait.
                self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        for pid in self._workers:
            os.kill(pid, number)


def _next_signal(seconds: float) -> int | None:
    got = signal.sigtimedwait(HELD_SIGNALS, seconds)
    return got.si_signo if got else None


def _run_and_exit(work: Callable[[Parent], None], parent: Parent) -> None:
    code = FAILED
    try:
        work(parent)
        code = 0
    except BaseException:
        log.exception("a worker failed")
    finally:
        # Nothing of the parent's stack may run in a worker.
        logging.shutdown()
        os._exit(code)


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
