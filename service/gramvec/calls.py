"""One call of the model: texts in, rows for each request out, and a failure for the culprit alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gramvec.errors import BackendError
from gramvec.postprocess import RawEmbeddings
from gramvec.waiting import Call, Slice

log = logging.getLogger("gramvec.batching")


class Model(Protocol):
    """What is batched: prepared texts in, one row a text out, the same bytes whatever the neighbours."""

    def raw(self, texts: Sequence[str]) -> RawEmbeddings:
        """Embed prepared texts: float32[n, d] and the known features of each, int64[n]."""
        ...


class CallRecord(NamedTuple):
    """One call of the model: its texts, their characters, its seconds, and the texts without any known feature.

    A call that failed, and was tried again request by request, counts as one; its failed texts are not in `empty`.
    """

    texts: int
    characters: int
    seconds: float
    empty: int


class Outcome(NamedTuple):
    """What a call gave, its seconds of wall time, and the texts without any known feature, of those that were embedded.

    `failed` where a result is an error, or the call had to be made again in parts.
    """

    results: list[RawEmbeddings | BackendError]  # one a slice
    seconds: float
    empty: int
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
        return Outcome(
            [one.results[0] for one in parts], time.perf_counter() - began, sum(p.empty for p in parts), True
        )
    results = [raw] if len(slices) == 1 else _shared_out(raw, slices)
    empty = len(texts) - int(np.count_nonzero(raw.feature_counts))
    return Outcome(results, time.perf_counter() - began, empty)


def _tried_alone(model: Model, slices: Sequence[Slice], error: Exception) -> list[Outcome]:
    if len(slices) == 1:
        log.error("the model failed on a request of %d texts", len(slices[0].texts), exc_info=error)
        return [Outcome([_failure(error)], 0.0, 0, True)]
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
    return CallRecord(call.texts, call.characters, outcome.seconds, outcome.empty)


def _failure(error: Exception) -> BackendError:
    failure = BackendError(f"the model failed on this request ({type(error).__name__}); the server's log says why")
    failure.__cause__ = error
    return failure
