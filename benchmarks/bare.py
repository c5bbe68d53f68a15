"""Baseline of the HTTP benchmark: an ASGI application with only the model and the encoder.

uvicorn benchmarks.bare:application

The model and its runtime are those of the service (BENCH_MODEL, BENCH_RUNTIME). No limits, checks, headers or other
routes. With BENCH_COALESCE=1 it does what the service's batcher does, in the fewest lines: what arrived in one turn of
the event loop goes to the model in one call, on the loop. Without it each request calls the model as it comes.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import orjson

import gramvec

COALESCE = os.environ.get("BENCH_COALESCE") == "1"

_embedder = gramvec.load(
    os.environ.get("BENCH_MODEL", "gramvec-en"),
    device="cpu",
    runtime=os.environ.get("BENCH_RUNTIME", "auto"),  # type: ignore[arg-type]
    threads=1,  # as the service has it
)
_waiting: list[tuple[list[str], asyncio.Future[Any]]] = []


def _flush() -> None:
    calls = _waiting.copy()
    _waiting.clear()
    vectors = _embedder.embed([text for texts, _ in calls for text in texts])
    start = 0
    for texts, future in calls:
        future.set_result(vectors[start : start + len(texts)])
        start += len(texts)


async def _embed(texts: list[str]) -> Any:
    if not COALESCE:
        return _embedder.embed(texts)
    loop = asyncio.get_running_loop()
    if not _waiting:
        loop.call_soon(_flush)
    future = loop.create_future()
    _waiting.append((texts, future))
    return await future


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message.get("more_body"):
            break
    answer = b""
    if scope["method"] == "POST":  # a GET asks whether it is ready
        texts = orjson.loads(body)["inputs"]
        vectors = await _embed([texts] if isinstance(texts, str) else texts)
        answer = orjson.dumps(vectors, option=orjson.OPT_SERIALIZE_NUMPY)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
