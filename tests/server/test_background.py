"""Work aside: its result, its failure, and what becomes of it when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gramvec.server.state.background import run_in_background
from support.http import PATIENCE, until


def test_a_result_and_a_failure_arrive() -> None:
    async def main() -> None:
        assert await run_in_background(lambda: 5, seconds=PATIENCE) == 5
        assert await run_in_background(lambda: threading.current_thread().daemon)
        with pytest.raises(ZeroDivisionError):
            await run_in_background(lambda: 1 // 0)

    asyncio.run(main())


@pytest.mark.parametrize("cancelled", [True, False])
def test_what_comes_too_late_is_unwanted(cancelled: bool) -> None:
    go_on, late = threading.Event(), []

    def work() -> str:
        assert go_on.wait(PATIENCE)
        return "late"

    async def main() -> None:
        waits = asyncio.create_task(run_in_background(work, seconds=None if cancelled else 0.05, unwanted=late.append))
        await asyncio.sleep(0.01)
        if cancelled:
            waits.cancel()
        with pytest.raises(asyncio.CancelledError if cancelled else TimeoutError):
            await waits

    asyncio.run(main())  # which does not wait for the thread either
    assert late == []
    go_on.set()
    until(lambda: late == ["late"])


def test_a_result_that_is_there_when_nobody_waits_is_unwanted() -> None:
    done, late = threading.Event(), []

    def work() -> str:
        done.set()
        return "there"

    async def main() -> None:
        waits = asyncio.create_task(run_in_background(work, unwanted=late.append))
        await asyncio.sleep(0)  # begin
        assert done.wait(PATIENCE)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits

    asyncio.run(main())
    until(lambda: late == ["there"])
