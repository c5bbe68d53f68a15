"""The peer of the HTTP benchmark: an ASGI application with nothing but the model and the encoder.

uvicorn benchmarks.bare:application
"""

from __future__ import annotations

import os
from typing import Any

import orjson

import gramvec

_embedder = gramvec.load(os.environ.get("BENCH_MODEL", "gramvec-en"), device="cpu")


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
    texts = orjson.loads(body)["inputs"]
    vectors = _embedder.embed([texts] if isinstance(texts, str) else texts)
    answer = orjson.dumps(vectors, option=orjson.OPT_SERIALIZE_NUMPY)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
