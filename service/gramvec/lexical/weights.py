"""Weights of n-grams, a / (a + p) for a share p of texts that hold the n-gram, and their file, lexical.safetensors.

This is SIF's weight (Arora et al. 2017, equation 3) for n-grams and texts. Weights are multiples of 1/255, so that
their sums are exact. An n-gram that is rare or unknown weighs 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.lexical.hashing import lower_table
from gramvec.lexical.sparse import SIF_A, count_holders
from gramvec.text.array_file import pack_arrays, read_arrays
from gramvec.text.arrays import Array
from gramvec.text.characters import CODE_POINTS

KIND, VERSION = "lexical weights", 2
# 0.3 MB, which the processor's second cache holds. Of the n-grams that share a place hardly one is common.
WEIGHT_BITS = 18
FULL_WEIGHT = 255
BLANK = ord(" ")  # what white space is read as

_DTYPES = {"letters": "<u4", "weights": "|u1"}


class NgramWeights:
    """weights: uint8[2^18], in 255ths, from 1, by the highest bits of an n-gram's hash (see gramvec.lexical.hashing).

    letters: uint32[f, 2], the code points that are read as others, ascending, and these: lower case, and U+0020 for
    white space. Frozen with the weights, since later versions of Unicode know more of them. The arrays are read-only.
    """

    def __init__(self, weights: NDArray[np.uint8], letters: NDArray[np.uint32]) -> None:
        self.weights, self.letters = weights, letters
        for array in (weights, letters):
            array.setflags(write=False)

    @classmethod
    def of_texts(cls, texts: Iterable[str], orders: Sequence[int], *, a: float = SIF_A) -> tuple[NgramWeights, int]:
        """Fit the weights to texts, in 140 MB and time linear in their characters; return them and the number of texts.

        Raises InputError if there is no text, a text is not a str, or `a` is not above 0.
        """
        if not 0 < a < float("inf"):
            raise InputError(f"a: must be above 0, got {a:g}", field="a")
        held, number = count_holders(texts, orders)
        if number == 0:
            raise InputError("there are no texts to weigh n-grams by; give some", field="texts")
        # What shares a place is as common as the commonest of them.
        shares = held.reshape(1 << WEIGHT_BITS, -1).max(axis=1) / number
        weights = np.maximum(np.rint(FULL_WEIGHT * (a / (a + shares))), 1).astype(np.uint8)
        return cls(weights, _letters()), number

    def look_up(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the weight of each hash, float64 in the shape of the hashes, 1 to 255."""
        weights: NDArray[np.float64] = self.weights[hashes >> np.uint64(64 - WEIGHT_BITS)].astype(np.float64)
        return weights

    def shares(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return which share of the texts holds each n-gram, 0 to 1, by its weight: what `of_texts` began with.

        It is at most 1/510 of SIF_A off for a rare n-gram, and is that of the most frequent n-gram in the same column.
        """
        return np.minimum(SIF_A * (FULL_WEIGHT / self.look_up(hashes) - 1), 1)

    def save(self, path: Path) -> None:
        """Write lexical.safetensors."""
        arrays = {"letters": self.letters.ravel().astype("<u4"), "weights": self.weights}
        path.write_bytes(pack_arrays(KIND, VERSION, arrays))

    @classmethod
    def read(cls, path: Path, data: bytes) -> NgramWeights:
        """Return the weights in the bytes of lexical.safetensors, without a copy.

        `path` is what a BundleError names, for a file that is foreign, cut or inconsistent.
        """
        arrays = read_arrays(path, data, KIND, VERSION, _DTYPES, check=_check).arrays
        return cls(arrays["weights"], arrays["letters"].reshape(-1, 2))


def _check(arrays: Mapping[str, Array]) -> None:
    """Raise ValueError for the first fault of the arrays, in linear time and without a Python loop over entries."""
    letters, weights = arrays["letters"], arrays["weights"]
    if len(weights) != 1 << WEIGHT_BITS or not np.all(weights):
        raise ValueError(f"weights are not {1 << WEIGHT_BITS} numbers from 1")
    if len(letters) % 2 or (len(letters) > 0 and int(letters.max()) >= CODE_POINTS):
        raise ValueError("letters are no pairs of code points")
    if not np.all(letters[2::2] > letters[:-2:2]):
        raise ValueError("letters do not ascend")


def _letters() -> NDArray[np.uint32]:
    table = lower_table()
    changed = np.flatnonzero(table != np.arange(CODE_POINTS)).astype(np.uint32)
    return np.stack([changed, table[changed]], axis=1)
