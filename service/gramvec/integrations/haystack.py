"""Haystack: an embedder of queries and one of documents, as components of a Pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_to_dict

from gramvec.integrations.models import Name, name_of, opened, vectors_of


class _Embedder:
    """model: a model's name or folder. dimensions: the first k columns, None for all."""

    def __init__(self, model: Name = "gramvec-en", dimensions: int | None = None) -> None:
        self.model = name_of(model)
        self.dimensions = dimensions

    def warm_up(self) -> None:
        """Open the model. Raises what gramvec.load does."""
        opened(self.model)

    def to_dict(self) -> dict[str, Any]:
        """What a pipeline's YAML has of it."""
        written: dict[str, Any] = default_to_dict(self, model=self.model, dimensions=self.dimensions)
        return written

    def _lists(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = vectors_of(self.model, texts, dimensions=self.dimensions).tolist()
        return found


@component
class HaystackTextEmbedder(_Embedder):
    """A query's vector of length 1, for a retriever. See _Embedder for its settings."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """The vector of one text, cut if it is long."""
        return {"embedding": self._lists([text])[0]}


@component
class HaystackDocumentEmbedder(_Embedder):
    """Documents with their vectors of length 1, for a writer. See _Embedder for its settings."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """The documents, each with the vector of its content; one without content has that of ""."""
        vectors = self._lists([one.content or "" for one in documents])
        return {"documents": [replace(one, embedding=row) for one, row in zip(documents, vectors, strict=True)]}
