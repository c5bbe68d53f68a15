"""Renewals in the parent of several workers: one is prepared in a thread, then each worker makes its own, in turn."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping

from gramvec.errors import GramvecError
from gramvec.http.allocator import let_go_of_files, trim
from gramvec.http.channel import Channel, Message

log = logging.getLogger("gramvec.http")

# What a worker and the thread wake the parent with; what it is about lies in the channel, or here.
DOORBELL = signal.SIGUSR1


class Renewals:
    """One at a time.

    Args:
        prepare: called in a thread: makes what workers forked from now on will share, and returns the message that
            tells the present ones; `result` in it is what came of it all. Raises GramvecError if it cannot be had.
        workers: the channels to the present workers, by process.
        dismiss: ends a worker that could not follow, for another to be forked.
    """

    def __init__(
        self,
        prepare: Callable[[], Message],
        workers: Callable[[], Mapping[int, Channel]],
        dismiss: Callable[[int], None],
    ) -> None:
        self._prepare = prepare
        self._workers = workers
        self._dismiss = dismiss
        self._thread: threading.Thread | None = None
        self._order: Message | None = None
        self._refusal: str | None = None
        self._left: deque[int] = deque()
        self._busy = False
        self._again = False
        self._asker: Channel | None = None

    @property
    def preparing(self) -> bool:
        """True while the thread runs, during which nothing may be forked."""
        return self._thread is not None

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
        if self._thread is not None and (self._order is not None or self._refusal is not None):
            self._thread.join()
            self._thread = None
            trim()
            let_go_of_files()
            if self._refusal is None:
                self._left.extend(self._workers())
                self._tell_next()
            else:
                self._end({"error": self._refusal})
        elif self._left and self._left[0] not in self._workers():
            self._left.popleft()
            self._tell_next()

    def _begin(self, asker: Channel | None) -> None:
        self._busy, self._again, self._asker = True, False, asker
        self._order = self._refusal = None
        self._thread = threading.Thread(target=self._work, name="gramvec-reload")
        self._thread.start()

    def _work(self) -> None:
        try:
            self._order = self._prepare()
        except GramvecError as error:
            self._refusal = str(error)
        except Exception as error:
            log.exception("the reload failed")
            self._refusal = f"the reload failed ({type(error).__name__}); the log says why"
        finally:
            os.kill(os.getpid(), DOORBELL)

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
