"""Renewals in the parent of several workers: one is prepared in a thread, then each worker makes its own, in turn."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from gramvec.errors import GramvecError
from gramvec.server.errors import reload_given_up
from gramvec.server.processes.allocator import let_go_of_files, trim
from gramvec.server.processes.channel import Channel, Message

log = logging.getLogger("gramvec.server")

# What a worker and the thread wake the parent with; what it is about lies in the channel, or here.
DOORBELL = signal.SIGUSR1


class Attempt:
    """A thread that prepares a renewal, and what came of it. It may never end, and then does not keep the process.

    Args:
        prepare: see Renewals.
    """

    def __init__(self, prepare: Callable[[Callable[[], bool]], Message]) -> None:
        self.order: Message | None = None
        self.refusal: str | None = None
        self._prepare = prepare
        self._began = time.monotonic()
        self._lock, self._left, self._taken = threading.Lock(), False, False
        self._thread = threading.Thread(target=self._work, name="gramvec-reload", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it is over."""
        return self.order is not None or self.refusal is not None

    def seconds_left(self, patience: float) -> float:
        """How long it may go on."""
        return max(0.0, self._began + patience - time.monotonic())

    def join(self) -> None:
        """Wait for the end of the thread, which has no more to do."""
        self._thread.join()

    def leave(self) -> bool:
        """Want nothing of it any more; False if it is too late, because what it made has been put in its place."""
        with self._lock:
            self._left = not self._taken
            return self._left

    def _is_wanted(self) -> bool:
        with self._lock:
            self._taken = not self._left
            return self._taken

    def _work(self) -> None:
        try:
            self.order = self._prepare(self._is_wanted)
        except GramvecError as error:
            self.refusal = str(error)
        except Exception as error:
            log.exception("the reload failed")
            self.refusal = f"the reload failed ({type(error).__name__}); the log says why"
        finally:
            os.kill(os.getpid(), DOORBELL)


class Renewals:
    """One at a time.

    Args:
        prepare: called in a thread: makes what workers forked from now on will share, and returns the message that
            tells the present ones; `result` in it is what came of it all. Raises GramvecError if it cannot be had. It
            asks its argument once, before it changes anything, whether that is still wanted.
        workers: the channels to the present workers, by process.
        dismiss: ends a worker that could not follow, for another to be forked.
        patience_seconds: after so long a preparation is given up.
    """

    def __init__(
        self,
        prepare: Callable[[Callable[[], bool]], Message],
        workers: Callable[[], Mapping[int, Channel]],
        dismiss: Callable[[int], None],
        patience_seconds: float,
    ) -> None:
        self._prepare = prepare
        self._workers = workers
        self._dismiss = dismiss
        self._patience_seconds = patience_seconds
        self._attempt: Attempt | None = None
        self._order: Message | None = None
        self._left: deque[int] = deque()
        self._busy = False
        self._again = False
        self._asker: Channel | None = None

    @property
    def preparing(self) -> bool:
        """True while the thread runs, during which nothing may be forked."""
        return self._attempt is not None

    @property
    def seconds_left(self) -> float:
        """How long a preparation may go on; its end is a signal, but for one that has none."""
        return 3600 if self._attempt is None else self._attempt.seconds_left(self._patience_seconds)

    def hang_up(self) -> None:
        """Begin one, or another after the one under way: the folders may have changed since that looked."""
        if self._busy:
            self._again = True
        else:
            self._begin(None)

    def ask(self, asker: Channel) -> None:
        """Begin one for a worker, which hears what came of it, or at once that another is under way."""
        if self._busy:
            asker.send({"answer": {"busy": True}})
        else:
            self._begin(asker)

    def heard(self, pid: int, error: str | None) -> None:
        """A worker has made its renewal, or says why not."""
        if error is not None:
            log.error("a worker (process %d) could not reload and is replaced: %s", pid, error)
            self._dismiss(pid)
        if self._left and self._left[0] == pid:
            self._left.popleft()
            self._tell_next()

    def go_on(self) -> None:
        """Look whether the thread is done, and whether the worker that is waited for still lives."""
        attempt = self._attempt
        if attempt is not None and attempt.done:
            attempt.join()
            self._attempt, self._order = None, attempt.order
            trim()
            let_go_of_files()
            if attempt.refusal is None:
                self._left.extend(self._workers())
                self._tell_next()
            else:
                self._end({"error": attempt.refusal})
        elif attempt is not None and not self.seconds_left and attempt.leave():
            # Its thread stays with what it cannot read. What is forked from now on has what that has left in memory.
            self._attempt = None
            why = reload_given_up(self._patience_seconds)
            log.error("not reloaded, the models go on as they are: %s", why)
            self._end({"error": why})
        elif self._left and self._left[0] not in self._workers():
            self._left.popleft()
            self._tell_next()

    def _begin(self, asker: Channel | None) -> None:
        self._busy, self._again, self._asker = True, False, asker
        self._attempt = Attempt(self._prepare)

    def _tell_next(self) -> None:
        while self._left:
            channel = self._workers().get(self._left[0])
            if channel is not None:
                assert self._order is not None
                channel.send(self._order)
                return
            self._left.popleft()
        assert self._order is not None
        self._end(self._order["result"])

    def _end(self, answer: Message) -> None:
        self._busy = False
        if self._asker is not None:
            self._asker.send({"answer": answer})
            self._asker = None
        if self._again:
            self._begin(None)
