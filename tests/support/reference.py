"""The featurizer once more, slow and plain: strings and dictionaries, one character after the other.

It is written from docs/design/features.md and shares no code with the fast passes; the tests compare them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterator

from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry


def normalized(text: str, lowercase: bool) -> str:
    """NFC, lower case a character at a time, single spaces, one space on each side; "" for white space alone."""
    text = unicodedata.normalize("NFC", text)
    if lowercase:
        text = "".join("i" if character == "\u0130" else character.lower() for character in text)
    words = text.split()
    return " " + " ".join(words) + " " if words else ""


def ngrams(text: str, orders: tuple[int, ...]) -> Iterator[str]:
    """Every n-gram of a normalized text by its last character, shorter ones first."""
    for end in range(1, len(text) + 1):
        for n in orders:
            if n <= end:
                yield text[end - n : end]


def is_word_character(character: str) -> bool:
    category = unicodedata.category(character)
    return category.startswith(("L", "M", "N")) or category == "Pc"


def words(text: str, rule: str = "runs-and-symbols/1") -> Iterator[str]:
    """Longest runs of word characters, and every other character but white space by itself; or what spaces part."""
    if rule == "white-space/1":
        yield from text.split()
        return
    run = ""
    for character in text:
        if is_word_character(character):
            run += character
            continue
        if run:
            yield run
        run = ""
        if not character.isspace():
            yield character
    if run:
        yield run


def featurize(text: str, spec: FeatureSpec, entries: list[Entry]) -> list[int]:
    """The rows of one text."""
    rows = {(entry.kind, entry.text): row for row, entry in enumerate(entries)}
    text = normalized(text, spec.lowercase)
    if spec.unknown_words == "ngrams":
        return [row for word in words(text, spec.word_rule) for row in spelt(word, spec, rows)]
    found = [rows[("ngram", ngram)] for ngram in ngrams(text, spec.orders) if ("ngram", ngram) in rows]
    if spec.words:
        unknown = rows.get(("unknown", "")) if spec.unknown_words == "row" else None
        of_words = [rows.get(("word", word), unknown) for word in words(text, spec.word_rule)]
        found += [row for row in of_words if row is not None]
    return found


def spelt(word: str, spec: FeatureSpec, rows: dict[tuple[str, str], int]) -> list[int]:
    """The row of a word that is listed, or those of the n-grams of letters between two spaces."""
    if ("word", word) in rows:
        return [rows[("word", word)]]
    if spec.word_rule == "runs-and-symbols/1" and not is_word_character(word[0]):
        return []
    each = (ngram for ngram in ngrams(f" {word} ", spec.orders) if ngram != " ")
    return [rows[("ngram", ngram)] for ngram in each if ("ngram", ngram) in rows]


def suffixes(ngram: str, known: Container[str]) -> list[str]:
    """An n-gram and those of its suffixes that are known; of one with a space inside those that have one inside."""
    crosses = " " in ngram[1:-1]
    found = (ngram[start:] for start in range(len(ngram)))
    return [one for one in found if one in known and (" " in one[1:-1]) == crosses]
