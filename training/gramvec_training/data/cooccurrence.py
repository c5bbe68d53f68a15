"""How often words of raw text stand near each other: what word vectors are learned from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.data.corpus import Ints
from gramvec_training.types import Floats

MOST_WORDS = 30_000  # whose matrix has 3.6 GB
_BLOCK = 1_000_000  # words of text that are counted at a time
_TEXTS = 10_000  # that are numbered at a time
_BORDER = -1  # between two texts

_Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Cooccurrences:
    """words: the most frequent first, equal counts by text. counts int64[n]: of each. pairs float32[n, n]: how often
    one stands at most `window` words before or behind the other; symmetric.
    """

    words: list[str]
    counts: Ints
    pairs: Floats


def count_cooccurrences(
    texts: Iterable[Sequence[str]], *, window: int, min_count: int = 1, max_words: int = MOST_WORDS
) -> Cooccurrences:
    """Count the pairs of words of the texts' tokens; a window ends where its text does.

    Words that stand fewer than `min_count` times, or are not among the `max_words` most frequent, hold their places in
    the windows and are not counted. Beside the matrix of 4 n^2 bytes memory has the distinct words alone: the texts'
    numbers lie in a temporary file of 4 bytes a word. Raises InputError where no two words are left.
    """
    with tempfile.TemporaryFile() as file:
        known = _number(texts, file)
        counts = np.zeros(len(known), np.int64)
        for block, _ in _blocks(file, 0):
            counts += np.bincount(block[block >= 0], minlength=len(known))
        listed = list(known)
        often = np.flatnonzero(counts >= min_count).tolist()
        order = sorted(often, key=lambda one: (-counts[one], listed[one]))[:max_words]
        if len(order) < 2:
            raise InputError(
                f"Fewer than two words stand {min_count} times in these texts; give more text or a lower min_count."
            )
        places = np.full(len(known) + 1, _BORDER - 1, np.int32)  # the last is that of the border, which is -1
        places[order], places[-1] = np.arange(len(order), dtype=np.int32), _BORDER
        pairs = np.zeros((len(order), len(order)), np.float32)
        for block, begin in _blocks(file, window):
            _add_pairs(pairs, places[block], begin, window)
    _add_transposed(pairs)
    return Cooccurrences([listed[one] for one in order], counts[order], pairs)


def _number(texts: Iterable[Sequence[str]], file: IO[bytes]) -> dict[str, int]:
    """Write each text's words as their numbers in the order in which they are met, with a border behind each text."""
    known: dict[str, int] = {}
    numbers: list[int] = []
    for done, text in enumerate(texts, 1):
        numbers += [known.setdefault(word, len(known)) for word in text]
        numbers.append(_BORDER)
        if done % _TEXTS == 0:
            file.write(np.array(numbers, np.int32).tobytes())
            numbers = []
    file.write(np.array(numbers, np.int32).tobytes())
    return known


def _blocks(file: IO[bytes], overlap: int) -> Iterator[tuple[_Numbers, int]]:
    """The numbers in blocks, each but the first behind the last `overlap` of those before, and how many these are."""
    file.seek(0)
    before = np.zeros(0, np.int32)
    while len(new := np.frombuffer(file.read(4 * _BLOCK), np.int32)):
        block = np.concatenate([before, new])
        yield block, len(before)
        before = block[max(0, len(block) - overlap) :]


def _add_pairs(pairs: Floats, numbers: _Numbers, begin: int, window: int) -> None:
    """Add 1 for each two known words of a text at most `window` places apart, of which the second is not before
    `begin`; the first gives the row.
    """
    flat, texts = pairs.reshape(-1), np.cumsum(numbers == _BORDER, dtype=np.int32)
    for apart in range(1, min(window, len(numbers) - 1) + 1):
        start = max(begin, apart)
        first, second = numbers[start - apart : -apart], numbers[start:]
        within = (first >= 0) & (second >= 0) & (texts[start - apart : -apart] == texts[start:])
        keys, found = np.unique(first[within].astype(np.int64) * len(pairs) + second[within], return_counts=True)
        flat[keys] += found


def _add_transposed(pairs: Floats, block: int = 1024) -> None:
    """The matrix and its transpose, added in place."""
    for i in range(0, len(pairs), block):
        for j in range(i, len(pairs), block):
            upper = pairs[i : i + block, j : j + block] + pairs[j : j + block, i : i + block].T
            pairs[i : i + block, j : j + block], pairs[j : j + block, i : i + block] = upper, upper.T
