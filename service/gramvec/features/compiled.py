"""The featuriser compiled by numba: what plain.featurise gives, about eight times as fast, or memoised in fewer rows.

Importing this module needs numba and takes half a second; tests compare all passes with a slow twin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramvec.features.batch import FeatureBatch
from gramvec.features.kernels import featurise, featurise_memoised
from gramvec.features.spec import FeatureSpec
from gramvec.features.text import CodePoints
from gramvec.vocab import Memo, Vocabulary, hashing


class CompiledFeaturiser:
    """The compiled pass with its constants prepared; call it with code points.

    With a memo, a chunk (what stands between two spaces) that the memo knows is one row, and so are the n-grams that
    cross from one chunk into the next, if the memo knows their edge. Order of a text's ids: for each chunk from left to
    right the edge's row or the n-grams that cross into it, then its row, or its n-grams and words as plain.featurise
    has them.
    """

    def __init__(self, spec: FeatureSpec, vocabulary: Vocabulary, memo: Memo | None = None) -> None:
        self._per_character = len(spec.orders) + spec.words
        self._featurise: Any = featurise if memo is None else featurise_memoised
        self._constants: tuple[Any, ...] = (
            vocabulary.table,
            np.array(spec.orders, np.int64),
            np.array([(1 << vocabulary.bits * n) - 1 for n in spec.orders], np.uint64),
            np.uint64(vocabulary.bits),
            vocabulary.ngram_keys,
            vocabulary.ngram_rows,
            np.uint64(hashing.shift_for(len(vocabulary.ngram_keys))),
            spec.words,
            vocabulary.word_slots,
            vocabulary.word_starts,
            vocabulary.word_chars,
            vocabulary.word_rows,
            np.uint64(hashing.shift_for(len(vocabulary.word_slots))),
            vocabulary.longest_word,
            vocabulary.unknown_row if spec.unknown_words == "row" else -1,
        )
        if memo is not None:
            self._constants += (
                memo.slots,
                memo.starts,
                memo.chars,
                memo.rows,
                np.uint64(hashing.shift_for(len(memo.slots))),
                memo.longest,
                memo.reach,
                memo.edge_keys,
                memo.edge_rows,
                np.uint64(hashing.shift_for(len(memo.edge_keys))),
            )

    def __call__(self, given: CodePoints) -> FeatureBatch:
        """Without a memo equal to plain.featurise on the same arguments; with one, rows of the same sum."""
        n = len(given.starts) - 1
        ids = np.empty((len(given.points) + 2 * n) * self._per_character, np.int32)
        offsets = np.empty(n + 1, np.int64)
        rows = self._featurise(given.points, given.starts, *self._constants, ids, offsets)
        return FeatureBatch(ids[:rows], offsets)
