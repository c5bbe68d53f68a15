"""Word vectors from raw text: words counted near each other, then the squared norm objective over the counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.data import Ints, count_cooccurrences
from gramvec_training.files import write_atomically
from gramvec_training.fitting import SquaredNorm, choose_device, settle, squared_norm_vectors
from gramvec_training.readers import read_texts, treebank_tokens
from gramvec_training.types import Floats


@dataclass(frozen=True)
class Counting:
    """Which words have a vector, and how many places apart words stand near each other.

    tokenised: the texts are tokens with white space between them; else they are cut into Treebank tokens. Words are
    lower-cased.
    """

    window: int = 10
    min_count: int = 20
    max_words: int = 10_000
    tokenised: bool = False


@dataclass(frozen=True)
class WordVectors:
    """words: the most frequent first. counts int64[n]. vectors float32[n, d]. losses: the mean of each epoch."""

    words: list[str]
    counts: Ints
    vectors: Floats
    losses: list[float]

    def save(self, path: Path) -> None:
        """Write an array of NumPy, and its words, one a line, into the file of the same name ending in .txt."""
        text = "".join(f"{word}\n" for word in self.words)
        write_atomically(path.with_suffix(".txt"), lambda handle: handle.write(text.encode()))
        write_atomically(path, lambda handle: np.save(handle, self.vectors, allow_pickle=False))


def learn_word_vectors(paths: Sequence[Path], counting: Counting, settings: SquaredNorm) -> WordVectors:
    """Vectors of the words of text files, one text a line, plain or gzip. On one core, so that all have the same bytes.

    Raises InputError for a missing file, or where fewer than two words are frequent enough.
    """
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise InputError(f"There is no file {missing[0]}; check the path.")
    settle(choose_device("cpu"), 1)
    found = count_cooccurrences(
        tokens_of(paths, tokenised=counting.tokenised),
        window=counting.window,
        min_count=counting.min_count,
        max_words=counting.max_words,
    )
    vectors, losses = squared_norm_vectors(found.pairs, settings)
    return WordVectors(found.words, found.counts, vectors, losses)


def tokens_of(paths: Iterable[Path], *, tokenised: bool) -> Iterator[list[str]]:
    """The lower-cased tokens of each text."""
    for path in paths:
        for text in read_texts(path):
            yield (text if tokenised else treebank_tokens(text)).lower().split()
