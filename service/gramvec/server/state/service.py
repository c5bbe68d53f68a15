"""Shared state of the routes: the models, a batcher for each, and whether the service accepts requests now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar
from weakref import WeakSet

from gramvec.embed.embedder import Embedder
from gramvec.errors import GramvecError, InputError
from gramvec.server.auth import Auth
from gramvec.server.batching.batcher import LOOP_SECONDS, Batcher
from gramvec.server.batching.work_queue import WorkQueue
from gramvec.server.errors import HttpError, reload_failed_error, reload_running_error, shorten, unhealthy_error
from gramvec.server.settings import Settings, aliases_of
from gramvec.server.state.background import run_in_background
from gramvec.server.state.memory_budget import MemoryBudget
from gramvec.server.state.models import (
    HEAD,
    INDEX,
    AttachedFile,
    Kind,
    LoadedModel,
    Reloaded,
    close_except,
    effect,
    label_of,
    load_models,
    mark_now,
    open_attached_files,
    renew_attached_file,
    reopen_models,
)
from gramvec.server.state.token_ids import open_encodings
from gramvec.server.telemetry.logs import NO_USER_TEXT
from gramvec.server.telemetry.metrics import WORKER, Metrics
from gramvec.server.telemetry.tracing import Spans

log = logging.getLogger("gramvec.server")

T = TypeVar("T")

# More than a request has beside its texts.
FIELDS = 1_000


class Process:
    """The process around a service. By itself, as under any ASGI server, it has nothing to do.

    A server with more to do is one itself, as `Service.host`.

    Attributes:
        listens_while_loading: it answers probes before the models are loaded.
    """

    listens_while_loading = False

    def on_loaded(self) -> None:
        """Hear that the models are there, or many modules were imported."""

    def on_failed(self, reason: str) -> None:
        """Hear that the models cannot be loaded."""
        log.error(reason)

    async def reload(self, service: Service) -> Reloaded:
        """Reload all that this process serves. Raises HttpError, see `Service.renew`."""
        return await service.renew()

    def unsent_bytes(self) -> int:
        """Return the number of bytes of responses that lie in the buffers of connections."""
        return 0


class Service:
    """The state of one serving process.

    `models` are those served, by name, the default first; empty until all of them are loaded. `aliases` are other
    names of theirs, alias -> name. `served` is the default one, None until then. `indexes` and `heads` are those that
    are served with them, by name. `given` and `given_attached` are loaded ones of the caller's, to be served from the
    start. `encodings` are those of token ids. `process` is the one around it, since `begin`; `host` is the server that
    wants to be it, set before. `draining`: no request
    should be sent here any more, those that come are answered. `stopping`: they are refused, for the reason in
    `stop_reason`.
    """

    def __init__(
        self, settings: Settings, given: Sequence[Embedder] = (), given_attached: Sequence[AttachedFile] = ()
    ) -> None:
        self.settings = settings
        # The values of the largest request, as pairs, and a few more, so that a request slightly too large is counted.
        self.max_values = 4 * settings.max_texts + FIELDS
        self.given = given
        self.given_attached = given_attached
        self.aliases: Mapping[str, str] = MappingProxyType(aliases_of(settings.alias))
        self.encodings = open_encodings(settings.token_ids)
        self._serve({}, ())
        self.host = self.process = Process()
        self.draining = self.stopping = self._closed = False
        self.stop_reason = "the service is shutting down"
        self.failure: str | None = None
        self._read_keys()
        self.logs_all = settings.access_log == "on"
        self.spans: Spans | None = None
        self.memory = MemoryBudget(settings.max_bytes_in_flight, lambda: self.process.unsent_bytes())
        self.metrics = Metrics(settings.workers)
        self._work_queues: dict[str, WorkQueue] = {}
        self._loading = "the lifespan of this application has not begun, so no model is loaded"
        self._document: asyncio.Future[bytes] | None = None
        self._renewal: asyncio.Task[Reloaded] | None = None
        self._openings: dict[str, asyncio.Task[None]] = {}
        self._retired: WeakSet[Batcher] = WeakSet()

    def _read_keys(self) -> None:
        """Take the keys of requests: None where there are none to ask for."""
        settings = self.settings
        auth = Auth(settings.read_keys()) if settings.needs_key else None
        write_auth = Auth(settings.read_write_keys(), "a write key") if settings.takes_rows else None
        self.auth, self.write_auth = auth, write_auth

    def _serve(self, models: dict[str, LoadedModel], attached: Sequence[AttachedFile]) -> None:
        self.models: Mapping[str, LoadedModel] = MappingProxyType(models)
        self.served = next(iter(models.values()), None)
        # In Text Embeddings Inference's words.
        self.compute_type = b"cpu" if self.served is None or self.served.embedder.device == "cpu" else b"gpu"
        self.attached = attached
        self.indexes = {served.name: served for served in attached if served.kind is INDEX}
        self.heads = {served.name: served for served in attached if served.kind is HEAD}

    def begin(self) -> None:
        """Take up the service in this process, which may be another than that which made it, or take it up again."""
        self.process = self.host
        self.failure = None
        if self._closed:
            self._closed = self.draining = self.stopping = False
            self._serve({}, ())
            self._work_queues, self._document, self._retired, self._openings = {}, None, WeakSet(), {}
        self._loading = "the model is being loaded"
        self.spans = Spans() if self.settings.tracing == "on" else None

    def attach(self, *embedders: Embedder, attached: Sequence[AttachedFile] = ()) -> None:
        """Serve these from now on, the first model as the default. Names must differ."""
        self._serve({embedder.name: self._queue_model(embedder) for embedder in embedders}, attached)

    def _queue_model(self, embedder: Embedder) -> LoadedModel:
        batcher = Batcher(
            embedder,
            queue_texts=self.settings.queue_texts,
            queue_characters=self.settings.queue_characters,
            loop_seconds=0.0 if embedder.batching.waits else LOOP_SECONDS,
            long_text_factor=embedder.batching.long_text_factor,
            deadline_seconds=self.settings.request_deadline_seconds,
            on_batch=self.metrics.calls_of(embedder.name),
        )
        return LoadedModel(embedder, batcher, label_of(embedder), self.settings.truncate == "on")

    async def load(self) -> None:
        """Load the models and what is attached to them in a thread, while the loop already answers /health.

        A failure is kept in `failure`.
        """
        try:
            embedders, attached = await run_in_background(self._load, unwanted=lambda late: close_except(late[0], ()))
        except GramvecError as error:
            self._fail(str(error))
        except Exception as error:
            log.exception("a model could not be loaded", extra=NO_USER_TEXT)
            self._fail(f"a model could not be loaded ({type(error).__name__}); the log gives the reason")
        else:
            self.attach(*embedders, attached=attached)
            self.process.on_loaded()
            for embedder in embedders:
                log.info("%s is ready on %s", embedder.name, embedder.device)

    def _load(self) -> tuple[list[Embedder], list[AttachedFile]]:
        embedders = load_models(self.settings, self._note_step)
        try:
            return embedders, open_attached_files(self.settings, embedders, self._note_step)
        except BaseException:
            close_except(embedders, ())
            raise

    def _note_step(self, doing: str) -> None:
        self._loading = doing

    async def renew(self) -> Reloaded:
        """Serve the models, and what is attached, as they are now: all that are others, or none if one is unusable.

        Requests that have begun are finished on the old ones, which are let go of after the last of them.

        Raises:
            HttpError: 409 while another reload is under way, 422 with the reason for an unusable model or one that
                takes longer than `reload_timeout_seconds`, 503 where models are still being loaded for the first time,
                or the service is shutting down.
        """
        self.check_accepting()
        if self.draining:
            raise unhealthy_error(self.stop_reason)
        self._renew_keys()
        if self._renewal is not None:
            raise reload_running_error()
        task = self._renewal = asyncio.create_task(self._renew())
        task.add_done_callback(self._renew_later)
        # Finish the reload even if the client disconnects.
        await asyncio.wait([task])
        if task.cancelled():
            raise unhealthy_error(self.stop_reason)
        return task.result()

    def _renew_keys(self) -> None:
        """Take the keys of the file as they are now: one that was revoked opens nothing from here on."""
        try:
            self._read_keys()
        except InputError as error:
            log.error("the keys stay as they are: %s", error)
            raise reload_failed_error(str(error)) from None

    def _renew_later(self, task: asyncio.Task[Reloaded]) -> None:
        self._renewal = None
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: the client may have gone

    async def _renew(self) -> Reloaded:
        serving = [served.embedder for served in self.models.values()]
        before = self.attached
        limit_seconds = self.settings.reload_timeout_seconds
        try:
            found, attached = await run_in_background(
                lambda: reopen_models(self.settings, serving, before),
                seconds=limit_seconds,
                unwanted=lambda late: close_except(late[0], serving),
            )
        except TimeoutError as error:
            why = f"it took more than {limit_seconds:g} s and was given up; see that the models' files can be read"
            log.error("not reloaded, the models stay as they are: %s", why)
            raise reload_failed_error(why) from error
        except GramvecError as error:
            log.error("not reloaded, the models stay as they are: %s", error)
            raise reload_failed_error(str(error)) from error
        if self.draining:
            close_except(found, serving)
            raise unhealthy_error(self.stop_reason)
        self._swap(found, attached)
        reloaded = effect((serving, before), (found, attached))
        each = (*reloaded.models, *reloaded.indexes, *reloaded.heads)
        changed = [one.name for one in each if one.changed]
        log.info("reloaded: %s", ", ".join(changed) or "nothing has changed")
        return reloaded

    def _swap(self, found: Sequence[Embedder], attached: Sequence[AttachedFile]) -> None:
        models: dict[str, LoadedModel] = {}
        for served, embedder in zip(self.models.values(), found, strict=True):
            if embedder is served.embedder:
                models[embedder.name] = served
            else:
                # It is not closed: a request that holds it may not have handed its texts over yet. Its thread ends and
                # its files are let go of with the last reference to it.
                self._retired.add(served.batcher)
                models[embedder.name] = self._queue_model(embedder)
        self._serve(models, attached)

    @property
    def workers_running(self) -> int:
        """Return the number of workers that were heard from in the last seconds."""
        return max(1, len(self.metrics.read()[(WORKER,)]))

    def drain(self) -> None:
        """Fail readiness from now on, and keep answering."""
        self.draining = True

    def stop(self) -> None:
        """Refuse new requests from now on."""
        self.draining = self.stopping = True

    async def close(self) -> None:
        """Finish what was admitted and release the models."""
        self.stop()
        for task in (self._renewal, *self._openings.values()):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for batcher in [*self._retired, *(served.batcher for served in self.models.values())]:
            await batcher.close()
        for queue in self._work_queues.values():
            queue.close()
        close_except((served.embedder for served in self.models.values()), self.given)
        self._closed = True

    @property
    def unready(self) -> str | None:
        """Why no request should be sent here, or None when all is well."""
        if self.draining:
            return self.stop_reason
        if (reason := self._refusal) is not None:
            return reason
        full = [name for name, served in self.models.items() if served.batcher.full]
        return f"the queue of {full[0]} is full" if full else None

    @property
    def _refusal(self) -> str | None:
        if self.stopping:
            return self.stop_reason
        if self.failure is not None:
            return self.failure
        return None if self.models else self._loading

    def publish(self) -> None:
        """Publish the state of this process and its queues to the metrics of all workers."""
        queues = {name: served.batcher for name, served in self.models.items()}
        self.metrics.publish(
            self.unready is None,
            {name: (queue.waiting, queue.waiting_characters, queue.oldest_seconds) for name, queue in queues.items()},
        )

    @property
    def default_label(self) -> bytes:
        """The label of the default model, empty until it is loaded."""
        return served.label if (served := self.served) is not None else b""

    def check_accepting(self) -> None:
        """Raise HttpError 503, with the reason, where no requests are taken.

        A full queue is not a reason: that is 429, and the batcher's to say.
        """
        if (reason := self._refusal) is not None:
            raise unhealthy_error(reason)

    def admit(self, model: str | None = None) -> LoadedModel:
        """Return the model of this name or alias, None for the default.

        Call `check_accepting` first, before the body is read: an accepted request is served even if the state changes.

        Raises:
            HttpError: 404 for a name that is not served.
        """
        served = self.served if model is None else self.models.get(self.aliases.get(model, model))
        if served is None:
            known = [*self.models, *self.aliases]
            names, are = ", ".join(map(repr, known)), "is" if len(known) == 1 else "are"
            message = f"model {shorten(model or '')!r} is not served here; {names} {are}"
            raise HttpError(404, "not_found", message, param="model", code="model_not_found")
        return served

    def work_queue(self, kind: str) -> WorkQueue:
        """Return the queue of this kind of work, as in "matches"."""
        queue = self._work_queues.get(kind)
        if queue is None:
            queue = self._work_queues[kind] = WorkQueue(kind, self.settings.request_deadline_seconds)
        return queue

    def admit_index(self, name: str | None = None) -> AttachedFile:
        """Return the index of this name, None for the first. Raises HttpError 404 for a name that is not served."""
        return _find_named(self.indexes, name, INDEX)

    async def current_index(self, name: str | None = None) -> AttachedFile:
        """Return the index of this name as its last commit left it, where rows are added and removed over HTTP.

        Elsewhere it is the index as it was opened, or reloaded. Raises as `admit_index`.
        """
        index = self.admit_index(name)
        # What is being opened already may be older than this request: then it is opened once more.
        for _ in range(2):
            if self.write_auth is None or index.mark == mark_now(index):
                break
            task = self._openings.get(index.name)
            if task is None:
                task = self._openings[index.name] = asyncio.create_task(self._open_commit(index))
                task.add_done_callback(lambda done, name=index.name: self._openings.pop(name, None))  # type: ignore[misc]
            await asyncio.wait([task])  # a client that leaves does not cancel it
            index = self.admit_index(index.name)
        return index

    async def _open_commit(self, index: AttachedFile) -> None:
        """Serve what an index holds now; it stays as it is where that cannot be opened."""
        mark = mark_now(index)
        embedders = [served.embedder for served in self.models.values()]
        try:
            renewed = await run_in_background(
                lambda: renew_attached_file(self.settings, index, embedders),
                seconds=self.settings.reload_timeout_seconds,
            )
        except Exception as error:  # an unexpected one is no reason to stop serving
            why = error if isinstance(error, GramvecError) else type(error).__name__
            log.error("the index %s stays as it is: %s", index.name, why)
            renewed = replace(index, mark=mark)
        served = [renewed if attached is index else attached for attached in self.attached]
        self._serve(dict(self.models), served)

    def admit_head(self, name: str | None = None) -> AttachedFile:
        """Return the head of this name, None for the first. Raises HttpError 404 for a name that is not served."""
        return _find_named(self.heads, name, HEAD)

    async def document(self, make: Callable[[], bytes]) -> bytes:
        """Return the OpenAPI document, which the first call makes."""

        def make_on_loaded() -> bytes:
            document = make()
            self.process.on_loaded()
            return document

        if self._document is None or (self._document.done() and self._document.exception() is not None):
            # In a thread, and once for all requests that wait; a client that leaves does not cancel it.
            self._document = asyncio.ensure_future(run_in_background(make_on_loaded))
        return await asyncio.shield(self._document)

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self.process.on_failed(reason)


def _find_named(served: Mapping[str, T], name: str | None, kind: Kind) -> T:
    found = next(iter(served.values()), None) if name is None else served.get(name)
    if found is None:
        started = f"--{kind.name} NAME={'FOLDER' if kind.name == 'index' else 'FILE'}"
        if not served:
            raise HttpError(404, "not_found", f"this service has no {kind.name}; start it with {started}")
        are = ", ".join(map(repr, served))
        what = f"no {kind.name} {shorten(name or '')!r} is served here, {are} is"
        raise HttpError(404, "not_found", f"{what}; name that one, or start the service with {started}")
    return found
