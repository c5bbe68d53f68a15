"""SQL functions of DuckDB over a model."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from gramvec.integrations.models import ModelOrName, embed_texts, open_model


def register_duckdb(
    connection: duckdb.DuckDBPyConnection, model: ModelOrName = "gramvec-en", *, dimensions: int | None = None
) -> None:
    """Add gramvec_embed(text) -> FLOAT[k] and gramvec_similarity(text, text) -> FLOAT to a connection.

    Vectors have length 1, long texts are cut, and NULL gives NULL. It needs pyarrow.

    Args:
        connection: A connection of DuckDB.
        model: A name, a folder, an Embedder or a Client.
        dimensions: Number of leading columns; None for all.
    """
    width = dimensions or open_model(model).dimension

    def vectors(texts: Any) -> Any:
        return embed_texts(model, texts, dimensions=dimensions)

    def embed(texts: Any) -> Any:
        flat = vectors(texts).ravel()
        return pa.FixedSizeListArray.from_arrays(pa.array(flat), width)

    def similarity(left: Any, right: Any) -> Any:
        return pa.array(np.add.reduce(vectors(left) * vectors(right), axis=1))

    text, number, vector = map(duckdb.sqltype, ("VARCHAR", "FLOAT", f"FLOAT[{width}]"))
    connection.create_function("gramvec_embed", embed, [text], vector, type="arrow")
    connection.create_function("gramvec_similarity", similarity, [text, text], number, type="arrow")
