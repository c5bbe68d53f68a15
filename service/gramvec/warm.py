"""Compile the loops into numba's cache, so that no first request pays for it: python -m gramvec.warm."""

from __future__ import annotations

import numpy as np

from gramvec.features import FeatureSpec, Featuriser
from gramvec.vocab import Entry, Memo, Vocabulary

STORED = (np.int8, np.float32, np.uint16)  # the types of a table that runtime native reads


def main() -> None:
    """Featurise one text, with a memo and without, and sum its rows from a table of each type."""
    vocabulary = Vocabulary.build([Entry("ngram", " a", 1), Entry("word", "a", 1)])
    spec = FeatureSpec(words=True)
    batch = Featuriser(spec, vocabulary)(["a"])
    Featuriser(spec, vocabulary, memo=Memo.build(["a"], vocabulary))(["a"])
    try:
        from gramvec.runtime.kernel import BLOCK, sum_int8, sum_rows
    except ImportError:
        return
    scales = np.ones(2, np.float32)
    scales.setflags(write=False)
    for dtype in STORED:
        table = np.zeros((2, 1), dtype)
        table.setflags(write=False)
        sum_rows(batch.ids, batch.offsets, table, scales, np.empty((1, 1), np.float32))
    flat = np.zeros(2 + BLOCK, np.int8)
    flat.setflags(write=False)
    sum_int8(batch.ids, batch.offsets, flat, np.zeros(2, np.uint8), scales[:1], np.empty((1, 1), np.float32))


if __name__ == "__main__":
    main()
