from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gramvec import Embedder
from gramvec.embed.vectors import RawEmbeddings
from gramvec.errors import BackendError, InputError, Overloaded
from gramvec.server.batching.batcher import Batcher, BatchResult, EmbeddedRequest
from gramvec.server.batching.queue import FIRST_COST_SECONDS, LONG_TEXT, UNASKED_SECONDS, ClientGone, Throughput
from support.errors import refused
from support.http import HELD, PATIENCE, WatchedModel, until


@pytest.fixture
def model(embedder: Embedder) -> Iterator[WatchedModel]:
    watched = WatchedModel(embedder)
    yield watched
    watched.gate.set()
    assert not watched.overlapped


def with_batcher(
    model: Any, work: Callable[[Batcher], Awaitable[Any]], *, queue_texts: int = 1_000, **limits: Any
) -> Any:
    async def run() -> Any:
        batcher = Batcher(model, queue_texts=queue_texts, **limits)
        try:
            return await asyncio.wait_for(work(batcher), PATIENCE)
        finally:
            getattr(model, "gate", threading.Event()).set()
            await batcher.close()

    return asyncio.run(run())


def of(characters: int) -> float:
    """As many seconds as a batcher takes for this much work before it has measured any."""
    return characters * FIRST_COST_SECONDS


async def in_thread(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


def same_bytes(answer: EmbeddedRequest, embedder: Embedder, texts: list[str]) -> bool:
    """Equal to each text embedded alone, by the library."""
    alone = [embedder.raw([text]) for text in texts]
    vectors = b"".join(one.vectors.tobytes() for one in alone)
    counts = b"".join(one.feature_counts.tobytes() for one in alone)
    return (answer.embeddings.vectors.tobytes(), answer.embeddings.feature_counts.tobytes()) == (vectors, counts)


def test_requests_of_one_turn_share_a_call(model: WatchedModel, embedder: Embedder) -> None:
    requests = [["a fast car"], ["ripe bananas", ""], ["vehicles", "vehicals", "\N{GRINNING FACE}"]]

    async def work(batcher: Batcher) -> list[EmbeddedRequest]:
        return await asyncio.gather(*(batcher.submit(texts) for texts in requests))

    answers = with_batcher(model, work)
    assert model.calls == [["a fast car", "ripe bananas", "", "vehicles", "vehicals", "\N{GRINNING FACE}"]]
    for texts, answer in zip(requests, answers, strict=True):
        assert same_bytes(answer, embedder, texts)


def test_requests_of_separate_turns_do_not_wait_for_each_other(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        await batcher.submit(["first"])
        await batcher.submit(["second"])

    with_batcher(model, work)
    assert model.calls == [["first"], ["second"]]


def test_arrivals_gather_while_the_worker_is_busy(model: WatchedModel, embedder: Embedder) -> None:
    async def work(batcher: Batcher) -> tuple[EmbeddedRequest, list[EmbeddedRequest]]:
        long = batcher.submit([HELD])
        await in_thread(model.holding)
        gathered = []
        for number in range(10):
            gathered.append(batcher.submit([f"text {number}"]))
            await asyncio.sleep(0)
        assert batcher.waiting == 10
        model.gate.set()
        return await long, await asyncio.gather(*gathered)

    long, gathered = with_batcher(model, work)
    assert model.calls == [[HELD], [f"text {number}" for number in range(10)]]
    assert same_bytes(long, embedder, [HELD])
    assert all(same_bytes(answer, embedder, [f"text {number}"]) for number, answer in enumerate(gathered))


def test_short_calls_run_on_the_loop_and_long_ones_on_one_thread(model: WatchedModel) -> None:
    model.gate.set()

    async def work(batcher: Batcher) -> None:
        await batcher.submit(["short"])
        await asyncio.gather(batcher.submit([HELD]), batcher.submit([HELD]))
        await batcher.submit(["short"])

    with_batcher(model, work)
    main = threading.current_thread().name
    assert model.threads == [main, "gramvec-model_0", "gramvec-model_0", main]


def test_zero_loop_seconds_keep_every_call_off_the_loop(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        await batcher.submit([""])

    with_batcher(model, work, loop_seconds=0)
    assert model.threads == ["gramvec-model_0"]


def test_calls_are_cut_by_characters_and_a_long_text_is_its_own(model: WatchedModel, embedder: Embedder) -> None:
    # A text costs two characters more than it has.
    texts = ["x" * 38, "y" * 38, "z" * 38, "long " * 40, "last"]

    async def work(batcher: Batcher) -> EmbeddedRequest:
        return await batcher.submit(texts)

    answer = with_batcher(model, work, call_seconds=of(100))
    assert model.calls == [texts[:2], texts[2:3], texts[3:4], texts[4:]]
    assert same_bytes(answer, embedder, texts)


def test_a_short_request_waits_behind_one_call_of_a_bulk_one(model: WatchedModel, embedder: Embedder) -> None:
    bulk = [f"bulk {number:03d}" for number in range(30)]

    async def work(batcher: Batcher) -> tuple[EmbeddedRequest, EmbeddedRequest]:
        first, second = batcher.submit(bulk), batcher.submit(["short"])
        return await first, await second

    first, second = with_batcher(model, work, call_seconds=of(100))
    assert model.calls[0] == bulk[:10]
    assert model.calls[1][0] == "short"
    assert same_bytes(first, embedder, bulk)
    assert same_bytes(second, embedder, ["short"])


def test_a_request_that_fits_a_call_is_not_cut_in_two(model: WatchedModel, embedder: Embedder) -> None:
    requests = [[f"{number} {copy}" for copy in range(10)] for number in range(4)]

    async def work(batcher: Batcher) -> list[EmbeddedRequest]:
        return await asyncio.gather(*(batcher.submit(texts) for texts in requests))

    # A text is 5 characters of work: two requests and a half would fit a call.
    answers = with_batcher(model, work, call_seconds=of(125), loop_seconds=of(125))
    assert model.calls == [requests[0] + requests[1], requests[2] + requests[3]]
    for texts, answer in zip(requests, answers, strict=True):
        assert same_bytes(answer, embedder, texts)


def test_only_the_culprit_fails(model: WatchedModel, embedder: Embedder) -> None:
    requests = [["innocent", "too"], ["good", "poison"], ["bystander"]]

    async def work(batcher: Batcher) -> list[EmbeddedRequest | BaseException]:
        return await asyncio.gather(*(batcher.submit(texts) for texts in requests), return_exceptions=True)

    before, culprit, after = with_batcher(model, work)
    assert isinstance(culprit, BackendError)
    assert str(culprit.__cause__) == "injected fault"
    assert "poison" not in str(culprit)
    assert same_bytes(before, embedder, requests[0])
    assert same_bytes(after, embedder, requests[2])
    # Together, then each alone; nothing else was tried.
    assert model.calls == [["innocent", "too", "good", "poison", "bystander"], *requests]


def test_a_failed_bulk_request_is_not_computed_further(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        with pytest.raises(BackendError):
            await batcher.submit(["poison"] + ["x" * 40] * 20)
        await asyncio.sleep(0)  # the turn in which the rest would have been computed
        assert batcher.waiting == 0

    with_batcher(model, work, call_seconds=of(100))
    assert len(model.calls) == 1


def test_the_model_serves_on_after_a_failure(model: WatchedModel, embedder: Embedder) -> None:
    async def work(batcher: Batcher) -> EmbeddedRequest:
        with pytest.raises(BackendError):
            await batcher.submit(["poison " * 3_000])  # on the worker thread
        with pytest.raises(BackendError):
            await batcher.submit(["poison"])  # on the loop
        return await batcher.submit(["fine"])

    assert same_bytes(with_batcher(model, work), embedder, ["fine"])


def test_a_wrong_number_of_rows_is_a_failure(embedder: Embedder) -> None:
    class Short:
        def raw(self, texts: list[str]) -> RawEmbeddings:
            return embedder.raw(texts[:-1])

    async def work(batcher: Batcher) -> None:
        with pytest.raises(BackendError) as raised:
            await batcher.submit(["one", "two"])
        assert "1 rows for 2 texts" in str(raised.value.__cause__)

    with_batcher(Short(), work)


def test_a_withdrawn_request_never_reaches_the_model(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        long = batcher.submit([HELD])
        await in_thread(model.holding)
        gone, never_gone = batcher.submit(["gone", "gone too"]), batcher.submit(["stays"])
        gone.cancel()
        model.gate.set()
        await asyncio.gather(long, never_gone)
        assert batcher.waiting == 0

    with_batcher(model, work)
    assert model.calls == [[HELD], ["stays"]]


def test_a_request_withdrawn_during_its_call_harms_nobody(model: WatchedModel, embedder: Embedder) -> None:
    async def work(batcher: Batcher) -> EmbeddedRequest:
        gone = batcher.submit([HELD])
        await in_thread(model.holding)
        gone.cancel()
        model.gate.set()
        return await batcher.submit(["next"])

    assert same_bytes(with_batcher(model, work), embedder, ["next"])


@pytest.mark.parametrize(
    ("limit", "waits", "refused", "said", "fills", "larger"),
    [
        ("queue_texts", ["a", "b", "c", "d"], ["e", "f"], "4 texts are waiting and 2 more", ["g"], ["h"] * 101),
        ("queue_characters", ["x" * 60, "y" * 20], ["z" * 21], "80 characters are waiting and 21 more", ["z" * 20],
         ["x" * 101]),
    ],
)  # fmt: skip
def test_the_queue_is_bounded_in_texts_and_in_characters(
    model: WatchedModel, embedder: Embedder, limit: str, waits: list[str], refused: list[str], said: str,
    fills: list[str], larger: list[str],
) -> None:  # fmt: skip
    size = 5 if limit == "queue_texts" else 100

    async def work(batcher: Batcher) -> None:
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        leaves = batcher.submit(waits)
        assert batcher.waiting_characters == sum(map(len, waits))
        assert not batcher.full
        with pytest.raises(Overloaded, match=f"{said} would exceed the queue's {size}"):
            batcher.submit(refused)
        never_gone = batcher.submit(fills)
        assert batcher.full
        with pytest.raises(Overloaded):
            batcher.submit(["a"])
        leaves.cancel()
        model.gate.set()
        await asyncio.gather(held, never_gone)
        assert batcher.waiting_characters == 0
        # Nothing waits: a larger one than the queue is let in.
        assert same_bytes(await batcher.submit(larger), embedder, larger)

    with_batcher(model, work, **{limit: size})
    assert model.calls == [[HELD], fills, larger]


def test_what_waits_is_counted_through_every_cut(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        requests = [batcher.submit(["x" * 30] * number) for number in range(1, 9)]
        assert (batcher.waiting, batcher.waiting_characters) == (36, 36 * 30)
        requests[4].cancel()
        await asyncio.gather(*requests[:4], *requests[5:])
        assert (batcher.waiting, batcher.waiting_characters, batcher.retry_after) == (0, 0, 0.0)

    # On the thread, so that the cuts are made in several turns.
    with_batcher(model, work, call_seconds=of(100), loop_seconds=0)
    assert sum(map(len, model.calls)) == 31


class Timed:
    """Rows of zeros, for a time that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[str]] = []
        self.threads: list[str] = []
        self.seconds_a_character = 0.0
        self._now = 0.0
        monkeypatch.setattr("gramvec.server.batching.batcher.time.perf_counter", lambda: self._now)

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        self.calls.append(list(texts))
        self.threads.append(threading.current_thread().name)
        self._now += self.seconds_a_character * sum(map(len, texts))
        return RawEmbeddings.from_vectors(np.zeros((len(texts), 2), np.float32), np.ones(len(texts), np.int64))


def test_the_limits_in_seconds_hold_for_a_fast_model_and_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bulk = ["x" * 100] * 2_000

    def largest_call_after_learning(seconds_a_character: float) -> tuple[int, str]:
        timed = Timed(monkeypatch)
        timed.seconds_a_character = seconds_a_character

        async def work(batcher: Batcher) -> None:
            for _ in range(30):
                await batcher.submit(bulk)
            timed.calls.clear()
            await batcher.submit(bulk)
            await batcher.submit(["x" * 3_900])

        with_batcher(timed, work, queue_texts=2_000)
        return max(sum(map(len, call)) for call in timed.calls[:-1]), timed.threads[-1]

    # 4 ms a call, and 3,900 characters on the loop only if they take less.
    fast, fast_thread = largest_call_after_learning(0.05e-6)
    slow, slow_thread = largest_call_after_learning(2e-6)
    assert fast == pytest.approx(80_000, rel=0.05)
    assert slow == pytest.approx(2_000, rel=0.05)
    assert fast_thread == threading.current_thread().name
    assert slow_thread == "gramvec-model_0"


def test_small_calls_and_failed_ones_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch)
    timed.seconds_a_character = 1e-3

    async def work(batcher: Batcher) -> None:
        before = batcher._throughput.cost_seconds
        assert before == FIRST_COST_SECONDS
        await batcher.submit(["short"])
        assert batcher._throughput.cost_seconds == before
        monkeypatch.setattr(timed, "raw", lambda texts: 1 / 0)
        with pytest.raises(BackendError):
            await batcher.submit(["x" * 1_000])
        assert batcher._throughput.cost_seconds == before

    with_batcher(timed, work)


def test_a_long_text_costs_as_much_more_as_the_runtime_says(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["x" * (LONG_TEXT + 1)] * 2
    for factor, calls in ((6, [1, 1]), (1, [2])):
        timed = Timed(monkeypatch)

        async def work(batcher: Batcher) -> None:
            await batcher.submit(texts)

        with_batcher(timed, work, call_seconds=of(3 * LONG_TEXT), long_text_factor=factor)
        assert [len(call) for call in timed.calls] == calls


def test_retry_after_is_what_waits_at_the_measured_cost(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        assert batcher.retry_after == 0.0
        await batcher.submit(["some text"] * 500)
        assert batcher._throughput.cost_seconds != FIRST_COST_SECONDS
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        rest = batcher.submit(["x"] * 90)
        with pytest.raises(Overloaded) as raised:
            batcher.submit(["y"] * 20)
        # One character each, and two more for being a text; and what is left of the call in hand.
        held_cost = len(HELD) * 6 + 2
        assert 270 * batcher.pace_seconds <= raised.value.retry_after <= (270 + held_cost) * batcher.pace_seconds
        assert raised.value.reason == "queue_texts"
        model.gate.set()
        await asyncio.gather(held, rest)

    with_batcher(model, work, queue_texts=100, long_text_factor=6)


def test_a_client_that_has_gone_is_asked_for_when_its_batch_is_taken(model: WatchedModel) -> None:
    asked: list[str] = []

    def has_gone(name: str) -> bool:
        asked.append(name)
        return name == "gone"

    async def work(batcher: Batcher) -> object:
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        gone, never_gone = (batcher.submit([name], partial(has_gone, name)) for name in ("gone", "stays"))
        await asyncio.sleep(2 * UNASKED_SECONDS)
        assert not asked
        model.gate.set()
        await held
        fresh = batcher.submit(["fresh"], partial(has_gone, "fresh"))
        return await asyncio.gather(gone, never_gone, fresh, return_exceptions=True)

    found = with_batcher(model, work)
    assert [type(one) for one in found] == [ClientGone, EmbeddedRequest, EmbeddedRequest]  # type: ignore[attr-defined]
    assert asked == ["gone", "stays"]
    assert not any("gone" in texts for texts in model.calls)


def test_times_are_those_of_the_request(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> tuple[EmbeddedRequest, EmbeddedRequest, float]:
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        began = time.perf_counter()
        waits = batcher.submit(["waits"])
        await asyncio.sleep(0.05)
        model.gate.set()
        answers = await held, await waits
        return *answers, (time.perf_counter() - began) * 1e3

    held, waits, elapsed = with_batcher(model, work)
    # Held up for 50 ms: the one in the model, the other in the queue.
    assert held.timings.inference_ms >= 50
    assert waits.timings.queue_ms >= 50
    assert waits.timings.inference_ms > 0
    assert waits.timings.queue_ms + waits.timings.inference_ms <= elapsed


def test_close_finishes_what_was_admitted_and_refuses_the_rest(model: WatchedModel, embedder: Embedder) -> None:
    async def run() -> tuple[EmbeddedRequest, EmbeddedRequest]:
        batcher = Batcher(model, queue_texts=10)
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        queued = batcher.submit(["queued"])
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="shutting down") as caught:
            batcher.submit(["too late"])
        assert caught.value.reason == "shutting_down"
        assert not closing.done()
        model.gate.set()
        await asyncio.wait_for(closing, PATIENCE)
        assert held.done()
        assert queued.done()
        return held.result(), queued.result()

    held, queued = asyncio.run(run())
    assert same_bytes(held, embedder, [HELD])
    assert same_bytes(queued, embedder, ["queued"])
    until(lambda: not any(thread.name.startswith("gramvec-model") for thread in threading.enumerate()))


def test_no_texts_are_refused(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        with pytest.raises(InputError, match="at least one text"):
            batcher.submit([])

    with_batcher(model, work)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    requests=st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=6),
        min_size=1,
        max_size=8,
    ),
    call_characters=st.integers(1, 200),
    loop_characters=st.sampled_from([0, 50, 10_000]),
)
def test_any_split_into_requests_and_calls_gives_the_same_bytes(
    embedder: Embedder, requests: list[list[str]], call_characters: int, loop_characters: int
) -> None:
    async def work(batcher: Batcher) -> list[EmbeddedRequest]:
        return await asyncio.gather(*(batcher.submit(texts) for texts in requests))

    answers = with_batcher(embedder, work, call_seconds=of(call_characters), loop_seconds=of(loop_characters))
    whole = embedder.raw([text for texts in requests for text in texts])
    assert np.concatenate([answer.embeddings.vectors for answer in answers]).tobytes() == whole.vectors.tobytes()
    assert [len(answer.embeddings.vectors) for answer in answers] == [len(texts) for texts in requests]


# Deadlines


def test_a_request_that_would_wait_beyond_its_deadline_is_refused_at_once(model: WatchedModel) -> None:
    deadline = of(60_000)

    async def work(batcher: Batcher) -> int:
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        while batcher.expected_wait:  # until nothing more is expected of the call in hand
            await asyncio.sleep(0.01)
        admitted = []
        with refused(Overloaded, "deadline") as caught:
            while True:
                admitted.append(batcher.submit(["x" * 2_998]))
        assert caught.value.reason == "deadline"
        assert caught.value.retry_after > deadline
        model.gate.set()
        await held
        await asyncio.gather(*admitted, return_exceptions=True)
        await batcher.submit(["x" * 2_998])  # nothing waits: let in
        return len(admitted)

    # 3,000 characters of work each.
    assert with_batcher(model, work, deadline_seconds=deadline) == 21


def test_a_bulk_request_counts_for_one_call_of_it(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        while batcher.expected_wait:
            await asyncio.sleep(0.01)
        bulk = batcher.submit(["x" * 98] * 1_000)
        assert batcher.retry_after == pytest.approx(of(100_000))
        assert batcher.expected_wait == pytest.approx(of(1_000))
        behind = batcher.submit(["short"])
        model.gate.set()
        await asyncio.gather(held, bulk, behind)

    with_batcher(model, work, queue_texts=2_000, call_seconds=of(1_000), deadline_seconds=30)


def test_a_request_that_has_waited_beyond_its_deadline_is_dropped(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        held = batcher.submit([HELD])
        await in_thread(model.holding)
        late = batcher.submit(["too late"])
        assert 0 <= batcher.oldest_seconds < PATIENCE
        # Answered while the model is still held up.
        with refused(Overloaded, "0.05 s") as dropped:
            await late
        assert dropped.value.reason == "deadline"
        assert (batcher.waiting, batcher.waiting_characters) == (0, 0)
        assert batcher.oldest_seconds == 0.0
        model.gate.set()
        await held

    with_batcher(model, work, deadline_seconds=0.05)
    assert model.calls == [[HELD]]


def test_a_request_that_was_begun_is_finished_whatever_its_deadline(model: WatchedModel, embedder: Embedder) -> None:
    async def work(batcher: Batcher) -> EmbeddedRequest:
        begun = batcher.submit([HELD, "rest"])
        await in_thread(model.holding)
        await asyncio.sleep(0.1)
        assert batcher.oldest_seconds > 0.1
        model.gate.set()
        return await begun

    answer = with_batcher(model, work, deadline_seconds=0.05)
    assert model.calls == [[HELD], ["rest"]]
    assert same_bytes(answer, embedder, [HELD, "rest"])


def test_the_pace_is_that_of_the_clock_where_the_loop_is_kept_busy(model: WatchedModel) -> None:
    async def work(batcher: Batcher) -> None:
        model.gate.set()
        for _ in range(5):
            done = [batcher.submit(["some text"] * 500) for _ in range(4)]
            for _ in range(20):
                time.sleep(0.002)  # another model's call on the loop, or answers being written
                await asyncio.sleep(0)
            await asyncio.gather(*done)
        assert batcher.pace_seconds > batcher._throughput.cost_seconds

    with_batcher(model, work, queue_texts=5_000)


# Reports


def test_every_call_is_reported(model: WatchedModel) -> None:
    records: list[BatchResult] = []

    async def work(batcher: Batcher) -> None:
        await asyncio.gather(batcher.submit(["a fast car", ""]), batcher.submit(["vehicles"]))
        await asyncio.gather(batcher.submit(["good"]), batcher.submit(["poison", ""]), return_exceptions=True)

    with_batcher(model, work, on_batch=records.append)
    assert [(one.texts, one.characters, one.empty) for one in records] == [(3, 18, 1), (3, 10, 0)]
    assert all(one.seconds > 0 for one in records)


def test_calls_grow_to_what_a_device_does_in_their_time() -> None:
    """Most of a small call is what it costs to be made: 0.4 ms here, and 40 ns a character."""
    pace = Throughput()
    sizes = []
    for _ in range(30):
        sizes.append(pace.count_affordable(0.010))
        pace.learn(sizes[-1], 0.0004 + sizes[-1] * 40e-9, 0.0)
    assert sizes[0] == round(0.010 / FIRST_COST_SECONDS)
    assert sizes == sorted(sizes)
    assert sizes[-1] * 40e-9 > 0.9 * (0.010 - 0.0004)
