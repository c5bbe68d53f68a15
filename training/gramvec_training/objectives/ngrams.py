"""The n-grams of texts as a lexical sketch sees them: how often each occurs, how rare it is, and what it is made of."""

from __future__ import annotations

from gramvec_training.types import Doubles

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.lexical.hashing import hashed_features
from gramvec.lexical.sketch import LexicalSketch
from gramvec.lexical.weights import WEIGHT_BITS
from gramvec.text.code_points import code_points
from gramvec.text.numpy_reference import characters
from gramvec_training.data import Ints


_BLOCK = 4_096  # texts whose n-grams are looked at together
_SPACE = ord(" ")
_LETTERS = ord("a")  # and above: a letter of some alphabet
_DIGITS = (ord("0"), ord("9"))


@dataclass(frozen=True)
class NgramCounts:
    """counts: scipy.sparse float64[texts, n], how often each n-gram stands in each text. places: int64[n], each
    n-gram's place among the weights of a sketch, ascending. shares: float64[n], of the texts that hold it, above 0.
    traits: float64[n, t], what it is made of; those that share a place are averaged.
    """

    counts: Any
    places: Ints
    shares: Doubles
    traits: Doubles

    @classmethod
    def of(cls, lexical: LexicalSketch, texts: Sequence[str]) -> NgramCounts:
        """Of these texts; in time linear in their characters, some 100 bytes for each n-gram of each text."""
        from scipy import sparse  # half a second, which --help need not wait

        size = 1 << WEIGHT_BITS
        rows, numbers = [], np.zeros(size)
        sums = np.zeros((size, _number_of_traits(lexical)))
        for block in _blocks(texts):
            text, place, traits = _described(lexical, block)
            found = sparse.csr_matrix((np.ones(len(place)), (text, place)), shape=(len(block), size))
            found.sum_duplicates()
            rows.append(found)
            numbers += np.bincount(place, minlength=size)
            for column, values in enumerate(traits.T):
                sums[:, column] += np.bincount(place, values, size)
        counts = sparse.vstack(rows).tocsc()
        held = np.diff(counts.indptr)
        places = np.flatnonzero(held)
        shares = held[places] / max(len(texts), 1)
        means = sums[places] / numbers[places, None]
        logs = np.log(shares)
        # A square that is not ten times as long as the others, and how much more rarity counts for digits.
        of_shares = np.stack([logs, logs**2 / 10, means[:, 1] * logs], axis=1)
        return cls(counts[:, places].tocsr(), places, shares, np.concatenate([means, of_shares], axis=1))


def _blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _BLOCK):
        yield texts[start : start + _BLOCK]


def _number_of_traits(lexical: LexicalSketch) -> int:
    return 8 + len(lexical.orders) - 1


def _described(lexical: LexicalSketch, texts: Sequence[str]) -> tuple[Ints, Ints, Doubles]:
    """(int64[m], int64[m], float64[m, t]): text, place and traits of each n-gram of the texts."""
    given = code_points(texts)
    chars = characters(given, lexical.spaces)
    found = hashed_features(given, chars, lexical.letter, lexical.orders)
    letters = np.where(chars.source < 0, np.uint32(_SPACE), lexical.letter(given.points[np.maximum(chars.source, 0)]))
    depth = np.arange(len(letters)) - chars.first
    # In the order of `hashed_features`: all n-grams of an order, then those of the next.
    lengths = np.concatenate([np.full(int((depth >= order - 1).sum()), order) for order in lexical.orders])
    last = found.place + 1
    first = last - lengths
    is_digit = (letters >= _DIGITS[0]) & (letters <= _DIGITS[1])
    is_space = letters == _SPACE
    digits, spaces, others = (_within(one, first, last) for one in (is_digit, is_space, letters >= _LETTERS))
    traits = [
        np.ones(len(first)),
        digits / lengths,
        (digits > 0) & (others > 0),
        digits == lengths,
        is_space[first],
        is_space[last - 1],
        (spaces > 0) & ~is_space[first] & ~is_space[last - 1],
        digits + spaces + others < lengths,
        *(lengths == order for order in lexical.orders[1:]),
    ]
    places = (found.hash >> np.uint64(64 - WEIGHT_BITS)).astype(np.int64)
    return found.text, places, np.stack(traits, axis=1).astype(np.float64)


def _within(marked: npt.NDArray[np.bool_], first: Ints, last: Ints) -> Ints:
    """int64: how many characters from each first to before each last are marked."""
    sums = np.append(0, np.cumsum(marked))
    return np.asarray(sums[last] - sums[first], np.int64)
