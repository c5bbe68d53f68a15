"""Texts and their translations: read, drawn, without those that models are scored on, and cut into listed words."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.text.scripts import is_unspaced
from gramvec_training.data.languages import cut_words
from gramvec_training.shared import Ints

SUFFIX = ".translations.tsv.gz"


class Translations(NamedTuple):
    """Pairs of a text and its translation of some sets, one set after the other, each in its file's order.

    withheld: how many of each set were left out because one of their texts is one that models are scored on.
    """

    pairs: list[tuple[str, str]]
    counts: dict[str, int]
    withheld: dict[str, int]


def read_translations(folder: Path, sets: Mapping[str, int], withheld: Path, seed: int) -> Translations:
    """Read at most as many pairs of each set as `sets` says, the rest drawn out by the seed.

    Args:
        folder: of the files NAME.translations.tsv.gz.
        sets: of the name of each how many pairs at most.
        withheld: a file with a text on each line; a pair is left out where one of its texts has the words of one.
        seed: of the draw.

    Raises:
        InputError: A file is missing or is no table of two columns.
    """
    kept_out = {_reduce(line) for line in _read_lines(withheld)}
    pairs: list[tuple[str, str]] = []
    counts, left_out = {}, {}
    for name, most in sets.items():
        path = folder / f"{name}{SUFFIX}"
        rows = [tuple(line.split("\t")) for line in _read_lines(path)]
        if any(len(row) != 2 for row in rows):
            raise InputError(f"{path}: has a line that is not a text, a tab and its translation; fetch it again")
        allowed = [
            (one, other) for one, other in rows if _reduce(one) not in kept_out and _reduce(other) not in kept_out
        ]
        left_out[name] = len(rows) - len(allowed)
        if len(allowed) > most:
            drawn = np.sort(np.random.default_rng(seed).choice(len(allowed), most, replace=False))
            allowed = [allowed[place] for place in drawn.tolist()]
        counts[name] = len(allowed)
        pairs += allowed
    return Translations(pairs, counts, left_out)


def _read_lines(path: Path) -> list[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            return file.read().rstrip("\n").split("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); docs/training-data.md says how it is fetched") from error


def _reduce(text: str) -> str:
    """Return the letters and digits of a text in lower case: what makes it equal to a withheld one."""
    return "".join(character for character in text.casefold() if character.isalnum())


class WordCutter:
    """Cuts texts into listed words, as their places in the list; what is not listed is left out.

    Runs of scripts without spaces are cut from the left into the longest words that are listed.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._places = {word: place for place, word in enumerate(words)}
        self._longest = max((len(word) for word in words if any(map(is_unspaced, word))), default=1)
        self._known: dict[str, list[int]] = {}

    def cut(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return the words of all texts, int64[words], and where each text begins and the last ends, int64[n + 1]."""
        places: list[int] = []
        offsets = [0]
        for text in texts:
            for part in text.split():
                if part not in self._known:
                    self._known[part] = [place for word in cut_words(part) for place in self._find(word)]
                places += self._known[part]
            offsets.append(len(places))
        return np.array(places, np.int64), np.array(offsets, np.int64)

    def _find(self, word: str) -> list[int]:
        if word in self._places:
            return [self._places[word]]
        found: list[int] = []
        for unspaced, characters in groupby(word, is_unspaced):
            run = "".join(characters)
            at = 0
            while unspaced and at < len(run):
                length = next(
                    (n for n in range(min(self._longest, len(run) - at), 0, -1) if run[at : at + n] in self._places), 0
                )
                if length:
                    found.append(self._places[run[at : at + length]])
                at += max(1, length)
        return found
