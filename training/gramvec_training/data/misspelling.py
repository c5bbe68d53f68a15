"""Misspelled copies of training texts and words, and words of similar spelling.

The robustness scores (evaluation/similarity.py) use another generator, so that no model is trained on its test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gramvec.lexical.sketch import LexicalSketch
from gramvec_training.shared import Ints

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Spellings that sound alike or nearly so in English, taken for each other both ways, unless one is nothing.
_ALIKE = (
    "ie ei", "ph f", "c k", "c s", "s z", "tion sion", "able ible", "ance ence", "ant ent", "ar er", "or er", "y i",
    "kn n", "wr r", "wh w", "qu kw", "x cs", "ck k", "tch ch", "sc s", "dge ge", "g j", "ea ee", "ea e", "ai a", "ou o",
    "oo u", "ee i", "au or", "ous us", "ough uff", "ght t", "gh ", "mb m", "le el", "re er", "ed t", "e ", "a e", "e i",
    "i a", "o u", "u e", "a o", "ll l", "ss s", "tt t", "mm m", "nn n", "pp p", "rr r", "cc c", "ff f",
)  # fmt: skip
_PAIRS = [(line.split(" ")[0], line.split(" ")[1]) for line in _ALIKE]
SOUNDS = (*_PAIRS, *((alike, sound) for sound, alike in _PAIRS if alike))
SHORTEST = 3  # of two letters, half of the misspellings are other words


def misspell(
    texts: Sequence[str], rng: np.random.Generator, *, share: float, known: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return a copy of each text in which about `share` of the longer words, at least one, are misspelled.

    `known` gives real misspellings of a lower-case word, used for half of the words that have any; the other words
    lose, gain, change, double or swap a letter, each as likely. A text without a word of three letters is unchanged.
    """
    return [_misspell(text, rng, share, known) for text in texts]


def _misspell(text: str, rng: np.random.Generator, share: float, known: Mapping[str, Sequence[str]]) -> str:
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
            words[i] = _change_letters(words[i], rng)
    return " ".join(words)


def misspell_word(word: str, rng: np.random.Generator, *, known: Mapping[str, Sequence[str]]) -> str:
    """Return a misspelling of a word: in half of the cases one of `known`, else one or two random errors.

    An error is a letter lost, gained, changed, doubled or swapped, or a spelling that sounds alike. The word itself may
    come out, as one of a letter does.
    """
    if len(word) < 2:
        return word
    real = known.get(word.lower(), ())
    if real and rng.random() < 0.5:
        return real[int(rng.integers(len(real)))]
    for error in ERRORS[int(rng.integers(len(ERRORS)))]:
        misspelt = error(word, rng)
        word = misspelt if len(misspelt) > 1 else word
    return word


def _change_letters(word: str, rng: np.random.Generator) -> str:
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


def _replace_sound(word: str, rng: np.random.Generator) -> str:
    """Replace one spelling in the word by another that sounds alike, if there is any."""
    for i in rng.permutation(len(SOUNDS)).tolist():
        sound, replacement = SOUNDS[int(i)]
        if sound in word:
            parts = word.split(sound)
            at = int(rng.integers(1, len(parts)))
            return sound.join(parts[:at]) + replacement + sound.join(parts[at:])
    return word


_Error = Callable[[str, np.random.Generator], str]
ERRORS: tuple[tuple[_Error, ...], ...] = (
    (_change_letters,),
    (_change_letters,),
    (_replace_sound,),
    (_change_letters, _replace_sound),
    (_replace_sound, _replace_sound),
    (_change_letters, _change_letters),
)


# Of the words that are compared: more columns change few neighbors, and take longer.
ORDERS, COLUMNS, RARE = (2, 3, 4), 256, 1e-2
WORDS_A_BLOCK = 1_000  # 200 MB of cosines with 50,000 words


def find_spelt_alike(words: Sequence[str], near: int) -> Ints:
    """Return int64[words, near]: for each word the places of the words that share most n-grams with it.

    The word itself is among them; the order is not defined.

    n-grams of 2 to 4 weigh less the more words have them. Of fewer words than `near`, all.
    """
    lexical = LexicalSketch.of_texts(words, orders=ORDERS, columns=COLUMNS, a=RARE)
    sketches = lexical.join(words, np.zeros((len(words), 1), np.float32))[0][:, 1:]
    sketches /= np.maximum(np.linalg.norm(sketches, axis=1, keepdims=True), 1e-9)
    near = min(near, len(words))
    nearest = np.empty((len(words), near), np.int64)
    for start in range(0, len(words), WORDS_A_BLOCK):
        cosines = sketches[start : start + WORDS_A_BLOCK] @ sketches.T
        nearest[start : start + WORDS_A_BLOCK] = np.argpartition(-cosines, near - 1, axis=1)[:, :near]
    return nearest


def make_copies(
    words: Sequence[str], copies: int, rng: np.random.Generator, *, known: Mapping[str, Sequence[str]]
) -> list[str]:
    """Misspell every word once, then all of them again, `copies` times."""
    return [misspell_word(word, rng, known=known) for _ in range(copies) for word in words]
