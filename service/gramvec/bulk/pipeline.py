"""From blocks of texts to blocks of bytes, on all cores, in the order of the input."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.embed.quantization import Precision, check_precision, quantize
from gramvec.embed.vectors import Vectors, check_dimensions
from gramvec.errors import InputError
from gramvec.tables.batches import START, Block, Position, Reader
from gramvec.tables.writers import Writes

OnError = Literal["stop", "skip"]


@dataclass(frozen=True)
class Options:
    """What decides the numbers of a vector, see Embedder.embed and gramvec.embed.quantization."""

    normalize: bool = True
    dimensions: int | None = None
    truncate: bool = False
    precision: Precision = "float32"

    def check(self, embedder: Embedder) -> tuple[np.dtype[np.generic], int]:
        """The type and number of a vector's items. Raises InputError for what the model cannot give."""
        check_dimensions(self.dimensions, embedder.dimension)
        check_precision(self.precision, normalize=self.normalize)
        probe = quantize(np.zeros((1, self.dimensions or embedder.dimension), np.float32), self.precision)
        return probe.dtype, probe.shape[1]

    def embed(self, embedder: Embedder, texts: list[str]) -> Vectors:
        """float32[n, k]."""
        return embedder.embed(
            texts, normalize=self.normalize, dimensions=self.dimensions, truncate=self.truncate
        )  # fmt: skip


class Embedded(NamedTuple):
    """A block with its vectors [n, k], zero for a row without one; `missing` bool[n] tells which, `bad` why."""

    block: Block
    vectors: NDArray[np.generic]
    missing: NDArray[np.bool_]
    bad: list[tuple[int, str]]


class Piece(NamedTuple):
    """What is to be appended for a block, its rows, the bad ones, and where the next block begins."""

    data: bytes
    rows: int
    bad: list[tuple[int, str]]
    position: Position


@dataclass
class Work:
    """What is done with a block.

    Raises InputError with the line's number for a bad line if on_error is "stop".
    """

    embedder: Embedder
    options: Options
    on_error: OnError = "stop"
    unit: str = "line"
    bad: dict[int, str] = field(default_factory=dict)

    def embedded(self, block: Block) -> Embedded:
        """The vectors of a block."""
        bad = dict(block.bad)
        texts = list(block.texts)
        try:
            vectors = self.options.embed(self.embedder, texts)
        except InputError:
            bad |= self._refused(texts)
            for index in bad:
                texts[index] = ""
            vectors = self.options.embed(self.embedder, texts)
        named = [(block.numbers[index], bad[index]) for index in sorted(bad)]
        if named and self.on_error == "stop":
            number, why = named[0]
            raise InputError(f"{self.unit} {number}: {why}")
        missing = np.zeros(len(texts), np.bool_)
        missing[list(bad)] = True
        numbers = quantize(vectors, self.options.precision)
        if bad:
            numbers[missing] = 0
        return Embedded(block, numbers, missing, named)

    def _refused(self, texts: list[str]) -> dict[int, str]:
        bad = {}
        for index, text in enumerate(texts):
            try:
                self.embedder.prepare([text], truncate=self.options.truncate)
            except InputError as error:
                why = str(error).removeprefix("text 0 ").replace("pass truncate=true", "pass --truncate")
                bad[index] = why.replace("has ", "the text has ", 1)
        return bad

    def piece(self, form: Writes, block: Block) -> Piece:
        """The bytes of a block."""
        found = self.embedded(block)
        data = form.encode(block, found.vectors, found.missing)
        return Piece(data, len(block.texts), found.bad, block.position)


def pieces(reader: Reader, form: Writes, work: Work, threads: int, start: Position = START) -> Iterator[Piece]:
    """The pieces of an input in its order; the form must have begun unless `start` is the start.

    `threads` blocks are embedded and encoded at a time while this thread reads and its caller writes; at most two more
    wait, so memory does not grow with the input.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="gramvec-bulk") as pool:
        waiting: deque[Future[Piece]] = deque()
        try:
            blocks = reader.blocks(start)
            if start == START:
                first = next(blocks, None)
                yield Piece(form.begin(first, getattr(reader, "schema", None)), 0, [], START)
                if first is not None:
                    waiting.append(pool.submit(work.piece, form, first))
            for block in blocks:
                waiting.append(pool.submit(work.piece, form, block))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
