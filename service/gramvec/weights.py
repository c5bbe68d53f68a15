"""The weights of a bundle, row by row: for what looks at single features, where a runtime sums them."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle import Bundle
from gramvec.errors import BundleError
from gramvec.finding import MANIFEST
from gramvec.vocab.suffixes import suffix_rows

Floats = NDArray[np.float32]

_DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}
_opened: WeakKeyDictionary[Bundle, Weights] = WeakKeyDictionary()


class Weights:
    """A bundle's table, mapped from its file; see `weights_of`.

    bias: float32[d], zeros where the model has none. A vector is activation(pool(rows) + bias).
    """

    def __init__(self, bundle: Bundle) -> None:
        graph, d = bundle.manifest.graph, bundle.manifest.dimension
        stored = graph.stored
        if stored is None:
            raise BundleError(f"{bundle.path}: does not say where its table lies; export the model again")
        path = bundle.path / stored.file
        try:
            # A folder whose model was replaced since it was loaded holds the rows of another vocabulary.
            same = hashlib.sha256((bundle.path / MANIFEST).read_bytes()).hexdigest() == bundle.digest
            self._table: NDArray[Any] = np.memmap(path, _DTYPES[graph.precision], "r", stored.table, (stored.rows, d))
            self._scales: NDArray[Any] | None = None
            if stored.scales is not None:
                self._scales = np.memmap(path, _DTYPES["float32"], "r", stored.scales, (stored.rows,))
        except (OSError, ValueError) as error:
            raise BundleError(f"{path}: its table cannot be mapped ({error}); copy or export it again") from error
        if not same:
            raise BundleError(f"{bundle.path}: its files were replaced since the model was loaded; load it again")
        self._columns = np.ones(d, np.float32) if stored.columns is None else np.array(stored.columns, np.float32)
        self._vocabulary = None if bundle.memoised.memo is None else bundle.vocabulary
        self.bias: Floats = np.zeros(d, np.float32) if stored.bias is None else np.array(stored.bias, np.float32)

    def rows(self, ids: NDArray[np.integer[Any]] | slice) -> Floats:
        """float32[n, d]: what these features add to a sum, each by itself.

        Where the table's rows hold suffixes (see gramvec.vocab.suffixes), these are taken out again.
        """
        found = self._stored(ids)
        if self._vocabulary is None:
            return found
        parents = self._parents[ids]
        return np.subtract(found, self._stored(parents) * (parents >= 0)[:, None], dtype=np.float32)

    @cached_property
    def _parents(self) -> NDArray[np.int32]:
        assert self._vocabulary is not None
        memo_rows = np.full(len(self._table) - len(self._vocabulary), -1, np.int32)
        return np.append(suffix_rows(self._vocabulary), memo_rows)

    def _stored(self, ids: NDArray[np.integer[Any]] | slice) -> Floats:
        found = np.asarray(self._table[ids], np.float32)
        if self._scales is not None:
            found = found * np.asarray(self._scales[ids])[:, None]
        return np.multiply(found, self._columns, dtype=np.float32)


def weights_of(bundle: Bundle) -> Weights:
    """The weights of an opened bundle, mapped once.

    Raises BundleError if the bundle does not say where its table lies, or its folder holds another model by now.
    """
    if (weights := _opened.get(bundle)) is None:
        weights = _opened[bundle] = Weights(bundle)
    return weights
