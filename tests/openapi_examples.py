"""Write the examples of /openapi.json: the responses of a real service to the examples of request bodies, and errors.

Run: .venv/bin/python tests/openapi_examples.py
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import tempfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from starlette.types import ASGIApp

import gramvec
from gramvec import Embedder
from gramvec.errors import BackendError, Overloaded
from gramvec.jobs.classify.head import Head
from gramvec.server import openapi
from gramvec.server.app import Application, create_app
from gramvec.server.settings import Settings
from gramvec.server.state.service import Service

TARGET = Path(openapi.__file__).with_name("examples.json")
MODEL = Path(__file__).parents[1] / "models" / "gramvec-en"
KEY = "a-key"
# Served files of an example service: the rows of an index, and the labels of a head with their shares.
TICKETS = [{"id": str(at), "text": text} for at, text in enumerate(["lost parcel", "late parcel", "hello"], 1)]
LABELS = {"card_lost": 0.93, "card_stolen": 0.07}
# Values that differ from run to run or are too long to show.
UNSHOWN = {"get /info", "get /metrics", "get /"}
INDEX_DIGEST = hashlib.sha256(b"tickets").hexdigest()  # each build has another
JSON = {"content-type": "application/json"}
BODY = b'{"inputs": "a", "input": "a"}'


def served_files(folder: Path, embedder: Embedder) -> dict[str, list[str]]:
    """Make the index and the head of the example service, as settings name them."""
    index = gramvec.Index.build(folder / "x.index", TICKETS, model=embedder, id="id")
    head = folder / "x.head"
    logits = np.log(np.array([*LABELS.values()], np.float32))
    none = np.zeros((len(LABELS), embedder.dimension), np.float32)
    made = Head.of(none, logits, labels=tuple(LABELS), threshold=0.5, model="x", digest=embedder.digest)
    made.save(head)
    return {"index": [f"tickets={index.path}"], "head": [f"intents={head}"]}


def first_example(operation: dict[str, Any]) -> Any:
    """Return the first example of an operation's body; None where it has no body."""
    media = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return None if media is None else next(iter(media["examples"].values()))["value"]


def client_of(app: ASGIApp, **headers: str) -> httpx.AsyncClient:
    """Return a client of an application in this process."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://example", headers=headers)


async def answers(app: Application, key: str) -> dict[str, Any]:
    """Return the responses of every operation that answers with JSON."""
    service: Service = app.state.gramvec
    found: dict[str, Any] = {}
    async with client_of(app, authorization=f"Bearer {key}") as client:
        document = (await client.get("/openapi.json")).json()
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                name = f"{method} {path}"
                if name in UNSHOWN:
                    continue
                url = re.sub(r"\{\w+\}", service.admit().embedder.name, path)
                response = await client.request(method, url, json=first_example(operation))
                assert response.status_code == 200, (name, response.text)
                value = found[f"{name} 200"] = response.json()
                if "total_duration" in value:
                    value["total_duration"] = 55_000
                if "indexes" in value:
                    value["indexes"][0]["digest"] = INDEX_DIGEST
    return found


async def refusals(app: Application, key: str, prefix: str, path: str) -> dict[str, Any]:
    """Return one error of each status, in the shape that errors have below this prefix."""
    service: Service = app.state.gramvec
    found: dict[str, Any] = {}

    async def keep(**request: Any) -> None:
        async with client_of(app, authorization=f"Bearer {request.pop('key', key)}") as client:
            response = await client.post(request.pop("path", path), **request)
        assert response.status_code >= 400, response.text
        found.setdefault(f"{prefix} {response.status_code}", response.json())

    await keep(content=b"{", headers=JSON)
    async with client_of(app) as client:
        found[f"{prefix} 401"] = (await client.post(path, content=BODY, headers=JSON)).json()
    field = "input" if prefix == "/v1" else "inputs"
    # The routes of Text Embeddings Inference take any name where one model is served.
    named = {"path": path if prefix == "/v1" else "/api/embed"}
    await keep(json={"input": "a", "model": "other"}, **named)
    await keep(json={field: ["a"] * (service.settings.max_texts + 1)})
    await keep(content=BODY, headers={"content-type": "text/plain"})
    await keep(json=["a"])
    served = service.admit()
    busy = "16384 texts are waiting and 1 more would exceed the queue's 16384; send the request again later"
    failed = "the model failed on this request (RuntimeError); the server's log gives the reason"
    for error in (BackendError(failed), Overloaded(busy, retry_after=1.0, reason="queue_texts"), RuntimeError()):
        with_failing_queue = served._replace(batcher=_Failing(error))  # type: ignore[arg-type]
        service.served = with_failing_queue
        await keep(json={field: "a"})
    service.served = served
    unloaded = Application(Service(service.settings.model_copy(update={"index": (), "head": ()}), ()))
    unloaded.state.gramvec.begin()
    async with client_of(unloaded, authorization=f"Bearer {key}") as client:
        found[f"{prefix} 503"] = (await client.post(path, json={field: "a"})).json()
    return found


async def own_refusals(embedder: Embedder, key: str) -> dict[str, Any]:
    """Return errors that only one route has."""
    found: dict[str, Any] = {}
    plain = create_app(Settings.model_validate({"metrics": "off"}), embedder)
    plain.state.gramvec.attach(embedder)
    keyed = create_app(Settings.model_validate({"api_key": [key]}), embedder)
    keyed.state.gramvec.attach(embedder)

    async def keep(app: Application, name: str, body: Any = None) -> None:
        method, path = name.split()
        async with client_of(app, authorization=f"Bearer {key}") as client:
            response = await client.request(method, path, json=body)
        found[f"{name} {response.status_code}"] = response.json()

    await keep(plain, "post /search", {"queries": "a"})
    await keep(plain, "post /predict", {"inputs": "a"})
    await keep(plain, "post /rows/add", {"rows": [{}]})
    await keep(plain, "post /rows/remove", {"ids": ["9"]})
    await keep(plain, "get /metrics")
    await keep(plain, "post /admin/reload")
    from gramvec.server.errors import error_value, index_busy_error, reload_failed_error, reload_running_error

    for name in ("add", "remove"):
        found[f"post /rows/{name} 409"] = error_value(index_busy_error("tickets"))

    found["post /admin/reload 409"] = error_value(reload_running_error())
    found["post /admin/reload 422"] = error_value(
        reload_failed_error(
            "models/gramvec-en/manifest.json: missing; models/gramvec-en is not a bundle, export the model again"
        )
    )
    return found


class _Failing:
    """A queue that refuses every request with this error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def submit(self, *_: object) -> object:
        raise self._error


async def examples() -> dict[str, Any]:
    """Return all examples by method, path and status."""
    embedder = gramvec.load(str(MODEL))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate(
            {"api_key": [KEY], "write_key": [KEY], **served_files(Path(folder), embedder)}
        )
        app = create_app(settings, embedder)
        service: Service = app.state.gramvec
        service.attach(embedder, attached=service.given_attached)
        found = await answers(app, KEY)
        found |= await refusals(app, KEY, "/", "/embed")
        found |= await refusals(app, KEY, "/v1", "/v1/embeddings")
        found |= await own_refusals(embedder, KEY)
        await service.close()
    return found


if __name__ == "__main__":
    logging.getLogger("gramvec").setLevel(logging.CRITICAL)  # one example is a failure, whose traceback alarms
    text = json.dumps(asyncio.run(examples()), indent=1, ensure_ascii=False)
    TARGET.write_text(text + "\n", encoding="utf-8")
