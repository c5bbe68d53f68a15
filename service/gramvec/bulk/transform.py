"""`Embed`: batches of Arrow or numpy in, the same batches with a column of vectors out. Ray Data and Spark call it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.embed_file import COLUMN, EMBEDDING
from gramvec.bulk.metadata import provenance
from gramvec.bulk.pipeline import OnError, Options, Work
from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.tables.arrow import pyarrow, texts_of, vector_column, with_metadata
from gramvec.tables.batches import START, Block


class Embed:
    """A model that adds a column of vectors to batches. It is opened once, by the first batch of a process.

    model: a name in models/, or a bundle's folder, as the machine that computes knows it. column, embedding: the names
    of the texts' column and of the new one. digest: refuse a model with another digest, so that all machines have the
    same one. on_error: "skip" gives a bad text null (numpy: zeros), "stop" raises InputError. The other options are
    those of Embedder.embed and gramvec.embed.quantization.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "gramvec-en",
        *,
        column: str = COLUMN,
        embedding: str = EMBEDDING,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        precision: str = "float32",
        on_error: OnError = "stop",
        max_characters: int = MAX_CHARACTERS,
        device: str = "auto",
        threads: int = 1,
        digest: str | None = None,
    ) -> None:
        self.model = os.fspath(model)
        self.column = column
        self.embedding = embedding
        self.options = Options(normalize, dimensions, truncate, precision)  # type: ignore[arg-type]
        self.on_error: OnError = on_error
        self.max_characters = max_characters
        self.device = device
        self.threads = threads
        self.digest = digest
        self._work: Work | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_work": None}  # an open model does not travel; the other process opens its own

    def open(self) -> Work:
        """The open model. Raises what gramvec.load raises, and InputError for another digest or bad options."""
        if self._work is None:
            embedder = load(
                self.model,
                device=self.device,  # type: ignore[arg-type]
                max_characters=self.max_characters,
                threads=self.threads,
            )
            if self.digest not in (None, embedder.digest):
                raise InputError(
                    f"{embedder.bundle.path} has digest {embedder.digest}, not {self.digest}; copy the same model"
                )
            self.options.check(embedder)
            self._work = Work(embedder, self.options, self.on_error, "row")
        return self._work

    def __call__(self, batch: Any) -> Any:
        """A pyarrow Table or RecordBatch, or a dict of numpy arrays: the same with the new column, as its last."""
        if isinstance(batch, dict):
            return self._numpy(batch)
        return self._arrow(batch)

    def _arrow(self, batch: Any) -> Any:
        pa = pyarrow("Arrow")
        self._check(batch.schema.names)
        texts = texts_of(batch.column(batch.schema.get_field_index(self.column)), self.column)
        vectors, missing = self._vectors(texts)
        column = self._column(vectors, missing)
        schema = batch.schema.append(pa.field(self.embedding, column.type))
        entries = provenance(self.open().embedder, vars(self.options))
        return type(batch).from_arrays([*batch.columns, column], schema=with_metadata(schema, entries))

    def _column(self, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> Any:
        return vector_column(vectors, missing)

    def _numpy(self, batch: dict[str, Any]) -> dict[str, Any]:
        self._check(list(batch))
        vectors, _ = self._vectors(list(batch[self.column]))
        return {**batch, self.embedding: vectors}

    def _check(self, names: list[str]) -> None:
        if self.column not in names:
            raise InputError(f"no column {self.column!r}; there are {', '.join(names)}: name one by column=")
        if self.embedding in names:
            raise InputError(f"there is a column {self.embedding!r} already; name another one by embedding=")

    def _vectors(self, texts: list[str | None]) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
        block = Block(START)
        for text in texts:
            if isinstance(text, str):
                block.texts.append(text)
            else:
                block.refuse(f"of type {type(text).__name__}, no text")
        block.numbers = list(range(1, len(texts) + 1))
        found = self.open().embedded(block)
        return found.vectors, found.missing
