"""Demands of a query: `-word` and `-"some words"` leave texts out, `"a phrase"` has to be in a text as it is.

A query demands it unambiguously where a quotation mark or a dash stands at the beginning of a word, the quotation ends
with a word, and the dash has a letter behind it. Something has to be left that is searched for, and the query has at
most 12 words: in longer ones, of several sentences, quotation marks are prose.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gramvec.text.folding import fold_letters
from gramvec.text.scripts import close_gaps, is_unspaced

_PHRASE = re.compile(r'(?<!\S)(-?)["\u201c]([^"\u201c\u201d]*\w[^"\u201c\u201d]*)["\u201d](?!\S)')
_WITHOUT = re.compile(r"(?<!\S)-(?=[^\W\d_])(\S+)")

MAX_WORDS = 12


class Demands(NamedTuple):
    """Demands of a query, beside what it searches for.

    Attributes:
        text: what is searched for.
        phrases: each has to be in a text, its letters together.
        without: words and phrases; a text that has all n-grams of one is left out.
    """

    text: str
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def is_met_by(self, text: str) -> bool:
        """Return True if a text has all phrases."""
        folded = _fold(text)
        return all(_has(folded, _fold(phrase)) for phrase in self.phrases)


def demands_of(query: str) -> Demands:
    """Return what a query searches for and demands; a query that searches for nothing else is taken as it is."""
    if len(query.split()) > MAX_WORDS:
        return Demands(query)
    phrases: list[str] = []
    without: list[str] = []

    def take(match: re.Match[str]) -> str:
        (without if match[1] else phrases).append(match[2].strip())
        return " " if match[1] else match[2]

    def leave_out(match: re.Match[str]) -> str:
        without.append(match[1])
        return " "

    text = _PHRASE.sub(take, query)
    text = _WITHOUT.sub(leave_out, text)
    if not (phrases or without) or re.search(r"\w", text) is None:
        return Demands(query)
    return Demands(" ".join(text.split()), tuple(phrases), tuple(without))


def _fold(text: str) -> str:
    return " ".join(close_gaps(fold_letters(text)).split())


def _has(text: str, phrase: str) -> bool:
    at = text.find(phrase)
    while at >= 0:
        if _ends(text[:at][-1:], phrase[:1]) and _ends(text[at + len(phrase) :][:1], phrase[-1:]):
            return True
        at = text.find(phrase, at + 1)
    return False


def _ends(beside: str, end: str) -> bool:
    """Return True if a phrase may end with this character where that one, "" for none, stands beside it."""
    return not (beside.isalnum() and end.isalnum()) or is_unspaced(end)
