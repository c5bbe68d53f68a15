"""What the routes share: the models, a batcher for each, and whether requests are taken at the moment."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from weakref import WeakSet

from starlette.requests import ClientDisconnect

from gramvec.batching import LOOP_SECONDS, Answer, Batcher
from gramvec.embedding import Embedder
from gramvec.errors import GramvecError, InputError
from gramvec.http.contract import (
    HttpError,
    Incoming,
    Usage,
    not_reloaded,
    reload_given_up,
    reload_under_way,
    shortened,
    unhealthy,
)
from gramvec.http.models.aside import aside
from gramvec.http.models.loading import Change, Wanted, changes, close_but, label_of, load_models, renewed
from gramvec.http.models.serial import SerialThread
from gramvec.http.models.traffic import Traffic
from gramvec.http.settings import Settings, aliases_of
from gramvec.http.telemetry import NO_USER_TEXT, Metrics

log = logging.getLogger("gramvec.http")

# An explanation of the longest texts takes 0.3 s.
MOST_EXPLANATIONS_WAITING = 32
# So many calls of 4 ms on the loop may go by before a request that waits has a watch over its connection.
UNWATCHED_FLUSHES = 8
# More than a request has beside its texts.
FIELDS = 1_000


class Served(NamedTuple):
    """A loaded model, the queue in front of it, and its label for `x-model`: name and first digits of the digest."""

    embedder: Embedder
    batcher: Batcher
    label: bytes


class Service:
    """The state of one serving process.

    `models` are those served, by name, the default first; empty until all of them are loaded. `aliases` are other
    names of theirs, alias -> name. `served` is the default one, None until then. `given` are loaded ones of the
    caller's, to be served from the start. `reload` is what a request for a reload calls. `workers_running` is the
    number of processes, as the parent counts them. `last_words` are the reason for refusals once it is stopping.
    """

    def __init__(self, settings: Settings, given: Sequence[Embedder] = ()) -> None:
        self.settings = settings
        # What a request with the most texts holds, as pairs, and so many more that one with a few too many is counted.
        self.most_values = 4 * settings.max_texts + FIELDS
        self.given = given
        self.aliases: Mapping[str, str] = MappingProxyType(aliases_of(settings.alias))
        self._serve({})
        self.workers_running = 1
        self.stopping = False
        self.last_words = "the service is shutting down"
        self.failure: str | None = None
        self.on_failure: Callable[[str], None] = log.error
        self.on_loaded: Callable[[], None] | None = None
        self.traffic = Traffic(settings.max_bytes_in_flight)
        self.metrics = Metrics(settings.workers)
        self.explanations = SerialThread(MOST_EXPLANATIONS_WAITING)
        self.reload: Callable[[], Awaitable[list[Change]]] = self.renew
        self._loading = "the model is being loaded"
        self._renewal: asyncio.Task[list[Change]] | None = None
        self._retired: WeakSet[Batcher] = WeakSet()

    def _serve(self, models: dict[str, Served]) -> None:
        self.models: Mapping[str, Served] = MappingProxyType(models)
        self.served = next(iter(models.values()), None)

    def attach(self, *embedders: Embedder) -> None:
        """Serve these models from now on, the first as the default. Their names must differ."""
        self._serve({one.name: self._served(one) for one in embedders})

    def _served(self, embedder: Embedder) -> Served:
        batcher = Batcher(
            embedder,
            queue_texts=self.settings.queue_texts,
            queue_characters=self.settings.queue_characters,
            loop_seconds=0.0 if embedder.batching.waits else LOOP_SECONDS,
            long_text_factor=embedder.batching.long_text_factor,
            deadline_seconds=self.settings.request_deadline_seconds,
            on_call=self.metrics.calls_of(embedder.name),
        )
        return Served(embedder, batcher, label_of(embedder))

    async def load(self) -> None:
        """Load the models in a thread, while the loop already answers /health. A failure is kept in `failure`."""
        try:
            embedders = await aside(
                lambda: load_models(self.settings, self._tell), unwanted=lambda late: close_but(late, ())
            )
        except GramvecError as error:
            self._fail(str(error))
        except Exception as error:
            log.exception("a model could not be loaded", extra=NO_USER_TEXT)
            self._fail(f"a model could not be loaded ({type(error).__name__}); the log says why")
        else:
            self.attach(*embedders)
            if self.on_loaded is not None:
                self.on_loaded()
            for embedder in embedders:
                log.info("%s is ready on %s", embedder.name, embedder.device)

    def _tell(self, doing: str) -> None:
        self._loading = doing

    async def renew(self, wanted: Sequence[Wanted] = ()) -> list[Change]:
        """Serve the models that their folders hold now: all of those that are others, or none if one is unusable.

        Requests that have begun are finished on the old models, which are let go of after the last of them.

        Args:
            wanted: see `models.renewed`.

        Raises:
            HttpError: 409 while another reload is under way, 422 with the reason for an unusable model or one that
                takes longer than `reload_timeout_seconds`, 503 where models are still being loaded for the first time,
                or the service is shutting down.
        """
        if not self.models or self.stopping:
            raise unhealthy(self.unready or "the service is not ready")
        if self._renewal is not None:
            raise reload_under_way()
        task = self._renewal = asyncio.create_task(self._renew(wanted))
        task.add_done_callback(self._renewed)
        # Whoever asked may go away; what was begun is brought to its end.
        await asyncio.wait([task])
        if task.cancelled():
            raise unhealthy(self.last_words)
        return task.result()

    def _renewed(self, task: asyncio.Task[list[Change]]) -> None:
        self._renewal = None
        if not task.cancelled():
            task.exception()  # known to be looked at: nobody may be left who asked

    async def _renew(self, wanted: Sequence[Wanted]) -> list[Change]:
        serving = [served.embedder for served in self.models.values()]
        patience = self.settings.reload_timeout_seconds
        try:
            found = await aside(
                lambda: renewed(self.settings, serving, wanted),
                seconds=patience,
                unwanted=lambda late: close_but(late, serving),
            )
        except TimeoutError as error:
            why = reload_given_up(patience)
            log.error("not reloaded, the models go on as they are: %s", why)
            raise not_reloaded(why) from error
        except GramvecError as error:
            log.error("not reloaded, the models go on as they are: %s", error)
            raise not_reloaded(str(error)) from error
        if self.stopping:
            close_but(found, serving)
            raise unhealthy(self.last_words)
        self._swap(found)
        made = changes(serving, found)
        log.info("reloaded: %s", ", ".join(one.name for one in made if one.changed) or "no model has changed")
        return made

    def _swap(self, found: Sequence[Embedder]) -> None:
        models: dict[str, Served] = {}
        for served, embedder in zip(self.models.values(), found, strict=True):
            if embedder is served.embedder:
                models[embedder.name] = served
            else:
                # Nobody closes it: a request that holds it may not have handed its texts over yet. Its thread ends and
                # its files are let go of with the last reference to it.
                self._retired.add(served.batcher)
                models[embedder.name] = self._served(embedder)
        self._serve(models)

    def stop(self) -> None:
        """Refuse new requests from now on."""
        self.stopping = True

    async def close(self) -> None:
        """Finish what was admitted and release the models."""
        self.stopping = True
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        for batcher in [*self._retired, *(served.batcher for served in self.models.values())]:
            await batcher.close()
        close_but((served.embedder for served in self.models.values()), self.given)

    @property
    def unready(self) -> str | None:
        """Why no request should be sent here, or None when all is well."""
        if self.stopping:
            return self.last_words
        if self.failure is not None:
            return self.failure
        if not self.models:
            return self._loading
        full = [name for name, served in self.models.items() if served.batcher.full]
        return f"the queue of {full[0]} is full" if full else None

    def queues(self) -> list[tuple[str, Batcher]]:
        """Name and queue of each model."""
        return [(name, served.batcher) for name, served in self.models.items()]

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
        """The model of this name or alias, None for the default.

        Ask `check_accepting` first, before the body is read: what was taken up then is served, whatever came since.

        Raises:
            HttpError: 404 for a name that is not served.
        """
        served = self.served if model is None else self.models.get(self.aliases.get(model, model))
        if served is None:
            known = [*self.models, *self.aliases]
            names, are = ", ".join(map(repr, known)), "is" if len(known) == 1 else "are"
            message = f"model {shortened(model or '')!r} is not served here; {names} {are}"
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
    texts = len(answer.embeddings.feature_counts)
    return Usage(answer.characters, answer.queue_ms, answer.inference_ms, served.label, texts, time.perf_counter())


async def embed(served: Served, texts: Sequence[str], request: Incoming) -> Answer:
    """Rows for prepared texts, unless the client goes away while they wait.

    Raises:
        ClientDisconnect: nobody waits for the answer any more; the texts still queued are dropped.
    """
    pending = served.batcher.submit(texts)
    # A call short enough for the loop is done then, and the watch over the connection (a task, 20 us) is spared.
    flushes = 0
    while served.batcher.flush_due and flushes < UNWATCHED_FLUSHES and not pending.done():
        await served.batcher.flushed
        flushes += 1
        if request.gone and not pending.done():
            pending.cancel()
            raise ClientDisconnect
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
