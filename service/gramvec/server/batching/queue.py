"""FIFO queue of requests, and the batches that are taken from it.

Work is counted in characters, because the number of n-grams is; a text without any costs as much as two.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from gramvec.embed.vectors import RawEmbeddings

TEXT_COST = 2
# Longer texts may cost more for each character: runtimes say how many times as much (gramvec.runtime.base.Batching).
LONG_TEXT = 4_000

# Seconds that a character of work is taken to cost until batches have been measured: ONNX Runtime on one core.
FIRST_COST_SECONDS = 0.3e-6
# The share of the past that the measured cost keeps at each batch, and the least work that is measured: a smaller batch
# is mostly overhead, which a larger one does not have more of.
MEMORY = 0.9
MIN_MEASURED_COST = 512


# A client that has waited for less is not asked for: it has hardly gone, and to ask costs 2 us.
UNASKED_SECONDS = 0.01


# Where a scope's extensions (ASGI) have a function that tells whether the client has gone.
HAS_GONE = "gramvec.has_gone"


class ClientGone(Exception):
    """The client of a request has gone, so nothing more is computed for it."""


def never_gone() -> bool:
    """Return False: the client has not gone."""
    return False


@dataclass(slots=True, eq=False)
class WaitingRequest:
    """Queued request: its texts, the future of its result, and the part that still waits.

    Attributes:
        has_gone: returns True if its client is known to have gone.
        turn_cost: the part of `waiting_cost` that its next batch takes; the rest goes to the end of the queue.
        taken: number of texts already in a batch.
        seconds, featurize_seconds, parts: duration and results of the batches so far.
    """

    texts: Sequence[str]
    future: asyncio.Future[Any]
    submitted: float
    characters: int
    waiting_characters: int
    waiting_cost: int
    turn_cost: int
    taken: int = 0
    seconds: float = 0.0
    featurize_seconds: float = 0.0
    parts: Sequence[RawEmbeddings] = ()
    has_gone: Callable[[], bool] = never_gone


class Slice(NamedTuple):
    """The part of a request that is in one batch."""

    request: WaitingRequest
    start: int
    stop: int

    @property
    def texts(self) -> Sequence[str]:
        """The texts of the slice."""
        texts = self.request.texts
        return texts if self.stop - self.start == len(texts) else texts[self.start : self.stop]


class Batch(NamedTuple):
    """Slices for one call of the model, their cost in characters of work, their characters and their texts."""

    slices: list[Slice]
    cost: int
    characters: int
    texts: int


class RequestQueue:
    """Requests in the order of their arrival, and counts of what waits: texts, characters, and cost.

    `turns_cost` is what is computed before a request that comes now gets its first turn: a bulk request goes to the end
    of the queue after each batch.

    Args:
        long_text_factor: how many times the usual a character of a text over `LONG_TEXT` characters costs.
    """

    def __init__(self, long_text_factor: int) -> None:
        self._long_text_factor = long_text_factor
        self._queue: deque[WaitingRequest] = deque()
        self.texts = 0
        self.characters = 0
        self.cost = 0
        self.turns_cost = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    @property
    def oldest(self) -> float | None:
        """The time at which the oldest request that is still wanted was submitted."""
        return min((request.submitted for request in self._queue if not request.future.done()), default=None)

    def cost_of(self, texts: Sequence[str], characters: int) -> int:
        """Estimate the cost of `texts`."""
        if characters > LONG_TEXT and max(map(len, texts)) > LONG_TEXT:
            return sum(map(self._cost, texts))
        return TEXT_COST * len(texts) + characters

    def join(self, request: WaitingRequest) -> None:
        """Put a request at the end."""
        self._queue.append(request)
        self.texts += len(request.texts)
        self.characters += request.characters
        self.cost += request.waiting_cost
        self.turns_cost += request.turn_cost

    def visit(self, at: Callable[[WaitingRequest], None]) -> None:
        """Visit every request, and drop those whose futures are done after it."""
        for _ in range(len(self._queue)):
            request = self._queue.popleft()
            at(request)
            if request.future.done():
                self._take_all(request)
            else:
                self._queue.append(request)

    def take(self, limit: int, now: float, drop: Callable[[WaitingRequest], None]) -> Batch | None:
        """Return the next batch, of about `limit` characters of work or one longer text; None when nothing waits.

        `drop` is called with each request that has waited for some time at `now`, before it is taken. A request whose
        future is done then, withdrawn or failed, is left out.
        """
        overdue = now - UNASKED_SECONDS
        before = self.texts
        left_out = 0
        # A request that does not fit as a whole goes to the end of the queue: a short one then waits behind one batch
        # of a bulk request, not behind all of them. One that fits a batch by itself waits for the next: to join its
        # parts would cost more.
        slices: list[Slice] = []
        cost = characters = 0
        while self._queue:
            request = self._queue[0]
            end = len(request.texts)
            if request.submitted < overdue:
                drop(request)
            withdrawn = request.future.done()
            if withdrawn or cost + request.waiting_cost <= limit:
                self._queue.popleft()
                if withdrawn:
                    left_out += end - request.taken
                else:
                    slices.append(Slice(request, request.taken, end))
                    cost += request.waiting_cost
                    characters += request.waiting_characters
                self._take_all(request)
                continue
            if slices and request.waiting_cost <= limit:
                break
            stop, price, more = self._fit(request, limit - cost, at_least=0 if slices else 1)
            if stop > request.taken:
                slices.append(Slice(request, request.taken, stop))
                cost += price
                characters += more
                self._take(request, stop, more, price)
                if stop == end:
                    self._queue.popleft()
                else:
                    self._queue.rotate(-1)
            break
        return Batch(slices, cost, characters, before - self.texts - left_out) if slices else None

    def _cost(self, text: str) -> int:
        return TEXT_COST + len(text) * (self._long_text_factor if len(text) > LONG_TEXT else 1)

    def _fit(self, request: WaitingRequest, room: int, *, at_least: int) -> tuple[int, int, int]:
        """Return the end of the waiting texts that fit, their cost and their characters."""
        texts = request.texts[request.taken : request.taken + room // TEXT_COST + 1]
        costs = list(takewhile(room.__ge__, accumulate(map(self._cost, texts)))) or [self._cost(texts[0])][:at_least]
        stop = len(costs)
        return request.taken + stop, costs[-1] if costs else 0, sum(map(len, texts[:stop]))

    def _take_all(self, request: WaitingRequest) -> None:
        end = len(request.texts)
        self.texts -= end - request.taken
        self.characters -= request.waiting_characters
        self.cost -= request.waiting_cost
        self.turns_cost -= request.turn_cost
        request.taken = end
        request.waiting_characters = request.waiting_cost = request.turn_cost = 0

    def _take(self, request: WaitingRequest, stop: int, characters: int, cost: int) -> None:
        self.texts -= stop - request.taken
        self.characters -= characters
        self.cost -= cost
        request.taken = stop
        request.waiting_characters -= characters
        request.waiting_cost -= cost
        self.turns_cost -= request.turn_cost
        request.turn_cost = min(request.turn_cost, request.waiting_cost)
        self.turns_cost += request.turn_cost


class Throughput:
    """Estimated seconds for a character of work, learned from past batches and weighted towards the last ones.

    Attributes:
        cost_seconds: that the model needs.
        pace_seconds: that pass by the clock while there is work. This is more where the model waits for its turn: for
            the event loop, or for another model.

    Args:
        taught: characters of work that stand for the past at the start.
    """

    def __init__(self, taught: int = MIN_MEASURED_COST) -> None:
        self._cost = float(taught)
        self._seconds = self._passed = taught * FIRST_COST_SECONDS
        self.cost_seconds = self.pace_seconds = FIRST_COST_SECONDS

    def count_affordable(self, seconds: float) -> int:
        """Return the characters of work that the model does in this time."""
        return round(seconds / self.cost_seconds)

    def learn(self, cost: int, seconds: float, passed: float) -> None:
        """Note a batch of this cost: its own seconds, and those since the model was free for it."""
        if cost >= MIN_MEASURED_COST:
            self._cost = self._cost * MEMORY + cost
            self._seconds = self._seconds * MEMORY + seconds
            self._passed = self._passed * MEMORY + max(passed, seconds)
            self.cost_seconds = self._seconds / self._cost
            self.pace_seconds = self._passed / self._cost
