"""Differences that make similar texts two things: other numbers or codes, or one word in the place of another."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

from gramvec.text.folding import fold_letters

Difference = Literal["numbers", "words"]

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
# At the beginning of a word only: elsewhere a long word would be read again from each of its letters.
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[^\W\d])\w{3,}")
_LETTERS = re.compile(r"\b[^\W\d_]+\b")
# Numerals of one letter are letters more often than numbers.
_ROMAN = re.compile(r"\b(?:i{2,3}|iv|vi{1,3}|ix|x[ivx]|xi{2,3}|x(?:iv|vi{1,3}|ix))\b")
_VALUES = {"i": 1, "v": 5, "x": 10}

# Shorter words are articles, initials and abbreviations; longer ones are clauses of a script without spaces.
SHORTEST_WORD, LONGEST_WORD = 3, 20
# Texts in which more words differ are written anew, so they do not differ by a single word.
MAX_CHANGED_WORDS = 8
# A misspelt word has one wrong letter in four or fewer.
LETTERS_AN_EDIT, MAX_EDITS = 4, 3
# Misspellings of longer strings are not looked for: 16 strings of 8,000 letters would take a third of a second.
LONGEST_COMPARED = 64


def difference(left: str, right: str, *, numbers: bool = True, words: bool = True) -> Difference | None:
    """Return what makes two similar texts different things; None if they may be one.

    Args:
        left: a text.
        right: a similar text.
        numbers: look at numbers and codes, see `same_numbers`.
        words: look at words, see `word_replaced`.
    """
    left, right = fold_letters(left), fold_letters(right)
    if numbers and not same_numbers(left, right):
        return "numbers"
    return "words" if words and word_replaced(left, right) else None


def same_numbers(left: str, right: str) -> bool:
    """Return True if two texts have the same numbers, and each the other's codes: letters and digits in one word.

    2TB and 2 TB are the same, 2TB and 4TB are not, A12B and A12C are not; II is 2.
    """
    if _numbers(left) != _numbers(right):
        return False
    for text, against in ((left, right), (right, left)):
        codes = _CODE.findall(text)
        if codes:
            joined = "".join(_WORD.findall(against)).casefold()
            if not all(code.casefold() in joined for code in codes):
                return False
    return True


def word_replaced(left_text: str, right_text: str) -> bool:
    """Return True if two texts differ by one word that stands in the place of another: Home Basic and Home Premium.

    A misspelling, an abbreviation (pro, professional) and a word written apart are not another word.
    """
    texts = [_LETTERS.findall(text.casefold()) for text in (left_text, right_text)]
    left, right = (set(own).difference(others) for own, others in (texts, reversed(texts)))
    if not left or not right or max(len(left), len(right)) > MAX_CHANGED_WORDS:
        return False
    for words, own, others in ((texts[0], left, right), (texts[1], right, left)):
        for pair in pairwise(words):
            if (joined := "".join(pair)) in others:
                own.difference_update(pair)
                others.remove(joined)
    alike = {word for a in left for b in right if _alike(a, b) for word in (a, b)}
    lengths = [[len(word) for word in side - alike if len(word) >= SHORTEST_WORD] for side in (left, right)]
    return all(len(side) == 1 and side[0] <= LONGEST_WORD for side in lengths)


def _numbers(text: str) -> list[str]:
    """Return the sorted numbers of a text, Roman ones in digits."""
    return sorted([*_NUMBER.findall(text), *(str(_roman(numeral)) for numeral in _ROMAN.findall(text.casefold()))])


def _roman(numeral: str) -> int:
    values = [_VALUES[letter] for letter in numeral]
    return sum(value if value >= after else -value for value, after in pairwise([*values, 0]))


def _alike(left: str, right: str) -> bool:
    if left.startswith(right) or right.startswith(left):
        return True
    longest = max(len(left), len(right))
    return longest <= LONGEST_COMPARED and _within(left, right, min(longest // LETTERS_AN_EDIT, MAX_EDITS))


def _within(left: str, right: str, edits: int) -> bool:
    """Return True if at most `edits` changes make one word the other: a letter more, less, another, or two swapped."""
    both = zip(left, right, strict=False)
    shared = next((at for at, (a, b) in enumerate(both) if a != b), min(len(left), len(right)))
    left, right = left[shared:], right[shared:]
    if not left or not right or not edits:
        return len(left) + len(right) <= edits
    swapped = left[:2] == right[1::-1] and _within(left[2:], right[2:], edits - 1)
    return swapped or any(_within(left[a:], right[b:], edits - 1) for a, b in ((1, 1), (1, 0), (0, 1)))
