"""How often n-grams and words stand in texts, as the featurizer's own stages see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from gramvec.text import hashing
from gramvec.text.characters import ID_MASK, MAX_ALPHABET, lower
from gramvec.text.code_points import code_points
from gramvec.text.nfc import compose
from gramvec.text.numpy_reference import Characters, characters, ngram_keys, word_spans
from gramvec.text.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.data.corpus import Featurize, Ints

CHUNK_TEXTS = 50_000


def count_words(texts: Iterable[str], spec: FeatureSpec) -> Counter[str]:
    """How often each word stands in texts of any number, of which so many are held at a time."""
    counts: Counter[str] = Counter()
    given = iter(texts)
    while chunk := list(islice(given, CHUNK_TEXTS)):
        alphabet = frequent_characters(chunk, spec)
        if alphabet is not None:
            counts.update(words_of(chunk, alphabet))
    return counts


def count_documents(texts: Sequence[str], featurize: Featurize, rows: int, *, chunk: int = 4096) -> Ints:
    """int64[rows]: in how many of the texts the feature of each row stands."""
    counts = np.zeros(rows, dtype=np.int64)
    for start in range(0, len(texts), chunk):
        features = featurize(texts[start : start + chunk])
        owners = np.repeat(np.arange(len(features.offsets) - 1), np.diff(features.offsets))
        distinct = np.unique(owners * rows + features.ids)
        counts += np.bincount(distinct % rows, minlength=rows)
    return counts


def frequent_characters(texts: Sequence[str], spec: FeatureSpec) -> Vocabulary | None:
    """A vocabulary of single characters: only its alphabet and table are of use."""
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(compose(text))
    counts: Counter[str] = Counter({" ": len(texts)})  # the padding
    for character, count in seen.items():
        if not "\ud800" <= character <= "\udfff":
            one = " " if character.isspace() else character
            counts[lower(one) if spec.lowercase else one] += count
    longest = max(spec.orders, default=1)
    most = min((1 << 64 // longest) - 1, MAX_ALPHABET)
    if counts.keys() == {" "}:
        return None
    entries = [Entry("ngram", text, count) for text, count in most_frequent(counts, 1, most)]
    return Vocabulary.build(entries, lowercase=spec.lowercase, symbols=spec.has_symbols)


def count_ngrams(texts: Sequence[str], spec: FeatureSpec, alphabet: Vocabulary) -> dict[str, int]:
    """How often each n-gram of the spec's orders and the alphabet's characters stands in the texts."""
    keys, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for chars in _chunks(texts, alphabet, "counting n-grams"):
        found, valid = ngram_keys(chars, spec.orders, alphabet.bits)
        new_keys, new_counts = np.unique(found[valid], return_counts=True)
        keys, counts = _merge(keys, counts, new_keys, new_counts)
    letters = ["", *map(chr, alphabet.alphabet.tolist())]
    return {
        "".join(letters[one] for one in hashing.unpack(key, alphabet.bits)): count
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
    }


def _merge(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    new_keys: NDArray[np.uint64],
    new_counts: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    merged, inverse = np.unique(np.append(keys, new_keys), return_inverse=True)
    total = np.zeros(len(merged), np.int64)
    np.add.at(total, inverse, np.append(counts, new_counts))
    return merged, total


def words_of(texts: Sequence[str], alphabet: Vocabulary) -> Counter[str]:
    """How often each word of the alphabet's characters stands in the texts."""
    counts: Counter[str] = Counter()
    outside = 0x10FFFF  # a code point that Unicode promises never to assign stands for id 0
    letters = np.append(outside, alphabet.alphabet).astype(np.uint32)
    for chars in _chunks(texts, alphabet, "counting words"):
        text = letters[chars.codes & ID_MASK].tobytes().decode("utf-32-le")
        spans = word_spans(chars)
        counts.update(text[a:b] for a, b in zip(spans.start.tolist(), spans.end.tolist(), strict=True))
    return Counter({word: count for word, count in counts.items() if chr(outside) not in word})


def _chunks(texts: Sequence[str], alphabet: Vocabulary, title: str) -> Iterator[Characters]:
    with tqdm(total=len(texts), desc=title, unit=" texts", disable=None) as bar:
        for start in range(0, len(texts), CHUNK_TEXTS):
            chunk = texts[start : start + CHUNK_TEXTS]
            yield characters(code_points(chunk), alphabet.table)
            bar.update(len(chunk))


def most_frequent(counts: dict[str, int], min_count: int, most: int | None) -> list[tuple[str, int]]:
    """Those with at least so many, by descending count and then by text, and of these the first so many."""
    kept = [(text, count) for text, count in counts.items() if count >= min_count]
    kept.sort(key=lambda pair: (-pair[1], pair[0]))
    return kept[:most]
