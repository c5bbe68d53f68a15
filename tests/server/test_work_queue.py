"""Queues of work in threads: one at a time, refused early, dropped late, and no kind behind another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import httpx
import pytest

from gramvec import Embedder
from gramvec.errors import Overloaded
from gramvec.server.batching import work_queue
from gramvec.server.batching.queue import FIRST_COST_SECONDS
from gramvec.server.batching.work_queue import WorkQueue
from gramvec.server.settings import Settings
from support.errors import refused
from support.http import PATIENCE, asking, running


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))  # type: ignore[arg-type]


async def held_up(queue: WorkQueue, gate: threading.Event) -> asyncio.Task[object]:
    """A task whose work has begun, and waits for the gate."""
    begun = threading.Event()
    task = asyncio.create_task(work_in(queue, 0.001, lambda: begun.set() or gate.wait(PATIENCE)))  # type: ignore[func-returns-value]
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    return task


def cost_of(seconds: float) -> int:
    """Characters of work that take so long, as long as nothing is learned."""
    return round(seconds / FIRST_COST_SECONDS)


async def work_in(queue: WorkQueue, seconds: float, work: Callable[[], object]) -> object:
    with queue.admit(cost_of(seconds)) as job:
        return await job.run(work)


def test_one_works_at_a_time_and_errors_are_raised() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 30)
        inside = threading.Lock()

        def alone() -> str:
            assert inside.acquire(blocking=False)
            time.sleep(0.005)
            inside.release()
            return threading.current_thread().name

        names = await asyncio.gather(*(work_in(queue, 0.001, alone) for _ in range(8)))
        assert set(names) == {"gramvec-matches_0"}

        def fail() -> None:
            raise ValueError("of the work")

        with pytest.raises(ValueError, match="of the work"):
            await work_in(queue, 0.001, fail)
        assert await work_in(queue, 0.001, lambda: 4) == 4
        assert queue.wait_seconds == 0
        queue.close()

    run(scenario)


def test_work_that_cannot_end_before_the_deadline_is_refused_unless_alone() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 10)
        gate = threading.Event()
        # The longest alone is admitted, however long it takes.
        first = asyncio.create_task(work_in(queue, 60, lambda: gate.wait(PATIENCE)))
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded, match=r"1 matches .* 60\.1 s.*deadline") as late:
            await work_in(queue, 0.1, int)
        assert late.value.reason == "deadline"
        assert late.value.retry_after == pytest.approx(60)
        gate.set()
        await first
        assert await work_in(queue, 0.1, int) == 0
        queue.close()

    run(scenario)


def test_only_so_many_are_present(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "MAX_PRESENT", 2)

    async def scenario() -> None:
        queue = WorkQueue("matches", 10)
        with ExitStack() as present:
            present.enter_context(queue.admit(cost_of(0.1)))
            present.enter_context(queue.admit(cost_of(0.1)))
            with refused(Overloaded, "2 matches"):
                present.enter_context(queue.admit(cost_of(0.1)))
        assert await work_in(queue, 0.1, int) == 0
        queue.close()

    run(scenario)


def test_the_estimate_follows_what_work_takes() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 10)
        for _ in range(20):
            await work_in(queue, 0.001, lambda: time.sleep(0.01))
        with queue.admit(cost_of(0.1)):
            assert queue.wait_seconds > 0.3
        queue.close()

    run(scenario)


def test_work_that_has_waited_too_long_is_dropped_before_it_begins() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 0.05)
        gate, begun = threading.Event(), []
        first = await held_up(queue, gate)
        second = asyncio.create_task(work_in(queue, 0.001, lambda: begun.append(2)))
        await asyncio.sleep(0.1)
        gate.set()
        await first
        with refused(Overloaded, "deadline"):
            await second
        assert not begun
        queue.close()

    run(scenario)


def test_short_requests_go_before_the_next_piece_of_a_long_one_and_long_ones_in_turn() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 10)
        order: list[str] = []

        async def in_pieces(name: str, pieces: int, seconds: float = 0.15) -> None:
            with queue.admit(cost_of(seconds * pieces)) as job:
                for _ in range(pieces):
                    await job.run(lambda: order.append(name), cost_of(seconds))

        # Estimates of 0.6 and 0.45 s are in one class, 0.02 and 0.001 s in two others.
        await asyncio.gather(
            in_pieces("long", 4), in_pieces("late", 3), in_pieces("short", 2, 0.01), in_pieces("least", 1, 0.001)
        )
        assert order == ["long", "least", "short", "short", "long", "long", "long", "late", "late", "late"]
        queue.close()

    run(scenario)


def test_no_piece_begins_after_the_deadline_while_others_wait() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 0.2)
        begun: list[str] = []

        def slow(name: str) -> None:
            begun.append(name)
            time.sleep(0.15)

        async def in_pieces(name: str, pieces: int) -> None:
            with queue.admit(cost_of(0.001)) as job:
                for _ in range(pieces):
                    await job.run(lambda: slow(name), 0)

        first, second = await asyncio.gather(in_pieces("first", 9), in_pieces("second", 1), return_exceptions=True)
        assert isinstance(first, Overloaded)
        assert isinstance(second, Overloaded) or begun.count("second") == 1
        assert begun.count("first") < 9
        # One that is alone is never refused: a refusal means later.
        await in_pieces("alone", 3)
        assert begun.count("alone") == 3
        queue.close()

    run(scenario)


def test_work_of_a_client_that_has_gone_is_not_begun() -> None:
    async def scenario() -> None:
        queue = WorkQueue("matches", 10)
        gate, begun = threading.Event(), []
        first = await held_up(queue, gate)
        gone = asyncio.create_task(work_in(queue, 0.001, lambda: begun.append("gone")))
        last = asyncio.create_task(work_in(queue, 0.001, lambda: begun.append("last")))
        await asyncio.sleep(0.01)
        gone.cancel()
        gate.set()
        await asyncio.gather(first, last)
        assert begun == ["last"]
        queue.close()

    run(scenario)


def test_no_kind_waits_for_another_and_none_for_the_default_executor(embedder: Embedder) -> None:
    """Each route answers while the threads of the loop, and those of all other kinds, are held up."""
    asked = {
        "/similarity": ("comparisons", {"inputs": {"left": ["a"] * 100, "right": ["b"] * 100}}),
        "/rerank": ("rankings", {"query": "a", "texts": ["b"] * 3_000}),
        "/match": ("matches", {"left": ["abc"], "right": ["abc"]}),
        "/explain": ("explanations", {"inputs": {"source_sentence": "a", "target_sentence": "b"}}),
        "/embed_sparse": ("sparse vectors", {"inputs": "a"}),
    }
    with running(Settings(max_texts=4_096), embedder) as server:
        assert server.server is not None
        loop = server.server.loop
        assert loop is not None
        gate = threading.Event()
        for path, (kind, body) in asked.items():
            gate.clear()
            others = [server.service.work_queue(other) for other, _ in asked.values() if other != kind]
            threads = [queue._thread for queue in others]
            held = [thread.submit(gate.wait, PATIENCE) for thread in threads]
            loop.call_soon_threadsafe(lambda: [loop.run_in_executor(None, gate.wait, PATIENCE) for _ in range(64)])
            try:
                assert httpx.post(server.url + path, json=body, timeout=PATIENCE).status_code == 200
                assert httpx.get(server.url + "/metrics", timeout=PATIENCE).status_code == 200
            finally:
                gate.set()
            assert all(future.result(PATIENCE) for future in held)


def test_the_documented_limits_are_reached_on_an_idle_service(embedder: Embedder) -> None:
    with asking(Settings(), embedder) as client:
        texts = ["wxyz" * 12_500] * 20  # a million characters
        answer = client.post("/embed_sparse", json={"inputs": texts})
        assert answer.status_code == 200, answer.text
        texts[0] += "x"
        assert client.post("/embed_sparse", json={"inputs": texts}).status_code == 413
