"""Misspelt words: how often the word that was meant is among the nearest of the most frequent words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.data import numbered_lines
from gramvec_training.evaluation.comparison import Model

WORDS = 50_000
NEAREST = 3


@dataclass(frozen=True)
class SpellingSet:
    """Misspelt words and, by position in a list of words, the word that each stands for."""

    name: str
    misspelt: list[str]
    meant: list[int]


def read_words(path: Path, count: int = WORDS) -> list[str]:
    """The first `count` distinct words, in lower case, of a file with a word (and what follows a space or tab) a line.

    Raises InputError where the file has none.
    """
    words: dict[str, None] = {}
    for _, raw in numbered_lines(path):
        word = raw.decode("utf-8", "replace").split(maxsplit=1)[:1]
        words.update(dict.fromkeys(one.lower() for one in word))
        if len(words) >= count:
            break
    if not words:
        raise InputError(f"{path} has no word; write a word a line, the most frequent first.")
    return list(words)


def read_spelling_set(path: Path, words: Sequence[str], *, most: int | None = None, seed: int = 1) -> SpellingSet:
    """The `word<TAB>misspelling` lines whose word is in `words`; of these at most `most`, drawn at random.

    Raises InputError where no line is left.
    """
    places = {word: place for place, word in enumerate(words)}
    found = []
    for _, raw in numbered_lines(path):
        word, _, rest = raw.decode("utf-8", "replace").partition("\t")
        misspelling = rest.split("\t")[0].strip()
        if misspelling and word.lower() in places and misspelling.lower() != word.lower():
            found.append((misspelling, places[word.lower()]))
    if not found:
        raise InputError(f"{path} has no misspelling of a known word: write a word, a tab and a misspelling a line.")
    if most is not None and most < len(found):
        chosen = np.sort(np.random.default_rng(seed).permutation(len(found))[:most])
        found = [found[i] for i in chosen.tolist()]
    return SpellingSet(path.stem, [misspelling for misspelling, _ in found], [place for _, place in found])


def score_spelling(
    sets: Sequence[SpellingSet], words: Sequence[str], model: Model, *, nearest: int = NEAREST
) -> dict[str, float]:
    """name of the set -> share, 0 to 1, of the misspelt whose word is among the nearest; the model is made for words.

    All sets are asked at once, so that the words are encoded once.
    """
    asked = list(dict.fromkeys(text for one in sets for text in one.misspelt))
    places = model(words).nearest(asked, words, nearest)
    found = dict(zip(asked, places.tolist(), strict=True))
    return {
        one.name: float(np.mean([word in found[text] for text, word in zip(one.misspelt, one.meant, strict=True)]))
        for one in sets
    }
