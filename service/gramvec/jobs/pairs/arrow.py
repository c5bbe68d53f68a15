"""Blocking keys and pair scores of Arrow arrays, for engines that join tables which outgrow a machine.

What a function returns for a row depends on that row only, so that an engine may cut a table as it likes: DuckDB, Ray
Data and Spark find the pairs of one machine. The folder examples has a program of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramvec.errors import import_extra
from gramvec.jobs.pairs.given_pairs import score_given
from gramvec.jobs.pairs.tokens import fold_text
from gramvec.lexical.hashing import count_features, mix_key
from gramvec.text.arrays import UInt64s
from gramvec.text.frames import texts_or_empty

ORDERS = (3,)
# Two texts that share half of their n-grams have a key in common with a probability of 0.997, a fifth 0.56.
BANDS, BAND_SAMPLES = 20, 2


def blocking_keys(texts: Any) -> Any:
    """Return keys of texts, so that texts that are alike have one in common: MinHash over n-grams of three characters.

    Texts that are equal have all keys in common. Letters are compared as `match` does: without case, accents and
    look-alikes. Leave out keys that more than some 20 rows have: they are those of words that many texts share, and
    texts that are alike have others.

    Args:
        texts: n texts: an array of Arrow, or what `match` takes.

    Returns:
        A pyarrow.ListArray of n lists of int64: 20 keys each, none for an empty or missing text.

    Raises:
        InputError: an element is no text, or pyarrow is not installed.

    Source:
        Leskovec, Rajaraman and Ullman, Mining of Massive Datasets (2014), section 3.4.
    """
    arrow = import_extra("pyarrow", "bulk", "an Arrow array")
    plain = [fold_text(text) for text in texts_or_empty(texts)]
    indptr, columns, _ = count_features(plain, ORDERS, words=False)
    filled = np.flatnonzero([bool(text) for text in plain])
    keys = _bands(columns.astype(np.uint64), indptr[filled]) if len(filled) else np.zeros((0, BANDS), np.uint64)
    lengths = np.zeros(len(plain) + 1, np.int32)
    lengths[filled + 1] = BANDS
    offsets = arrow.array(np.cumsum(lengths, dtype=np.int32))
    return arrow.ListArray.from_arrays(offsets, arrow.array(keys.ravel().view(np.int64)))


def pair_scores(left: Any, right: Any) -> Any:
    """Return the probability that the left and the right text of each pair are the same thing.

    Words are weighted by how rare they are in English. `gramvec.pair_scores` weights them by the pairs at hand, which
    is a little better, and differs with the pairs beside a pair.

    Args:
        left: n texts: an array of Arrow, or what `match` takes.
        right: their partners.

    Returns:
        A pyarrow.FloatArray of n probabilities; 0 where a text is empty or missing.

    Raises:
        InputError: an element is no text, there are not as many left as right ones, or pyarrow is not installed.
    """
    arrow = import_extra("pyarrow", "bulk", "an Arrow array")
    return arrow.array(score_given([texts_or_empty(left)], [texts_or_empty(right)], rows_count=False))


def _bands(features: UInt64s, starts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> UInt64s:
    """Return uint64[n, BANDS] of the features that begin at `starts`, of n texts that have some."""
    keys = np.empty((len(starts), BANDS), np.uint64)
    numbers = mix_key(features, 0)
    for band in range(BANDS):
        key = np.full(len(starts), band, np.uint64)
        for sample in range(BAND_SAMPLES):
            drawn = mix_key(numbers, band * BAND_SAMPLES + sample)
            key = mix_key(key ^ np.minimum.reduceat(drawn, starts), 0)
        keys[:, band] = key
    return keys
