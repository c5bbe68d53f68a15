"""The line of requests that wait for a model, and how calls are cut from it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from gramvec.embed.vectors import RawEmbeddings

# Work is counted in characters, because the number of n-grams is; a text without any costs as much as two.
TEXT_COST = 2
# Longer texts may cost more a character: runtimes say how many times as much (gramvec.runtime.Batching).
LONG_TEXT = 4_000


@dataclass(slots=True, eq=False)
class Request:
    """One request: its texts, the future of its answer, and what of it still waits."""

    texts: Sequence[str]
    future: asyncio.Future[Any]
    submitted: float
    characters: int
    waiting_characters: int
    waiting_cost: int
    turn_cost: int  # of waiting_cost, what its next call takes about: the rest goes to the end of the line
    taken: int = 0  # texts already handed to a call
    seconds: float = 0.0
    parts: Sequence[RawEmbeddings] = ()


class Slice(NamedTuple):
    """The part of a request that goes into one call."""

    request: Request
    start: int
    stop: int

    @property
    def texts(self) -> Sequence[str]:
        """Its texts."""
        texts = self.request.texts
        return texts if self.stop - self.start == len(texts) else texts[self.start : self.stop]


class Call(NamedTuple):
    """What goes to the model at once, its cost in characters of work, its characters and its texts."""

    slices: list[Slice]
    cost: int
    characters: int
    texts: int


class Line:
    """Requests in their order, and counts of what waits: texts, characters, and cost in characters of work.

    `turns_cost` is what is computed before a request that comes now gets its first turn: a bulk request goes to the end
    of the line after each call.

    Args:
        long_text_factor: how many times the usual a character of a text over `LONG_TEXT` characters costs.
    """

    def __init__(self, long_text_factor: int) -> None:
        self._long_text_factor = long_text_factor
        self._queue: deque[Request] = deque()
        self.texts = 0
        self.characters = 0
        self.cost = 0
        self.turns_cost = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    @property
    def oldest(self) -> float | None:
        """When the oldest request that somebody still waits for was submitted."""
        return min((one.submitted for one in self._queue if not one.future.done()), default=None)

    def cost_of(self, texts: Sequence[str], characters: int) -> int:
        """The work that these texts are."""
        if characters > LONG_TEXT and max(map(len, texts)) > LONG_TEXT:
            return sum(map(self._cost, texts))
        return TEXT_COST * len(texts) + characters

    def join(self, request: Request) -> None:
        """Put a request at the end."""
        self._queue.append(request)
        self.texts += len(request.texts)
        self.characters += request.characters
        self.cost += request.waiting_cost
        self.turns_cost += request.turn_cost

    def look(self, at: Callable[[Request], None]) -> None:
        """Show each request, and let go of those whose futures are done then."""
        for _ in range(len(self._queue)):
            request = self._queue.popleft()
            at(request)
            if request.future.done():
                self._take_all(request)
            else:
                self._queue.append(request)

    def cut(self, limit: int, overdue: float, drop: Callable[[Request], None]) -> Call | None:
        """The next call, of about `limit` characters of work or one text that is more; None when nothing waits.

        `drop` sees each request that was submitted before `overdue`, before it is taken. One whose future is done then,
        withdrawn or failed, is left out.
        """
        before = self.texts
        left_out = 0
        # A request that does not fit whole goes to the end of the line: a short one then waits behind one call of a
        # bulk request, not behind all of them. One that fits a call by itself waits for the next: to join its parts
        # would cost more.
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
            stop, price, more = self._fitting(request, limit - cost, at_least=0 if slices else 1)
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
        return Call(slices, cost, characters, before - self.texts - left_out) if slices else None

    def _cost(self, text: str) -> int:
        return TEXT_COST + len(text) * (self._long_text_factor if len(text) > LONG_TEXT else 1)

    def _fitting(self, request: Request, room: int, *, at_least: int) -> tuple[int, int, int]:
        """The end of as many waiting texts as fit, their cost and their characters."""
        texts = request.texts[request.taken : request.taken + room // TEXT_COST + 1]
        costs = list(takewhile(room.__ge__, accumulate(map(self._cost, texts)))) or [self._cost(texts[0])][:at_least]
        stop = len(costs)
        return request.taken + stop, costs[-1] if costs else 0, sum(map(len, texts[:stop]))

    def _take_all(self, request: Request) -> None:
        end = len(request.texts)
        self.texts -= end - request.taken
        self.characters -= request.waiting_characters
        self.cost -= request.waiting_cost
        self.turns_cost -= request.turn_cost
        request.taken = end
        request.waiting_characters = request.waiting_cost = request.turn_cost = 0

    def _take(self, request: Request, stop: int, characters: int, cost: int) -> None:
        self.texts -= stop - request.taken
        self.characters -= characters
        self.cost -= cost
        request.taken = stop
        request.waiting_characters -= characters
        request.waiting_cost -= cost
        self.turns_cost -= request.turn_cost
        request.turn_cost = min(request.turn_cost, request.waiting_cost)
        self.turns_cost += request.turn_cost
