"""Sparse embeddings whose feature weights are fitted to the texts at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.lexical.hashing import COLUMNS, count_features
from gramvec.lexical.sparse_vectors import SparseVectors
from gramvec.lexical.tfidf import inverse_frequency
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Int32s, Int64s
from gramvec.text.inputs import has_surrogate, iterate_texts, not_a_text

Weighting = Literal["sif", "idf"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
ORDERS = (3, 4)
MAX_ORDER = 8
# Chosen on train and valid of the matching sets.
SIF_A = 3e-3
MAX_CHARACTERS = 65_536
# Texts that are read together: their keys take some 15 MB.
BLOCK_TEXTS, BLOCK_CHARACTERS = 16_384, 1 << 16


class SparseEmbedder:
    """Texts to sparse vectors of length 1, whose product is a cosine; made by `fit`.

    weights: float32[COLUMNS], what a column's count is multiplied by. Calls are pure and may run in several threads.
    A text without features (empty, white space) has an empty row.
    """

    def __init__(self, weights: NDArray[np.float32], orders: Sequence[int], *, words: bool) -> None:
        self.weights = weights
        self.orders = tuple(orders)
        self.words = words

    def embed(self, texts: Iterable[str], *, normalize: bool = True, progress: Progress = NO_PROGRESS) -> SparseVectors:
        """Return the vectors of any iterable of str; `progress` advances by texts.

        Raises InputError with the text's index for a lone surrogate, anything but str, and over 65,536 characters.
        """
        lengths, columns, values = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
        for indptr, hashed, counts in count_blocks(texts, self.orders, words=self.words, progress=progress):
            weighed = counts.astype(np.float64) * self.weights[hashed]
            if normalize:
                row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
                weighed /= np.sqrt(np.bincount(row, weighed**2, minlength=len(indptr) - 1))[row]
            lengths.append(np.diff(indptr))
            columns.append(hashed)
            values.append(weighed.astype(np.float32))
        return SparseVectors(
            np.cumsum(np.concatenate(lengths)), np.concatenate(columns), np.concatenate(values), COLUMNS
        )


def fit(
    texts: Iterable[str],
    *,
    weighting: Weighting = "sif",
    orders: Sequence[int] = ORDERS,
    words: bool = False,
    a: float = SIF_A,
    progress: Progress = NO_PROGRESS,
) -> SparseEmbedder:
    """Fit an embedder that weighs each feature by the given texts, in 140 MB and time linear in their characters.

    weighting: "sif" is a / (a + p), where p is the share of the texts that hold the feature (after Arora et al. 2017,
    equation 3, whose p is a word's share of all words); "idf" is ln((1 + n) / (1 + df)) + 1, as in scikit-learn.
    orders: of the n-grams, 1 to 8. words: add words as features. progress: as in `embed`.
    Raises InputError for texts that `embed` refuses, and for invalid orders, weighting and `a`.
    """
    wrong = [order for order in orders if not 1 <= order <= MAX_ORDER]
    if wrong or len(set(orders)) < len(orders):
        raise InputError(f"orders: must be different numbers from 1 to {MAX_ORDER}, got {list(orders)}", field="orders")
    if not (orders or words):
        raise InputError("there are no features: give orders of n-grams, or words=True", field="orders")
    if weighting not in WEIGHTINGS:
        raise InputError(f"weighting: must be {' or '.join(WEIGHTINGS)}, got {weighting!r}", field="weighting")
    if not 0 < a < float("inf"):
        raise InputError(f"a: must be above 0, got {a:g}", field="a")
    held, number = count_holders(texts, orders, words=words, progress=progress)
    return SparseEmbedder(weigh_counts(held, number, weighting, a), orders, words=words)


def count_holders(
    texts: Iterable[str], orders: Sequence[int], *, words: bool = False, progress: Progress = NO_PROGRESS
) -> tuple[NDArray[np.int32], int]:
    """Return how many of the n texts hold each column's features, int32[COLUMNS], and n. `progress` is that of `embed`.

    Raises InputError for texts that `embed` refuses.
    """
    held, number = np.zeros(COLUMNS, np.int32), 0
    given = list(texts) if isinstance(texts, set | frozenset) else texts
    for indptr, columns, _ in count_blocks(given, orders, words=words, progress=progress):
        np.add.at(held, columns, 1)
        number += len(indptr) - 1
    return held, number


def count_blocks(
    texts: Iterable[str], orders: Sequence[int], *, words: bool = False, progress: Progress = NO_PROGRESS
) -> Iterator[tuple[Int64s, Int32s, Int64s]]:
    """Yield what `count_features` returns of blocks of texts. `progress` is that of `embed`.

    Raises InputError for texts that `embed` refuses.
    """
    for block in _blocks(texts):
        yield count_features(block, orders, words=words)
        progress.advance(len(block))


def uniform(orders: Sequence[int] = ORDERS, *, words: bool = False) -> SparseEmbedder:
    """Return an embedder that gives all features one weight, for a store that weighs them by its texts."""
    return SparseEmbedder(np.broadcast_to(np.float32(1), COLUMNS), orders, words=words)


def weigh_counts(held: NDArray[np.int32], number: int, weighting: Weighting, a: float) -> NDArray[np.float32]:
    """Return the weight, float32, of each feature that `held` of `number` texts hold."""
    # Computed once for each different number: for all columns it would take 300 MB of doubles and a second.
    counts = np.arange(int(held.max(initial=0)) + 1)
    weights = inverse_frequency(number, counts) if weighting == "idf" else a / (a + counts / max(number, 1))
    chosen: NDArray[np.float32] = weights.astype(np.float32)[held]
    return chosen


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Blocks of texts; the index of an error is that of the text among all."""
    rest, done = iterate_texts(texts), 0
    while block := list(islice(rest, BLOCK_TEXTS)):
        start = 0
        while start < len(block):
            end, size = start, 0
            while end < len(block) and size < BLOCK_CHARACTERS:
                size += _length(block[end], done + end)
                end += 1
            yield block[start:end]
            start = end
        done += len(block)


def _length(text: object, index: int) -> int:
    if not isinstance(text, str):
        raise not_a_text(index, text)
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"text {index} has {len(text):,} characters; at most {MAX_CHARACTERS:,}: cut it", index=index)
    if has_surrogate(text):
        raise InputError(
            f"text {index} has a lone surrogate, which is no character; remove it or decode the text properly",
            index=index,
        )
    return len(text)
