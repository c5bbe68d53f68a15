"""LlamaIndex's `BaseEmbedding` over a model, and a retriever over an index of ours."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from gramvec.integrations.indexes import IndexOrFolder, check_options, find_texts, open_index
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


class LlamaIndexRetriever(BaseRetriever):
    """LlamaIndex retriever of the nodes that `gramvec.Index.search` finds, by letters and meaning, the best first.

    A node has the row's text and id, the row's other columns as metadata, and the score of the search. Long queries
    are cut.

    Args:
        index: A gramvec.Index, or its folder.
        similarity_top_k: Nodes for a query, at most.
        options: `where`, `only`, `min_score` and `literal` of Index.search, and `callback_manager`.
    """

    def __init__(self, index: IndexOrFolder, *, similarity_top_k: int = 10, **options: Any) -> None:
        base = {name: options.pop(name) for name in ("callback_manager", "verbose") if name in options}
        self._index = open_index(index)
        self._options = {"k": similarity_top_k, **options}
        check_options(self._index, self._options)
        super().__init__(**base)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=found.id, text=found.text, metadata=found.others), score=found.score)
            for found in find_texts(self._index, query_bundle.query_str, self._options)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
