"""One call of the model: texts in, rows for each request out, and a failure for the culprit alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gramvec.embed.vectors import RawEmbeddings
from gramvec.errors import BackendError
from gramvec.server.batching.queue import Call, Slice

log = logging.getLogger("gramvec.server.batching")


class Model(Protocol):
    """What is batched: prepared texts in, one row a text out, the same bytes whatever the neighbours."""

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        """Embed prepared texts: float32[n, d] and the known features of each, int64[n]."""
        ...


class CallRecord(NamedTuple):
    """One call of the model: its texts, their characters, its seconds, and the texts without any known feature.

    Of the seconds, those of featurizing; and how many characters and words were unknown, see FeatureBatch. A call that
    failed, and was tried again request by request, counts as one; its failed texts are in none of the last three.
    """

    texts: int
    characters: int
    seconds: float
    empty: int
    unknown: int
    featurize_seconds: float


class Outcome(NamedTuple):
    """What a call gave, its seconds of wall time, and what CallRecord tells of the texts that were embedded.

    `failed` where a result is an error, or the call had to be made again in parts.
    """

    results: list[RawEmbeddings | BackendError]  # one a slice
    seconds: float
    empty: int = 0
    unknown: int = 0
    featurize_seconds: float = 0.0
    failed: bool = False


def execute(model: Model, slices: Sequence[Slice]) -> Outcome:
    """Call the model with all of these; if that fails, with each request alone, so that only the culprit fails."""
    texts = slices[0].texts if len(slices) == 1 else [text for piece in slices for text in piece.texts]
    began = time.perf_counter()
    results: list[RawEmbeddings | BackendError]
    try:
        raw = model.raw(texts)
        if len(raw.vectors) != len(texts):
            raise RuntimeError(f"the model gave {len(raw.vectors)} rows for {len(texts)} texts")
    except Exception as error:
        parts = _tried_alone(model, slices, error)
        empty, unknown = sum(part.empty for part in parts), sum(part.unknown for part in parts)
        spent, featurizing = time.perf_counter() - began, sum(part.featurize_seconds for part in parts)
        return Outcome([part.results[0] for part in parts], spent, empty, unknown, featurizing, failed=True)
    results = [raw] if len(slices) == 1 else _shared_out(raw, slices)
    empty = len(texts) - int(np.count_nonzero(raw.feature_counts))
    return Outcome(results, time.perf_counter() - began, empty, raw.unknown, raw.featurize_seconds)


def _tried_alone(model: Model, slices: Sequence[Slice], error: Exception) -> list[Outcome]:
    if len(slices) == 1:
        log.error("the model failed on a request of %d texts", len(slices[0].texts), exc_info=error)
        return [Outcome([_failure(error)], 0.0, failed=True)]
    log.warning("a call of %d requests failed (%s); each is tried alone", len(slices), type(error).__name__)
    return [execute(model, [piece]) for piece in slices]


def _shared_out(raw: RawEmbeddings, slices: Sequence[Slice]) -> list[RawEmbeddings | BackendError]:
    results: list[RawEmbeddings | BackendError] = []
    row = 0
    for _, start, stop in slices:
        end = row + stop - start
        results.append(raw.take(slice(row, end)))
        row = end
    return results


def record_of(call: Call, outcome: Outcome) -> CallRecord:
    """What is told of a call."""
    _, seconds, empty, unknown, featurize_seconds, _ = outcome
    return CallRecord(call.texts, call.characters, seconds, empty, unknown, featurize_seconds)


def _failure(error: Exception) -> BackendError:
    failure = BackendError(f"the model failed on this request ({type(error).__name__}); the server's log says why")
    failure.__cause__ = error
    return failure
