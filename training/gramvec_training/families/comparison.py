"""What the families ask of a model: how alike are these pairs, and which texts are nearest to these.

A Model is made for the texts at hand, because some weigh their features by them (TF-IDF, an adapted bundle); one that
does not is `fixed`.
"""

from __future__ import annotations

from gramvec_training.types import Doubles, Ints

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError

# float[n, d] as an array, or as a scipy.sparse matrix of rows; each row of length 1, or all zeros.
Vectors = Any
Encode = Callable[[Sequence[str]], Vectors]

SCORES_A_BLOCK = 8_000_000  # 64 MB of float64: queries times texts that are held at a time


class Comparison(Protocol):
    """A measure of likeness between texts; higher is more alike.

    `encode` gives the vectors that it compares, or is None where it compares the texts themselves.
    """

    @property
    def encode(self) -> Encode | None: ...  # noqa: D102

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Doubles:
        """float64[n]: how alike left[i] and right[i] are."""
        ...

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        """int64[queries, min(k, texts)]: the positions of the most alike texts, best first; equals by position."""
        ...


Model = Callable[[Sequence[str]], Comparison]


class Cosines:
    """A Comparison by the cosine of vectors. `encode` gives rows of length 1, or zero."""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Doubles:
        """See Comparison.pairs. A text is encoded once, however many pairs it is in."""
        places = {text: place for place, text in enumerate(dict.fromkeys([*left, *right]))}
        vectors = self.encode(list(places))
        a, b = (vectors[[places[text] for text in side]] for side in (left, right))
        if _is_sparse(a):
            return np.asarray(a.multiply(b).sum(axis=1), np.float64).ravel()
        return np.asarray(np.einsum("ij,ij->i", a, b, dtype=np.float64))

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        """See Comparison.nearest."""
        return nearest_rows(self.encode(queries), self.encode(texts), k)


def fixed(encode: Encode) -> Model:
    """A model that is the same whatever the texts at hand are."""
    comparison = Cosines(encode)
    return lambda texts: comparison


def nearest_rows(asked: Vectors, known: Vectors, k: int) -> Ints:
    """int64[asked, min(k, known)]: for each of the first vectors the places of the nearest of the second."""
    columns = known.T.tocsr() if _is_sparse(known) else np.ascontiguousarray(known.T)
    size = max(1, SCORES_A_BLOCK // max(columns.shape[1], 1))

    def blocks() -> Iterator[Doubles]:
        for start in range(0, asked.shape[0], size):
            scores = asked[start : start + size] @ columns
            yield np.asarray(scores.toarray() if _is_sparse(scores) else scores, np.float64)

    return most_alike(blocks(), k)


def most_alike(blocks: Iterator[Doubles], k: int) -> Ints:
    """int64[rows, min(k, columns)]: the places of each row's highest scores, best first, equals by place.

    blocks: float64[some rows, columns] one after another. Raises InputError where a score is not a number.
    """
    found = []
    for block in blocks:
        if np.isnan(block).any():
            raise InputError("A score is not a number, so nothing can be ranked by it; look for NaN in the vectors.")
        found.append(_highest(block, min(k, block.shape[1])))
    return np.concatenate(found) if found else np.zeros((0, k), np.int64)


def _highest(scores: Doubles, k: int) -> Ints:
    places = np.zeros((len(scores), k), np.int64)
    if k == 0:
        return places
    least = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k]
    for row, (values, bound) in enumerate(zip(scores, least, strict=True)):
        candidates = np.flatnonzero(values >= bound)  # more than k where several are equal to the last
        order = np.lexsort((candidates, -values[candidates]))[:k]
        places[row] = candidates[order]
    return places


def unit(vectors: Vectors) -> Vectors:
    """The rows brought to length 1, those of zeros left alone; an array, or a scipy.sparse matrix of rows."""
    if _is_sparse(vectors):
        from scipy import sparse

        rows = vectors.tocsr()
        squares = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
        return (sparse.diags(1 / np.sqrt(np.where(squares > 0, squares, 1))) @ rows).tocsr()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _is_sparse(vectors: Vectors) -> bool:
    return not isinstance(vectors, np.ndarray)  # scipy takes half a second to import
