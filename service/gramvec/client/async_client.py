"""The client for event loops: a Client's methods, run in threads and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from gramvec.client.client import Client
from gramvec.embed.vectors import Vectors
from gramvec.threads import RenewedAfterFork, ThreadPool

P = ParamSpec("P")
T = TypeVar("T")

# Requests that one client has in flight at most.
THREADS = 16


def _run_in_thread(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._in_thread(partial(method, await self._connect(), *args, **kwargs))

    call.__doc__ = method.__doc__
    return call


class AsyncClient:
    """A Client for event loops: `async with AsyncClient(url) as client`. It connects at the first call.

    The arguments are those of Client. A cancelled call stops waiting; its request may still finish in its thread.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self._open = partial(Client, url, **options)
        self._threads = ThreadPool(THREADS, "gramvec-client")
        self._client: asyncio.Future[Client] | None = None
        self._renewed = RenewedAfterFork(self._forget)

    def _forget(self) -> None:
        self._client = None  # in a child of a fork, whose event loop is another

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and client.done() and not client.exception():
            client.result().close()
        self._threads.shutdown(wait=False)

    async def stream(self, texts: Iterable[str], **options: Any) -> AsyncIterator[Vectors]:
        """Yield blocks of vectors; the arguments are those of Client.stream."""
        blocks = (await self._connect()).stream(texts, **options)
        while (block := await self._in_thread(partial(next, blocks, None))) is not None:
            yield block

    embed = _run_in_thread(Client.embed)
    similarity = _run_in_thread(Client.similarity)
    pair_similarity = _run_in_thread(Client.pair_similarity)
    search = _run_in_thread(Client.search)
    add_rows = _run_in_thread(Client.add_rows)
    remove_rows = _run_in_thread(Client.remove_rows)
    rerank = _run_in_thread(Client.rerank)
    predict = _run_in_thread(Client.predict)
    match = _run_in_thread(Client.match)
    embed_sparse = _run_in_thread(Client.embed_sparse)

    async def _connect(self) -> Client:
        if self._client is None or (self._client.done() and self._client.exception()):
            self._client = asyncio.ensure_future(self._in_thread(self._open))
        return await asyncio.shield(self._client)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
