"""LlamaIndex: `BaseEmbedding` of llama-index-core."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import Field

from gramvec.integrations.models import Name, name_of, opened, vectors_of


class LlamaIndexEmbedding(BaseEmbedding):
    """Vectors of length 1 as lists; long texts are cut. Queries and nodes are embedded alike.

    model_name: a model's name or folder. dimensions: the first k columns, None for all.
    """

    dimensions: int | None = Field(default=None, description="The first so many columns of a vector; None for all.")

    def __init__(self, model_name: Name = "gramvec-en", *, embed_batch_size: int = 512, **settings: Any) -> None:
        super().__init__(model_name=name_of(model_name), embed_batch_size=embed_batch_size, **settings)
        opened(self.model_name)

    @classmethod
    def class_name(cls) -> str:
        """What it is called where it is written down."""
        return "GramvecEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = vectors_of(self.model_name, texts, dimensions=self.dimensions).tolist()
        return found

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)
