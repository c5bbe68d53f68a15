"""What a handler needs of the models: `work: ModelWork` in its signature, a dependency of FastAPI's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Annotated

import numpy as np
from fastapi import Depends

from gramvec.embed.vectors import RawEmbeddings
from gramvec.errors import InputError
from gramvec.server.batching.batcher import Timings
from gramvec.server.batching.work_queue import Job
from gramvec.server.errors import too_large_error
from gramvec.server.request import Request
from gramvec.server.responses import list_paths
from gramvec.server.state.models import LoadedModel

# A request of more texts is worth a task that waits for its client's leaving, under servers that tell of it no other
# way.
WATCHED_TEXTS = 64


class Inference:
    """The models as one request has them: its place in their queues, and its limits.

    Args:
        request: for which work is done; its response says what that cost.

    Attributes:
        service: whose models these are.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.service = request.service
        self.reserve = request.reserve

    def check_characters(self, texts: Sequence[str], limit: int) -> int:
        """Return the number of characters of the texts. Raises HttpError 413 for more than `limit`."""
        characters = sum(map(len, texts))
        if characters > limit:
            raise too_large_error(
                f"{characters} characters are more than the limit of {limit} in one request; send fewer texts"
            )
        return characters

    def check_count(self, texts: int) -> None:
        """Raise HttpError 413 for more texts than one request may have."""
        limit = self.service.settings.max_texts
        if texts > limit:
            raise too_large_error(f"{texts} texts are more than the limit of {limit} in one request")

    def model(self, name: str | None, *, nominal: bool = False) -> LoadedModel:
        """Return the model of this name or alias, None for the default. Raises HttpError 404.

        Args:
            name: as the client sent it.
            nominal: take the only model under any name, as Text Embeddings Inference does. The setting `any_model`
                does so on all routes, and with several models takes the default one.
        """
        service = self.service
        default = service.served
        if default is not None:
            if name is None:
                return default
            takes_any = service.settings.any_model == "on" or (nominal and len(service.models) == 1)
            if takes_any and name not in service.models and name not in service.aliases:
                return default
        return service.admit(name)

    def dimensions(self, served: LoadedModel, given: int | None) -> int | None:
        """Return the number of components of this request: its own, else the setting's, None for all."""
        if given is not None or self.service.settings.dimensions is None:
            return given
        return min(self.service.settings.dimensions, served.embedder.dimension)

    def prepare(
        self,
        served: LoadedModel,
        texts: list[str],
        path: Callable[[int], str],
        *,
        truncate: bool | None = None,
        direction: str | None = None,
    ) -> list[str]:
        """Return checked texts, cut to the limit on their length if asked. A schema has found them to be strings.

        Raises:
            InputError: a text is too long or has a lone surrogate; the message names it by its `path` in the body.
        """
        embedder = served.embedder
        if max(map(len, texts)) <= embedder.max_characters and all(map(str.isascii, texts)):
            return texts
        try:
            return embedder.prepare(
                texts,
                truncate=served.truncate if truncate is None else truncate,
                truncation_direction="left" if direction == "left" else "right",
            )
        except InputError as error:
            if error.index is None:
                raise
            # The library counts texts; a client knows them by their place in the body.
            sentence = str(error).removeprefix(f"text {error.index} ")
            raise InputError(f"{path(error.index)} {sentence}", field=path(error.index), index=error.index) from error

    async def embed(
        self, served: LoadedModel, texts: Sequence[str], path: Callable[[int], str] | None = None
    ) -> RawEmbeddings:
        """Return the embeddings of prepared texts, and note what they cost.

        Args:
            served: the model.
            texts: prepared by it.
            path: the places of the texts in the body. With it, texts of which the model knows nothing are named in the
                header x-empty-inputs, refused, or given a vector, by the setting `empty_texts`.

        Raises:
            InputError: texts of which nothing is known are refused.
            Overloaded, BackendError: see `Batcher.submit`.
            ClientGone: the client has left before its texts were taken.
        """
        request = self._request
        if len(texts) > WATCHED_TEXTS:
            request.watch()
        computed = await served.batcher.submit(texts, request.has_gone)
        request.timings = computed.timings
        request.label = served.label
        request.answered = time.perf_counter()
        embeddings = computed.embeddings
        if path is None or embeddings.feature_counts.all():
            return embeddings
        return self._treat_empty(embeddings, path)

    def _treat_empty(self, embeddings: RawEmbeddings, path: Callable[[int], str]) -> RawEmbeddings:
        """Treat texts without known features by the setting `empty_texts`."""
        empty = np.flatnonzero(embeddings.feature_counts == 0)
        places = list_paths([path(index) for index in empty.tolist()])
        kind = self.service.settings.empty_texts
        if kind == "refuse":
            first = int(empty[0])
            raise InputError(
                f"the model knows nothing of {places.decode()}; leave these texts out", field=path(first), index=first
            )
        self._request.notes.append((b"x-empty-inputs", places))
        if kind == "zero":
            return embeddings
        vectors = embeddings.vectors.copy()
        vectors[empty] = np.float32(1 / np.sqrt(vectors.shape[1]))
        return RawEmbeddings.from_vectors(
            vectors, embeddings.feature_counts, embeddings.unknown, embeddings.featurize_seconds
        )

    def admit(self, kind: str, cost: int) -> AbstractContextManager[Job]:
        """Admit work of this kind and cost. Raises Overloaded, see `WorkQueue`."""
        self._request.watch()
        return self.service.work_queue(kind).admit(cost, self._request.has_gone)

    def count_job(self, job: Job, served: LoadedModel, texts: Sequence[str] = ()) -> None:
        """Note the cost of a job that is done: on these texts, or beside what a model has computed for the request."""
        request = self._request
        if texts:
            request.timings = Timings(len(texts), sum(map(len, texts)))
            request.label = served.label
            request.answered = time.perf_counter()
        before = request.timings
        request.timings = before._replace(
            queue_ms=before.queue_ms + job.waited_ms, inference_ms=before.inference_ms + job.worked_ms
        )


async def inference(request: Request) -> Inference:
    """Return the models for this request (a dependency of routes of this service)."""
    return Inference(request)


ModelWork = Annotated[Inference, Depends(inference)]
