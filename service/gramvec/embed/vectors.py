"""Vectors as a caller asks for them: a space's columns, fewer dimensions, unit length, cosines, fewer bits.

Every result depends only on its own rows, to the bit: sums go along a row in numpy's fixed pairwise order. A matrix
product is never used, because its rounding changes with the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.errors import InputError
from gramvec.text.inputs import is_whole

Vectors = NDArray[np.float32]

# Bounds of a squared length: beyond them float32 loses squares that matter, so doubles are used. As in sum.h.
MIN_SQUARE, MAX_SQUARE = np.float32(1e-24), np.float32(1e36)


class RawEmbeddings(NamedTuple):
    """Vectors of n texts as the model gives them.

    Args:
        vectors: float32[n, d], before normalization.
        feature_counts: int64[n], 0 for a text without a known feature.
        units: the vectors at length 1, for a whole call at once: a single request would take 8 us for its own.
        unknown: see FeatureBatch; of a whole call, 0 for a part of one or several joined.
        featurize_seconds: of a whole call, too.
    """

    vectors: Vectors
    feature_counts: NDArray[np.int64]
    units: Vectors
    unknown: int = 0
    featurize_seconds: float = 0.0

    @classmethod
    def from_vectors(
        cls, vectors: Vectors, feature_counts: NDArray[np.int64], unknown: int = 0, featurize_seconds: float = 0.0
    ) -> RawEmbeddings:
        """Return raw embeddings together with the vectors scaled to length 1."""
        return cls(vectors, feature_counts, unit(vectors), unknown, featurize_seconds)

    @classmethod
    def join(cls, parts: Sequence[RawEmbeddings]) -> RawEmbeddings:
        """Concatenate raw embeddings in the given order."""
        vectors, counts, units = (np.concatenate([part[field] for part in parts]) for field in range(3))
        return cls(vectors, counts, units)

    def of_columns(self, columns: slice) -> RawEmbeddings:
        """Return only the given columns, as vectors with their own units."""
        if columns == slice(None):
            return self
        chosen = np.ascontiguousarray(self.vectors[:, columns])
        return RawEmbeddings.from_vectors(chosen, self.feature_counts, self.unknown, self.featurize_seconds)

    def take(self, chosen: slice | NDArray[np.int64]) -> RawEmbeddings:
        """Return the embeddings of these texts, in this order; views for a slice."""
        return RawEmbeddings(self.vectors[chosen], self.feature_counts[chosen], self.units[chosen])


def vectors_among(values: object) -> NDArray[np.floating[Any]] | None:
    """Return an array or tensor of floats, or a list of them, as one array; None for any other value."""
    if isinstance(values, list | tuple):
        first = values[0] if values else ""
        holds_rows = isinstance(first, float | list | tuple) or getattr(first, "ndim", 0) == 1
    else:  # a column of texts becomes a list by `to_list` or `to_pylist`
        holds_rows = hasattr(values, "__array__") and not (hasattr(values, "to_list") or hasattr(values, "to_pylist"))
    if not holds_rows:
        return None
    try:
        array = np.asarray([np.asarray(vector) for vector in values] if isinstance(values, list | tuple) else values)
    except (TypeError, ValueError, RuntimeError):  # rows of several lengths, a tensor on a GPU or with a gradient
        return None
    return array if array.dtype.kind == "f" else None


def check_dimensions(dimensions: int | None, d: int) -> None:
    """Raise InputError if `dimensions`, of d that there are, is neither None nor a whole number from 1 to d."""
    if dimensions is None:
        return
    if not is_whole(dimensions) or not 1 <= dimensions <= d:
        raise InputError(f"dimensions: must be a whole number from 1 to {d}, got {dimensions!r}", field="dimensions")


def finish(vectors: Vectors, *, normalize: bool, dimensions: int | None, out: Vectors | None = None) -> Vectors:
    """Return the first `dimensions` columns, scaled to length 1 if `normalize`; a zero vector stays zero.

    Args:
        vectors: float32[n, d].
        normalize: scale each row to length 1.
        dimensions: number of columns k, which `check_dimensions` has accepted; None for all.
        out: float32[n, k], C-contiguous, to be filled and returned; None for a new array.

    Returns:
        float32[n, k].
    """
    vectors = vectors[:, :dimensions]
    if normalize:
        return unit(vectors, out)
    if out is None:
        return np.ascontiguousarray(vectors)
    out[...] = vectors
    return out


def unit(vectors: Vectors, out: Vectors | None = None) -> Vectors:
    """Return float32 rows of length 1; a zero row stays zero. `out` is as in `finish`.

    The loops in C add the squares in another order than numpy does, so where they are built they are always used.
    """
    rows = np.ascontiguousarray(vectors)
    if native.loops is not None and rows.dtype == np.float32:
        units = np.empty(rows.shape, np.float32) if out is None else out
        native.loops.unit(rows, units)
        return units
    with np.errstate(over="ignore", under="ignore"):
        squares = np.add.reduce(rows * rows, axis=1, keepdims=True)
    wide = ~((squares > MIN_SQUARE) & (squares < MAX_SQUARE))[:, 0]
    squares[wide] = 1
    units = np.divide(rows, np.sqrt(squares), dtype=np.float32, out=out)
    if wide.any():
        exact = rows[wide].astype(np.float64)
        lengths = np.sqrt(np.add.reduce(exact * exact, axis=1, keepdims=True))
        units[wide] = exact / np.where(lengths == 0, 1, lengths)
    return units


def cosine_pairs(left: RawEmbeddings, right: RawEmbeddings) -> Vectors:
    """Return the cosine of each left text with its right one, float32[n]; 0 if one of them has no known feature."""
    scores = np.add.reduce(left.units * right.units, axis=1)
    known = (left.feature_counts > 0) & (right.feature_counts > 0)
    return np.where(known, np.clip(scores, -1, 1), np.float32(0))


def cosine_matrix(left: RawEmbeddings, right: RawEmbeddings) -> Vectors:
    """Return the cosine of every left text with every right one, float32[n, m], equal to `cosine_pairs` to the bit."""
    a, b = left.units, np.ascontiguousarray(right.units)
    scores = np.empty((len(a), len(b)), np.float32)
    for row, vector in zip(scores, a, strict=True):
        np.add.reduce(b * vector, axis=1, out=row)
    known = (left.feature_counts > 0)[:, None] & (right.feature_counts > 0)[None, :]
    return np.where(known, np.clip(scores, -1, 1), np.float32(0))


VectorPrecision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
PRECISIONS: tuple[str, ...] = get_args(VectorPrecision)

# The value of a component of 1. sentence-transformers cuts the range that a calibration set has into 256 steps; here it
# is the range of vectors of length 1, -1 to 1, so the bytes depend only on the vector.
INT8_SCALE = 127
UINT8_ZERO = 128
OF_UNIT_VECTORS = ("int8", "uint8")


def check_precision(precision: VectorPrecision | None, *, normalize: bool) -> None:
    """Raise InputError if the precision is unknown, or needs unit vectors and `normalize` is False."""
    if precision is not None and precision not in PRECISIONS:
        raise InputError(f"precision: must be one of {', '.join(PRECISIONS)}, got {precision!r}", field="precision")
    if precision in OF_UNIT_VECTORS and not normalize:
        raise InputError(
            f"precision {precision} is for vectors of length 1; leave out normalize, or ask for float32 or binary",
            field="precision",
        )


def quantize(vectors: Vectors, precision: VectorPrecision | None) -> NDArray[np.generic]:
    """Return float32[n, k] in another precision; None is float32.

    int8[n, k] is 127 times the component of a vector of length 1, rounded to the nearest (a half to the even one).
    uint8[n, k] is 128 more than that.
    ubinary is uint8[n, ceil(k / 8)]: a bit for each component, 1 if it is above 0, the first one the highest; missing
    bits of the last byte are 0. binary is int8 of the same shape, 128 less than that.
    """
    match precision:
        case "int8":
            return np.rint(vectors * INT8_SCALE).astype(np.int8)
        case "uint8":
            return (np.rint(vectors * INT8_SCALE) + UINT8_ZERO).astype(np.uint8)
        case "binary":
            return (np.packbits(vectors > 0, axis=-1) ^ 0x80).view(np.int8)
        case "ubinary":
            return np.packbits(vectors > 0, axis=-1)
        case _:
            return vectors


Space = Literal["semantic", "lexical", "both"]
SPACES: tuple[Space, ...] = get_args(Space)


def select_columns(space: Space, computed: Space, semantic: int) -> slice:
    """Return the columns of `space` in vectors that an embedder of the space `computed` makes.

    Args:
        space: the columns that are wanted.
        computed: the columns that the vectors have.
        semantic: number of semantic columns, which come first.

    Raises:
        InputError: the vectors lack these columns, or `space` is not a valid space.
    """
    check_space(space)
    if space == computed:
        return slice(None)
    if computed != "both":
        sentence = f"the model was loaded with space={computed!r} only; leave out space, or load it with space='both'"
        raise InputError(sentence, field="space")
    return slice(semantic) if space == "semantic" else slice(semantic, None)


def check_space(space: object) -> None:
    """Raise InputError if `space` is not a valid space."""
    if space not in SPACES:
        raise InputError(f"space: must be {', '.join(SPACES[:-1])} or {SPACES[-1]}, got {space!r}", field="space")
