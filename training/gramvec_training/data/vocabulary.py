"""Vocabularies: counts of n-grams and words by the featurizer's stages, limits, warm starts, and memo counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.features.numpy_reference import Characters, characters, ngram_keys, word_spans
from gramvec.features.spec import FeatureSpec
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text import hashing
from gramvec.text.characters import ID_MASK, MAX_ALPHABET, lower
from gramvec.text.inputs import code_points
from gramvec.text.memo import cut_edges
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.config import Config, Start
from gramvec_training.data.corpus import Featurize
from gramvec_training.readers.vectors import find_vectors, read_vectors
from gramvec_training.shared import Ints

CHUNK_TEXTS = 50_000


def count_words(texts: Iterable[str], spec: FeatureSpec) -> Counter[str]:
    """Count the words of any number of texts, holding only a chunk of texts in memory."""
    counts: Counter[str] = Counter()
    remaining = iter(texts)
    while chunk := list(islice(remaining, CHUNK_TEXTS)):
        alphabet = find_frequent_characters(chunk, spec)
        if alphabet is not None:
            counts.update(count_known_words(chunk, spec, alphabet))
    return counts


def count_documents(texts: Sequence[str], featurize: Featurize, rows: int, *, chunk: int = 4096) -> Ints:
    """Return int64[rows]: the number of texts that have the feature of each row."""
    counts = np.zeros(rows, dtype=np.int64)
    for start in range(0, len(texts), chunk):
        features = featurize(texts[start : start + chunk])
        owners = np.repeat(np.arange(len(features.offsets) - 1), np.diff(features.offsets))
        distinct = np.unique(owners * rows + features.ids)
        counts += np.bincount(distinct % rows, minlength=rows)
    return counts


def find_frequent_characters(texts: Sequence[str], spec: FeatureSpec) -> Vocabulary | None:
    """Return a vocabulary of single characters; only its alphabet and table are used."""
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(spec.read(text))
    counts: Counter[str] = Counter({" ": len(texts)})  # the padding
    for character, count in seen.items():
        if not "\ud800" <= character <= "\udfff":
            letter = " " if character.isspace() else character
            counts[lower(letter) if spec.lowercase else letter] += count
    longest = max(spec.orders, default=1)
    most = min((1 << 64 // longest) - 1, MAX_ALPHABET)
    if counts.keys() == {" "}:
        return None
    entries = [Entry("ngram", text, count) for text, count in keep_most_frequent(counts, 1, most)]
    return Vocabulary.build(entries, lowercase=spec.lowercase, symbols=spec.has_symbols)


def count_ngrams(
    texts: Sequence[str], spec: FeatureSpec, alphabet: Vocabulary, *, progress: Progress = NO_PROGRESS
) -> dict[str, int]:
    """Count the n-grams of the spec's orders over the alphabet's characters."""
    keys, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for chars in _read_chunks(texts, spec, alphabet, "counting n-grams", progress):
        ngrams, valid = ngram_keys(chars, spec.orders, alphabet.bits)
        new_keys, new_counts = np.unique(ngrams[valid], return_counts=True)
        keys, counts = _merge(keys, counts, new_keys, new_counts)
    letters = ["", *map(chr, alphabet.alphabet.tolist())]
    return {
        "".join(letters[number] for number in hashing.unpack(key, alphabet.bits)): count
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


def count_known_words(
    texts: Sequence[str], spec: FeatureSpec, alphabet: Vocabulary, *, progress: Progress = NO_PROGRESS
) -> Counter[str]:
    """Count the words made of the alphabet's characters."""
    counts: Counter[str] = Counter()
    outside = 0x10FFFF  # a code point that Unicode promises never to assign stands for id 0
    letters = np.append(outside, alphabet.alphabet).astype(np.uint32)
    for chars in _read_chunks(texts, spec, alphabet, "counting words", progress):
        text = letters[chars.codes & ID_MASK].tobytes().decode("utf-32-le")
        spans = word_spans(chars)
        counts.update(text[a:b] for a, b in zip(spans.start.tolist(), spans.end.tolist(), strict=True))
    return Counter({word: count for word, count in counts.items() if chr(outside) not in word})


def _read_chunks(
    texts: Sequence[str], spec: FeatureSpec, alphabet: Vocabulary, title: str, progress: Progress
) -> Iterator[Characters]:
    progress.start(title, len(texts), "texts")
    for start in range(0, len(texts), CHUNK_TEXTS):
        chunk = texts[start : start + CHUNK_TEXTS]
        yield characters(code_points(chunk, spec.read), alphabet.table)
        progress.advance(len(chunk))


def keep_most_frequent(counts: dict[str, int], min_count: int, most: int | None) -> list[tuple[str, int]]:
    """Return the first `most` entries with at least `min_count`, by descending count and then by text."""
    kept = [(text, count) for text, count in counts.items() if count >= min_count]
    kept.sort(key=lambda pair: (-pair[1], pair[0]))
    return kept[:most]


def build_vocabulary(
    texts: Iterable[str],
    spec: FeatureSpec,
    *,
    min_count: int = 1,
    max_ngrams: int | None = None,
    max_ngrams_each: int | None = None,
    max_words: int | None = None,
    words: Iterable[str] | None = None,
    progress: Progress = NO_PROGRESS,
) -> Vocabulary:
    """Build the vocabulary of n-grams and words that occur `min_count` times, rows by descending count.

    max_ngrams, max_words: how many are kept, the most frequent; equal counts go by text, so that the result
    depends on nothing but the arguments. max_ngrams_each: the same for the n-grams of each order (the k of CHARAGRAM,
    section 4.4). words: these have a row however rare they are in the texts, and no other word has one; those that
    the featurizer never sees, such as two words in one or upper case, are left out. With
    spec.unknown_words="row" the last row is the unknown word's. Only n-grams and words of the most frequent
    characters are kept where the alphabet is too large for the longest order (65,535 characters up to order 4, 4,095
    for 5, 1,023 for 6).

    Raises:
        InputError: Nothing is left to keep.
    """
    entries = _count_entries(texts, spec, min_count, max_ngrams, max_ngrams_each, max_words, words, progress=progress)
    return Vocabulary.build(entries, lowercase=spec.lowercase, symbols=spec.has_symbols)


def _count_entries(
    texts: Iterable[str],
    spec: FeatureSpec,
    min_count: int = 1,
    max_ngrams: int | None = None,
    max_ngrams_each: int | None = None,
    max_words: int | None = None,
    words: Iterable[str] | None = None,
    *,
    progress: Progress = NO_PROGRESS,
) -> list[Entry]:
    """Return the entries of `build_vocabulary`, by row."""
    kept = list(texts)
    listed = None if words is None else list(words)
    alphabet = find_frequent_characters([*kept, *(listed or ())], spec)
    if alphabet is None:
        raise InputError("the texts hold no characters; give texts to build a vocabulary from")
    entries: list[Entry] = []
    if spec.orders:
        counts = count_ngrams(kept, spec, alphabet, progress=progress)
        if max_ngrams_each is not None:
            counts = _keep_most_frequent_of_each_order(counts, spec, min_count, max_ngrams_each)
        entries += [Entry("ngram", text, n) for text, n in keep_most_frequent(counts, min_count, max_ngrams)]
    if spec.words:
        word_counts: dict[str, int] = count_known_words(kept, spec, alphabet, progress=progress)
        if listed is not None:
            whole = set(listed)
            known = count_known_words(listed, spec, alphabet)
            word_counts, min_count = {word: word_counts.get(word, 0) for word in known if word in whole}, 0
        entries += [Entry("word", text, n) for text, n in keep_most_frequent(word_counts, min_count, max_words)]
    entries.sort(key=lambda entry: (-entry.count, entry.kind, entry.text))
    if spec.unknown_words == "row":
        entries.append(Entry("unknown", "", 0))
    return entries


def build_limited_vocabulary(
    config: Config, texts: Iterable[str], spec: FeatureSpec, data: Path, *, progress: Progress = NO_PROGRESS
) -> Vocabulary:
    """Build the vocabulary of these texts within the config's limits; `data` is the folder of its word vectors."""
    limits = config.vocabulary
    words = None
    if limits.words_of_vectors:
        if config.model.vectors is None or not spec.words:
            raise InputError("vocabulary.words_of_vectors needs model.vectors and features.words; set both")
        words = read_vectors(find_vectors(config.model.vectors, data))[0]
    return build_vocabulary(
        texts,
        spec,
        min_count=limits.min_count,
        max_ngrams=limits.max_ngrams,
        max_ngrams_each=limits.max_ngrams_each,
        max_words=limits.max_words,
        words=words,
        progress=progress,
    )


def extend_vocabulary(
    start: Start,
    known: Vocabulary,
    texts: Iterable[str],
    spec: FeatureSpec,
    *,
    renew: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Vocabulary:
    """Return the bundle's rows in their order, then new rows for `texts`; a row of unknown words stays last.

    Where nothing is new it is `known` itself, unless `renew` asks for the characters of this Unicode version.
    """
    added = _add_entries(start, known, _count_entries(texts, spec, progress=progress), spec)
    if not added and not renew:
        return known
    old = known.entries()
    entries = [entry for entry in old if entry.kind != "unknown"] + added
    entries += [entry for entry in old if entry.kind == "unknown"]
    return Vocabulary.build(entries, lowercase=spec.lowercase, symbols=spec.has_symbols)


def _add_entries(start: Start, known: Vocabulary, counted: Sequence[Entry], spec: FeatureSpec) -> list[Entry]:
    left = {"ngram": start.max_ngrams, "word": start.max_words, "unknown": 0}
    present = {"ngram": frozenset(known.ngram_texts), "word": frozenset(known.word_texts)}
    letters = set(map(chr, known.alphabet.tolist()))
    most_letters = min((1 << 64 // max(spec.orders, default=1)) - 1, MAX_ALPHABET)
    added: list[Entry] = []
    for entry in counted:  # by descending count
        if entry.count < start.min_count or not left[entry.kind] or entry.text in present[entry.kind]:
            continue
        if len(letters.union(entry.text)) > most_letters:
            continue
        letters.update(entry.text)
        left[entry.kind] -= 1
        added.append(entry)
    return added


def _keep_most_frequent_of_each_order(
    counts: dict[str, int], spec: FeatureSpec, min_count: int, most: int
) -> dict[str, int]:
    kept: dict[str, int] = {}
    for order in spec.orders:
        kept.update(keep_most_frequent({text: n for text, n in counts.items() if len(text) == order}, min_count, most))
    return kept


Counts = Mapping[str, int]


class RepeatedParts(NamedTuple):
    """Counts of chunks (without white space) and of edges (with white space) in some texts."""

    chunks: Counts
    edges: Counts


def count_repeated(texts: Iterable[str], spec: FeatureSpec) -> RepeatedParts:
    """Count the chunks and edges of the texts, normalized by the spec."""
    chunks: Counter[str] = Counter()
    edges: Counter[str] = Counter()
    reach = max(spec.orders, default=0) - 2
    for text in texts:
        composed = spec.read(text)
        if spec.lowercase:
            composed = composed.lower() if composed.isascii() else "".join(map(lower, composed))
        words = composed.split()
        chunks.update(words)
        if reach > 0:
            edges.update(cut_edges(f" {' '.join(words)} ", reach))
    return RepeatedParts(chunks, edges)
