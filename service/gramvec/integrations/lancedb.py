"""LanceDB: an embedding function of its registry, under the name gramvec."""

from __future__ import annotations

from typing import Any

from lancedb.embeddings import TextEmbeddingFunction, register

from gramvec.integrations.models import opened, vectors_of


@register("gramvec")
class LanceEmbeddingFunction(TextEmbeddingFunction):
    """Vectors of length 1; long texts are cut. Made by `create(model=..., dimensions=...)`.

    model: a model's name or folder. dimensions: the first k columns, None for all. A table keeps both and embeds rows
    and queries by itself, once this module was imported.
    """

    model: str = "gramvec-en"
    dimensions: int | None = None

    def ndims(self) -> int:
        """The columns of a vector."""
        return self.dimensions or opened(self.model).dimension

    def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """A vector a text; None for a missing one, as LanceDB wants it."""
        given = list(texts)
        there = [text for text in given if text is not None]
        rows = iter(vectors_of(self.model, there, dimensions=self.dimensions))
        return [None if text is None else next(rows) for text in given]
