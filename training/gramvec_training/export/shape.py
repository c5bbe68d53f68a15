"""Two changes to a finished linear table that cost nothing to serve: scales of feature kinds, and partial whitening.

A student fits its teacher with every row it has; rows of rarer kinds of feature are noisier, and shrinking them a
little helps on texts that it was not trained on. The factors are chosen on development sets and written in the config.
"""

from __future__ import annotations

from gramvec_training.types import Floats

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gramvec.text.vocabulary import Entry


FLOOR = 1e-4  # of the largest variance: directions with less are not blown up further


def kind_of(entry: Entry) -> str:
    """What a scale is given for: "word" (the unknown word's row too), or an n-gram's order, such as "4"."""
    return str(len(entry.text)) if entry.kind == "ngram" else "word"


def scaled(table: Floats, entries: Sequence[Entry], scales: Mapping[str, float]) -> Floats:
    """The table float32[rows, d] with each row times the scale of its kind; kinds without one stay as they are.

    Without any it is the table itself.
    """
    if not scales:
        return table
    factors = np.array([scales.get(kind_of(entry), 1.0) for entry in entries], np.float32)
    return table * factors[:, None]


def whitening_transform(vectors: Floats, strength: float) -> Floats:
    """float32[d, d]: a symmetric map that divides each principal direction by its standard deviation ** strength.

    vectors: float32[n, d] of a sample of texts, brought to length 1 here and not centred. strength 0 changes nothing, 1
    whitens fully (Mu and Viswanath, 2018, remove the leading directions instead; this bends the spectrum).
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float64)
    variances, axes = np.linalg.eigh(unit.T @ unit / len(unit))
    relative = np.maximum(variances, 0) / variances.max() + FLOOR
    transform: Floats = (axes * relative ** (-strength / 2) @ axes.T).astype(np.float32)
    return transform
