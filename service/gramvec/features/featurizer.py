"""Featurizer of training and serving: the loops in C, or numpy where they are missing."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from gramvec import native
from gramvec.errors import InputError
from gramvec.features import numpy_reference as plain
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import FeatureBatch
from gramvec.text.inputs import code_points
from gramvec.text.memo import Memo
from gramvec.text.vocabulary import Vocabulary


class Featurizer:
    """Texts to the rows of the table that a model sums.

    compiled: True for the loops in C, False for numpy, None for C where the loops were built.
    memo: what the rows stand for if they are sums (see gramvec.text.suffixes and gramvec.text.memo): a text has fewer
    then. The numpy pass does without its chunks and edges: other rows of the same sum.
    Without one a row is a feature's own. Both passes give the same ids in the same order then: each text's n-grams by
    their last character, shorter first, then its words; or, where words are spelt, word by word. Calls are pure and may
    run in several threads.
    `loops` is the pass in C by itself, a gramvec.native.loops.Featurizer, for callers in C; or None.

    Raises InputError if the spec, the vocabulary and the memo do not fit together.
    """

    def __init__(
        self,
        spec: FeatureSpec,
        vocabulary: Vocabulary,
        *,
        compiled: bool | None = None,
        memo: Memo | None = None,
    ) -> None:
        if spec.lowercase != vocabulary.lowercase:
            raise InputError("the FeatureSpec and the vocabulary disagree on lowercase; build them together")
        if spec.words and vocabulary.symbols != spec.has_symbols:
            raise InputError("the FeatureSpec and the vocabulary disagree on word_rule; build them together")
        if spec.orders and spec.orders[-1] * vocabulary.bits > 64:
            raise InputError(
                f"n-grams of {spec.orders[-1]} characters do not fit this vocabulary's {vocabulary.bits}-bit "
                "characters; build the vocabulary with the same FeatureSpec"
            )
        if spec.unknown_words == "row" and vocabulary.unknown_row < 0:
            raise InputError("unknown_words='row', but the vocabulary has no row for unknown words")
        if memo is not None and not _fits(memo, spec, vocabulary):
            raise InputError("the memo does not fit the FeatureSpec and the vocabulary; export the bundle again")
        self.spec = spec
        self.vocabulary = vocabulary
        self.compiled = native.loops is not None if compiled is None else compiled
        self.memo = memo
        self.loops: Any = None
        if self.compiled:
            self.loops = _loops(spec, vocabulary, memo)
        else:
            _ = vocabulary.ngram_index, vocabulary.word_index  # a fault in them is reported now

    def __call__(self, texts: Sequence[str]) -> FeatureBatch:
        """Return the features of each text; a text without a known feature has none.

        Raises InputError with the text's index for a lone surrogate or anything but str.
        """
        sums = self.memo is not None
        if self.loops is None:
            return plain.featurize(code_points(texts, self.spec.read), self.spec, self.vocabulary, sums=sums)
        try:
            ids, offsets, unknown = self.loops(texts, sums)
        except OverflowError as error:
            raise InputError(str(error)) from None
        except (TypeError, ValueError):
            code_points(texts)  # raises an error that names the text
            raise
        return FeatureBatch(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64), unknown)

    def without_memo(self) -> Featurizer:
        """Return a featurizer whose rows are each a feature's own; it shares the vocabulary with this one."""
        if self.memo is None:
            return self
        other = copy(self)
        other.memo = None
        return other


def _fits(memo: Memo, spec: FeatureSpec, vocabulary: Vocabulary) -> bool:
    # An edge's row holds all that crosses a space, which reaches as far as the longest n-gram.
    reaches = (0, spec.orders[-1] - 2) if spec.orders else (0,)
    return can_be_memoized(spec) and memo.first_row == len(vocabulary) and memo.reach in reaches


def can_be_memoized(spec: FeatureSpec) -> bool:
    """Return True if chunks can have memoized sums.

    N-grams of one character would count a space for both its sides, and where words are spelt a chunk is a row already.
    """
    return bool(spec.orders) and spec.orders[0] > 1 and not spec.spells


_NO_ROW, _SPELT = -1, -2  # as in native/featurize.h
_NO_CHUNKS = (np.zeros(1, np.uint32), np.zeros(0, np.uint16), np.zeros(0, np.int32))
_NO_EDGES = (np.zeros(0, np.uint64), np.zeros(0, np.int32))


def _loops(spec: FeatureSpec, vocabulary: Vocabulary, memo: Memo | None) -> Any:
    """Return the pass in C with its constants prepared.

    A chunk (what stands between two spaces) that the memo knows is one row, and so are the n-grams that cross from one
    chunk into the next, if the memo knows their edge. Order of a text's ids where rows are sums: for each chunk from
    left to right the edge's row or the n-grams that cross into it, then its row, or its n-grams and words.

    Raises InputError where the loops are missing, or the arrays are such that a search would not end.
    """
    if native.loops is None:
        raise InputError(native.MISSING)
    try:
        return native.loops.Featurizer(
            spec.read,
            vocabulary.table.pages,
            vocabulary.table.entries,
            spec.orders,
            vocabulary.bits,
            vocabulary.ngram_keys,
            vocabulary.ngram_rows,
            spec.words,
            (vocabulary.word_starts, vocabulary.word_chars, vocabulary.word_rows),
            vocabulary.longest_word,
            _SPELT if spec.spells else vocabulary.unknown_row if spec.unknown_words == "row" else _NO_ROW,
            _NO_CHUNKS if memo is None else (memo.starts, memo.chars, memo.rows),
            0 if memo is None else memo.longest,
            0 if memo is None else memo.reach,
            *(_NO_EDGES if memo is None else (memo.edge_keys, memo.edge_rows)),
        )
    except ValueError as error:
        raise InputError(f"the vocabulary or the memo is damaged ({error}); export the bundle again") from error
