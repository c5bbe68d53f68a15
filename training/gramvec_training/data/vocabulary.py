"""From texts to a vocabulary: count what the featurizer's own stages see, keep the most frequent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gramvec.errors import InputError
from gramvec.text.characters import MAX_ALPHABET
from gramvec.text.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.configuration import Config, Start
from gramvec_training.data.counting import count_ngrams, frequent_characters, most_frequent, words_of
from gramvec_training.readers import read_vectors, vectors_at


def build_vocabulary(
    texts: Iterable[str],
    spec: FeatureSpec,
    *,
    min_count: int = 1,
    max_ngrams: int | None = None,
    max_ngrams_each: int | None = None,
    max_words: int | None = None,
    words: Iterable[str] | None = None,
) -> Vocabulary:
    """The n-grams and words of the texts that occur at least `min_count` times, rows by descending count.

    max_ngrams, max_words: keep only so many, the most frequent; equal counts go by text, so that the result
    depends on nothing but the arguments. max_ngrams_each: the same for the n-grams of each order (the k of CHARAGRAM,
    section 4.4). words: these have a row however rare they are in the texts, and no other word has one; those that
    the featurizer never sees, such as two words in one or upper case, are left out. With
    spec.unknown_words="row" the last row is the unknown word's. Only n-grams and words of the most frequent
    characters are kept where the alphabet is too large for the longest order (65,535 characters up to order 4, 4,095
    for 5, 1,023 for 6).

    Raises InputError if nothing is left to keep.
    """
    entries = _counted(texts, spec, min_count, max_ngrams, max_ngrams_each, max_words, words)
    return Vocabulary.build(entries, lowercase=spec.lowercase, symbols=spec.has_symbols)


def _counted(
    texts: Iterable[str],
    spec: FeatureSpec,
    min_count: int = 1,
    max_ngrams: int | None = None,
    max_ngrams_each: int | None = None,
    max_words: int | None = None,
    words: Iterable[str] | None = None,
) -> list[Entry]:
    """The entries of `build_vocabulary`, by row."""
    kept = list(texts)
    given = None if words is None else list(words)
    alphabet = frequent_characters([*kept, *(given or ())], spec)
    if alphabet is None:
        raise InputError("the texts hold no characters; give texts to build a vocabulary from")
    entries: list[Entry] = []
    if spec.orders:
        counts = count_ngrams(kept, spec, alphabet)
        if max_ngrams_each is not None:
            counts = _most_frequent_of_each_order(counts, spec, min_count, max_ngrams_each)
        entries += [Entry("ngram", text, n) for text, n in most_frequent(counts, min_count, max_ngrams)]
    if spec.words:
        found: dict[str, int] = words_of(kept, alphabet)
        if given is not None:
            whole = set(given)
            found, min_count = {word: found.get(word, 0) for word in words_of(given, alphabet) if word in whole}, 0
        entries += [Entry("word", text, n) for text, n in most_frequent(found, min_count, max_words)]
    entries.sort(key=lambda entry: (-entry.count, entry.kind, entry.text))
    if spec.unknown_words == "row":
        entries.append(Entry("unknown", "", 0))
    return entries


def vocabulary_for(config: Config, texts: Iterable[str], spec: FeatureSpec, data: Path) -> Vocabulary:
    """The vocabulary of these texts within the config's limits; `data` is the folder of its word vectors."""
    limits = config.vocabulary
    words = None
    if limits.words_of_vectors:
        if config.model.vectors is None or not spec.words:
            raise InputError("vocabulary.words_of_vectors needs model.vectors and features.words; set both.")
        words = read_vectors(vectors_at(config.model.vectors, data))[0]
    return build_vocabulary(
        texts,
        spec,
        min_count=limits.min_count,
        max_ngrams=limits.max_ngrams,
        max_ngrams_each=limits.max_ngrams_each,
        max_words=limits.max_words,
        words=words,
    )


def extended_vocabulary(
    start: Start, known: Vocabulary, texts: Iterable[str], spec: FeatureSpec, *, renew: bool = False
) -> Vocabulary:
    """The bundle's rows in their order, then new ones for `texts`; the unknown word's row, if any, stays last.

    Where nothing is new it is `known` itself, unless `renew` asks for the characters of this Unicode version.
    """
    added = _added(start, known, _counted(texts, spec), spec)
    if not added and not renew:
        return known
    old = known.entries()
    entries = [entry for entry in old if entry.kind != "unknown"] + added
    entries += [entry for entry in old if entry.kind == "unknown"]
    return Vocabulary.build(entries, lowercase=spec.lowercase, symbols=spec.has_symbols)


def _added(start: Start, known: Vocabulary, found: Sequence[Entry], spec: FeatureSpec) -> list[Entry]:
    left = {"ngram": start.max_ngrams, "word": start.max_words, "unknown": 0}
    present = {"ngram": frozenset(known.ngram_texts), "word": frozenset(known.word_texts)}
    letters = set(map(chr, known.alphabet.tolist()))
    most_letters = min((1 << 64 // max(spec.orders, default=1)) - 1, MAX_ALPHABET)
    added: list[Entry] = []
    for entry in found:  # by descending count
        if entry.count < start.min_count or not left[entry.kind] or entry.text in present[entry.kind]:
            continue
        if len(letters.union(entry.text)) > most_letters:
            continue
        letters.update(entry.text)
        left[entry.kind] -= 1
        added.append(entry)
    return added


def _most_frequent_of_each_order(
    counts: dict[str, int], spec: FeatureSpec, min_count: int, most: int
) -> dict[str, int]:
    kept: dict[str, int] = {}
    for order in spec.orders:
        kept.update(most_frequent({text: n for text, n in counts.items() if len(text) == order}, min_count, most))
    return kept
