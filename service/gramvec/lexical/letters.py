"""N-grams of characters: the tokens of an index, and BM25 over them (Robertson and Zaragoza 2009).

A text is read as its letters fold (gramvec.text.folding), so that "cafe" finds "Café". A word is cut with one edge on
each side into n-grams of 4, as scikit-learn's `char_wb` does; a word that is shorter is one token. The edge is a
control character that Python counts as white space, so that no word contains it. A run of a script without spaces
(gramvec.text.scripts) has no edges, and n-grams of 1, 2 and 4 characters: so 東京 finds 東京大学.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from gramvec.lexical.hashing import ngram_hashes
from gramvec.lexical.sketch import LexicalSketch
from gramvec.native import loops
from gramvec.text.folding import fold_letters, readings, second_reading
from gramvec.text.scripts import UNSPACED, are_unspaced, close_gaps, is_unspaced, words_and_runs

ORDER, TRIGRAM = 4, 3
# Orders of n-grams in a run of a script without spaces.
ORDERS_UNSPACED = (1, 2, ORDER)
EDGE = "\x1f"
K1, B = 1.2, 0.75
# Letters weigh 1 / 1.1 beside the cosine (benchmarks/search.py).
LETTERS_SHARE = 1.1
# Shares of texts that come with a model count as much as these many texts beside the given ones: 10 to 100 rank alike.
SHIPPED_TEXTS = 30
# Characters of texts that are compared with a query at a time, in about 60 bytes each.
SLAB_CHARACTERS = 1 << 16
# Distinct n-grams of a query that are looked up, and those of the highest idf that are searched for.
MAX_LOOKED_UP, MAX_SEARCHED = 4_096, 256


def tokens(text: str) -> str:
    """Return the n-grams of a text with spaces between, those of its words' second readings last: ü is u, then ue."""
    if text.isascii():
        text = text.lower()
        return word_ngrams(text) if loops is None else str(loops.word_ngrams(text))
    return _ngrams(_fold_twice(text))


def _fold_twice(text: str) -> str:
    return f"{fold_letters(text)} {second_reading(text)}".rstrip()


def _ngrams(folded: str) -> str:
    return word_ngrams(folded) if loops is None else str(loops.word_ngrams(close_gaps(folded)))


def word_ngrams(text: str) -> str:
    """Return the n-grams of the words and runs of a folded text, with spaces between."""
    ngrams: list[str] = []
    for run in words_and_runs(text):
        if is_unspaced(run[0]):
            ngrams += (run[at : at + n] for at in range(len(run)) for n in ORDERS_UNSPACED if at + n <= len(run))
        else:
            edged = f"{EDGE}{run}{EDGE}"
            ngrams += (edged[at : at + ORDER] for at in range(max(len(edged) - ORDER, 0) + 1))
    return " ".join(ngrams)


def count_ngrams(text: str) -> Counter[str]:
    """Return how often each n-gram occurs in a text by its first reading, as a query is read."""
    return _count_names(_ngrams(fold_letters(text)))


def _count_names(names: str) -> Counter[str]:
    return Counter(names.split(" ")) if names else Counter()


def idf(holding: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return Lucene's inverse document frequency of n-grams that `holding` of `total` documents contain."""
    frequency: NDArray[np.float64] = np.log1p((total - holding + 0.5) / (holding + 0.5))
    return frequency


class Collection:
    """Statistics of a collection of texts: how many of them have each n-gram, and their mean length in n-grams."""

    def __init__(self, texts: Sequence[str]) -> None:
        held = [_count_names(tokens(text)) for text in texts]
        self.size = len(held)
        self.holding = Counter(name for names in held for name in names)
        self.length = max(sum(counts.total() for counts in held) / max(len(held), 1), 1e-9)


def letter_scores(
    query: str, texts: Sequence[str], collection: Collection | None = None, shipped: LexicalSketch | None = None
) -> NDArray[np.float64]:
    """Return BM25 of a query over texts, divided by the sum of the query's idf.

    Of a query with a second reading (ü may be ue) each text has the higher of both scores. The time is linear in the
    characters, and memory holds only the n-grams that a text shares with the query.

    Args:
        query: the query, of which at most 4,096 distinct n-grams count.
        texts: n texts.
        collection: by which n-grams are weighted; None for the texts themselves.
        shipped: without a collection, counts of other texts that weigh n-grams beside the given texts.

    Returns:
        float64[n], from 0, where a text shares no n-gram with the query, to below 2.2.
    """
    both = [_scores(_count_names(_ngrams(reading)), texts, collection, shipped) for reading in readings(query)]
    return np.asarray(np.max(both, axis=0))


def _scores(
    asked: Counter[str], texts: Sequence[str], collection: Collection | None, shipped: LexicalSketch | None
) -> NDArray[np.float64]:
    names = list(asked)[:MAX_LOOKED_UP]
    if not names or not texts:
        return np.zeros(len(texts))
    shared = _count_shared(names, texts)
    if collection is None:
        size, mean = float(len(texts)), max(float(shared.lengths.sum()) / len(texts), 1e-9)
        holding = np.bincount(shared.columns, minlength=len(names)).astype(np.float64)
        shares = None if shipped is None else shipped_shares(names, shipped)
        if shares is not None:
            size, holding = size + SHIPPED_TEXTS, holding + SHIPPED_TEXTS * shares
    else:
        size, mean = float(collection.size), collection.length
        holding = np.array([collection.holding[name] for name in names], np.float64)
    weights = idf(holding, size) * [asked[name] for name in names]
    norms = K1 * (1 - B + B * shared.lengths / mean)
    values = weights[shared.columns] * shared.counts * (K1 + 1)
    values /= shared.counts + norms[shared.rows]
    # Added one after another, unlike a product of matrices, whose order depends on their shapes.
    scores = np.bincount(shared.rows, values, minlength=len(texts))
    return np.asarray(scores / np.add.reduce(weights))


def shipped_shares(names: Sequence[str], sketch: LexicalSketch) -> NDArray[np.float64] | None:
    """Return which share of the texts behind a sketch's weights holds each n-gram, at most.

    The weights are of n-grams of 3 characters: an n-gram of 4 is as common as the rarer of the two in it, and of a
    shorter one nothing is known.

    Returns:
        float64[n] from 0 to 1; None where the sketch has no n-grams of 3 characters.
    """
    if TRIGRAM not in sketch.orders:
        return None
    known = np.array([len(name) >= TRIGRAM for name in names])
    points = [
        [
            ord(" ") if letter == EDGE else ord(letter)
            for letter in (name[:TRIGRAM] + name[-TRIGRAM:]).rjust(2 * TRIGRAM, EDGE)
        ]
        for name in names
    ]
    letters = sketch.letter(np.array(points, np.uint32)).reshape(-1, TRIGRAM)
    return np.where(known, sketch.weights.shares(ngram_hashes(letters)).reshape(-1, 2).min(axis=1), 0.0)


class SharedNgrams(NamedTuple):
    """N-grams that n texts share with names, text by text.

    Attributes:
        lengths: int64[n], how many n-grams each text has, shared or not.
        rows: int64[m], ascending, the text that has an n-gram.
        columns: int64[m], its place among the names.
        counts: int64[m], how often the text has it.
    """

    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    counts: NDArray[np.int64]


def _count_shared(names: Sequence[str], texts: Sequence[str]) -> SharedNgrams:
    points = np.array([[ord(letter) for letter in name.ljust(ORDER, "\0")] for name in names], np.uint32)
    hashes = ngram_hashes(points)
    order = np.argsort(hashes)
    hashes = hashes[order]
    maybe = np.zeros(1 << 16, np.bool_)
    maybe[hashes >> np.uint64(48)] = True
    lengths, keys, counts = [], [], []
    for first, edged in _slabs(texts):
        starts = np.cumsum([0, *map(len, edged[:-1])])
        # A word of one character has a shorter n-gram: more edges at the end make room for the last one.
        read = np.frombuffer(("".join(edged) + 2 * EDGE).encode("utf-32-le", "surrogatepass"), np.uint32)
        length = np.zeros(len(edged), np.int64)
        slab: list[NDArray[np.int64]] = []
        for windows, within in _windows(read):
            length += np.add.reduceat(within, starts, dtype=np.int64)
            hashed = ngram_hashes(windows)
            near = np.flatnonzero(within & maybe[hashed >> np.uint64(48)])
            at = np.minimum(np.searchsorted(hashes, hashed[near]), len(hashes) - 1)
            equal = hashes[at] == hashed[near]
            rows = first + np.searchsorted(starts, near[equal], "right") - 1
            slab.append(rows * len(names) + order[at[equal]])
        slab_keys, slab_counts = np.unique(np.concatenate(slab), return_counts=True)
        lengths.append(length)
        keys.append(slab_keys)
        counts.append(slab_counts)
    rows, columns = np.divmod(np.concatenate(keys), len(names))
    return SharedNgrams(np.concatenate(lengths), rows, columns, np.concatenate(counts))


def _windows(read: NDArray[np.uint32]) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.bool_]]]:
    """Yield the n-grams that begin at each character, uint32[m, 4] with zeros after short ones, and which ones are."""
    windows = sliding_window_view(read, ORDER).copy()
    is_edge = windows == ord(EDGE)
    short = is_edge[:, 0] & is_edge[:, 2]
    windows[short, 3] = 0
    within = ~is_edge[:, 1] & (short | ~is_edge[:, 2])
    if read.max(initial=0) < UNSPACED[0][0]:
        yield windows, within
        return
    unspaced = are_unspaced(windows)
    # A run without spaces has other n-grams, without edges.
    yield windows, within & (unspaced[:, :1] == unspaced).all(axis=1)
    for n in ORDERS_UNSPACED[-2::-1]:
        windows[:, n:] = 0
        yield windows, np.asarray(unspaced[:, :n].all(axis=1))


def _slabs(texts: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the place of a first text, and it and the following ones with edges between words, of bounded length."""
    edged: list[str] = []
    held = 0
    for row, text in enumerate(texts):
        edged.append(f"{EDGE}{EDGE.join(words_and_runs(_fold_twice(text)))}{EDGE}")
        held += len(edged[-1])
        if held > SLAB_CHARACTERS or row == len(texts) - 1:
            yield row + 1 - len(edged), edged
            edged, held = [], 0
