"""Misspelt test sets: how much of its score a model keeps when the words are spelt as people spell them.

The noise is not the trainer's (data/misspelling.py): keyboard neighbours instead of random letters, and real
misspellings from other lists.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gramvec_training.evaluation.sets import SimilaritySet

# The neighbours of each key on a QWERTY keyboard, left to right, above and below.
NEIGHBOURS = {
    "q": "wa", "w": "qeas", "e": "wrsd", "r": "etdf", "t": "ryfg", "y": "tugh", "u": "yihj", "i": "uojk",
    "o": "ipkl", "p": "ol", "a": "qwsz", "s": "adwezx", "d": "sferxc", "f": "dgrtcv", "g": "fhtyvb",
    "h": "gjyubn", "j": "hkuinm", "k": "jliom", "l": "kop", "z": "asx", "x": "zcsd", "c": "xvdf", "v": "cbfg",
    "b": "vngh", "n": "bmhj", "m": "njk",
}  # fmt: skip
KINDS = ("keyboard", "transposition", "deletion", "insertion", "real")
SHORTEST = 3


def of_sentences(sets: Sequence[SimilaritySet]) -> list[SimilaritySet]:
    """The sets but those of single words, where a misspelling leaves too little to judge a model by."""
    return [one for one in sets if any(" " in text.strip() for text in [*one.left, *one.right])]


def misspelt_sets(
    sets: Sequence[SimilaritySet], share: float, known: Mapping[str, Sequence[str]], *, seed: int = 1
) -> list[SimilaritySet]:
    """The sets with about `share` (0 to 1) of the words of three letters and more misspelt, on both sides.

    One kind of mistake a word, each kind as likely; "real" takes a misspelling of `known` and, where there is none,
    another kind. The same arguments give the same sets.
    """
    noisy = []
    for one in sets:
        rng = np.random.default_rng([seed, round(share * 1000), zlib.crc32(f"{one.task}/{one.name}".encode())])
        left = [misspelt(text, share, known, rng) for text in one.left]
        right = [misspelt(text, share, known, rng) for text in one.right]
        noisy.append(replace(one, left=left, right=right))
    return noisy


def misspelt(text: str, share: float, known: Mapping[str, Sequence[str]], rng: np.random.Generator) -> str:
    """The text with each word of three letters and more misspelt with probability `share`."""
    words = text.split(" ")
    for index, word in enumerate(words):
        if len(word) >= SHORTEST and word.isascii() and word.isalpha() and rng.random() < share:
            words[index] = _mistake(word, known.get(word.lower(), ()), rng)
    return " ".join(words)


def _mistake(word: str, real: Sequence[str], rng: np.random.Generator) -> str:
    kind = KINDS[int(rng.integers(len(KINDS) if real else len(KINDS) - 1))]
    at = int(rng.integers(len(word)))
    near = NEIGHBOURS[word[at].lower()]
    neighbour = near[int(rng.integers(len(near)))]
    if kind == "real":
        return real[int(rng.integers(len(real)))]
    if kind == "keyboard":
        return word[:at] + neighbour + word[at + 1 :]
    if kind == "deletion":
        return word[:at] + word[at + 1 :]
    if kind == "insertion":
        return word[:at] + neighbour + word[at:]
    at = min(at, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
