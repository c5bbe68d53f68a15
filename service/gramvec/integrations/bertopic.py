"""BERTopic: a backend for `BERTopic(embedding_model=...)`."""

from __future__ import annotations

from bertopic.backend import BaseEmbedder

from gramvec.embed.vectors import Vectors
from gramvec.integrations.models import ModelOrName, embed_texts, open_model


class BertopicBackend(BaseEmbedder):
    """Backend of BERTopic with vectors of length 1. Long texts are cut.

    Args:
        model: A name, a folder, an Embedder or a Client.
        dimensions: Number of leading columns; None for all.
    """

    def __init__(self, model: ModelOrName = "gramvec-en", *, dimensions: int | None = None) -> None:
        super().__init__(embedding_model=model)
        self.dimensions = dimensions
        open_model(model)

    def embed(self, documents: list[str], verbose: bool = False) -> Vectors:
        """Return float32[n, dimensions]; verbose is ignored."""
        return embed_texts(self.embedding_model, documents, dimensions=self.dimensions)
