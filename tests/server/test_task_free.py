"""Coroutines without a task: by themselves, and as the server runs its short requests."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from gramvec import Embedder
from gramvec.server.app import Application, create_app
from gramvec.server.batching.batcher import Batcher
from gramvec.server.batching.queue import FIRST_COST_SECONDS
from gramvec.server.batching.task_free import Notify, TaskFree
from gramvec.server.request import Request, Route
from gramvec.server.responses import Response
from gramvec.server.settings import Settings
from gramvec.server.state.models import Served
from gramvec.server.state.service import Service
from http_support import HELD, PATIENCE, RunningServer, WatchedModel, post_bytes, read_all, running, running_app, until

SHORT = post_bytes(b'{"inputs": "a fast car"}')


def run(work: Callable[[], Awaitable[None]]) -> list[Any]:
    """Run this on a loop; what the loop was told of by those who had nobody to raise it to."""
    told: list[Any] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context.get("exception")))
        await asyncio.wait_for(work(), PATIENCE)

    asyncio.run(watched())
    return told


def started(work: Awaitable[None]) -> tuple[TaskFree, list[asyncio.Task[None]]]:
    """This coroutine, and the tasks that they are given to."""
    tasks: list[asyncio.Task[None]] = []
    return TaskFree(work, lambda rest: tasks.append(asyncio.create_task(rest))), tasks  # type: ignore[arg-type]


def test_a_moment_that_comes_again_and_again() -> None:
    async def work() -> None:
        notify, seen = Notify(), []

        async def counted() -> None:
            for number in range(3):
                seen.append((number, asyncio.current_task()))
                await notify

        async def in_another_task() -> list[tuple[int, Any]]:
            go_on, tasks = started(counted())
            asyncio.get_running_loop().call_soon(go_on)
            await asyncio.sleep(0)
            for _ in range(3):
                asyncio.get_running_loop().call_soon(notify.notify_all)
                await asyncio.sleep(0)
            assert not tasks
            return seen

        assert await in_another_task() == [(0, None), (1, None), (2, None)]
        notify.notify_all()  # nobody waits any more

    assert run(work) == []


def test_in_a_task_a_moment_is_a_turn_of_the_loop() -> None:
    async def work() -> None:
        notify, turns = Notify(), 0

        def count() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(count)

        asyncio.get_running_loop().call_soon(count)
        await notify
        assert turns == 1
        assert notify.waiting == []

    assert run(work) == []


@pytest.mark.parametrize("done_meanwhile", [False, True])
def test_whatever_else_is_awaited_goes_on_in_a_task(done_meanwhile: bool) -> None:
    async def work() -> None:
        loop, found = asyncio.get_running_loop(), []
        future: asyncio.Future[int] = loop.create_future()

        async def waits() -> None:
            found.append(asyncio.current_task())
            found.append(await future)
            await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE):  # has to have a task
                found.append(await asyncio.to_thread(lambda: 2))
            found.append(asyncio.current_task())

        go_on, tasks = started(waits())
        loop.call_soon(go_on)
        if done_meanwhile:
            loop.call_soon(future.set_result, 1)
        await asyncio.sleep(0)
        if not done_meanwhile:
            await asyncio.sleep(0.01)
            future.set_result(1)
        await asyncio.gather(*tasks)
        assert len(tasks) == 1
        assert found == [None, 1, 2, tasks[0]]

    assert run(work) == []


@pytest.mark.parametrize("begun", [False, True])
def test_a_task_that_took_over_is_cancelled_as_any_other(begun: bool) -> None:
    async def work() -> None:
        loop, seen = asyncio.get_running_loop(), []

        async def stubborn() -> None:
            try:
                await loop.create_future()
            except asyncio.CancelledError:
                seen.append("cancelled")
                await asyncio.sleep(0)
                seen.append("went on")
                raise

        go_on, tasks = started(stubborn())
        loop.call_soon(go_on)
        await asyncio.sleep(0)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert seen == ["cancelled", "went on"]

    assert run(work) == []


def test_what_is_raised_is_told_to_the_loop() -> None:
    error = ValueError("of a go_on")

    async def fails() -> None:
        raise error

    async def work() -> None:
        go_on, tasks = started(fails())
        asyncio.get_running_loop().call_soon(go_on)
        await asyncio.sleep(0)
        assert not tasks

    assert run(work) == [error]


# The server


@pytest.fixture
def model(embedder: Embedder) -> Iterator[WatchedModel]:
    watched = WatchedModel(embedder)
    yield watched
    watched.gate.set()


@pytest.fixture
def server(model: WatchedModel) -> Iterator[RunningServer]:
    with running(Settings(), model) as started:
        yield started


def served_by(embedder: Embedder, handler: Callable[[Request, Any], Awaitable[Response]]) -> Application:
    return Application(create_app(Settings(), embedder).state.service, [Route("POST", "/embed", handler)])


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    """The next answer on this connection: its status and its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65_536)
    return int(head.split()[1]), body


def test_a_short_request_has_no_task(embedder: Embedder) -> None:
    tasks: list[Any] = []

    async def route(request: Request, body: Any) -> Response:
        service: Any = request.service
        tasks.append(asyncio.current_task())
        raw = await request.body()
        await service.served.batcher.submit(["x"])  # any other future: from here on there is one
        tasks.append(asyncio.current_task())
        return Response([raw])

    with running_app(served_by(embedder, route)) as server, server.connect() as connection:
        connection.sendall(SHORT)
        assert answer_of(connection) == (200, b'{"inputs": "a fast car"}')
        assert tasks[0] is None
        assert isinstance(tasks[1], asyncio.Task)
        # A body that comes later has one from the start.
        connection.sendall(SHORT[:-5])
        until(lambda: server.server is not None and server.server.connections.tasks)
        connection.sendall(SHORT[-5:])
        assert answer_of(connection)[0] == 200
        assert isinstance(tasks[2], asyncio.Task)
        until(lambda: server.server is not None and not server.server.connections.tasks)


def test_what_arrives_in_one_turn_shares_a_call(server: RunningServer, model: WatchedModel) -> None:
    loop_held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        loop_held.set()
        go_on.wait(PATIENCE)

    connections = [server.connect() for _ in range(8)]
    try:
        for connection in connections:  # all of them are accepted
            connection.sendall(SHORT)
            assert answer_of(connection)[0] == 200
        model.calls.clear()
        loop_of(server).call_soon_threadsafe(hold)
        assert loop_held.wait(PATIENCE)
        for number, connection in enumerate(connections):
            connection.sendall(post_bytes(json.dumps({"inputs": str(number)}).encode()))
        time.sleep(0.05)  # until the kernel has it all
        go_on.set()
        assert [answer_of(connection)[0] for connection in connections] == [200] * 8
    finally:
        for connection in connections:
            connection.close()
    assert [sorted(call) for call in model.calls] == [[str(number) for number in range(8)]]


def loop_of(server: RunningServer) -> asyncio.AbstractEventLoop:
    assert server.server is not None
    assert server.server.loop is not None
    return server.server.loop


def test_a_request_behind_the_worker_thread_waits_in_a_task(server: RunningServer, model: WatchedModel) -> None:
    with server.connect() as held, server.connect() as waits, server.connect() as gone:
        held.sendall(post_bytes(json.dumps({"inputs": HELD}).encode()))
        assert model.holding.wait(PATIENCE)
        waits.sendall(SHORT)
        gone.sendall(post_bytes(b'{"inputs": "nobody waits for this"}'))
        assert server.server is not None
        state = server.server.connections
        # Each of the three, and what watches its connection.
        until(lambda: len(state.tasks) == 3)
        gone.close()
        until(lambda: len(state.tasks) == 2)
        model.gate.set()
        assert answer_of(held)[0] == 200
        assert answer_of(waits)[0] == 200
    assert model.calls == [[HELD], ["a fast car"]]
    metrics = httpx.get(f"{server.url}/metrics").text
    assert 'gramvec_requests_total{route="/embed",status="499"} 1.0' in metrics


def test_two_thousand_requests_in_one_piece_that_fail_at_once(server: RunningServer) -> None:
    bad = post_bytes(b"{")
    with server.connect() as connection, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(connection.sendall, bad * 2_000 + SHORT.replace(b"host", b"connection: close\r\nhost"))
        received = read_all(connection)
        sent.result(PATIENCE)
    assert received.count(b"HTTP/1.1 400 ") == 2_000
    assert received.count(b"HTTP/1.1 200 ") == 1
    assert received.rindex(b"HTTP/1.1 400 ") < received.index(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("pause", [False, True])
def test_a_bug_before_and_after_the_first_pause(
    embedder: Embedder, caplog: pytest.LogCaptureFixture, pause: bool
) -> None:
    async def route(request: Request, body: Any) -> Response:
        service: Any = request.service
        if pause:
            pending = service.served.batcher.submit(["x"])
            await service.served.batcher.flushed
            assert pending.done()
        raise ZeroDivisionError

    with running_app(served_by(embedder, route)) as server, server.connect() as connection:
        for _ in range(2):
            connection.sendall(SHORT)
            assert answer_of(connection)[0] == 500
    failed = [record for record in caplog.records if record.name == "gramvec.access"]
    assert [record.exc_info and record.exc_info[0] for record in failed] == [ZeroDivisionError] * 2


def test_a_body_over_the_limit_that_is_there_as_a_whole(embedder: Embedder) -> None:
    # To linger for the rest of it takes a task, which there is none of yet.
    limits = Settings(max_body_bytes=10_000)
    with running(limits, embedder) as server, server.connect() as connection:
        connection.sendall(post_bytes(json.dumps({"inputs": "x" * 12_000}).encode()))
        received = read_all(connection)
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in received


def stop_with_one_held_and_one_waiting(
    server: RunningServer, model: WatchedModel, held: socket.socket, waits: socket.socket
) -> None:
    held.sendall(post_bytes(json.dumps({"inputs": HELD}).encode()))
    assert model.holding.wait(PATIENCE)
    waits.sendall(SHORT)
    assert server.server is not None
    state = server.server.connections
    until(lambda: len(state.tasks) == 2)
    server.server.stop()


def test_what_waits_at_the_end_is_answered(model: WatchedModel) -> None:
    with running(Settings(), model) as server, server.connect() as held, server.connect() as waits:
        stop_with_one_held_and_one_waiting(server, model, held, waits)
        with server.connect() as late:
            late.sendall(SHORT)
            assert answer_of(late)[0] == 503
        model.gate.set()
        assert answer_of(held)[0] == 200
        assert answer_of(waits)[0] == 200


def test_after_the_grace_time_what_waits_is_told_so(model: WatchedModel) -> None:
    with (
        running(Settings(graceful_shutdown_seconds=0.2), model) as server,
        server.connect() as held,
        server.connect() as waits,
    ):
        stop_with_one_held_and_one_waiting(server, model, held, waits)
        assert answer_of(waits)[0] == 503
        model.gate.set()


class Leaving:
    """The server's side of a request whose client has gone."""

    disconnected = True


def test_a_client_that_goes_while_others_are_computed_is_dropped(model: WatchedModel, embedder: Embedder) -> None:
    async def work() -> None:
        seconds = 10 * FIRST_COST_SECONDS  # a call for each of these
        batcher = Batcher(model, queue_texts=10, call_seconds=seconds, loop_seconds=seconds)
        before = [batcher.submit([f"text {number}"]) for number in range(3)]
        nothing: Any = None
        request = Request(Service(Settings()), {"headers": []}, nothing, nothing, b"id")
        request._server_side = Leaving()  # type: ignore[assignment]
        with pytest.raises(ClientDisconnect):
            await request.embed(Served(embedder, batcher, b""), ["nobody waits for this"])
        assert not before[2].done()
        await asyncio.gather(*before)
        await batcher.close()

    assert run(work) == []
    assert model.calls == [["text 0"], ["text 1"], ["text 2"]]


def test_errors_of_a_short_request_are_raised_before_the_model_works(server: RunningServer) -> None:
    for dimensions in (0, 301, 2**40):
        answer = httpx.post(f"{server.url}/embed", json={"inputs": "x", "dimensions": dimensions})
        assert answer.status_code == 422
