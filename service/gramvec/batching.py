"""Concurrent requests on one asyncio loop -> calls of the model -> one answer a request.

There is no timer and no delay to tune. Everything submitted in one turn of the event loop is flushed together at
the end of that turn; while a long call runs on the worker thread, arrivals gather and form the next call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from gramvec.errors import BackendError, InputError, Overloaded, OverloadReason
from gramvec.postprocess import RawEmbeddings

log = logging.getLogger("gramvec.batching")

# Work is counted in characters, because the number of n-grams is; a text without any costs as much as two.
TEXT_COST = 2
# In ONNX Runtime the rows of a long text leave the caches: from about 4,000 characters on, each costs six.
LONG_TEXT = 4_000
LONG_TEXT_FACTOR = 6
# Seconds that one character of work is taken to cost until calls have been measured: ONNX Runtime on one core.
FIRST_COST_SECONDS = 0.3e-6
# How much of the past the measured cost keeps at each call, and the least work that teaches: a smaller call is mostly
# overhead, which a larger one does not have more of.
MEMORY = 0.9
TEACHING_COST = 512
# A call holds the model for about 10 ms: that is what a short request waits behind a bulk one.
CALL_SECONDS = 0.010
# About 4 ms of work runs on the loop itself. A thread costs more than its hop of 50 to 150 us: it and the loop take the
# interpreter's lock from each other, a fifth of the CPU time at 256 texts a request.
LOOP_SECONDS = 0.004
QUEUE_CHARACTERS = 64 * 2**20
# Requests past their deadline are looked for so many times in its length, beside each time that a call is cut.
LOOKS_A_DEADLINE = 8


class Model(Protocol):
    """What is batched: prepared texts in, one row a text out, the same bytes whatever the neighbours."""

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        """Embed prepared texts: float32[n, d] and the known features of each, int64[n]."""
        ...


class Answer(NamedTuple):
    """One request's rows, in the order of its texts, and what they took.

    `queue_ms` and `inference_ms` are milliseconds of wall time and add up to the time between submission and
    answer; inference is the duration of the calls the request took part in. `characters` is their number in the texts.
    """

    embeddings: RawEmbeddings
    queue_ms: float
    inference_ms: float
    characters: int


class CallRecord(NamedTuple):
    """One call of the model: its texts, their characters, its seconds, and the texts without any known feature.

    A call that failed, and was tried again request by request, counts as one; its failed texts are not in `empty`.
    """

    texts: int
    characters: int
    seconds: float
    empty: int


@dataclass(slots=True, eq=False)
class _Request:
    texts: Sequence[str]
    future: asyncio.Future[Answer]
    submitted: float
    characters: int
    waiting_characters: int
    waiting_cost: int
    turn_cost: int  # of waiting_cost, what its next call takes about: the rest goes to the end of the line
    taken: int = 0  # texts already handed to a call
    seconds: float = 0.0
    parts: list[RawEmbeddings] = field(default_factory=list)


class _Slice(NamedTuple):
    request: _Request
    start: int
    stop: int

    @property
    def texts(self) -> Sequence[str]:
        texts = self.request.texts
        return texts if self.stop - self.start == len(texts) else texts[self.start : self.stop]


class _Call(NamedTuple):
    slices: list[_Slice]
    cost: int
    characters: int


class _Outcome(NamedTuple):
    results: list[RawEmbeddings | BackendError]  # one a slice
    seconds: float


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
        loop_seconds: a call of about this time or less runs on the event loop, a longer one on the worker thread;
            0 sends every call to the thread (a CUDA device).
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
        long_text_factor: int = LONG_TEXT_FACTOR,
        deadline_seconds: float | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self._model = model
        self._queue_texts = queue_texts
        self._queue_characters = queue_characters
        self._call_seconds = call_seconds
        self._loop_seconds = loop_seconds
        self._long_text_factor = long_text_factor
        self._deadline_seconds = deadline_seconds
        self._on_call = on_call
        self._queue: deque[_Request] = deque()
        self._waiting = 0
        self._waiting_characters = 0
        self._waiting_cost = 0
        self._turns_cost = 0
        self._flush_due = False
        self._look_due = False
        self._call: asyncio.Future[_Outcome] | None = None
        self._call_cost = 0
        # When the model was last free to take work: the time from then on is what the work in its hands takes.
        self._free_since = 0.0
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gramvec-model")
        self._closed = False
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._seen_cost = float(TEACHING_COST)
        self._seen_seconds = TEACHING_COST * FIRST_COST_SECONDS
        self._paced_seconds = self._seen_seconds

    @property
    def waiting(self) -> int:
        """Texts admitted and not yet handed to the model."""
        return self._waiting

    @property
    def waiting_characters(self) -> int:
        """Characters of the texts admitted and not yet handed to the model."""
        return self._waiting_characters

    @property
    def full(self) -> bool:
        """True when the next request would be refused whatever its size."""
        return self._waiting >= self._queue_texts or self._waiting_characters >= self._queue_characters

    @property
    def cost_seconds(self) -> float:
        """Seconds that the model needs for a character of work, weighted towards the last calls."""
        return self._seen_seconds / self._seen_cost

    @property
    def pace_seconds(self) -> float:
        """Seconds that go by for a character of work while there is some.

        More than `cost_seconds` where the model waits for its turn: for the event loop, or for another model.
        """
        return self._paced_seconds / self._seen_cost

    @property
    def retry_after(self) -> float:
        """Seconds until what waits now is served, at the measured pace."""
        return self._waiting_cost * self.pace_seconds + self._call_rest

    @property
    def expected_wait(self) -> float:
        """Seconds until the model would begin with a request that came now, at the measured pace."""
        return self._turns_cost * self.pace_seconds + self._call_rest

    @property
    def oldest_seconds(self) -> float:
        """Seconds since the oldest request of which texts still wait was submitted; 0.0 when none waits."""
        submitted = min((one.submitted for one in self._queue if not one.future.done()), default=None)
        return 0.0 if submitted is None else time.perf_counter() - submitted

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
            raise Overloaded(
                "the model is shutting down; send the request again", retry_after=1.0, reason="shutting_down"
            )
        characters = sum(map(len, texts))
        if self._waiting:
            self._check_room("texts", self._waiting, len(texts), self._queue_texts, "queue_texts")
            self._check_room(
                "characters", self._waiting_characters, characters, self._queue_characters, "queue_characters"
            )
        self._check_deadline()
        cost = TEXT_COST * len(texts) + characters
        if characters > LONG_TEXT:
            cost = sum(map(self._cost, texts))
        loop = asyncio.get_running_loop()
        now = time.perf_counter()
        turn_cost = min(cost, self._affordable(self._call_seconds))
        request = _Request(texts, loop.create_future(), now, characters, characters, cost, turn_cost)
        if not self._queue and self._call is None:
            self._free_since = now
        self._queue.append(request)
        self._turns_cost += turn_cost
        self._waiting += len(texts)
        self._waiting_characters += characters
        self._waiting_cost += cost
        self._idle.clear()
        self._flush_soon(loop)
        self._look_soon(loop)
        return request.future

    def _check_room(self, what: str, waiting: int, more: int, limit: int, reason: OverloadReason) -> None:
        if waiting + more > limit:
            raise Overloaded(
                f"{waiting} {what} are waiting and {more} more would exceed the queue's {limit};"
                " send the request again later",
                retry_after=self.retry_after,
                reason=reason,
            )

    def _check_deadline(self) -> None:
        if self._deadline_seconds is not None and (wait := self.expected_wait) > self._deadline_seconds:
            raise Overloaded(
                f"the model would begin with this request in about {wait:.1f} s, after its deadline of"
                f" {self._deadline_seconds:g} s; send the request again later",
                retry_after=self.retry_after,
                reason="deadline",
            )

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        # Nothing waits beyond its turn of the loop but behind a call on the worker thread.
        if self._deadline_seconds is not None and not self._look_due and self._queue and self._call is not None:
            self._look_due = True
            loop.call_later(self._deadline_seconds / LOOKS_A_DEADLINE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look_due = False
        now = time.perf_counter()
        for _ in range(len(self._queue)):
            request = self._queue.popleft()
            self._drop_if_late(request, now)
            if request.future.done():
                self._take(request, len(request.texts), request.waiting_characters, request.waiting_cost)
            else:
                self._queue.append(request)
        self._look_soon(loop)

    def _drop_if_late(self, request: _Request, now: float) -> None:
        # One that was begun is finished: what it has taken of the model is not thrown away.
        if self._deadline_seconds is None or request.taken or request.future.done():
            return
        if (waited := now - request.submitted) > self._deadline_seconds:
            error = Overloaded(
                f"the request waited {waited:.1f} s, longer than its deadline of {self._deadline_seconds:g} s;"
                " send it again later",
                retry_after=self.retry_after,
                reason="deadline",
            )
            request.future.set_exception(error)

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
        while call := self._cut():
            if call.cost > self._affordable(self._loop_seconds):
                self._call_cost = call.cost
                self._call = loop.run_in_executor(self._worker, self._execute, call.slices)
                self._call.add_done_callback(partial(self._finish, loop, call))
                self._look_soon(loop)
                return
            self._deliver(call, self._execute(call.slices))
        self._idle.set()

    def _finish(self, loop: asyncio.AbstractEventLoop, call: _Call, done: asyncio.Future[_Outcome]) -> None:
        self._call = None
        self._call_cost = 0
        self._deliver(call, done.result())
        self._flush_soon(loop)

    def _affordable(self, seconds: float) -> int:
        return round(seconds / self.cost_seconds)

    def _cost(self, text: str) -> int:
        return TEXT_COST + len(text) * (self._long_text_factor if len(text) > LONG_TEXT else 1)

    def _cut(self) -> _Call | None:
        # A request that does not fit whole goes to the end of the line: a short one then waits behind one call of a
        # bulk request, not behind all of them.
        slices: list[_Slice] = []
        cost = characters = 0
        limit = self._affordable(self._call_seconds)
        now = time.perf_counter()
        while self._queue:
            request = self._queue[0]
            end = len(request.texts)
            self._drop_if_late(request, now)
            withdrawn = request.future.done()  # or dropped, or an earlier slice of it failed
            if withdrawn or cost + request.waiting_cost <= limit:
                self._queue.popleft()
                if not withdrawn:
                    slices.append(_Slice(request, request.taken, end))
                    cost += request.waiting_cost
                    characters += request.waiting_characters
                self._take(request, end, request.waiting_characters, request.waiting_cost)
                continue
            stop, price, more = self._fitting(request, limit - cost, at_least=0 if slices else 1)
            if stop > request.taken:
                slices.append(_Slice(request, request.taken, stop))
                cost += price
                characters += more
                self._take(request, stop, more, price)
                if stop == end:
                    self._queue.popleft()
                else:
                    self._queue.rotate(-1)
            break
        return _Call(slices, cost, characters) if slices else None

    def _fitting(self, request: _Request, room: int, *, at_least: int) -> tuple[int, int, int]:
        """The end of as many waiting texts as fit, their cost and their characters."""
        stop, cost, characters = request.taken, 0, 0
        while stop < len(request.texts):
            text = request.texts[stop]
            price = self._cost(text)
            if cost + price > room and stop - request.taken >= at_least:
                break
            cost += price
            characters += len(text)
            stop += 1
        return stop, cost, characters

    def _take(self, request: _Request, stop: int, characters: int, cost: int) -> None:
        self._waiting -= stop - request.taken
        self._waiting_characters -= characters
        self._waiting_cost -= cost
        request.taken = stop
        request.waiting_characters -= characters
        request.waiting_cost -= cost
        self._turns_cost -= request.turn_cost
        request.turn_cost = min(request.turn_cost, request.waiting_cost)
        self._turns_cost += request.turn_cost

    def _execute(self, slices: list[_Slice]) -> _Outcome:
        texts = slices[0].texts if len(slices) == 1 else [text for piece in slices for text in piece.texts]
        began = time.perf_counter()
        results: list[RawEmbeddings | BackendError]
        try:
            raw = self._model.raw(texts)
            if len(raw.vectors) != len(texts):
                raise RuntimeError(f"the model gave {len(raw.vectors)} rows for {len(texts)} texts")
        except Exception as error:
            results = self._retry_alone(slices, error)
        else:
            results = [raw] if len(slices) == 1 else _shared_out(raw, slices)
        return _Outcome(results, time.perf_counter() - began)

    def _retry_alone(self, slices: list[_Slice], error: Exception) -> list[RawEmbeddings | BackendError]:
        if len(slices) == 1:
            log.error("the model failed on a request of %d texts", len(slices[0].texts), exc_info=error)
            return [_failure(error)]
        log.warning("a call of %d requests failed (%s); each is tried alone", len(slices), type(error).__name__)
        return [self._execute([piece]).results[0] for piece in slices]

    def _deliver(self, call: _Call, outcome: _Outcome) -> None:
        now = time.perf_counter()
        passed, self._free_since = now - self._free_since, now
        # A call that failed was tried again in parts, so its time says nothing.
        if call.cost >= TEACHING_COST and not any(isinstance(one, BackendError) for one in outcome.results):
            self._seen_cost = self._seen_cost * MEMORY + call.cost
            self._seen_seconds = self._seen_seconds * MEMORY + outcome.seconds
            self._paced_seconds = self._paced_seconds * MEMORY + max(passed, outcome.seconds)
        if self._on_call is not None:
            self._on_call(_record(call, outcome))
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
                request.parts.append(result)


def _shared_out(raw: RawEmbeddings, slices: list[_Slice]) -> list[RawEmbeddings | BackendError]:
    results: list[RawEmbeddings | BackendError] = []
    row = 0
    for _, start, stop in slices:
        end = row + stop - start
        results.append(raw.take(slice(row, end)))
        row = end
    return results


def _record(call: _Call, outcome: _Outcome) -> CallRecord:
    texts = sum(stop - start for _, start, stop in call.slices)
    known = [one.feature_counts for one in outcome.results if not isinstance(one, BackendError)]
    empty = sum(len(counts) - int(np.count_nonzero(counts)) for counts in known)
    return CallRecord(texts, call.characters, outcome.seconds, empty)


def _failure(error: Exception) -> BackendError:
    failure = BackendError(f"the model failed on this request ({type(error).__name__}); the server's log says why")
    failure.__cause__ = error
    return failure
