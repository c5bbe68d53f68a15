"""The featurizer in C: what plain.featurize gives, many times as fast, or memoised in fewer rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec import native
from gramvec.errors import InputError
from gramvec.text.batch import FeatureBatch
from gramvec.text.code_points import code_points
from gramvec.text.memo import Memo
from gramvec.text.nfc import compose
from gramvec.text.spec import FeatureSpec
from gramvec.text.vocabulary import Vocabulary

_NO_CHUNKS = (np.zeros(1, np.uint32), np.zeros(0, np.uint16), np.zeros(0, np.int32))
_NO_EDGES = (np.zeros(0, np.uint64), np.zeros(0, np.int32))


class NativeFeaturizer:
    """The compiled pass with its constants prepared.

    A chunk (what stands between two spaces) that the memo knows is one row, and so are the n-grams that cross from one
    chunk into the next, if the memo knows their edge. Order of a text's ids where rows are sums: for each chunk from
    left to right the edge's row or the n-grams that cross into it, then its row, or its n-grams and words.

    Raises InputError where the loops are missing, or the arrays are such that a search would not end.
    """

    def __init__(self, spec: FeatureSpec, vocabulary: Vocabulary, memo: Memo | None = None) -> None:
        if native.loops is None:
            raise InputError(native.MISSING)
        try:
            self.loops = native.loops.Featurizer(
                compose,
                vocabulary.table.pages,
                vocabulary.table.entries,
                spec.orders,
                vocabulary.bits,
                vocabulary.ngram_keys,
                vocabulary.ngram_rows,
                spec.words,
                (vocabulary.word_starts, vocabulary.word_chars, vocabulary.word_rows),
                vocabulary.longest_word,
                vocabulary.unknown_row if spec.unknown_words == "row" else -1,
                _NO_CHUNKS if memo is None else (memo.starts, memo.chars, memo.rows),
                0 if memo is None else memo.longest,
                0 if memo is None else memo.reach,
                *(_NO_EDGES if memo is None else (memo.edge_keys, memo.edge_rows)),
            )
        except ValueError as error:
            raise InputError(f"the vocabulary or the memo is damaged ({error}); export the bundle again") from error

    def __call__(self, texts: Sequence[str], sums: bool) -> FeatureBatch:
        """Return the batch of plain.featurize for the same texts or, with `sums`, fewer rows with the same sum."""
        try:
            ids, offsets, unknown = self.loops(texts, sums)
        except OverflowError as error:
            raise InputError(str(error)) from None
        except (TypeError, ValueError):
            code_points(texts)  # says which text is none, in a sentence
            raise
        return FeatureBatch(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64), unknown)
