"""Ten thousand requests of every kind over 64 connections, while the model is replaced again and again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest
import uvloop

from benchmarks.soak.client import Answer, Tally, drive, mistake
from benchmarks.soak.requests import Mixture
from benchmarks.soak.swap import KEY, Swap
from gramvec import Embedder
from support.http import served_process, until

pytestmark = pytest.mark.slow

REQUESTS = 10_000
CONNECTIONS = 64


async def requests_during_swaps(swap: Swap, port: int, process: int) -> Tally:
    swapping = asyncio.create_task(swap.repeatedly(port, process, pause=0.05))
    tally = await drive(port, Mixture(1).take(REQUESTS), swap.models, connections=CONNECTIONS, key=KEY)
    if swapping.done():
        await swapping  # it failed, and says how
    swapping.cancel()
    return tally


def test_every_answer_is_that_of_one_of_the_two_models(tmp_path: Path) -> None:
    swap = Swap(tmp_path)
    with served_process("--model", str(swap.path), "--api-key", KEY, "--device", "cpu") as (process, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200)
        tally = uvloop.run(requests_during_swaps(swap, port, process.pid))
    swap.close()
    print(f"sent {tally.sent}, lost {tally.lost}, wrong {tally.wrong}, swaps {swap.done}")  # noqa: T201
    assert (tally.sent, tally.lost, tally.wrong) == (REQUESTS, 0, 0), tally.first_wrong
    assert swap.done >= 3
    assert set(tally.models) == set(swap.models)
    assert {200, 400, 404, 405, 413, 415, 422} == set(tally.statuses)


def test_a_wrong_answer_would_be_seen(embedder: Embedder) -> None:
    for request in Mixture(2, limit=50).take(300):
        if request.expected is None:
            body = json.dumps({"error": "a sentence", "error_type": request.error_type or "x"}).encode()
            if not request.path.startswith("/v1"):
                assert mistake(request, Answer(request.status, {}, body), embedder) is None
            assert mistake(request, Answer(200, {}, body), embedder)
            assert mistake(request, Answer(request.status, {}, b'{"error": "", "error_type": ""}'), embedder)
            continue
        body = request.expected(embedder)
        assert mistake(request, Answer(200, {}, body), embedder) is None
        assert mistake(request, Answer(200, {}, body), None)
        for at in (0, len(body) // 2, len(body) - 1):
            changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            assert mistake(request, Answer(200, {}, changed), embedder)


def test_the_same_seed_makes_the_same_requests() -> None:
    one, other = ([request.wire() for request in Mixture(3).take(200)] for _ in range(2))
    assert one == other
    assert one != [request.wire() for request in Mixture(4).take(200)]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_bad_bundle_leaves_the_old_one_serving_under_load(tmp_path: Path, workers: str) -> None:
    swap = Swap(tmp_path)
    first = next(iter(swap.models))

    async def refused_reloads(port: int) -> Tally:
        load = asyncio.create_task(drive(port, Mixture(5).take(1_500), swap.models, connections=16, key=KEY))
        (tmp_path / "sif" / "vocabulary.safetensors").unlink()
        swap.point_to(1)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while not load.done():
                answer = await client.post("/admin/reload", headers={"authorization": f"Bearer {KEY}"})
                assert answer.status_code == 422, answer.text
                assert "vocabulary.safetensors" in answer.json()["error"]
        return await load

    options = ["--model", str(swap.path), "--api-key", KEY, "--device", "cpu", "--workers", workers]
    with served_process(*options) as (_, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200)
        tally = uvloop.run(refused_reloads(port))
    swap.close()
    assert (tally.sent, tally.lost, tally.wrong) == (1_500, 0, 0), tally.first_wrong
    assert set(tally.models) == {first}
