"""A served model: its texts checked, its queue, and the cost of a request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.server.batching.batcher import Answer, Batcher
from gramvec.server.batching.work_queue import Job
from gramvec.server.responses import Usage


class Served(NamedTuple):
    """A loaded model and the queue in front of it.

    Attributes:
        label: for `x-model`: name and first digits of the digest.
        truncate: cut the texts of requests that do not say whether to.
    """

    embedder: Embedder
    batcher: Batcher
    label: bytes
    truncate: bool = False

    def prepare(
        self,
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
        if max(map(len, texts)) <= self.embedder.max_characters and all(map(str.isascii, texts)):
            return texts
        try:
            return self.embedder.prepare(
                texts,
                truncate=self.truncate if truncate is None else truncate,
                truncation_direction="left" if direction in ("left", "Left") else "right",
            )
        except InputError as error:
            if error.index is None:
                raise
            # The library counts texts; a client knows them by their place in the body.
            sentence = str(error).removeprefix(f"text {error.index} ")
            raise InputError(f"{path(error.index)} {sentence}", field=path(error.index), index=error.index) from error


def usage_of(served: Served, answer: Answer) -> Usage:
    """Return the cost of the model's part of a request. Call it as soon as the answer is there."""
    texts = len(answer.embeddings.feature_counts)
    return Usage(answer.characters, answer.queue_ms, answer.inference_ms, served.label, texts, time.perf_counter())


def usage_of_job(served: Served, texts: Sequence[str], job: Job) -> Usage:
    """Return the cost of finished work on these texts."""
    characters = sum(map(len, texts))
    return Usage(characters, job.waited_ms, job.worked_ms, served.label, len(texts), time.perf_counter())


def with_job(usage: Usage, job: Job) -> Usage:
    """Return the cost of a request that took part of a model and work of a queue."""
    return usage._replace(queue_ms=usage.queue_ms + job.waited_ms, inference_ms=usage.inference_ms + job.worked_ms)
