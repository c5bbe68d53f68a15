"""BERTopic: a backend for `BERTopic(embedding_model=...)`."""

from __future__ import annotations

from bertopic.backend import BaseEmbedder

from gramvec.embed.vectors import Vectors
from gramvec.integrations.models import Model, opened, vectors_of


class BertopicBackend(BaseEmbedder):
    """Vectors of length 1 of documents and words; long texts are cut.

    model: a name, a folder, an Embedder or a Client. dimensions: the first k columns, None for all.
    """

    def __init__(self, model: Model = "gramvec-en", *, dimensions: int | None = None) -> None:
        super().__init__(embedding_model=model)
        self.dimensions = dimensions
        opened(model)

    def embed(self, documents: list[str], verbose: bool = False) -> Vectors:
        """float32[n, k]; verbose is not used."""
        return vectors_of(self.embedding_model, documents, dimensions=self.dimensions)
