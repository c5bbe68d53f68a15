"""A served model with an Embedder's methods, and the service's search, changes of an index, rerank, predict, match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import orjson
from pydantic import BaseModel, Field, TypeAdapter

from gramvec.client.transport import SMALL_ANSWER, Transport, dump_fields, join_array, make_body
from gramvec.embed.inputs import TruncationDirection, in_batches, prepare_texts
from gramvec.embed.reranking import RerankedText
from gramvec.embed.st_compat import SentenceEncoder
from gramvec.embed.vectors import Vectors, check_dimensions
from gramvec.errors import InputError, ServiceError
from gramvec.lexical.hashing import COLUMNS
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.text.inputs import is_whole, list_texts

BATCH_SIZE = 2_048
TIMEOUT = PATIENCE = 60.0
# The service's limits for one request (docs/api.md): found rows, labels, and characters of sparse vectors.
MAX_HITS, MAX_LABELS, MAX_CHARACTERS = 100_000, 200_000, 1_000_000
# Documents that a query of a search looks at, at least.
MIN_LOOKED = 100
# Bytes of a score in JSON, and of an answer with records, labels or n-grams, which may have any size.
SCORE_BYTES = 32
LARGE_ANSWER = 256 * 1024 * 1024

Place = Annotated[int, Field(ge=0)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Score = Annotated[float, Field(allow_inf_nan=False)]


class SearchHit(NamedTuple):
    """A row of a served index: its id, its score, and its stored record if that was asked for."""

    id: str
    score: Score
    record: dict[str, Any] | None = None


class PredictedLabel(NamedTuple):
    """A label, and the share of texts with this score that have it."""

    label: str
    score: Cosine


class MatchedPair(NamedTuple):
    """Places of a left and a right text, and their score."""

    left: Place
    right: Place
    score: Cosine


class _SearchAnswer(BaseModel):
    results: list[list[SearchHit]]


class _MatchAnswer(BaseModel):
    matches: list[MatchedPair]


class _ChangedIndex(BaseModel):
    total: Annotated[int, Field(ge=0)]


class _ScoredText(BaseModel):
    index: Place
    score: Score


class _Entry(BaseModel):
    index: Annotated[int, Field(ge=0, lt=COLUMNS)]
    value: Cosine


_SEARCHED = TypeAdapter(_SearchAnswer)
_CHANGED = TypeAdapter(_ChangedIndex)
_RANKED = TypeAdapter(list[_ScoredText])
_LABELS = TypeAdapter(list[list[PredictedLabel]])
_MATCHED = TypeAdapter(_MatchAnswer)
_SPARSE = TypeAdapter(list[list[_Entry]])


class Client(SentenceEncoder):
    """A model served at `url`, with an Embedder's methods. It may be used from several threads.

    Vectors have the bytes that the model's Embedder gives. Calls with many texts are cut into requests within the
    service's limits. A service that begins to serve another model is refused, because vectors of two models cannot be
    compared.

    Args:
        url: As in http://127.0.0.1:8000.
        model: One of several served models; None for the default.
        api_key: The key, if the service needs one. A pickle of the client contains it.
        write_key: The key to change indexes, if rows are to be added or removed; likewise.
        timeout: Seconds for a connection, and for a pause within an answer.
        patience: Seconds for which a request is repeated while the service is overloaded (429), not ready (503) or
            away: after the pause that the service asks for, else after growing pauses.

    Raises:
        ServiceError: The service does not answer, or refuses.
        InputError: An Embedder would refuse the texts or options.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        write_key: str | None = None,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self._options: Any = {"model": model, "api_key": api_key, "timeout": timeout, "patience": patience}
        self._write_key = write_key
        self._transport = Transport(url, **self._options)
        served = self._transport.model
        self.name, self.digest = served.name, served.digest
        self.dimension, self.max_characters = served.dimension, served.max_characters

    def __repr__(self) -> str:
        return f"<gramvec.client.Client {self._transport.url}>"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Client, self._transport.url, write_key=self._write_key, **self._options), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def embed(
        self,
        texts: Iterable[str],
        *,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
    ) -> Vectors:
        """Return float32[n, dimensions]; the arguments are those of Embedder.embed."""
        prepared = prepare_texts(
            texts, self.max_characters, truncate=truncate, truncation_direction=truncation_direction
        )
        check_dimensions(dimensions, self.dimension)
        width = dimensions or self.dimension
        fields = {"model": self.name, "normalize": normalize, "dimensions": dimensions}

        def send(start: int, batch: list[bytes]) -> list[Vectors]:
            size = len(batch) * width * 4
            body = make_body(join_array(batch), fields)
            reply = self._transport.post("/embed", body, first=start, max_bytes=size + SMALL_ANSWER)
            if len(reply.body) != size or reply.headers.get("x-dtype") != "float32":
                raise ServiceError(f"{self._transport.url}: answered other vectors than were asked for")
            return [np.frombuffer(reply.body, "<f4").reshape(-1, width)]

        blocks = self._transport.in_batches([orjson.dumps(text) for text in prepared], send)
        return np.concatenate([np.empty((0, width), np.float32), *blocks])

    def stream(
        self,
        texts: Iterable[str],
        *,
        batch_size: int | None = None,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
    ) -> Iterator[Vectors]:
        """Yield float32[at most batch_size, dimensions]; the arguments are those of Embedder.stream."""
        embed = partial(
            self.embed,
            normalize=normalize,
            dimensions=dimensions,
            truncate=truncate,
            truncation_direction=truncation_direction,
        )
        return in_batches(texts, BATCH_SIZE if batch_size is None else batch_size, embed)

    def similarity(self, left: Iterable[str], right: Iterable[str]) -> Vectors:
        """Return float32[n, m], the cosines of n left and m right texts."""
        rows, columns = self._encode_blocks(left), self._encode_blocks(right)

        def compare() -> Vectors:
            scores = np.empty((len(rows), len(columns)), np.float32)
            blocks = list(self._transport.batches(columns, 2))
            for top, above in self._transport.batches(rows, 2):
                for side, beside in blocks:
                    inputs = b'{"left":%b,"right":%b}' % (join_array(above), join_array(beside))
                    shape = len(above), len(beside)
                    scores[top : top + shape[0], side : side + shape[1]] = self._scores(inputs, shape)
            return scores

        return self._transport.call_with_current_limits(compare)

    def pair_similarity(self, left: Iterable[str], right: Iterable[str]) -> Vectors:
        """Return float32[n], the cosine of each left text and the right text at its place."""
        left_texts, right_texts = self._encode_blocks(left), self._encode_blocks(right)
        if len(left_texts) != len(right_texts):
            raise InputError(f"{len(left_texts)} left texts and {len(right_texts)} right ones; give as many of each")
        pairs = [b"[%b,%b]" % pair for pair in zip(left_texts, right_texts, strict=True)]

        def compare() -> Vectors:
            scores = np.empty(len(pairs), np.float32)
            for start, batch in self._transport.batches(pairs, 2):
                inputs = b'{"pairs":%b}' % join_array(batch)
                scores[start : start + len(batch)] = self._scores(inputs, (len(batch),))
            return scores

        return self._transport.call_with_current_limits(compare)

    def search(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        offset: int = 0,
        where: Mapping[str, Any] | None = None,
        index: str | None = None,
        only: Literal["letters", "meaning"] | None = None,
        min_score: float = 0.0,
        literal: bool = False,
        truncate: bool = False,
        return_records: bool = True,
    ) -> list[list[SearchHit]]:
        """Return the k best rows of a served index for each query, the best first.

        Args:
            queries: Texts.
            k: Rows for each query.
            offset: How many of the best are left out, for the next page.
            where: Column to its value in the found rows, a list of allowed values, or bounds as in {"gte": 10}.
            index: Name of a served index; None for the first.
            only: Compare only letters, or only meaning; None for the sum of both.
            min_score: Rows with a lower score are left out.
            literal: Whether `-word` and `"a phrase"` are taken as they are.
            truncate: Whether to cut queries that are too long.
            return_records: Whether to return the stored records.
        """
        if not is_whole(k) or k < 1:
            raise InputError(f"k: must be a whole number from 1, got {k!r}", field="k")
        if not is_whole(offset) or offset < 0:
            raise InputError(f"offset: must be a whole number from 0, got {offset!r}", field="offset")
        fields = {
            "k": k, "offset": offset, "where": None if where is None else dict(where), "index": index, "only": only,
            "truncate": truncate, "return_records": return_records, "min_score": min_score, "literal": literal,
        }  # fmt: skip

        def send(start: int, batch: list[bytes]) -> list[list[SearchHit]]:
            body = make_body(join_array(batch), fields, "queries")
            results = self._transport.post_json("/search", body, _SEARCHED, first=start, max_bytes=LARGE_ANSWER).results
            return self._check_hits(results, len(batch), max_hits=k)

        max_texts = max(1, MAX_HITS // max(k + offset, MIN_LOOKED))
        encoded = self._encode_blocks(queries, truncate=truncate)
        return self._transport.in_batches(encoded, send, max_texts=max_texts, bytes_beside=len(dump_fields(fields)))

    def add_rows(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        index: str | None = None,
        replace: bool = True,
        truncate: bool = False,
    ) -> int:
        """Add rows to a served index, or put them in the place of those with their ids; return how many it has.

        Rows beyond the service's limits go in several requests, of each of which all rows are added or none.

        Args:
            rows: Objects with the index's columns of texts and ids, whose values have a form in JSON.
            index: Name of a served index; None for the first.
            replace: Whether a row whose id is there takes the place of that row, so that a call may be repeated.
            truncate: Whether to cut texts that are too long.
        """
        listed = list(rows)
        encoded: list[bytes] = []
        for place, row in enumerate(listed):
            if not isinstance(row, Mapping):
                raise InputError(f"row {place}: must be a dict, got {type(row).__name__}", index=place)
            try:
                encoded.append(orjson.dumps(dict(row), option=orjson.OPT_SERIALIZE_NUMPY))
            except TypeError as error:
                raise InputError(f"row {place} has no form in JSON ({error})", index=place) from error
        # A request may hold about four values for each text that it may have.
        values = max((_count_values(row) for row in listed), default=1)
        most = max(1, 4 * self._transport.max_texts // values)
        return self._change("/rows/add", "rows", encoded, most, index, replace=replace, truncate=truncate)

    def remove_rows(self, ids: str | int | Iterable[str | int], *, index: str | None = None) -> int:
        """Remove rows from a served index by their ids, those that are there; return how many it has left.

        Args:
            ids: Of the rows.
            index: Name of a served index; None for the first.
        """
        given = [ids] if isinstance(ids, str | int) else list(ids)
        for given_id in given:
            if isinstance(given_id, bool) or not isinstance(given_id, str | int):
                raise InputError(f"ids: must be texts or whole numbers, got {given_id!r}", field="ids")
        encoded = [orjson.dumps(str(given_id)) for given_id in given]
        return self._change("/rows/remove", "ids", encoded, None, index)

    def _change(
        self, route: str, name: str, encoded: list[bytes], max_rows: int | None, index: str | None, **options: bool
    ) -> int:
        if not encoded:
            raise InputError(f"{name}: there are none; give at least one", field=name)
        fields = {"index": index, **options}

        def send(start: int, batch: list[bytes]) -> list[int]:
            body = make_body(join_array(batch), fields, name)
            changed = self._transport.post_json(
                route, body, _CHANGED, first=start, max_bytes=SMALL_ANSWER, api_key=self._write_key
            )
            return [changed.total]

        totals = self._transport.in_batches(encoded, send, max_texts=max_rows, bytes_beside=len(dump_fields(fields)))
        return totals[-1]

    def rerank(
        self, query: str, texts: Iterable[str], *, top_n: int | None = None, truncate: bool = False
    ) -> list[RerankedText]:
        """Return the places and scores of texts for the query, the best first, as `Embedder.rerank` does.

        Texts beyond the service's limits go in several requests. Each weighs letters by its own texts, so that scores
        then differ a little from an Embedder's.

        Args:
            query: A text.
            texts: Texts to rank.
            top_n: Most texts to return; None for all.
            truncate: Whether to cut texts that are too long.
        """
        _check_count("top_n", top_n)
        (asked,) = self._encode_blocks([query], truncate=truncate)
        encoded = self._encode_blocks(texts, truncate=truncate)
        fields = {"query": orjson.Fragment(asked), "truncate": truncate, "model": self.name, "raw_scores": True}

        def send(start: int, batch: list[bytes]) -> list[float]:
            body = make_body(join_array(batch), fields, "texts")
            ranking = self._transport.post_json(
                "/rerank", body, _RANKED, first=start, max_bytes=LARGE_ANSWER, same_model=True
            )
            if sorted(entry.index for entry in ranking) != list(range(len(batch))):
                raise ServiceError(f"{self._transport.url}: answered other places than were asked for")
            return [entry.score for entry in sorted(ranking, key=lambda entry: entry.index)]

        scores = self._transport.in_batches(encoded, send, texts_beside=1, bytes_beside=len(dump_fields(fields)))
        ranked = [RerankedText(place, score) for place, score in enumerate(scores)]
        return sorted(ranked, key=lambda entry: -entry.score)[:top_n]

    def predict(
        self, texts: Iterable[str], *, head: str | None = None, top_k: int | None = None, truncate: bool = False
    ) -> list[list[PredictedLabel]]:
        """Return the labels of each text, the likeliest first; at most `top_k`, None for all.

        Args:
            texts: Texts to classify.
            head: Name of a served head; None for the first.
            top_k: Most labels for each text.
            truncate: Whether to cut texts that are too long.
        """
        _check_count("top_k", top_k)
        fields = {"head": head, "top_k": top_k, "truncate": truncate}

        def send(start: int, batch: list[bytes]) -> list[list[PredictedLabel]]:
            body = make_body(join_array(batch), fields)
            labels = self._transport.post_json("/predict", body, _LABELS, first=start, max_bytes=LARGE_ANSWER)
            return self._check_hits(labels, len(batch), max_hits=top_k)

        max_texts = None if top_k is None else max(1, MAX_LABELS // top_k)
        encoded = self._encode_blocks(texts, truncate=truncate)
        return self._transport.in_batches(encoded, send, max_texts=max_texts, bytes_beside=len(dump_fields(fields)))

    def match(
        self,
        left: Iterable[str],
        right: Iterable[str],
        *,
        top: int | None = None,
        threshold: float | None = None,
        one_to_one: bool = False,
    ) -> list[MatchedPair]:
        """Return the pairs of left and right texts that name the same thing, by left text, then the highest score.

        Args:
            left: Texts; both lists go in one request.
            right: Texts to match with.
            top: Most right texts for a left one; None for the service's default.
            threshold: Lowest score of a pair; None for the service's default.
            one_to_one: Whether a right text goes to one left text only.
        """
        left_texts, right_texts = self._encode_blocks(left), self._encode_blocks(right)
        if not left_texts or not right_texts:
            return []
        options = {"top": top, "threshold": threshold, "one_to_one": one_to_one}
        sent = {name: value for name, value in options.items() if value is not None}
        body = make_body(join_array(left_texts), {"right": orjson.Fragment(join_array(right_texts)), **sent}, "left")
        pairs = self._transport.post_json("/match", body, _MATCHED, max_bytes=LARGE_ANSWER).matches
        if any(pair.left >= len(left_texts) or pair.right >= len(right_texts) for pair in pairs):
            raise ServiceError(f"{self._transport.url}: answered other places than were asked for")
        return pairs

    def embed_sparse(self, texts: Iterable[str], *, truncate: bool = False) -> SparseVectors:
        """Return n sparse rows of length 1: n-grams of 3 and 4 characters, hashed to columns, of equal weight."""

        def send(start: int, batch: list[bytes]) -> list[list[_Entry]]:
            body = make_body(join_array(batch), {"truncate": truncate})
            entries = self._transport.post_json("/embed_sparse", body, _SPARSE, first=start, max_bytes=LARGE_ANSWER)
            return self._check_hits(entries, len(batch), max_hits=None)

        encoded = self._encode_blocks(texts, truncate=truncate)
        rows = self._transport.in_batches(encoded, send, max_characters=MAX_CHARACTERS)
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        indices = np.fromiter((entry.index for row in rows for entry in row), np.int32, int(indptr[-1]))
        values = np.fromiter((entry.value for row in rows for entry in row), np.float32, int(indptr[-1]))
        return SparseVectors(indptr, indices, values, COLUMNS)

    def _encode_blocks(self, texts: Iterable[str], *, truncate: bool = False) -> list[bytes]:
        if isinstance(texts, np.ndarray) and texts.dtype.kind == "f":
            raise InputError("a service compares texts; give texts, or compare vectors with numpy", field="texts")
        return [orjson.dumps(text) for text in prepare_texts(list_texts(texts), self.max_characters, truncate=truncate)]

    def _scores(self, inputs: bytes, shape: tuple[int, ...]) -> Vectors:
        url = self._transport.url
        max_bytes = int(np.prod(shape)) * SCORE_BYTES + SMALL_ANSWER
        reply = self._transport.post("/similarity", make_body(inputs, {"model": self.name}), max_bytes=max_bytes)
        try:
            scores = np.array(orjson.loads(reply.body), np.float64)
        except (ValueError, TypeError) as error:
            raise ServiceError(f"{url}: answered no scores") from error
        if scores.shape != shape or not (np.abs(scores) <= 1).all():
            raise ServiceError(f"{url}: answered other scores than were asked for")
        return scores.astype(np.float32)

    def _check_hits(self, results: list[list[Any]], texts: int, *, max_hits: int | None) -> list[list[Any]]:
        if len(results) != texts or any(max_hits is not None and len(hits) > max_hits for hits in results):
            raise ServiceError(f"{self._transport.url}: answered for other texts than were asked for")
        return results


def _count_values(value: Any) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_count_values, value.values()))
    return 1 + sum(map(_count_values, value)) if isinstance(value, list | tuple) else 1


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (not is_whole(value) or value < 1):
        raise InputError(f"{name}: must be a whole number from 1, or None, got {value!r}", field=name)
