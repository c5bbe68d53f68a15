"""Chroma: an `EmbeddingFunction` that a collection keeps by the model's name."""

from __future__ import annotations

from typing import Any, Self

from chromadb.api.types import Documents, EmbeddingFunction
from chromadb.utils.embedding_functions import register_embedding_function

from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError
from gramvec.integrations.models import ModelName, embed_texts, name_to_store, open_model


@register_embedding_function
class ChromaEmbeddingFunction(EmbeddingFunction[Documents]):
    """Embedding function of Chroma with vectors of length 1 and the cosine as default space. Long texts are cut.

    Args:
        model: A name or folder, which a collection stores.
        dimensions: Number of leading columns; None for all.
    """

    def __init__(self, model: ModelName = "gramvec-en", dimensions: int | None = None) -> None:
        self.model = name_to_store(model)
        self.dimensions = dimensions
        open_model(self.model)

    def __call__(self, input: Documents) -> list[Vectors]:  # noqa: A002
        """Return a vector for each document."""
        return list(embed_texts(self.model, input, dimensions=self.dimensions))

    @staticmethod
    def name() -> str:
        """Return the name in a collection's configuration."""
        return "gramvec"

    def default_space(self) -> str:
        """Return the distance of a new collection."""
        return "cosine"

    def get_config(self) -> dict[str, Any]:
        """Return the settings that a collection stores."""
        return {"model": self.model, "dimensions": self.dimensions}

    @classmethod
    def build_from_config(cls, config: dict[str, Any]) -> Self:
        """Rebuild the function from stored settings. Raises InputError if they name no model."""
        model, dimensions = config.get("model"), config.get("dimensions")
        if not isinstance(model, str):
            raise InputError("the collection's embedding function names no model; give one to get_collection")
        return cls(model, dimensions)

    def validate_config_update(self, old_config: dict[str, Any], new_config: dict[str, Any]) -> None:
        """Raise ValueError for another model: its vectors would not fit those that are stored."""
        if old_config != new_config:
            raise ValueError("a collection keeps its model and its dimensions; make another collection")
