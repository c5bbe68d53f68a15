"""Results as frames of pandas and polars, and as tables of Arrow: one way for the results of all jobs.

A result says which columns it has and what holds for all of its rows; nothing here knows a job. The three libraries are
imported by the call that needs one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramvec.errors import import_extra
from gramvec.jobs.tables.writers import cell

# Whole numbers that a column of 64 bits holds.
MIN_INT, MAX_INT = -(2**63), 2**63 - 1
FrameColumn = np.ndarray[Any, Any] | Sequence[Any]


class ResultTable(ABC):
    """Result that has a row for each thing that was found."""

    @abstractmethod
    def columns(self) -> dict[str, FrameColumn]:
        """Return the columns by name, of one length each: arrays, or lists of texts, numbers, booleans and None."""

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """Return what holds for all rows, such as the threshold, by name."""

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame. Its `attrs` have the `facts`. Raises InputError without pandas."""
        pandas = import_extra("pandas", None, "to_pandas")
        texts = pandas.Series([""]).dtype
        frame = pandas.DataFrame(
            {
                name: pandas.Series(column, dtype=texts) if _is_empty(column) else column
                for name, column in _uniform(self.columns()).items()
            }
        )
        frame.attrs.update(self.facts())
        return frame

    def to_polars(self) -> Any:
        """Return a polars.DataFrame, which has no place for the `facts`. Raises InputError without polars."""
        pl = import_extra("polars", None, "to_polars")
        return pl.DataFrame(
            [
                pl.Series(name, column, dtype=pl.String if _is_empty(column) else None)
                for name, column in _uniform(self.columns()).items()
            ]
        )

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table. The metadata of its schema have the `facts`, `gramvec.` before each name.

        Raises InputError without pyarrow.
        """
        pa = import_extra("pyarrow", "bulk", "to_arrow")
        columns = _uniform(self.columns())
        arrays = [pa.array(column, type=pa.string() if _is_empty(column) else None) for column in columns.values()]
        metadata = {f"gramvec.{name}": str(value) for name, value in self.facts().items()}
        return pa.table(arrays, names=[*columns], metadata=metadata)


def _uniform(columns: Mapping[str, FrameColumn]) -> dict[str, FrameColumn]:
    """Return columns each of which has values of one type: texts, as in a cell of CSV, where it has several."""
    return {name: _of_one_type(column) for name, column in columns.items()}


def _of_one_type(values: FrameColumn) -> FrameColumn:
    if isinstance(values, np.ndarray):
        return values
    types = {type(value) for value in values if value is not None}
    if types <= {str} or types <= {bool} or types <= {float}:
        return values
    if types <= {int} and all(MIN_INT <= value <= MAX_INT for value in values if value is not None):
        return values
    if types == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else cell(value) for value in values]


def _is_empty(column: FrameColumn) -> bool:
    return not isinstance(column, np.ndarray) and all(value is None for value in column)
