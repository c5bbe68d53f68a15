"""LangChain: `Embeddings` of langchain-core, for any of its vector stores."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from gramvec.integrations.models import Model, opened, vectors_of


class LangChainEmbeddings(Embeddings):
    """Vectors of length 1 as lists; long texts are cut. Queries and documents are embedded alike.

    model: a name, a folder, an Embedder or a Client. dimensions: the first k columns, None for all.
    """

    def __init__(self, model: Model = "gramvec-en", *, dimensions: int | None = None) -> None:
        self.model = model
        self.dimensions = dimensions
        opened(model)  # what is wrong with a name is said here

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector a text. Raises InputError for what is no text."""
        found: list[list[float]] = vectors_of(self.model, texts, dimensions=self.dimensions).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]
