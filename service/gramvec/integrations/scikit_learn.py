"""scikit-learn: texts into columns of a Pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from gramvec.embed.vectors import Vectors
from gramvec.integrations.models import Model, opened, vectors_of


class TextEmbedder(TransformerMixin, BaseEstimator):
    """A transformer of texts, any iterable of str, to float32[n, k]; nothing is learned by `fit`.

    model: a name, a folder, an Embedder or a Client. dimensions: the first k columns, None for all. normalize: length
    1. truncate: cut a text over the model's limit instead of refusing it. In a ColumnTransformer it takes one column,
    by its name and not by a list of names.
    """

    def __init__(
        self,
        model: Model = "gramvec-en",
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
        opened(self.model)
        return self

    def transform(self, X: Iterable[str]) -> Vectors:  # noqa: N803
        """float32[n, k]. Raises InputError for what is no column of texts."""
        return vectors_of(
            self.model, X, dimensions=self.dimensions, normalize=self.normalize, truncate=self.truncate
        )  # fmt: skip

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """gramvec0, gramvec1, ...; input_features is not used."""
        columns = self.dimensions or opened(self.model).dimension
        return np.array([f"gramvec{column}" for column in range(columns)], object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.requires_fit = True, False, False
        tags.transformer_tags.preserves_dtype = []
        return tags
