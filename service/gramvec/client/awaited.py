"""What carries talks out over httpx, on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gramvec.client.clients import BATCH_SIZE, PATIENCE, TIMEOUT, Connected, bounded
from gramvec.client.talks import Answer, Ask, Lost, Pause, Talk
from gramvec.client.tasks import Hit, Label, Match, Ranked, Where
from gramvec.embed.inputs import TruncationDirection
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.text.inputs import iterated

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class AsyncClient(Connected):
    """The same for an event loop: `async with AsyncClient(url) as client`. Nothing is asked before the first call."""

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
        self._http: httpx.AsyncClient = self._library.AsyncClient(**self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def embed(
        self,
        texts: Iterable[str],
        *,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        truncation_direction: TruncationDirection = "right",
    ) -> Vectors:
        """float32[n, k], see Embedder.embed."""
        return await self._carried_out(
            self._talks.embed(
                texts,
                normalize=normalize,
                dimensions=dimensions,
                truncate=truncate,
                truncation_direction=truncation_direction,
            )
        )

    async def stream(
        self, texts: Iterable[str], *, batch_size: int = BATCH_SIZE, **options: Any
    ) -> AsyncIterator[Vectors]:
        """float32[at most batch_size, k] at a time; options: those of embed."""
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}", field="batch_size")
        iterator = iterated(texts)
        while batch := list(islice(iterator, batch_size)):
            yield await self.embed(batch, **options)

    async def similarity(self, left: Iterable[str], right: Iterable[str]) -> Vectors:
        """float32[n, m], see Embedder.similarity; of texts alone."""
        return await self._carried_out(self._talks.similarity(left, right))

    async def pair_similarity(self, left: Iterable[str], right: Iterable[str]) -> Vectors:
        """float32[n], see Embedder.pair_similarity; of texts alone."""
        return await self._carried_out(self._talks.pair_similarity(left, right))

    async def search(
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
        """See Client.search."""
        return await self._carried_out(
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

    async def rerank(
        self, query: str, texts: Iterable[str], *, top_n: int | None = None, truncate: bool = False
    ) -> list[Ranked]:
        """See Client.rerank."""
        return await self._carried_out(self._talks.rerank(query, texts, top_n=top_n, truncate=truncate))

    async def predict(
        self, texts: Iterable[str], *, head: str | None = None, top_k: int | None = None, truncate: bool = False
    ) -> list[list[Label]]:
        """See Client.predict."""
        return await self._carried_out(self._talks.predict(texts, head=head, top_k=top_k, truncate=truncate))

    async def match(
        self,
        left: Iterable[str],
        right: Iterable[str],
        *,
        top: int = 1,
        threshold: float = 0.3,
        one_to_one: bool = False,
    ) -> list[Match]:
        """See Client.match."""
        return await self._carried_out(
            self._talks.match(left, right, top=top, threshold=threshold, one_to_one=one_to_one)
        )

    async def embed_sparse(self, texts: Iterable[str], *, truncate: bool = False) -> SparseVectors:
        """See Client.embed_sparse."""
        return await self._carried_out(self._talks.embed_sparse(texts, truncate=truncate))

    async def _carried_out(self, talk: Talk[T]) -> T:
        said: Answer | Lost | None = None
        try:
            while True:
                said = await self._said(talk.send(said))
        except StopIteration as done:
            value: T = done.value
            return value

    async def _said(self, step: Ask | Pause) -> Answer | Lost | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            async with self._http.stream(step.method, step.path, content=step.body) as response:
                body = bytearray()
                async for part in response.aiter_raw():
                    bounded(body, part, step.most)
                return Answer(response.status_code, response.headers, bytes(body))
        except self._library.TransportError as error:
            return self._lost(error)
