"""What the routes share: the models, a batcher for each, and whether requests are taken at the moment."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from starlette.requests import ClientDisconnect

from gramvec.batching import LONG_TEXT_FACTOR, LOOP_SECONDS, Answer, Batcher
from gramvec.embedder import Embedder
from gramvec.errors import GramvecError, InputError
from gramvec.http.body import Incoming
from gramvec.http.errors import HttpError, unhealthy
from gramvec.http.models import load_models
from gramvec.http.reply import Usage
from gramvec.http.settings import Settings

log = logging.getLogger("gramvec.http")


class Served(NamedTuple):
    """A loaded model, the queue in front of it, and its label for `x-model`: name and first digits of the digest."""

    embedder: Embedder
    batcher: Batcher
    label: bytes


class Service:
    """The state of one serving process.

    `models` are those served, by name, the default first; empty until all of them are loaded.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models: Mapping[str, Served] = MappingProxyType({})
        self.stopping = False
        self.failure: str | None = None
        self.on_failure: Callable[[str], None] = log.error
        self._loading = "the model is being loaded"
        self._owns_models = False

    @property
    def served(self) -> Served | None:
        """The default model, None until the models are loaded."""
        return next(iter(self.models.values()), None)

    def attach(self, *embedders: Embedder) -> None:
        """Serve these models from now on, the first as the default. Their names must differ."""
        self.models = MappingProxyType({one.name: self._served(one) for one in embedders})

    def _served(self, embedder: Embedder) -> Served:
        batcher = Batcher(
            embedder,
            queue_texts=self.settings.queue_texts,
            queue_characters=self.settings.queue_characters,
            # A CUDA call blocks for its launch and copies, whatever its size: never on the loop.
            loop_seconds=0.0 if embedder.device == "cuda" else LOOP_SECONDS,
            # The native kernel adds the rows up as it reads them: a long text costs it no more than a short one.
            long_text_factor=1 if embedder.runtime == "native" else LONG_TEXT_FACTOR,
            deadline_seconds=self.settings.request_deadline_seconds,
        )
        return Served(embedder, batcher, f"{embedder.name}@{embedder.digest[:12]}".encode())

    async def load(self) -> None:
        """Load the models in a thread, while the loop already answers /health. A failure is kept in `failure`."""
        try:
            embedders = await asyncio.to_thread(load_models, self.settings, self._tell)
        except GramvecError as error:
            self._fail(str(error))
        except Exception as error:
            log.exception("a model could not be loaded")
            self._fail(f"a model could not be loaded ({type(error).__name__}); the log says why")
        else:
            self._owns_models = True
            self.attach(*embedders)
            for embedder in embedders:
                log.info("%s is ready on %s", embedder.name, embedder.device)

    def _tell(self, doing: str) -> None:
        self._loading = doing

    def stop(self) -> None:
        """Refuse new requests from now on."""
        self.stopping = True

    async def close(self) -> None:
        """Finish what was admitted and release the models."""
        self.stopping = True
        for served in self.models.values():
            await served.batcher.close()
            if self._owns_models:
                served.embedder.close()

    @property
    def unready(self) -> str | None:
        """Why no request should be sent here, or None when all is well."""
        if self.stopping:
            return "the service is shutting down"
        if self.failure is not None:
            return self.failure
        if not self.models:
            return self._loading
        full = [name for name, served in self.models.items() if served.batcher.full]
        return f"the queue of {full[0]} is full" if full else None

    @property
    def default_label(self) -> bytes:
        """The label of the default model, empty until it is loaded."""
        return served.label if (served := self.served) is not None else b""

    def check_accepting(self) -> None:
        """Raise HttpError 503, with the reason, where no requests are taken.

        A full queue is not a reason: that is 429, and the batcher's to say.
        """
        if not self.models or self.stopping or self.failure is not None:
            raise unhealthy(self.unready or "the service is not ready")

    def admit(self, model: str | None = None) -> Served:
        """The model of this name, None for the default.

        Raises:
            HttpError: 404 for a name that is not served, else what check_accepting does.
        """
        self.check_accepting()
        served = self.served if model is None else self.models.get(model)
        if served is None:
            names = ", ".join(map(repr, self.models))
            are = "is" if len(self.models) == 1 else "are"
            message = f"model {model!r} is not served here; {names} {are}"
            raise HttpError(404, "not_found", message, param="model", code="model_not_found")
        return served

    def check_count(self, texts: int) -> None:
        """Raise HttpError 413 for more texts than one request may have."""
        limit = self.settings.max_texts
        if texts > limit:
            raise HttpError(413, "too_large", f"{texts} texts are more than the limit of {limit} in one request")

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self.on_failure(reason)


def prepare(
    served: Served,
    texts: Sequence[str],
    path: Callable[[int], str],
    *,
    truncate: bool | None,
    direction: str | None,
) -> list[str]:
    """Checked and, if asked, cut texts; an InputError names the text by its path in the body."""
    try:
        return served.embedder.prepare(
            texts,
            truncate=bool(truncate),
            truncation_direction="left" if direction in ("left", "Left") else "right",
        )
    except InputError as error:
        if error.index is None:
            raise
        # The library counts texts; a client knows them by their place in the body.
        sentence = str(error).removeprefix(f"text {error.index} ")
        raise InputError(f"{path(error.index)} {sentence}", field=path(error.index), index=error.index) from error


def usage_of(served: Served, answer: Answer) -> Usage:
    """What the model's part of a request cost, from the moment at which its answer is there."""
    return Usage(
        answer.characters,
        answer.queue_ms,
        answer.inference_ms,
        served.label,
        len(answer.embeddings.feature_counts),
        time.perf_counter(),
    )


async def embed(served: Served, texts: Sequence[str], request: Incoming) -> Answer:
    """Rows for prepared texts, unless the client goes away while they wait.

    Raises:
        ClientDisconnect: nobody waits for the answer any more; the texts still queued are dropped.
    """
    pending = served.batcher.submit(texts)
    # The flush was scheduled before this turn ends, so a call short enough for the loop is done after it, and the
    # watch over the connection (a task, 20 us) is spared.
    await asyncio.sleep(0)
    return pending.result() if pending.done() else await _unless_gone(pending, request)


async def _unless_gone(pending: asyncio.Future[Answer], request: Incoming) -> Answer:
    async def cancel_when_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        pending.cancel()

    watch = asyncio.create_task(cancel_when_gone())
    try:
        return await pending
    except asyncio.CancelledError:
        if watch.done():
            raise ClientDisconnect from None
        raise
    finally:
        watch.cancel()
