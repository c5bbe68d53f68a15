"""LangChain's `Embeddings`, for any of its vector stores."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from gramvec.integrations.models import ModelOrName, embed_lists, open_model


class LangChainEmbeddings(Embeddings):
    """LangChain embeddings of length 1. Queries and documents are embedded alike; long texts are cut.

    Args:
        model: A name, a folder, an Embedder or a Client.
        dimensions: Number of leading columns; None for all.
    """

    def __init__(self, model: ModelOrName = "gramvec-en", *, dimensions: int | None = None) -> None:
        self.model = model
        self.dimensions = dimensions
        open_model(model)  # a wrong name is reported early

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text. Raises InputError for anything that is not a text."""
        return embed_lists(self.model, texts, self.dimensions)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return self.embed_documents([text])[0]
