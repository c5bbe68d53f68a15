"""Words in groups that are spelt alike, each with misspelt copies: for a model to tell which word was meant."""

from __future__ import annotations

from gramvec_training.types import Ints

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gramvec.lexical.sketch import LexicalSketch
from gramvec_training.data.misspelling import misspelt_word


# Of the words that are compared: more columns change few neighbours, and take longer.
ORDERS, COLUMNS, RARE = (2, 3, 4), 256, 1e-2
WORDS_A_BLOCK = 1_000  # 200 MB of cosines with 50,000 words


def spelt_alike(words: Sequence[str], near: int) -> Ints:
    """int64[words, near]: the places of the words that share most n-grams with each, itself among them, in any order.

    n-grams of 2 to 4 weigh less the more words have them. Of fewer words than `near`, all.
    """
    lexical = LexicalSketch.of_texts(words, orders=ORDERS, columns=COLUMNS, a=RARE)
    sketches = lexical.joined(words, np.zeros((len(words), 1), np.float32))[0][:, 1:]
    sketches /= np.maximum(np.linalg.norm(sketches, axis=1, keepdims=True), 1e-9)
    near = min(near, len(words))
    found = np.empty((len(words), near), np.int64)
    for start in range(0, len(words), WORDS_A_BLOCK):
        cosines = sketches[start : start + WORDS_A_BLOCK] @ sketches.T
        found[start : start + WORDS_A_BLOCK] = np.argpartition(-cosines, near - 1, axis=1)[:, :near]
    return found


def copies_of(
    words: Sequence[str], copies: int, rng: np.random.Generator, *, known: Mapping[str, Sequence[str]]
) -> list[str]:
    """All words misspelt once, then all of them again, `copies` times; see misspelt_word."""
    return [misspelt_word(word, rng, known=known) for _ in range(copies) for word in words]
