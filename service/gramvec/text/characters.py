"""Characters: their classes, lower case and normalization form C, and a table from code point to (class, id).

CPython before 2026 orders a run of n combining marks by insertion: 64,000 of them in the wrong order take 20 s, with
the interpreter's lock held. `compose` sorts long runs first, so that untrusted text takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

CODE_POINTS = 0x110000
PAGE_SHIFT = 8
PAGE = 1 << PAGE_SHIFT

SYMBOL, WORD, SPACE = 0, 1, 2
CLASS_SHIFT = 16
ID_MASK = 0xFFFF
MAX_ALPHABET = 0xFFFF
# Letters, marks, numbers and connectors.
_WORD_CATEGORIES = frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc"])


def lower(character: str) -> str:
    """Return the lower case of a code point as one code point: str.lower() except for U+0130, which becomes "i".

    It does not depend on context, unlike str.lower() of a text (final sigma), so a text keeps its length and offsets.
    """
    return character.lower()[0]


@lru_cache(maxsize=1)
def lower_case_pairs() -> tuple[tuple[int, int], ...]:
    """Return (code point, lower-case code point) for every code point that lower() changes."""
    # map() keeps a million calls out of Python's loop: 0.1 s instead of 0.5.
    lowered = zip(_characters(), map(str.lower, _characters()), strict=True)
    return tuple((ord(character), ord(low[0])) for character, low in lowered if low[0] != character)


@lru_cache(maxsize=1)
def class_ranges() -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return the interpreter's Unicode classes as ranges: first code points uint32[k] (from 0) and classes uint8[k].

    The class is SPACE if str.isspace(); WORD for letters, marks, numbers and connectors such as "_"; otherwise SYMBOL.
    """
    of_category = defaultdict(lambda: SYMBOL, dict.fromkeys(_WORD_CATEGORIES, WORD))
    # map() keeps a million calls out of Python's loop, as above.
    categories = map(unicodedata.category, _characters())
    classes = np.fromiter(map(of_category.__getitem__, categories), np.uint8, CODE_POINTS)
    classes[np.fromiter(map(str.isspace, _characters()), np.bool_, CODE_POINTS)] = SPACE
    firsts = np.flatnonzero(np.diff(classes, prepend=np.uint8(255)))
    return firsts.astype(np.uint32), classes[firsts]


def _characters() -> Iterator[str]:
    """Return all characters, one at a time: together they take 90 MB."""
    return map(chr, range(CODE_POINTS))


class CharacterTable:
    """Table of class << 16 | id for each code point; id 0 means that the code point is not in the alphabet.

    Pages of 256 code points, most of them alike, take 0.14 MB, where one array for all would take 4.4 MB. pages:
    uint16[0x1100], entries: uint32[256 times the number of different pages]; both read-only.
    """

    def __init__(
        self,
        alphabet: NDArray[np.uint32],
        folded: NDArray[np.uint32],
        range_firsts: NDArray[np.uint32],
        range_classes: NDArray[np.uint8],
    ) -> None:
        """Make the table of these parts.

        alphabet: uint32[a], the code point of id 1, 2, ...
        folded: uint32[f, 2], further code points and the id that they share (upper case).
        range_firsts, range_classes: Unicode classes as ranges, see class_ranges().
        Every white space character shares the id of U+0020.
        """
        table = np.empty(CODE_POINTS, np.uint32)
        lengths = np.diff(range_firsts, append=np.uint32(CODE_POINTS))
        table[:] = np.repeat(range_classes.astype(np.uint32) << CLASS_SHIFT, lengths)
        table[alphabet] |= np.arange(1, len(alphabet) + 1, dtype=np.uint32)
        table[folded[:, 0]] |= folded[:, 1]
        space = table[ord(" ")]
        table[table >> CLASS_SHIFT == SPACE] = space
        numbers: dict[bytes, int] = {}
        page_numbers = [numbers.setdefault(page.tobytes(), len(numbers)) for page in table.reshape(-1, PAGE)]
        self.pages: NDArray[np.uint16] = np.array(page_numbers, np.uint16)
        self.entries: NDArray[np.uint32] = np.frombuffer(b"".join(numbers), np.uint32)
        self.pages.setflags(write=False)

    def __getitem__(self, points: NDArray[np.uint32] | int) -> NDArray[np.uint32]:
        """Return the entries of code points, uint32 in their shape."""
        code_points = np.asarray(points, np.intp)
        places = self.pages[code_points >> PAGE_SHIFT].astype(np.intp) << PAGE_SHIFT | code_points & (PAGE - 1)
        return np.asarray(self.entries[places], np.uint32)


# A shorter run is left to the interpreter, which takes 36 us for as many marks at worst. No longer one can lie between
# two places so far apart, so that most texts are looked at in a few places only.
LONG_RUN = 128
# Starters that decompose only into marks. Every other mark has the class of what it decomposes into.
_OF_MARKS = {mark: unicodedata.normalize("NFD", mark) for mark in "\u0f73\u0f75\u0f81"}

_long_runs = re.compile(rb"[^\0]{%d,}" % (LONG_RUN + 1)).finditer


def compose(text: str) -> str:
    """Return what `unicodedata.normalize("NFC", text)` does (UAX #15), in linear time."""
    if len(text) > LONG_RUN:
        places = text[::LONG_RUN]
        if (any(map(unicodedata.combining, places)) or not _OF_MARKS.keys().isdisjoint(places)) and _has_long_run(text):
            text = _with_long_runs_ordered(text)
    return unicodedata.normalize("NFC", text)


def _has_long_run(text: str) -> bool:
    for place in range(0, len(text), LONG_RUN):
        begin = end = place
        while begin >= 0 and _is_mark(text[begin]):
            begin -= 1
        while end < len(text) and end - begin <= LONG_RUN + 1 and _is_mark(text[end]):
            end += 1
        if end - begin > LONG_RUN + 1:
            return True
    return False


def _is_mark(character: str) -> bool:
    return unicodedata.combining(character) != 0 or character in _OF_MARKS


def _with_long_runs_ordered(text: str) -> str:
    """Return a canonically equivalent text whose long runs of marks are in canonical order."""
    for mark, marks in _OF_MARKS.items():
        text = text.replace(mark, marks)
    classes = bytes(map(unicodedata.combining, text))
    pieces: list[str] = []
    done = 0
    for run in _long_runs(classes):
        begin, end = run.span()
        # Stable: marks of one class stay in the order in which they stand.
        pieces += [text[done:begin], *sorted(text[begin:end], key=unicodedata.combining)]
        done = end
    return "".join([*pieces, text[done:]])
