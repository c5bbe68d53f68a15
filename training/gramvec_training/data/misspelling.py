"""Misspelt copies of training texts.

The generator that scores robustness (evaluation/robustness.py) is another one, so that no model is trained on its test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHORTEST = 3  # of two letters, half of the misspellings are other words


def misspelt(
    texts: Sequence[str], rng: np.random.Generator, *, share: float, known: Mapping[str, Sequence[str]]
) -> list[str]:
    """A copy of each text in which about `share` of the longer words, and at least one, are misspelt.

    `known` gives real misspellings of a lower-case word, used for half of the words that have any; the other words
    lose, gain, change, double or swap a letter, each as likely. A text without a word of three letters is unchanged.
    """
    return [_misspelt(text, rng, share, known) for text in texts]


def _misspelt(text: str, rng: np.random.Generator, share: float, known: Mapping[str, Sequence[str]]) -> str:
    words = text.split(" ")
    long = [i for i, word in enumerate(words) if len(word) >= SHORTEST and word.isalpha()]
    if not long:
        return text
    chosen = [i for i in long if rng.random() < share] or [long[int(rng.integers(len(long)))]]
    for i in chosen:
        real = known.get(words[i].lower(), ())
        if real and rng.random() < 0.5:
            words[i] = real[int(rng.integers(len(real)))]
        else:
            words[i] = _edited(words[i], rng)
    return " ".join(words)


def _edited(word: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(word)))
    swapped = max(at, 1)
    letter = LETTERS[int(rng.integers(len(LETTERS)))]
    edits = (
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[: swapped - 1] + word[swapped] + word[swapped - 1] + word[swapped + 1 :],
    )
    return edits[int(rng.integers(len(edits)))]
