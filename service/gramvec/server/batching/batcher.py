"""Requests of one event loop that become batches of one model.

There is no timer and no delay to tune. All requests that are submitted in one turn of the event loop are flushed
together at the end of that turn; while a long batch runs on the worker thread, arrivals gather and form the next one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from gramvec.embed.vectors import RawEmbeddings
from gramvec.errors import BackendError, InputError, Overloaded, OverloadReason
from gramvec.server.batching.queue import (
    Batch,
    ClientGone,
    RequestQueue,
    Slice,
    Throughput,
    WaitingRequest,
    never_gone,
)
from gramvec.threads import ThreadPool

log = logging.getLogger("gramvec.server.batching")

# A batch on the worker thread holds the model for about 10 ms: a short request waits that long behind a bulk one.
CALL_SECONDS = 0.010
# About 4 ms of work runs on the loop itself, and batches are cut to that. A thread costs more than its hop of 50 to 150
# us: it and the loop take the lock of the interpreter from each other, a fifth of the CPU time at 256 texts a request.
LOOP_SECONDS = 0.004
QUEUE_CHARACTERS = 64 * 2**20
# Expired requests are removed whenever a batch is taken, and this many times per deadline.
CHECKS_A_DEADLINE = 8


class Model(Protocol):
    """A model that is batched: one row for each prepared text, the same bytes whatever its neighbors."""

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        """Embed prepared texts: float32[n, d] and the known features of each, int64[n]."""
        ...


class Timings(NamedTuple):
    """The cost of one request.

    `queue_ms` and `inference_ms` are milliseconds of wall time and add up to the time between submission and result;
    inference is the duration of the batches that the request took part in.

    Attributes:
        texts, characters: number of texts computed, and of characters in them.
        queue_ms, inference_ms: milliseconds in the queue and in the model.
        featurize_ms: the part of `inference_ms` from texts to rows of the table.
        words: number of words in the texts, which are what clients know as tokens.
    """

    texts: int = 0
    characters: int = 0
    queue_ms: float = 0.0
    inference_ms: float = 0.0
    featurize_ms: float = 0.0
    words: int = 0


class EmbeddedRequest(NamedTuple):
    """Embeddings of one request, in the order of its texts, and what they cost."""

    embeddings: RawEmbeddings
    timings: Timings


class BatchResult(NamedTuple):
    """Results of one call of the model, one for each slice, and figures for the metrics.

    A batch that failed is tried again request by request and counts as one; the last three figures leave out its failed
    texts.

    Attributes:
        texts, characters: of the whole batch.
        seconds: of wall time.
        empty: texts without any known feature.
        unknown: unknown characters and words, see FeatureBatch.
        featurize_seconds: the part of `seconds` from texts to rows of the table.
        failed: a result is an error, or the batch had to be tried again.
    """

    results: Sequence[RawEmbeddings | BackendError]
    texts: int
    characters: int
    seconds: float
    empty: int = 0
    unknown: int = 0
    featurize_seconds: float = 0.0
    failed: bool = False


class Batcher:
    """Coalesces requests to one model. Belongs to the event loop that submits to it.

    The cost of a character of work is learned from past batches, so that the limits in seconds hold for a slow runtime
    and a fast one.

    Args:
        model: anything with `raw(texts)`; called from the loop or from one worker thread, never from both at once.
        queue_texts: texts that may wait; a request that would exceed it is refused with `Overloaded`. A single
            larger request is let in when nothing waits, so that refusal always means "later", never "never".
        queue_characters: the same for the characters of the waiting texts.
        call_seconds: about the longest time that a batch may hold the model; a text that takes longer is a batch of its
            own.
        loop_seconds: a batch of about this time or less runs on the event loop, and batches are cut to it; a text that
            takes longer goes to the worker thread. 0 sends every batch to the thread, for a device that is waited for.
        long_text_factor: how many times the usual a character of a text over `LONG_TEXT` characters costs.
        deadline_seconds: the longest time that a request may wait until the model begins with it. A request that would
            wait longer, by estimate, is refused, and one that has waited longer is dropped, both with `Overloaded`.
            None for no limit.
        on_batch: called on the event loop after every batch.
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
        on_batch: Callable[[BatchResult], None] | None = None,
    ) -> None:
        self._model = model
        self._queue_texts = queue_texts
        self._queue_characters = queue_characters
        self._call_seconds = min(call_seconds, loop_seconds) if loop_seconds else call_seconds
        self._loop_seconds = loop_seconds
        self._deadline_seconds = deadline_seconds
        self._on_batch = on_batch
        self._queue = RequestQueue(long_text_factor)
        self._throughput = Throughput()
        self._adapt()
        self._flush_due = False
        self._expiry_is_due = False
        self._call: asyncio.Future[BatchResult] | None = None
        self._call_cost = 0
        # The time at which the model was last free to take work.
        self._free_since = 0.0
        self._worker = ThreadPool(1, "gramvec-model")
        self._closed = False
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Texts admitted and not yet handed to the model."""
        return self._queue.texts

    @property
    def waiting_characters(self) -> int:
        """Characters of the texts admitted and not yet handed to the model."""
        return self._queue.characters

    @property
    def full(self) -> bool:
        """True when the next request would be refused whatever its size."""
        return self._queue.texts >= self._queue_texts or self._queue.characters >= self._queue_characters

    @property
    def pace_seconds(self) -> float:
        """Seconds that pass for a character of work, see `Throughput`."""
        return self._throughput.pace_seconds

    @property
    def retry_after(self) -> float:
        """Seconds until all that waits now is served, by estimate."""
        return self._queue.cost * self.pace_seconds + self._call_rest

    @property
    def expected_wait(self) -> float:
        """Seconds until the model would begin with a request that came now, by estimate."""
        return self._queue.turns_cost * self.pace_seconds + self._call_rest

    @property
    def oldest_seconds(self) -> float:
        """Seconds since the oldest request with waiting texts was submitted; 0.0 when none waits."""
        oldest = self._queue.oldest
        return 0.0 if oldest is None else time.perf_counter() - oldest

    @property
    def _call_rest(self) -> float:
        if not self._call_cost:
            return 0.0
        return max(0.0, self._call_cost * self.pace_seconds - (time.perf_counter() - self._free_since))

    def submit(
        self, texts: Sequence[str], has_gone: Callable[[], bool] = never_gone
    ) -> asyncio.Future[EmbeddedRequest]:
        """Queue one request of prepared texts and return the future of its result; cancel it to withdraw the request.

        The future fails with `BackendError` when the model fails on this request, and with `ClientGone` when its client
        has gone before its batch is taken, which `has_gone` is asked then.

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
        queue = self._queue
        characters = sum(map(len, texts))
        full = queue.texts + len(texts) > self._queue_texts or queue.characters + characters > self._queue_characters
        if queue.texts and full:
            raise self._no_room(len(texts), characters)
        if queue.turns_cost > self._patience_cost or self._call is not None:
            self._check_deadline()
        cost = queue.cost_of(texts, characters)
        loop = asyncio.get_running_loop()
        now = time.perf_counter()
        turn_cost = min(cost, self._turn_cost)
        request = WaitingRequest(
            texts, loop.create_future(), now, characters, characters, cost, turn_cost, has_gone=has_gone
        )
        if not queue.texts and self._call is None:
            self._free_since = now
        queue.join(request)
        if self._call is not None:
            self._expire_soon(loop)
        else:
            self._idle.clear()
            self._flush_soon(loop)
        return request.future

    def _adapt(self) -> None:
        # The most work of a batch, and the most that may wait, without a batch under way, before the deadline.
        self._turn_cost = self._throughput.count_affordable(self._call_seconds)
        self._patience_cost = inf if self._deadline_seconds is None else self._deadline_seconds / self.pace_seconds

    def _no_room(self, texts: int, characters: int) -> Overloaded:
        what, waiting, more, limit = "texts", self._queue.texts, texts, self._queue_texts
        reason: OverloadReason = "queue_texts"
        if waiting + more <= limit:
            what, waiting, more, limit = "characters", self._queue.characters, characters, self._queue_characters
            reason = "queue_characters"
        return Overloaded(
            f"{waiting} {what} are waiting and {more} more would exceed the queue's {limit}; send the request again"
            " later",
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

    def _expire_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        # A request waits longer than its turn of the loop only behind a batch on the worker thread.
        if self._deadline_seconds is not None and not self._expiry_is_due and self._queue and self._call is not None:
            self._expiry_is_due = True
            loop.call_later(self._deadline_seconds / CHECKS_A_DEADLINE, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._expiry_is_due = False
        self._queue.visit(partial(self._drop_if_late, time.perf_counter()))
        self._expire_soon(loop)

    def _drop_if_unwanted(self, now: float, request: WaitingRequest) -> None:
        if not request.future.done() and request.has_gone():
            request.future.set_exception(ClientGone())
        self._drop_if_late(now, request)

    def _drop_if_late(self, now: float, request: WaitingRequest) -> None:
        # A request that was begun is finished: the work already done for it is not thrown away.
        if self._deadline_seconds is None or request.taken or request.future.done():
            return
        if (waited := now - request.submitted) > self._deadline_seconds:
            request.future.set_exception(
                Overloaded(
                    f"the request waited {waited:.1f} s, longer than its deadline of {self._deadline_seconds:g} s;"
                    " send it again later",
                    retry_after=self.retry_after,
                    reason="deadline",
                )
            )

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
        now = time.perf_counter()
        batch = self._queue.take(self._turn_cost, now, partial(self._drop_if_unwanted, now))
        if batch is not None and batch.cost > self._throughput.count_affordable(self._loop_seconds):
            self._call_cost = batch.cost
            self._call = loop.run_in_executor(self._worker, execute, self._model, batch)
            self._call.add_done_callback(partial(self._finish, loop, batch))
            self._expire_soon(loop)
            return
        if batch is not None:
            self._deliver(batch, execute(self._model, batch))
        if self._queue:
            self._flush_soon(loop)  # others have a turn of the loop first
        else:
            self._idle.set()

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: Batch, done: asyncio.Future[BatchResult]) -> None:
        self._call = None
        self._call_cost = 0
        self._deliver(batch, done.result())
        self._flush_soon(loop)

    def _deliver(self, batch: Batch, outcome: BatchResult) -> None:
        now = time.perf_counter()
        passed, self._free_since = now - self._free_since, now
        # A batch that failed was tried again in parts, so its time is no measurement.
        if not outcome.failed:
            self._throughput.learn(batch.cost, outcome.seconds, passed)
            self._adapt()
        if self._on_batch is not None:
            self._on_batch(outcome)
        for (request, _, stop), result in zip(batch.slices, outcome.results, strict=True):
            if request.future.done():
                continue
            if isinstance(result, BackendError):
                request.future.set_exception(result)
                continue
            request.seconds += outcome.seconds
            request.featurize_seconds += outcome.featurize_seconds
            if stop == len(request.texts):
                embeddings = RawEmbeddings.join([*request.parts, result]) if request.parts else result
                inference = request.seconds * 1e3
                total = (now - request.submitted) * 1e3
                featurize = request.featurize_seconds * 1e3
                timings = Timings(
                    len(request.texts), request.characters, max(0.0, total - inference), inference, featurize
                )
                request.future.set_result(EmbeddedRequest(embeddings, timings))
            else:
                request.parts = [*request.parts, result]


def execute(model: Model, batch: Batch) -> BatchResult:
    """Call the model with a batch; if that fails, with each request by itself, so that only the culprit fails."""
    slices = batch.slices
    texts = slices[0].texts if len(slices) == 1 else [text for piece in slices for text in piece.texts]
    began = time.perf_counter()
    try:
        raw = model.raw(texts)
        if len(raw.vectors) != len(texts):
            raise RuntimeError(f"the model gave {len(raw.vectors)} rows for {len(texts)} texts")
    except Exception as error:
        return _try_alone(model, batch, error, began)
    results = [raw] if len(slices) == 1 else _share_out(raw, slices)
    empty = len(texts) - int(np.count_nonzero(raw.feature_counts))
    seconds = time.perf_counter() - began
    return BatchResult(results, batch.texts, batch.characters, seconds, empty, raw.unknown, raw.featurize_seconds)


def _try_alone(model: Model, batch: Batch, error: Exception, began: float) -> BatchResult:
    slices = batch.slices
    if len(slices) == 1:
        log.error("the model failed on a request of %d texts", len(slices[0].texts), exc_info=error)
        failure = BackendError(
            f"the model failed on this request ({type(error).__name__}); the server's log gives the reason"
        )
        failure.__cause__ = error
        parts = [BatchResult([failure], 0, 0, 0.0, failed=True)]
    else:
        log.warning("a batch of %d requests failed (%s); each is tried by itself", len(slices), type(error).__name__)
        parts = [execute(model, Batch([piece], 0, 0, 0)) for piece in slices]
    return BatchResult(
        [part.results[0] for part in parts],
        batch.texts,
        batch.characters,
        time.perf_counter() - began,
        sum(part.empty for part in parts),
        sum(part.unknown for part in parts),
        sum(part.featurize_seconds for part in parts),
        failed=True,
    )


def _share_out(raw: RawEmbeddings, slices: Sequence[Slice]) -> list[RawEmbeddings | BackendError]:
    results: list[RawEmbeddings | BackendError] = []
    row = 0
    for _, start, stop in slices:
        end = row + stop - start
        results.append(raw.take(slice(row, end)))
        row = end
    return results
