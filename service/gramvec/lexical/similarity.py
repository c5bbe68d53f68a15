"""How much of their n-grams two texts share, exactly: what a sketch estimates, for the few texts where that pays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramvec.lexical.hashing import hashed_features
from gramvec.lexical.sketch import LexicalSketch
from gramvec.text.code_points import code_points
from gramvec.text.numpy_reference import characters


def overlap(lexical: LexicalSketch, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """float64[n]: the cosine of the query's n-grams and each text's, 0 to 1; 0 for a text of white space alone.

    An n-gram that a text has c times counts 1 + ln c times its weight, as in scikit-learn's sublinear TF-IDF: a long
    text is not nearer for what it repeats. Linear in the characters.
    Raises InputError for a lone surrogate.
    """
    given = code_points([query, *texts])
    found = hashed_features(given, characters(given, lexical.spaces), lexical.letter, lexical.orders)
    order = np.lexsort((found.hash, found.text))
    text, hashes = found.text[order], found.hash[order]
    first = np.flatnonzero(np.append(True, (np.diff(text) != 0) | (hashes[1:] != hashes[:-1]))[: len(text)])
    counts = np.diff(np.append(first, len(text)))
    text, hashes = text[first], hashes[first]
    values = (1 + np.log(counts)) * lexical.weights.of(hashes)
    n = len(texts) + 1
    lengths = np.sqrt(np.bincount(text, values**2, minlength=n))
    asked = hashes[text == 0]
    if not len(asked):
        return np.zeros(len(texts))
    at = np.minimum(np.searchsorted(asked, hashes), len(asked) - 1)
    shared = asked[at] == hashes
    products = np.bincount(text[shared], values[shared] * values[at[shared]], minlength=n)
    return np.asarray(products[1:] / np.where(lengths[1:] > 0, lengths[1:] * lengths[0], 1))
