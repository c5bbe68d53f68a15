"""Concurrent requests on one asyncio loop -> calls of the model -> one answer a request.

There is no timer and no delay to tune. Everything submitted in one turn of the event loop is flushed together at
the end of that turn; while a long call runs on the worker thread, arrivals gather and form the next call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from gramvec.errors import BackendError, InputError, Overloaded
from gramvec.postprocess import RawEmbeddings

log = logging.getLogger("gramvec.batching")

# Work is counted in characters, because the number of n-grams is: 0.3 us each, measured on one core. A text without any
# costs as much as two, and the rows of a long one leave the caches: from about 4,000 characters on, each costs six.
TEXT_COST = 2
LONG_TEXT = 4_000
LONG_TEXT_FACTOR = 6
# A call holds the model for about 10 ms: that is what a short request waits behind a bulk one.
CALL_CHARACTERS = 32_768
# About 2 ms of work runs on the loop itself: a hop to a thread and back costs 50 to 150 us.
LOOP_CHARACTERS = 8_192
# How much of the past the measured rate keeps at each call.
RATE_MEMORY = 0.9


class Model(Protocol):
    """What is batched: prepared texts in, one row a text out, the same bytes whatever the neighbours."""

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        """Embed prepared texts: float32[n, d] and the known features of each, int64[n]."""
        ...


class Answer(NamedTuple):
    """One request's rows, in the order of its texts, and where its time went.

    `queue_ms` and `inference_ms` are milliseconds of wall time and add up to the time between submission and
    answer; inference is the duration of the calls the request took part in.
    """

    embeddings: RawEmbeddings
    queue_ms: float
    inference_ms: float


@dataclass(slots=True, eq=False)
class _Request:
    texts: Sequence[str]
    future: asyncio.Future[Answer]
    submitted: float
    taken: int = 0  # texts already handed to a call
    seconds: float = 0.0
    parts: list[RawEmbeddings] = field(default_factory=list)


class _Slice(NamedTuple):
    request: _Request
    start: int
    stop: int

    @property
    def texts(self) -> Sequence[str]:
        return self.request.texts[self.start : self.stop]


class _Call(NamedTuple):
    slices: list[_Slice]
    cost: int


class _Outcome(NamedTuple):
    results: list[RawEmbeddings | BackendError]  # one a slice
    texts: int
    seconds: float


class Batcher:
    """Coalesces requests to one model. Belongs to the event loop that submits to it.

    Args:
        model: anything with `raw(texts)`; called from the loop or from one worker thread, never from both at once.
        queue_texts: texts that may wait; a request that would exceed it is refused with `Overloaded`. A single
            larger request is let in when nothing waits, so that refusal always means "later", never "never".
        call_characters: budget of one call in characters of work; a text longer than that is a call of its own.
        loop_characters: a call up to this cost runs on the event loop, a costlier one on the worker thread;
            0 sends every call to the thread (a CUDA device).
    """

    def __init__(
        self,
        model: Model,
        *,
        queue_texts: int,
        call_characters: int = CALL_CHARACTERS,
        loop_characters: int = LOOP_CHARACTERS,
    ) -> None:
        self._model = model
        self._queue_texts = queue_texts
        self._call_cost = call_characters
        self._loop_cost = loop_characters
        self._queue: deque[_Request] = deque()
        self._waiting = 0
        self._flush_due = False
        self._call: asyncio.Future[_Outcome] | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gramvec-model")
        self._closed = False
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._rate_texts = 0.0
        self._rate_seconds = 0.0

    @property
    def waiting(self) -> int:
        """Texts admitted and not yet handed to the model."""
        return self._waiting

    @property
    def full(self) -> bool:
        """True when the next request would be refused whatever its size."""
        return self._waiting >= self._queue_texts

    @property
    def rate(self) -> float:
        """Texts a second while the model works, weighted towards the last calls; 0.0 before the first call."""
        return self._rate_texts / self._rate_seconds if self._rate_seconds else 0.0

    @property
    def retry_after(self) -> float:
        """Seconds until what waits now is served, at the measured rate."""
        return self._waiting / self.rate if self.rate else 1.0

    def submit(self, texts: Sequence[str]) -> asyncio.Future[Answer]:
        """Queue one request of prepared texts; cancel the future to withdraw it.

        The future fails with `BackendError` when the model fails on this request.

        Raises:
            InputError: no texts.
            Overloaded: the queue is full, or the batcher is closed.
        """
        if not texts:
            raise InputError("give at least one text")
        if self._closed:
            raise Overloaded("the model is shutting down; send the request again", retry_after=1.0)
        if self._waiting and self._waiting + len(texts) > self._queue_texts:
            raise Overloaded(
                f"{self._waiting} texts are waiting and {len(texts)} more would exceed the queue's"
                f" {self._queue_texts}; send the request again later",
                retry_after=self.retry_after,
            )
        loop = asyncio.get_running_loop()
        request = _Request(texts, loop.create_future(), time.perf_counter())
        self._queue.append(request)
        self._waiting += len(texts)
        self._idle.clear()
        self._flush_soon(loop)
        return request.future

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
            if call.cost > self._loop_cost:
                self._call = loop.run_in_executor(self._worker, self._execute, call.slices)
                self._call.add_done_callback(partial(self._finish, loop, call))
                return
            self._deliver(call, self._execute(call.slices))
        self._idle.set()

    def _finish(self, loop: asyncio.AbstractEventLoop, call: _Call, done: asyncio.Future[_Outcome]) -> None:
        self._call = None
        self._deliver(call, done.result())
        self._flush_soon(loop)

    def _cut(self) -> _Call | None:
        # A request that does not fit whole goes to the end of the line: a short one then waits behind one call of a
        # bulk request, not behind all of them.
        slices: list[_Slice] = []
        cost = 0
        while self._queue:
            request = self._queue[0]
            if request.future.done():  # withdrawn, or an earlier slice of it failed
                self._queue.popleft()
                self._waiting -= len(request.texts) - request.taken
                continue
            start = stop = request.taken
            while stop < len(request.texts):
                price = _cost(request.texts[stop])
                if cost and cost + price > self._call_cost:
                    break
                cost += price
                stop += 1
            if stop > start:
                slices.append(_Slice(request, start, stop))
                self._waiting -= stop - start
                request.taken = stop
            if stop < len(request.texts):
                if stop > start:
                    self._queue.rotate(-1)
                break
            self._queue.popleft()
        return _Call(slices, cost) if slices else None

    def _execute(self, slices: list[_Slice]) -> _Outcome:
        texts = [text for piece in slices for text in piece.texts]
        began = time.perf_counter()
        results: list[RawEmbeddings | BackendError]
        try:
            raw = self._model.raw(texts)
            if len(raw.vectors) != len(texts):
                raise RuntimeError(f"the model gave {len(raw.vectors)} rows for {len(texts)} texts")
        except Exception as error:
            if len(slices) == 1:
                log.exception("the model failed on a request of %d texts", len(texts))
                results = [_failure(error)]
            else:
                log.warning(
                    "a call of %d requests failed (%s); each is tried alone",
                    len(slices),
                    type(error).__name__,
                )
                results = [self._execute([piece]).results[0] for piece in slices]
        else:
            results = []
            row = 0
            for piece in slices:
                end = row + piece.stop - piece.start
                results.append(RawEmbeddings(raw.vectors[row:end], raw.feature_counts[row:end]))
                row = end
        return _Outcome(results, len(texts), time.perf_counter() - began)

    def _deliver(self, call: _Call, outcome: _Outcome) -> None:
        self._rate_texts = self._rate_texts * RATE_MEMORY + outcome.texts
        self._rate_seconds = self._rate_seconds * RATE_MEMORY + outcome.seconds
        now = time.perf_counter()
        for (request, _, stop), result in zip(call.slices, outcome.results, strict=True):
            if request.future.done():
                continue
            if isinstance(result, BackendError):
                request.future.set_exception(result)
                continue
            request.parts.append(result)
            request.seconds += outcome.seconds
            if stop == len(request.texts):
                inference = request.seconds * 1e3
                total = (now - request.submitted) * 1e3
                request.future.set_result(Answer(_join(request.parts), max(0.0, total - inference), inference))


def _cost(text: str) -> int:
    return TEXT_COST + len(text) * (LONG_TEXT_FACTOR if len(text) > LONG_TEXT else 1)


def _failure(error: Exception) -> BackendError:
    failure = BackendError(f"the model failed on this request ({type(error).__name__}); the server's log says why")
    failure.__cause__ = error
    return failure


def _join(parts: list[RawEmbeddings]) -> RawEmbeddings:
    if len(parts) == 1:
        return parts[0]
    return RawEmbeddings(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.feature_counts for part in parts]),
    )
