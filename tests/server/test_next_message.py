"""The message behind a body: asked for once, without waiting, and given up only with the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gramvec.server.next_message import NextMessage


async def in_callback(ask: Callable[[], bool]) -> bool:
    """Return what is answered in a callback of the loop, outside of all tasks."""
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: answer.set_result(ask()))
    return await answer


def test_a_call_that_waits_is_begun_once_and_closed_at_the_end() -> None:
    asyncio.run(_asks_twice())


async def _asks_twice() -> None:
    begun, closed = 0, 0
    left = asyncio.get_running_loop().create_future()

    async def receive() -> Any:
        nonlocal begun, closed
        begun += 1
        try:
            return await left
        finally:
            closed += 1

    message = NextMessage(receive)
    assert not message.is_disconnect()
    assert begun == 0  # this is a task
    assert not await in_callback(message.is_disconnect)
    assert not await in_callback(message.is_disconnect)
    assert (begun, closed) == (1, 0)
    left.set_result({"type": "http.disconnect"})
    assert not message.is_disconnect()
    assert await in_callback(message.is_disconnect)
    assert message.is_disconnect()
    message.close()
    other = NextMessage(receive)
    left = asyncio.get_running_loop().create_future()
    assert not await in_callback(other.is_disconnect)
    other.close()
    assert (begun, closed) == (2, 2)


async def _asks_for_a_task() -> Any:
    raise RuntimeError("there is no task")


async def _yields() -> Any:
    await asyncio.sleep(0)
    return {"type": "http.disconnect"}


@pytest.mark.parametrize("receive", [_asks_for_a_task, _yields, asyncio.Future])
def test_what_cannot_be_asked_without_waiting_says_nothing(receive: Any) -> None:
    asyncio.run(_asks(receive))


async def _asks(receive: Any) -> None:
    message = NextMessage(receive)
    assert not await in_callback(message.is_disconnect)
    assert not await in_callback(message.is_disconnect)
    message.close()
