"""Transformer of scikit-learn that turns texts into columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from gramvec.embed.vectors import Vectors
from gramvec.integrations.models import ModelOrName, embed_texts, open_model


class TextEmbedder(TransformerMixin, BaseEstimator):
    """Transformer of texts to float32[n, dimensions]; `fit` learns nothing.

    In a ColumnTransformer it takes one column, by its name and not by a list of names.

    Args:
        model: A name, a folder, an Embedder or a Client.
        dimensions: Number of leading columns; None for all.
        normalize: Whether vectors have length 1.
        truncate: Whether texts over the model's limit are cut instead of refused.
    """

    def __init__(
        self,
        model: ModelOrName = "gramvec-en",
        *,
        dimensions: int | None = None,
        normalize: bool = True,
        truncate: bool = True,
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self.normalize = normalize
        self.truncate = truncate

    def fit(self, X: Iterable[str], y: Any = None) -> Self:  # noqa: N803
        """Open the model. Raises what gramvec.load does."""
        open_model(self.model)
        return self

    def transform(self, X: Iterable[str]) -> Vectors:  # noqa: N803
        """Return float32[n, dimensions]. Raises InputError for anything but a column of texts."""
        return embed_texts(
            self.model, X, dimensions=self.dimensions, normalize=self.normalize, truncate=self.truncate
        )  # fmt: skip

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return gramvec0, gramvec1, ...; input_features is ignored."""
        columns = self.dimensions or open_model(self.model).dimension
        return np.array([f"gramvec{column}" for column in range(columns)], object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.requires_fit = True, False, False
        tags.transformer_tags.preserves_dtype = []
        return tags
