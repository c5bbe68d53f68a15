"""What is asked of a service beyond vectors: search, order, labels, matches, sparse vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from gramvec.client.talks import Ask, Talk, Talks, batches, body_of
from gramvec.embed.inputs import prepared
from gramvec.errors import InputError, ServiceError
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.text.inputs import listed

T = TypeVar("T")

# Of one request (see docs/http.md): rows that are found, labels, characters of sparse vectors. Of a hybrid search: rows
# that are looked at again, and how many at least of each query.
MOST_HITS, MOST_LABELS, MOST_CHARACTERS = 100_000, 200_000, 1_000_000
MOST_MIXED, MIXED_ROWS = 10_000, 100
# Of records, which can be of any size, and of labels and n-grams.
MOST_FOUND = 256 * 1024 * 1024

Place = Annotated[int, Field(ge=0)]
Score = Annotated[float, Field(ge=-1, le=1)]
Where = Mapping[str, Any]


class Hit(NamedTuple):
    """A row of a served index: its id, its cosine with the query, and what was stored with it, if that was wanted."""

    id: str
    score: Score
    record: dict[str, Any] | None = None


class Ranked(NamedTuple):
    """A text's place among those that were given, and its cosine with the query."""

    place: int
    score: float


class Label(NamedTuple):
    """A label, and the share of texts with this score that have it."""

    label: str
    score: Score


class Match(NamedTuple):
    """Places of a left and a right text, and the cosine of their weighed n-grams."""

    left: Place
    right: Place
    score: Score


class _Found(BaseModel):
    results: list[list[Hit]]


class _Matched(BaseModel):
    matches: list[Match]


class _Scored(BaseModel):
    index: Place
    score: Score


class _Entry(BaseModel):
    index: Annotated[int, Field(ge=0, lt=COLUMNS)]
    value: Score


_FOUND = TypeAdapter(_Found)
_RANKED = TypeAdapter(list[_Scored])
_LABELS = TypeAdapter(list[list[Label]])
_MATCHED = TypeAdapter(_Matched)
_SPARSE = TypeAdapter(list[list[_Entry]])


class Tasks(Talks):
    """Talks of all that a service does with texts."""

    def search(
        self,
        queries: Iterable[str],
        k: int,
        *,
        where: Where | None,
        index: str | None,
        hybrid: float,
        truncate: bool,
        return_records: bool,
    ) -> Talk[list[list[Hit]]]:
        """See Client.search."""
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"k must be a whole number from 1, not {k!r}", field="k")
        others = {
            "k": k, "where": None if where is None else dict(where), "index": index, "truncate": truncate,
            "return_records": return_records, "hybrid": hybrid,
        }  # fmt: skip
        encoded = yield from self._texts(queries, truncate=truncate)

        def taken(start: int, batch: list[bytes]) -> Talk[list[list[Hit]]]:
            body = body_of(b"[%b]" % b",".join(batch), others, "queries")
            found = (yield from self._read("/search", body, _FOUND, start)).results
            return self._as_many(found, len(batch), most=k)

        most = MOST_MIXED // max(k, MIXED_ROWS) if hybrid else MOST_HITS // k
        return (yield from self._in_batches(encoded, taken, most=max(1, most), beside=len(orjson.dumps(others))))

    def rerank(self, query: str, texts: Iterable[str], *, top_n: int | None, truncate: bool) -> Talk[list[Ranked]]:
        """See Client.rerank."""
        _check_count("top_n", top_n)
        (asked,) = yield from self._texts([query], truncate=truncate)
        encoded = yield from self._texts(texts, truncate=truncate)
        model, _ = yield from self.meet()
        others = {"query": orjson.Fragment(asked), "truncate": truncate, "model": model.name}

        def taken(start: int, batch: list[bytes]) -> Talk[list[float]]:
            body = body_of(b"[%b]" % b",".join(batch), others, "texts")
            found = yield from self._read("/rerank", body, _RANKED, start, ours=True)
            if sorted(one.index for one in found) != list(range(len(batch))):
                raise ServiceError(f"{self.url} answered other places than were asked for")
            return [one.score for one in sorted(found, key=lambda one: one.index)]

        scores = yield from self._in_batches(encoded, taken, texts=1, beside=len(orjson.dumps(others)))
        ranked = [Ranked(place, score) for place, score in enumerate(scores)]
        return sorted(ranked, key=lambda one: -one.score)[:top_n]

    def predict(
        self, texts: Iterable[str], *, head: str | None, top_k: int | None, truncate: bool
    ) -> Talk[list[list[Label]]]:
        """See Client.predict."""
        _check_count("top_k", top_k)
        encoded = yield from self._texts(texts, truncate=truncate)
        others = {"head": head, "top_k": top_k, "truncate": truncate}

        def taken(start: int, batch: list[bytes]) -> Talk[list[list[Label]]]:
            body = body_of(b"[%b]" % b",".join(batch), others)
            found = yield from self._read("/predict", body, _LABELS, start)
            return self._as_many(found, len(batch), most=top_k)

        most = None if top_k is None else max(1, MOST_LABELS // top_k)
        return (yield from self._in_batches(encoded, taken, most=most, beside=len(orjson.dumps(others))))

    def match(
        self, left: Iterable[str], right: Iterable[str], *, top: int, threshold: float, one_to_one: bool
    ) -> Talk[list[Match]]:
        """See Client.match."""
        one, other = (yield from self._texts(left)), (yield from self._texts(right))
        if not one or not other:
            return []
        others = {
            "right": orjson.Fragment(b"[%b]" % b",".join(other)), "top": top, "threshold": threshold,
            "one_to_one": one_to_one,
        }  # fmt: skip
        body = body_of(b"[%b]" % b",".join(one), others, "left")
        found = (yield from self._read("/match", body, _MATCHED, 0)).matches
        if any(pair.left >= len(one) or pair.right >= len(other) for pair in found):
            raise ServiceError(f"{self.url} answered other places than were asked for")
        return found

    def embed_sparse(self, texts: Iterable[str], *, truncate: bool) -> Talk[SparseVectors]:
        """See Client.embed_sparse."""
        encoded = yield from self._texts(texts, truncate=truncate)

        def taken(start: int, batch: list[bytes]) -> Talk[list[list[_Entry]]]:
            body = body_of(b"[%b]" % b",".join(batch), {"truncate": truncate})
            found = yield from self._read("/embed_sparse", body, _SPARSE, start)
            return self._as_many(found, len(batch), most=None)

        rows = yield from self._in_batches(encoded, taken, characters=MOST_CHARACTERS)
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        indices = np.fromiter((one.index for row in rows for one in row), np.int32, int(indptr[-1]))
        values = np.fromiter((one.value for row in rows for one in row), np.float32, int(indptr[-1]))
        return SparseVectors(indptr, indices, values, COLUMNS)

    def _texts(self, texts: Iterable[str], *, truncate: bool = False) -> Talk[list[bytes]]:
        model, _ = yield from self.meet()
        return [orjson.dumps(text) for text in prepared(listed(texts), model.max_characters, truncate=truncate)]

    def _in_batches(
        self,
        encoded: Sequence[bytes],
        taken: Callable[[int, list[bytes]], Talk[list[T]]],
        *,
        most: int | None = None,
        texts: int = 0,
        beside: int = 0,
        characters: int | None = None,
    ) -> Talk[list[T]]:
        """What `taken` gives for all texts, in requests of at most `most` of them and so many characters.

        texts, beside: how many texts, and how many bytes, each request has beside.
        """

        def asked() -> Talk[list[T]]:
            _, limits = yield from self.meet()
            narrow = limits.model_copy(
                update={
                    "max_texts": min(limits.max_texts, limits.queue_texts) - texts,
                    "max_body_bytes": limits.max_body_bytes - beside,
                    "queue_characters": min(limits.queue_characters - beside, characters or limits.queue_characters),
                }
            )
            found: list[T] = []
            for start, batch in batches(encoded, narrow, 1, most):
                found += yield from taken(start, batch)
            return found

        return (yield from self._with_its_limits(asked))

    def _read(self, path: str, body: bytes, kind: TypeAdapter[T], first: int, *, ours: bool = False) -> Talk[T]:
        answer = yield from self._asked(Ask("POST", path, body, MOST_FOUND, ours), first)
        try:
            return kind.validate_json(answer.body)
        except ValidationError as error:
            raise ServiceError(f"{self.url} answered something else than {path} does") from error

    def _as_many(self, found: list[list[T]], texts: int, *, most: int | None) -> list[list[T]]:
        if len(found) != texts or any(most is not None and len(one) > most for one in found):
            raise ServiceError(f"{self.url} answered for other texts than were asked for")
        return found


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{name} must be a whole number from 1, or None, not {value!r}", field=name)
