"""Spark: `Embed` for DataFrame.mapInArrow.

    from gramvec.bulk.spark import Embed

    embed = Embed("gramvec-en", column="title")
    vectors = frame.mapInArrow(embed, embed.schema(frame.schema))

Each Python worker of Spark opens the model once for a partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk import transform as batches
from gramvec.errors import InputError
from gramvec.tables.arrow import pyarrow

__all__ = ["Embed"]

SPARK_TYPES = {"float32": "FloatType", "int8": "ByteType", "binary": "ByteType"}


class Embed(batches.Embed):
    """`gramvec.bulk.transform.Embed`, over an iterator of record batches as Spark gives them."""

    def __call__(self, batch: Any) -> Any:
        """Record batches one by one, each with the column of vectors."""
        return self._each(batch)

    def _each(self, found: Iterator[Any]) -> Iterator[Any]:
        for batch in found:
            yield self._arrow(batch)

    def _column(self, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> Any:
        column = super()._column(vectors, missing)  # Spark knows lists of any length alone
        return column.cast(pyarrow().list_(column.type.value_type))

    def schema(self, frame: Any) -> Any:
        """The pyspark StructType of the result, for one of the input. Spark has no unsigned bytes."""
        types = import_module("pyspark.sql.types")
        if (kind := SPARK_TYPES.get(self.options.precision)) is None:
            raise InputError(f"precision {self.options.precision} is unsigned, Spark has no such bytes; take int8")
        column = types.StructField(self.embedding, types.ArrayType(getattr(types, kind)()))
        return types.StructType([*frame.fields, column])
