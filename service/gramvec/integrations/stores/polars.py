"""Namespace of polars' expressions and columns: `pl.col("title").gramvec.embed()`."""

from __future__ import annotations

import numpy as np
import polars as pl

from gramvec.integrations.models import ModelOrName, embed_texts, open_model


def register_polars() -> None:
    """Add the namespace `gramvec` with `embed` and `similarity` to expressions and Series, once."""
    # polars warns of a namespace that exists already.
    for kind, namespace, register in (
        (pl.Expr, _OfExpressions, pl.api.register_expr_namespace),
        (pl.Series, _OfSeries, pl.api.register_series_namespace),
    ):
        if not hasattr(kind, "gramvec"):
            register("gramvec")(namespace)


class _OfSeries:
    """Namespace of a column of texts; a missing text has a missing result."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def embed(self, model: ModelOrName = "gramvec-en", *, dimensions: int | None = None) -> pl.Series:
        """Return Array(Float32, dimensions), a vector of length 1 for each text; long texts are cut."""
        width = dimensions or open_model(model).dimension
        there = self._series.is_not_null().to_numpy()
        rows = np.zeros((len(there), width), np.float32)
        rows[there] = embed_texts(model, self._series.drop_nulls(), dimensions=dimensions)
        column = pl.Series(self._series.name, rows, pl.Array(pl.Float32, width))
        return column if there.all() else pl.select(pl.when(pl.lit(pl.Series(there))).then(pl.lit(column))).to_series()

    def similarity(self, text: str, model: ModelOrName = "gramvec-en") -> pl.Series:
        """Return Float32, the cosine of each text with one text; 0 for a text without known features."""
        there = self._series.is_not_null().to_numpy()
        cosines = np.zeros(len(there), np.float32)
        query = embed_texts(model, [text])
        cosines[there] = np.add.reduce(embed_texts(model, self._series.drop_nulls()) * query, axis=1)
        column = pl.Series(self._series.name, cosines)
        return column if there.all() else pl.select(pl.when(pl.lit(pl.Series(there))).then(pl.lit(column))).to_series()


class _OfExpressions:
    """Namespace of expressions, evaluated lazily."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def embed(self, model: ModelOrName = "gramvec-en", *, dimensions: int | None = None) -> pl.Expr:
        """Embed a column, as the Series method does."""
        kind = pl.Array(pl.Float32, dimensions or open_model(model).dimension)
        return self._expression.map_batches(
            lambda column: _OfSeries(column).embed(model, dimensions=dimensions), return_dtype=kind
        )

    def similarity(self, text: str, model: ModelOrName = "gramvec-en") -> pl.Expr:
        """Compare a column with one text, as the Series method does."""
        return self._expression.map_batches(
            lambda column: _OfSeries(column).similarity(text, model), return_dtype=pl.Float32
        )
