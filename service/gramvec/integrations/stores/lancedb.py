"""Embedding function `gramvec` of LanceDB's registry."""

from __future__ import annotations

from typing import Any

from lancedb.embeddings import TextEmbeddingFunction, register

from gramvec.integrations.models import embed_texts, open_model


@register("gramvec")
class LanceEmbeddingFunction(TextEmbeddingFunction):
    """Embedding function with vectors of length 1, made by `create(model=..., dimensions=...)`. Long texts are cut.

    A table stores both settings and embeds rows and queries once this module is imported. `model` is a name or folder,
    `dimensions` the number of leading columns, None for all.
    """

    model: str = "gramvec-en"
    dimensions: int | None = None

    def ndims(self) -> int:
        """Return the number of columns."""
        return self.dimensions or open_model(self.model).dimension

    def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """Return a vector for each text, and None for a missing one."""
        listed = list(texts)
        there = [text for text in listed if text is not None]
        rows = iter(embed_texts(self.model, there, dimensions=self.dimensions))
        return [None if text is None else next(rows) for text in listed]
