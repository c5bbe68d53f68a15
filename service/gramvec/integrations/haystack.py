"""Embedders of queries and documents as components of a Haystack pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_to_dict

from gramvec.integrations.models import ModelName, embed_lists, name_to_store, open_model


class _Embedder:
    """Settings of both components.

    Args:
        model: A name or folder.
        dimensions: Number of leading columns; None for all.
    """

    def __init__(self, model: ModelName = "gramvec-en", dimensions: int | None = None) -> None:
        self.model = name_to_store(model)
        self.dimensions = dimensions

    def warm_up(self) -> None:
        """Open the model. Raises what gramvec.load does."""
        open_model(self.model)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for a pipeline's YAML."""
        written: dict[str, Any] = default_to_dict(self, model=self.model, dimensions=self.dimensions)
        return written


@component
class HaystackTextEmbedder(_Embedder):
    """Component that embeds a query for a retriever, as a vector of length 1."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Return the vector of one text, which is cut if it is long."""
        return {"embedding": embed_lists(self.model, [text], self.dimensions)[0]}


@component
class HaystackDocumentEmbedder(_Embedder):
    """Component that embeds documents for a writer, as vectors of length 1."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the documents with vectors of their content; a missing content counts as an empty text."""
        vectors = embed_lists(self.model, [document.content or "" for document in documents], self.dimensions)
        return {
            "documents": [replace(document, embedding=row) for document, row in zip(documents, vectors, strict=True)]
        }
