"""What carries talks out over httpx, without an event loop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gramvec.client.talks import Answer, Ask, Lost, Pause, Talk
from gramvec.client.tasks import Hit, Label, Match, Ranked, Tasks, Where
from gramvec.embed.inputs import TruncationDirection, in_batches
from gramvec.embed.st_compat import Encodes
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError, ServiceError
from gramvec.lexical.sparse_vectors import SparseVectors

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

BATCH_SIZE = 2_048
TIMEOUT = PATIENCE = 60.0


class Connected:
    """What both clients are told."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        try:
            self._library: Any = import_module("httpx")
        except ImportError as error:
            raise ServiceError("gramvec.client needs httpx; install it with: pip install httpx") from error
        self._talks = Tasks(_checked(url), model, patience)
        self._given = (url, model, api_key, timeout, patience)
        self._options = {"base_url": self._talks.url, "headers": _headers(api_key), "timeout": timeout}

    def __repr__(self) -> str:
        return f"<gramvec.client.{type(self).__name__} {self._talks.url}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _made_again, (type(self), *self._given)

    def _lost(self, error: httpx.TransportError) -> Lost:
        never = (self._library.ReadTimeout, self._library.WriteTimeout, self._library.UnsupportedProtocol)
        return Lost(f"{type(error).__name__} {error}".strip(), again=not isinstance(error, never))


class Client(Connected, Encodes):
    """A model that is served at `url`, with an Embedder's methods. Calls may come from several threads.

    model: one of several that are served; None for the default. api_key: if the service wants one; it is in a pickle.
    timeout: seconds for a connection, and for a pause in an answer. patience: seconds for which a service that is
    overloaded (429), not ready (503) or away is asked again, when it says or after growing pauses.

    Vectors have the bytes that the model's Embedder gives. Calls of many texts are cut into requests by the limits of
    the service. One that begins to serve another model is refused: vectors of two models cannot be compared.

    Raises ServiceError if the service cannot be had or will not answer, with its sentence and status, and what an
    Embedder raises.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(url, model=model, api_key=api_key, timeout=timeout, patience=patience)
        self._http: httpx.Client = self._library.Client(**self._options)
        try:
            found, _ = self._carried_out(self._talks.meet())
        except BaseException:
            self.close()
            raise
        self.name, self.digest = found.name, found.digest
        self.dimension, self.max_characters = found.dimension, found.max_characters

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def embed(
        self,
        texts: Iterable[str],
        *,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
    ) -> Vectors:
        """float32[n, k], see Embedder.embed."""
        return self._carried_out(
            self._talks.embed(
                texts,
                normalize=normalize,
                dimensions=dimensions,
                truncate=truncate,
                truncation_direction=truncation_direction,
            )
        )

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
        """float32[at most batch_size, k] at a time, see Embedder.stream."""

        def embed(batch: list[str]) -> Vectors:
            return self.embed(
                batch,
                normalize=normalize,
                dimensions=dimensions,
                truncate=truncate,
                truncation_direction=truncation_direction,
            )

        return in_batches(texts, BATCH_SIZE if batch_size is None else batch_size, embed)

    def similarity(self, left: Iterable[str], right: Iterable[str]) -> Vectors:
        """float32[n, m], see Embedder.similarity; of texts alone."""
        return self._carried_out(self._talks.similarity(left, right))

    def pair_similarity(self, left: Iterable[str], right: Iterable[str]) -> Vectors:
        """float32[n], see Embedder.pair_similarity; of texts alone."""
        return self._carried_out(self._talks.pair_similarity(left, right))

    def search(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        where: Where | None = None,
        index: str | None = None,
        hybrid: float = 0.0,
        truncate: bool = False,
        return_records: bool = True,
    ) -> list[list[Hit]]:
        """The k nearest rows of a served index for each query, the nearest first; see gramvec.Index.search.

        where: column -> the value that a row has there, or a list of such. index: its name, None for the first.
        hybrid: see there.
        """
        return self._carried_out(
            self._talks.search(
                queries,
                k,
                where=where,
                index=index,
                hybrid=hybrid,
                truncate=truncate,
                return_records=return_records,
            )
        )

    def rerank(
        self, query: str, texts: Iterable[str], *, top_n: int | None = None, truncate: bool = False
    ) -> list[Ranked]:
        """The texts' places and cosines with the query, the best first; at most `top_n`, None for all."""
        return self._carried_out(self._talks.rerank(query, texts, top_n=top_n, truncate=truncate))

    def predict(
        self, texts: Iterable[str], *, head: str | None = None, top_k: int | None = None, truncate: bool = False
    ) -> list[list[Label]]:
        """The labels of each text, the likeliest first; at most `top_k`, None for all.

        head: the name of a served head, None for the first.
        """
        return self._carried_out(self._talks.predict(texts, head=head, top_k=top_k, truncate=truncate))

    def match(
        self,
        left: Iterable[str],
        right: Iterable[str],
        *,
        top: int = 1,
        threshold: float = 0.3,
        one_to_one: bool = False,
    ) -> list[Match]:
        """For each left text the right ones that are most alike by n-grams; both lists go in one request.

        By left text, then the highest score; see gramvec.match.
        """
        return self._carried_out(self._talks.match(left, right, top=top, threshold=threshold, one_to_one=one_to_one))

    def embed_sparse(self, texts: Iterable[str], *, truncate: bool = False) -> SparseVectors:
        """n sparse rows of length 1: n-grams of 3 and 4 characters, hashed to columns, all of one weight."""
        return self._carried_out(self._talks.embed_sparse(texts, truncate=truncate))

    def _carried_out(self, talk: Talk[T]) -> T:
        said: Answer | Lost | None = None
        try:
            while True:
                said = self._said(talk.send(said))
        except StopIteration as done:
            value: T = done.value
            return value

    def _said(self, step: Ask | Pause) -> Answer | Lost | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            with self._http.stream(step.method, step.path, content=step.body) as response:
                body = bytearray()
                for part in response.iter_raw():
                    bounded(body, part, step.most)
                return Answer(response.status_code, response.headers, bytes(body))
        except self._library.TransportError as error:
            return self._lost(error)


def bounded(body: bytearray, part: bytes, most: int) -> None:
    """Add a part to a body. Raises ServiceError if that is longer then than it may be."""
    if len(body) + len(part) > most:
        raise ServiceError(f"the service answered more than the {most} bytes that its answer can have")
    body += part


def _headers(api_key: str | None) -> dict[str, str]:
    wanted = {
        "accept": "application/octet-stream, application/json;q=0.5",
        "accept-encoding": "identity",
        "content-type": "application/json",
    }
    return wanted if api_key is None else {**wanted, "authorization": f"Bearer {api_key}"}


def _checked(url: str) -> str:
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or "@" in url:
        raise InputError("url must be as in http://127.0.0.1:8000, with no name or key in it", field="url")
    return url.rstrip("/")


def _made_again(
    kind: type[Connected],
    url: str,
    model: str | None,
    api_key: str | None,
    timeout: float,
    patience: float,
) -> Connected:
    return kind(url, model=model, api_key=api_key, timeout=timeout, patience=patience)
