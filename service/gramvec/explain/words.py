"""Contributions by words: what stands between white space, and the share of each feature that lies in it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from gramvec.text.arrays import Doubles, Int64s

# Rows that are added at a time: 10 MB of 300 columns.
BLOCK_ROWS = 4_096


class Word(NamedTuple):
    """Run of characters between white space; start, end: code-point offsets into the text as given."""

    text: str
    start: int
    end: int


class WordPair(NamedTuple):
    """Contribution of a source word and a target word to the score."""

    source: Word
    target: Word
    contribution: float


def words_of(text: str) -> list[Word]:
    """The words of a text, one at least: all of it where nothing but white space is in it."""
    return [Word(one[0], *one.span()) for one in re.finditer(r"\S+", text)] or [Word(text, 0, len(text))]


def spread(words: list[Word], first: Int64s, last: Int64s, rows: Doubles, of: Int64s, part: Doubles) -> Doubles:
    """float64[words, d]: occurrences of features, each shared among words by the characters that it has in each.

    first, last: of each occurrence its characters; white space has no share, and one of nothing else goes to the next
    word. rows: float64[n, d]; of: for each occurrence its row; part: of each row what an occurrence is of it.
    """
    ends = np.cumsum([max(1, word.end - word.start) for word in words])
    begins = np.append(0, ends[:-1])
    # Characters are counted without white space: a place in the text -> those before it.
    edges = np.array([(word.start, word.end) for word in words]).ravel()
    counted = np.stack([begins, ends], axis=1).ravel()
    first = np.minimum(np.interp(first, edges, counted).astype(np.int64), max(0, ends[-1] - 1))
    last = np.maximum(np.interp(last, edges, counted).astype(np.int64), first + 1)
    found = np.zeros((len(words), rows.shape[1]))
    word = np.searchsorted(begins, first, side="right") - 1
    left = np.arange(len(first))
    while len(left):
        here = np.minimum(last[left], ends[word]) - np.maximum(first[left], begins[word])
        _add(found, word, rows, of[left], part[of[left]] * here / (last[left] - first[left]))
        further = last[left] > ends[word]
        left, word = left[further], word[further] + 1
    return found


def _add(found: Doubles, word: Int64s, rows: Doubles, of: Int64s, shares: Doubles) -> None:
    order = np.argsort(word, kind="stable")
    for start in range(0, len(order), BLOCK_ROWS):
        some = order[start : start + BLOCK_ROWS]
        words, places = np.unique(word[some], return_index=True)
        found[words] += np.add.reduceat(rows[of[some]] * shares[some, None], places, axis=0)
