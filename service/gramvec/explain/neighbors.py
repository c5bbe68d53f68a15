"""Nearest neighbors: the words of a list nearest to a text, and the n-grams of a model nearest to an n-gram.

What Tables 8 to 10 of the CHARAGRAM paper (Wieting et al. 2016) show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import cosine_matrix, unit
from gramvec.errors import InputError
from gramvec.explain.row_vectors import open_weights
from gramvec.features.tokens import TokenVocabulary
from gramvec.text import hashing
from gramvec.text.characters import ID_MASK, compose
from gramvec.text.inputs import is_whole
from gramvec.text.vocabulary import Vocabulary

NEAREST = 10
# Words embedded, and rows compared, at a time: about 10 MB for 300 columns.
BLOCK = 4_096


class Neighbor(NamedTuple):
    """A word or an n-gram, and its cosine in [-1, 1]."""

    text: str
    score: float


def nearest_words(
    embedder: Embedder, text: str, words: Iterable[str] | None = None, *, k: int = NEAREST
) -> list[Neighbor]:
    """Return the k words nearest to a text, best first; see find_nearest_words.

    `words` is None for the words of the model's vocabulary.

    Raises:
        InputError: the model has no words of its own or knows nothing of the text, or find_nearest_words refuses.
    """
    if words is None:
        words = vocabulary_words(embedder.bundle.vocabulary)
        if embedder.manifest.words == 0:
            raise InputError(f"{embedder.name}: has no words of its own; give a list of words", field="words")
    if not _have_features(embedder, embedder.prepare([text]))[0]:
        raise InputError("the text has no feature that the model knows, so it has no neighbors", field="text")
    return find_nearest_words(embedder, [text], words, k=k)[0]


def find_nearest_words(
    embedder: Embedder, texts: Sequence[str], words: Iterable[str], *, k: int = NEAREST
) -> list[list[Neighbor]]:
    """Return the k nearest words of each text, best first; equal words keep their order in the list.

    words: any iterable, read once and never held whole; a repeated word counts once. A text is not its own neighbor,
    in any case, and neither is a word without a known feature (the row that unknown words share is not a known
    feature). A text without a known feature has no neighbors.

    Raises InputError for k under 1 and for texts or words that Embedder.prepare refuses; it counts the words from 0.
    """
    _check_k(k)
    texts = embedder.prepare(texts)
    queries, asked = embedder.raw(texts), np.flatnonzero(_have_features(embedder, texts)).tolist()
    best = [_BestNeighbors(k) for _ in texts]
    for block in _blocks(embedder, words):
        raw = embedder.raw(block)
        known = _have_features(embedder, block)
        lowered = [word.lower() for word in block]
        scores = cosine_matrix(queries, raw)
        for index in asked:
            itself = texts[index].lower()
            allowed = known & np.array([word != itself for word in lowered])
            best[index].offer(scores[index], np.flatnonzero(allowed), block)
    return [nearest.neighbors for nearest in best]


def _blocks(embedder: Embedder, words: Iterable[str]) -> Iterator[list[str]]:
    iterator, start = iter(words), 0
    while block := list(islice(iterator, BLOCK)):
        try:
            yield list(dict.fromkeys(embedder.prepare(block)))
        except InputError as error:
            if error.index is None:
                raise
            sentence = str(error).removeprefix(f"text {error.index} ")
            raise InputError(f"word {start + error.index} {sentence}", index=start + error.index) from error
        start += len(block)


def _have_features(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.bool_]:
    batch = embedder.bundle.featurizer(texts)
    owners = np.repeat(np.arange(len(texts)), batch.counts)
    return np.bincount(owners[batch.ids != embedder.bundle.vocabulary.unknown_row], minlength=len(texts)) > 0


def nearest_ngrams(embedder: Embedder, ngram: str, *, k: int = NEAREST) -> list[Neighbor]:
    """Return the k n-grams of the model whose rows are nearest to the row of `ngram`, best first.

    Of equal ones the more frequent comes first, as in the table.

    `ngram` has a space for each end of a word; NFC and lower case are applied.

    Raises:
        InputError: it is not an n-gram of the model.
        BundleError: the bundle does not say where its table lies.
    """
    _check_k(k)
    vocabulary = embedder.bundle.vocabulary
    keys, rows = vocabulary.ngram_keys, vocabulary.ngram_rows
    if not len(keys):
        raise InputError(f"{embedder.name}: has no n-grams; ask for the neighbors of a text", field="ngram")
    place = np.flatnonzero(keys == _key(ngram, vocabulary))
    if not len(place):
        orders = ", ".join(map(str, embedder.bundle.spec.orders))
        raise InputError(f"{ngram!r}: not an n-gram of {embedder.name}, which has some of {orders} characters")
    weights = open_weights(embedder.bundle)
    query = unit(weights.rows(rows[place]))[0]
    best = _BestNeighbors(k)
    letters = ["", *map(chr, vocabulary.alphabet.tolist())]
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        scores = np.add.reduce(unit(weights.rows(block)) * query, axis=1)
        candidates = np.flatnonzero(block != rows[place])
        best.offer(
            np.clip(scores, -1, 1), candidates, _NgramTexts(keys[start : start + BLOCK], letters, vocabulary.bits)
        )
    return best.neighbors


def vocabulary_words(vocabulary: Vocabulary) -> Iterator[str]:
    """Return the words of a vocabulary in the order of their rows: the most frequent first in the models that ship."""
    if isinstance(vocabulary, TokenVocabulary):
        yield from filter(None, vocabulary.word_texts)
        return
    letters = ["", *map(chr, vocabulary.alphabet.tolist())]
    chars, starts = vocabulary.word_chars.tolist(), vocabulary.word_starts.tolist()
    for index in np.argsort(vocabulary.word_rows).tolist():
        yield "".join(letters[letter] for letter in chars[starts[index] : starts[index + 1]])


class _NgramTexts:
    """N-grams by their keys, spelt out when asked for: 180,000 of them take a second."""

    def __init__(self, keys: NDArray[np.uint64], letters: list[str], bits: int) -> None:
        self._keys, self._letters, self._bits = keys, letters, bits

    def __getitem__(self, index: int) -> str:
        return "".join(self._letters[letter] for letter in hashing.unpack(int(self._keys[index]), self._bits))


class _BestNeighbors:
    """The k best of blocks that come one after the other."""

    def __init__(self, k: int) -> None:
        self._k = k
        self.neighbors: list[Neighbor] = []

    def offer(self, scores: NDArray[np.float32], chosen: NDArray[np.int64], texts: list[str] | _NgramTexts) -> None:
        order = chosen[np.argsort(-scores[chosen], kind="stable")[: self._k]]
        offered = [Neighbor(texts[index], float(scores[index])) for index in order.tolist()]
        # Stable: what was there before comes first.
        merged = sorted(dict.fromkeys([*self.neighbors, *offered]), key=lambda neighbor: -neighbor.score)
        self.neighbors = merged[: self._k]


def _key(ngram: str, vocabulary: Vocabulary) -> np.uint64:
    try:
        points = np.frombuffer(compose(ngram).encode("utf-32-le"), np.uint32)
    except UnicodeEncodeError:
        raise InputError("the n-gram has a lone surrogate, which is no character; remove it", field="ngram") from None
    ids = (vocabulary.table[points] & ID_MASK).tolist()
    # A key of 0 is that of no n-gram.
    fits = ids and 0 not in ids and len(ids) * vocabulary.bits <= 64
    return np.uint64(hashing.pack(ids, vocabulary.bits) if fits else 0)


def _check_k(k: int) -> None:
    if not is_whole(k) or k < 1:
        raise InputError(f"k: must be a whole number of at least 1, got {k!r}", field="k")
