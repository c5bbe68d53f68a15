"""The weights of a bundle, row by row: for what looks at single features, where a runtime sums them."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.errors import BundleError
from gramvec.text.arrays import Floats
from gramvec.text.suffixes import suffix_rows

_PART_ROWS = 4096

_opened: WeakKeyDictionary[Bundle, Weights] = WeakKeyDictionary()


class Weights:
    """A bundle's table, where it was mapped when the bundle was opened; see `open_weights`.

    Attributes:
        bias: float32[d], zeros where the model has none. A vector is activation(pool(rows) + bias).
    """

    def __init__(self, bundle: Bundle) -> None:
        mapped, d = bundle.weights, bundle.manifest.dimension
        if (beyond := bundle.manifest.graph.beyond_rows) is not None:
            raise BundleError(f"{bundle.path}: {bundle.manifest.name} {beyond}, so no row has a vector of its own")
        if mapped is None:
            raise BundleError(f"{bundle.path}: does not say where its table lies; export the model again")
        self._mapped = mapped
        self._columns = np.ones(d, np.float32) if mapped.columns is None else mapped.columns
        self._vocabulary = None if bundle.memoized.memo is None else bundle.vocabulary
        self.bias: Floats = np.zeros(d, np.float32) if mapped.bias is None else mapped.bias

    def rows(self, ids: NDArray[np.integer[Any]]) -> Floats:
        """Return what each of these features adds to a sum, float32[n, d].

        If the table's rows hold suffixes (see gramvec.text.suffixes), they are subtracted again.
        """
        vectors: Floats = np.empty((len(ids), self._mapped.dimension), np.float32)
        # By parts: each step of a whole table's arithmetic would take another 300 MB from the system.
        for begin in range(0, len(ids), _PART_ROWS):
            part = ids[begin : begin + _PART_ROWS]
            rows = self._read_rows(part)
            if self._vocabulary is not None:
                parents = self._parents[part]
                rows = np.subtract(rows, self._read_rows(parents) * (parents >= 0)[:, None], dtype=np.float32)
            vectors[begin : begin + _PART_ROWS] = rows
        return vectors

    @cached_property
    def _parents(self) -> NDArray[np.int32]:
        assert self._vocabulary is not None
        memo_rows = np.full(len(self._mapped.table) - len(self._vocabulary), -1, np.int32)
        return np.append(suffix_rows(self._vocabulary), memo_rows)

    def _read_rows(self, ids: NDArray[np.integer[Any]]) -> Floats:
        return np.multiply(self._mapped.rows(ids), self._columns, dtype=np.float32)


def open_weights(bundle: Bundle) -> Weights:
    """Return the weights of an opened bundle; they stay unchanged when its folder gets another model.

    Raises BundleError if the bundle does not say where its table lies.
    """
    if (weights := _opened.get(bundle)) is None:
        weights = _opened[bundle] = Weights(bundle)
    return weights
