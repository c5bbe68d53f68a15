"""Which words are asked for their nearest neighbours (CHARAGRAM, Tables 8 and 9), and among which they are sought."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec_training.evaluation.sets import SimilaritySet
from gramvec_training.readers import read_frequencies

# Table 9: eleven words, the first eight not in the paper's training data, and a common misspelling.
WORDS = (
    "vehicals", "serious-looking", "near-impossible", "growths", "litered", "journeying", "babyyyyyy", "adirty",
    "definately", "refunding", "professors", "huge",
)  # fmt: skip
# Table 8: negations that one word can say.
PHRASES = ("not capable", "not able", "not possible", "not sufficient", "not easy")
CANDIDATES = 50_000


def candidate_words(embedders: Iterable[Embedder], sets: Sequence[SimilaritySet]) -> list[str]:
    """Words to look among: the most frequent of each model's vocabulary, at most 50,000, and those of the sets."""
    words: dict[str, None] = {}
    for embedder in embedders:
        own = [entry.text for entry in embedder.bundle.vocabulary.entries() if entry.kind == "word"]
        words.update(dict.fromkeys(_spelt(own)[:CANDIDATES]))
    for one in sets:
        for text in [*one.left, *one.right]:
            words.update(dict.fromkeys(_spelt(text.lower().split())))
    if not words:
        raise InputError("Neither the model nor the sets have words to look for neighbours among; give --words FILE.")
    return list(words)


def listed_words(path: Path) -> list[str]:
    """The 50,000 most frequent words of a file of frequencies, see read_frequencies."""
    frequencies = read_frequencies(path)
    words = _spelt(sorted(frequencies, key=lambda word: (-frequencies[word], word)))[:CANDIDATES]
    if not words:
        raise InputError(f"{path} has no word of letters; each line is a word, a space or tab, and a number.")
    return words


def _spelt(words: Iterable[str]) -> list[str]:
    """Those of two characters and more that are letters, with hyphens between them at most."""
    return [word for word in words if len(word) > 1 and word.replace("-", "").isalpha() and word[0] != "-" != word[-1]]
