"""LlamaIndex's `BaseEmbedding` over a model."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import Field

from gramvec.integrations.models import ModelName, embed_lists, name_to_store, open_model


class LlamaIndexEmbedding(BaseEmbedding):
    """LlamaIndex embeddings of length 1. Queries and nodes are embedded alike; long texts are cut.

    Args:
        model_name: A name or folder.
        embed_batch_size: Texts that LlamaIndex passes at a time.
        settings: Other fields of BaseEmbedding, and `dimensions`.
    """

    dimensions: int | None = Field(default=None, description="Number of leading columns; None for all.")

    def __init__(self, model_name: ModelName = "gramvec-en", *, embed_batch_size: int = 512, **settings: Any) -> None:
        super().__init__(model_name=name_to_store(model_name), embed_batch_size=embed_batch_size, **settings)
        open_model(self.model_name)

    @classmethod
    def class_name(cls) -> str:
        """Return the name in stored settings."""
        return "GramvecEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return embed_lists(self.model_name, texts, self.dimensions)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)
