"""Concurrent requests on one asyncio loop -> calls of the model -> one answer a request.

There is no timer and no delay to tune. Everything submitted in one turn of the event loop is flushed together at
the end of that turn; while a long call runs on the worker thread, arrivals gather and form the next call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from typing import NamedTuple

from gramvec.embed.vectors import RawEmbeddings
from gramvec.errors import BackendError, InputError, Overloaded
from gramvec.server.batching.execute import CallRecord, Model, Outcome, execute, record_of
from gramvec.server.batching.overload import is_late, no_room, shutting_down, would_be_late
from gramvec.server.batching.queue import Call, Line, Request
from gramvec.server.batching.task_free import Notify
from gramvec.server.batching.throughput import Pace

# A call on the worker thread holds the model for about 10 ms: that is what a short request waits behind a bulk one.
CALL_SECONDS = 0.010
# About 4 ms of work runs on the loop itself, and calls are cut to that. A thread costs more than its hop of 50 to 150
# us: it and the loop take the lock of the interpreter from each other, a fifth of the CPU time at 256 texts a request.
LOOP_SECONDS = 0.004
QUEUE_CHARACTERS = 64 * 2**20
# Requests past their deadline are looked for so many times in its length, beside each time that a call is cut.
LOOKS_A_DEADLINE = 8


class Answer(NamedTuple):
    """One request's rows, in the order of its texts, and what they took.

    `queue_ms` and `inference_ms` are milliseconds of wall time and add up to the time between submission and
    answer; inference is the duration of the calls the request took part in. `characters` is their number in the texts.
    """

    embeddings: RawEmbeddings
    queue_ms: float
    inference_ms: float
    characters: int


class Batcher:
    """Coalesces requests to one model. Belongs to the event loop that submits to it.

    What a character of work costs is learnt from the calls, so that the limits in seconds hold for a slow runtime and
    a fast one.

    Args:
        model: anything with `raw(texts)`; called from the loop or from one worker thread, never from both at once.
        queue_texts: texts that may wait; a request that would exceed it is refused with `Overloaded`. A single
            larger request is let in when nothing waits, so that refusal always means "later", never "never".
        queue_characters: the same for the characters of the waiting texts.
        call_seconds: about how long one call may hold the model; a text that takes longer is a call of its own.
        loop_seconds: a call of about this time or less runs on the event loop, and calls are cut to it; a text that
            takes longer goes to the worker thread. 0 sends every call to the thread, for a device that is waited for.
        long_text_factor: how many times the usual a character of a text over `LONG_TEXT` characters costs.
        deadline_seconds: how long a request may wait until the model begins with it. One that would wait longer, at
            the measured speed, is refused; one that has is dropped. Both with `Overloaded`. None for no such limit.
        on_call: hears of every call of the model, on the event loop.
    """

    def __init__(
        self,
        model: Model,
        *,
        queue_texts: int,
        queue_characters: int = QUEUE_CHARACTERS,
        call_seconds: float = CALL_SECONDS,
        loop_seconds: float = LOOP_SECONDS,
        long_text_factor: int = 1,
        deadline_seconds: float | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self._model = model
        self._queue_texts = queue_texts
        self._queue_characters = queue_characters
        self._call_seconds = min(call_seconds, loop_seconds) if loop_seconds else call_seconds
        self._loop_seconds = loop_seconds
        self._deadline_seconds = deadline_seconds
        self._on_call = on_call
        self._line = Line(long_text_factor)
        self._pace = Pace()
        self._adapt()
        self._flush_due = False
        self.flushed = Notify()  # comes after each call on the loop, or the beginning of one on the worker thread
        self._look_due = False
        self._call: asyncio.Future[Outcome] | None = None
        self._call_cost = 0
        # When the model was last free to take work: the time from then on is what the work in its hands takes.
        self._free_since = 0.0
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gramvec-model")
        self._closed = False
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Texts admitted and not yet handed to the model."""
        return self._line.texts

    @property
    def waiting_characters(self) -> int:
        """Characters of the texts admitted and not yet handed to the model."""
        return self._line.characters

    @property
    def full(self) -> bool:
        """True when the next request would be refused whatever its size."""
        return self._line.texts >= self._queue_texts or self._line.characters >= self._queue_characters

    @property
    def cost_seconds(self) -> float:
        """Seconds that the model needs for a character of work, see `Pace`."""
        return self._pace.cost_seconds

    @property
    def pace_seconds(self) -> float:
        """Seconds that go by for a character of work while there is some, see `Pace`."""
        return self._pace.pace_seconds

    @property
    def retry_after(self) -> float:
        """Seconds until what waits now is served, at the measured pace."""
        return self._line.cost * self.pace_seconds + self._call_rest

    @property
    def expected_wait(self) -> float:
        """Seconds until the model would begin with a request that came now, at the measured pace."""
        return self._line.turns_cost * self.pace_seconds + self._call_rest

    @property
    def oldest_seconds(self) -> float:
        """Seconds since the oldest request of which texts still wait was submitted; 0.0 when none waits."""
        oldest = self._line.oldest
        return 0.0 if oldest is None else time.perf_counter() - oldest

    @property
    def _call_rest(self) -> float:
        if not self._call_cost:
            return 0.0
        return max(0.0, self._call_cost * self.pace_seconds - (time.perf_counter() - self._free_since))

    def submit(self, texts: Sequence[str]) -> asyncio.Future[Answer]:
        """Queue one request of prepared texts; cancel the future to withdraw it.

        The future fails with `BackendError` when the model fails on this request.

        Raises:
            InputError: no texts.
            Overloaded: the queue is full, the deadline cannot be met, or the batcher is closed.
        """
        if not texts:
            raise InputError("give at least one text")
        if self._closed:
            raise shutting_down()
        line = self._line
        characters = sum(map(len, texts))
        full = line.texts + len(texts) > self._queue_texts or line.characters + characters > self._queue_characters
        if line.texts and full:
            raise self._no_room(len(texts), characters)
        if line.turns_cost > self._patience_cost or self._call is not None:
            self._check_deadline()
        cost = line.cost_of(texts, characters)
        loop = asyncio.get_running_loop()
        now = time.perf_counter()
        turn_cost = min(cost, self._turn_cost)
        request = Request(texts, loop.create_future(), now, characters, characters, cost, turn_cost)
        if not line.texts and self._call is None:
            self._free_since = now
        line.join(request)
        if self._call is not None:
            self._look_soon(loop)
        else:
            self._idle.clear()
            self._flush_soon(loop)
        return request.future

    @property
    def flush_due(self) -> bool:
        """Whether there will be a flush in this turn of the loop or the next, so that `flushed` may be awaited."""
        return self._flush_due

    def _adapt(self) -> None:
        # What a call takes on at most, and what may wait, without a call under way, before the deadline is in danger.
        self._turn_cost = self._pace.affordable(self._call_seconds)
        self._patience_cost = inf if self._deadline_seconds is None else self._deadline_seconds / self.pace_seconds

    def _no_room(self, texts: int, characters: int) -> Overloaded:
        waiting, limit, again = self._line.texts, self._queue_texts, self.retry_after
        if waiting + texts > limit:
            return no_room("texts", waiting, texts, limit, reason="queue_texts", retry_after=again)
        waiting, limit = self._line.characters, self._queue_characters
        return no_room("characters", waiting, characters, limit, reason="queue_characters", retry_after=again)

    def _check_deadline(self) -> None:
        if self._deadline_seconds is not None and (wait := self.expected_wait) > self._deadline_seconds:
            raise would_be_late(wait, self._deadline_seconds, retry_after=self.retry_after)

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        # Nothing waits beyond its turn of the loop but behind a call on the worker thread.
        if self._deadline_seconds is not None and not self._look_due and self._line and self._call is not None:
            self._look_due = True
            loop.call_later(self._deadline_seconds / LOOKS_A_DEADLINE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look_due = False
        self._line.look(partial(self._drop_if_late, time.perf_counter()))
        self._look_soon(loop)

    def _drop_if_late(self, now: float, request: Request) -> None:
        # One that was begun is finished: what it has taken of the model is not thrown away.
        if self._deadline_seconds is None or request.taken or request.future.done():
            return
        if (waited := now - request.submitted) > self._deadline_seconds:
            request.future.set_exception(is_late(waited, self._deadline_seconds, retry_after=self.retry_after))

    async def close(self) -> None:
        """Refuse new requests, finish those admitted, stop the worker thread."""
        self._closed = True
        await self._idle.wait()
        self._worker.shutdown()

    def _flush_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._flush_due and self._call is None:
            self._flush_due = True
            loop.call_soon(self._flush, loop)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flush_due = False
        try:
            self._call_model(loop)
        finally:
            self.flushed.notify_all()

    def _call_model(self, loop: asyncio.AbstractEventLoop) -> None:
        call = self._cut()
        if call is not None and call.cost > self._pace.affordable(self._loop_seconds):
            self._call_cost = call.cost
            self._call = loop.run_in_executor(self._worker, execute, self._model, call.slices)
            self._call.add_done_callback(partial(self._finish, loop, call))
            self._look_soon(loop)
            return
        if call is not None:
            self._deliver(call, execute(self._model, call.slices))
        if self._line:
            self._flush_soon(loop)  # others have a turn of the loop first
        else:
            self._idle.set()

    def _finish(self, loop: asyncio.AbstractEventLoop, call: Call, done: asyncio.Future[Outcome]) -> None:
        self._call = None
        self._call_cost = 0
        self._deliver(call, done.result())
        self._flush_soon(loop)

    def _cut(self) -> Call | None:
        now = time.perf_counter()
        overdue = -inf if self._deadline_seconds is None else now - self._deadline_seconds
        return self._line.cut(self._turn_cost, overdue, partial(self._drop_if_late, now))

    def _deliver(self, call: Call, outcome: Outcome) -> None:
        now = time.perf_counter()
        passed, self._free_since = now - self._free_since, now
        # A call that failed was tried again in parts, so its time says nothing.
        if not outcome.failed:
            self._pace.learn(call.cost, outcome.seconds, passed)
            self._adapt()
        if self._on_call is not None:
            self._on_call(record_of(call, outcome))
        for (request, _, stop), result in zip(call.slices, outcome.results, strict=True):
            if request.future.done():
                continue
            if isinstance(result, BackendError):
                request.future.set_exception(result)
                continue
            request.seconds += outcome.seconds
            if stop == len(request.texts):
                embeddings = RawEmbeddings.joined([*request.parts, result]) if request.parts else result
                inference = request.seconds * 1e3
                total = (now - request.submitted) * 1e3
                request.future.set_result(
                    Answer(embeddings, max(0.0, total - inference), inference, request.characters)
                )
            else:
                request.parts = [*request.parts, result]
