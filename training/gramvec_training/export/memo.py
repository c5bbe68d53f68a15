"""Which chunks and edges of text a bundle memoises, and the rows that they get; see gramvec.text.memo."""

from __future__ import annotations

from gramvec_training.types import Floats

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.text.featurizer import Featurizer, can_be_memoised
from gramvec.text.memo import Memo, longest_reach, ngrams_across, ngrams_by_end
from gramvec.text.spec import FeatureSpec
from gramvec.text.suffixes import suffix_rows, summed
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.data import Repeated

Counts = Mapping[str, int]

LONGEST_CHUNK = 24  # characters; longer ones are rare, and their sums strain an int8 row
_BLOCK = 8_192


class Chosen(NamedTuple):
    """What a memo is made of, most frequent first."""

    chunks: Sequence[str] = ()
    edges: Sequence[str] = ()


def can_have_memo(spec: FeatureSpec, *, sums: bool) -> bool:
    """Whether chunks have sums that a text's vector can be made of; `sums`: whether it is made of a sum at all."""
    return sums and can_be_memoised(spec)


def choose(repeated: Repeated, featurizer: Featurizer, *, chunks: int, edges: int) -> Chosen:
    """The chunks and edges whose rows save the most look-ups, most frequent first, at most so many of each.

    One saves its rows less one each time: of the n-grams that end in one character the longest is a row. Those with a
    character that the vocabulary lacks are left out.
    """
    vocabulary = featurizer.vocabulary
    featurizer = Featurizer(featurizer.spec, vocabulary, memo=Memo.build([], vocabulary))
    known = set(map(chr, vocabulary.alphabet.tolist()))
    candidates = _candidates(repeated.chunks, known, LONGEST_CHUNK)
    rows: list[int] = []
    for start in range(0, len(candidates), _BLOCK):
        rows += featurizer([chunk for chunk, _ in candidates[start : start + _BLOCK]]).counts.tolist()
    chosen = _best(candidates, rows, chunks)
    reach = longest_reach(featurizer.spec.orders, vocabulary.bits)
    if not reach or not edges:
        return Chosen(chosen)
    row_of = _ngram_rows(vocabulary)
    candidates = _candidates(repeated.edges, known, 2 * reach + 1)
    orders = featurizer.spec.orders
    rows = [sum(not row_of.keys().isdisjoint(one) for one in ngrams_by_end(edge, orders)) for edge, _ in candidates]
    return Chosen(chosen, _best(candidates, rows, edges))


def memo_of(chosen: Chosen, featurizer: Featurizer, table: Floats) -> tuple[Memo, Floats]:
    """The memo, and the table float32[rows + chunks + edges, d] that goes with it.

    table: float32[rows, d], each row a feature's own. N-grams get their suffixes, and the rows of chunks and edges,
    added in float64, follow.
    """
    vocabulary, orders = featurizer.vocabulary, featurizer.spec.orders
    reach = longest_reach(orders, vocabulary.bits)
    memo = Memo.build(chosen.chunks, vocabulary, edges=chosen.edges, reach=reach)
    sums = np.zeros((len(memo), table.shape[1]), np.float32)
    for start in range(0, len(chosen.chunks), _BLOCK):
        batch = featurizer(chosen.chunks[start : start + _BLOCK])
        for index, (first, last) in enumerate(zip(batch.offsets[:-1], batch.offsets[1:], strict=True), start):
            sums[index] = table[batch.ids[first:last]].sum(axis=0, dtype=np.float64)
    row_of = _ngram_rows(vocabulary)
    for index, edge in enumerate(chosen.edges, len(chosen.chunks)):
        rows = [row_of[one] for one in ngrams_across(edge, orders) if one in row_of]
        sums[index] = table[rows].sum(axis=0, dtype=np.float64)
    return memo, np.concatenate([summed(table, suffix_rows(vocabulary)), sums])


def _candidates(counts: Counts, known: set[str], longest: int) -> list[tuple[str, int]]:
    return [
        (text, count)
        for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count > 1 and len(text) <= longest and known.issuperset(text)
    ]


def _best(candidates: Sequence[tuple[str, int]], rows: Sequence[int], most: int) -> list[str]:
    saved = [
        (-count * (row - 1), index)
        for index, ((_, count), row) in enumerate(zip(candidates, rows, strict=True))
        if row > 1
    ]
    return [candidates[index][0] for index in sorted(index for _, index in sorted(saved)[:most])]


def _ngram_rows(vocabulary: Vocabulary) -> dict[str, int]:
    return dict(zip(vocabulary.ngram_texts, vocabulary.ngram_rows.tolist(), strict=True))
