"""Misspelt words: how often the word that was meant is among the nearest of the most frequent words.

A set is a file of `word<TAB>misspelling` lines. The words to choose from are a file of a word a line, with its count or
without, the most frequent first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramvec.errors import InputError
from gramvec_training.families.comparison import Model
from gramvec_training.readers import numbered_lines, read_rows

NEAREST = (1, 3, 10)


@dataclass(frozen=True)
class SpellingSet:
    """Misspelt words and, by its position in `words`, the word that each stands for.

    `seen` bool[n]: whether a model may have learned from this very misspelling.
    """

    name: str
    words: Sequence[str]
    misspelt: list[str]
    meant: list[int]
    seen: list[bool]


@dataclass(frozen=True)
class SpellingScores:
    """k -> the share, 0 to 1, of the misspelt words whose word is among the k nearest: of all, and of those not seen.

    The second is empty where nothing was seen, or all was.
    """

    found: Mapping[int, float]
    found_unseen: Mapping[int, float]


def read_words(path: Path, count: int) -> list[str]:
    """The first `count` distinct words, in lower case; what follows a space or a tab on a line is not read.

    Raises InputError where there are fewer.
    """
    words: dict[str, None] = {}
    for number, raw in numbered_lines(path):
        if len(words) == count:
            break
        try:
            words.update((word.lower(), None) for word in raw.decode("utf-8").split(maxsplit=1)[:1])
        except UnicodeDecodeError:
            raise InputError(f"{path} line {number} is not UTF-8; convert the file.") from None
    if len(words) < count:
        raise InputError(f"{path} has {len(words):,} different words, not {count:,}; write a word a line.")
    return list(words)


def read_spelling_set(
    path: Path,
    words: Sequence[str],
    *,
    seen: Mapping[str, Sequence[str]] | None = None,
    most: int | None = None,
    seed: int = 1,
) -> SpellingSet:
    """The lines whose word is in `words`, without regard to case; of these at most `most`, drawn by `seed`.

    seen: lower-case word -> misspellings that a model may have learned from. Raises InputError where no line is left,
    and for a line without a tab.
    """
    places = {word: place for place, word in enumerate(words)}
    known = {(word, wrong.lower()) for word, listed in (seen or {}).items() for wrong in listed}
    found: dict[tuple[str, int], bool] = {}
    for _, (column, wrong, *_) in read_rows(path, columns=2):
        word, wrong = column.strip().lower(), wrong.strip()
        if word in places and wrong and wrong.lower() != word:
            found[wrong, places[word]] = (word, wrong.lower()) in known
    if not found:
        raise InputError(f"{path} has no misspelling of one of the {len(words):,} words; write word<TAB>misspelling.")
    chosen = list(found)
    if most is not None and most < len(found):
        drawn = np.sort(np.random.default_rng(seed).permutation(len(found))[:most])
        chosen = [chosen[i] for i in drawn.tolist()]
    name = path.name.removesuffix(".gz").removesuffix(".tsv")
    misspelt, meant = [text for text, _ in chosen], [place for _, place in chosen]
    return SpellingSet(name, words, misspelt, meant, [found[one] for one in chosen])


def score_spelling(one: SpellingSet, model: Model, *, nearest: Sequence[int] = NEAREST) -> SpellingScores:
    """The scores of a model, made for the words."""
    asked = list(dict.fromkeys(one.misspelt))
    places = model(one.words).nearest(asked, one.words, max(nearest)).tolist()
    of_text = dict(zip(asked, places, strict=True))
    unseen = ~np.array(one.seen, np.bool_)
    found, found_unseen = {}, {}
    for k in nearest:
        hits = np.array([word in of_text[text][:k] for text, word in zip(one.misspelt, one.meant, strict=True)])
        found[k] = float(hits.mean())
        if unseen.any() and not unseen.all():
            found_unseen[k] = float(hits[unseen].mean())
    return SpellingScores(found, found_unseen)
