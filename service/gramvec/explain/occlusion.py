r"""Occlusion: the effect of each feature on a text's vector, found by embedding the text again without the feature.

It explains models with layers above the sum of their rows, and models that read rows in order. With u(a) the vector of
a at length 1 and a\\i the text without feature i, the share of i is u(a) - u(a\\i); so its product with u(b) is by how
much the cosine with b falls when i is left out (occlusion, Zeiler and Fergus, 2014), and the product of two shares,
cos(a, b) - cos(a\\i, b) - cos(a, b\\j) + cos(a\\i, b\\j), is what i and j do together that neither does alone. Of a sum
of rows without normalization that is exactly the product of two rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.text.arrays import Doubles, FeatureBatch

# Pieces of a text that are left out, one at a time: each is another text to embed. A text of more features is cut into
# so many pieces, or fewer where all of these texts would have more rows than MOST_ROWS.
MOST_PIECES = 64
MOST_ROWS = 16_384


def shares(embedder: Embedder, rows: NDArray[np.int32]) -> tuple[Doubles, Doubles]:
    """Return the share of each of a text's features, float64[n, d], and the text's vector at length 1, float64[d].

    rows: int32[n], the features in the model's order. Features that are left out together share their effect evenly.
    Raises BackendError if the runtime fails.
    """
    n = len(rows)
    pieces = max(1, min(n, MOST_PIECES, MOST_ROWS // max(1, n)))
    bounds = np.linspace(0, n, pieces + 1).astype(np.int64)
    sizes = np.diff(bounds)
    piece = np.repeat(np.arange(pieces), sizes)
    left = [rows, *(rows[piece != index] for index in range(pieces))]
    offsets = np.cumsum([0, *map(len, left)]).astype(np.int64)
    units = _units(embedder.vectors_of(FeatureBatch(np.concatenate(left), offsets)), np.diff(offsets))
    whole = units[0]
    return ((whole - units[1:]) / np.maximum(sizes, 1)[:, None])[piece], whole


def _units(vectors: NDArray[np.float32], counts: NDArray[np.int64]) -> Doubles:
    """float64[n, d] at length 1; zeros for a text without features, as served."""
    wide = np.where(counts[:, None] > 0, vectors, np.float32(0)).astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(lengths > 0, lengths, 1))
