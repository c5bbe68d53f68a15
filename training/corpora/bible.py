"""Verses in eight English versions of the Bible: seven of one repository, a file a chapter, and the BSB of another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpora.readers import Files, Records
from corpora.writers import reduce_text

Verse = tuple[str, int, int]

_LEFT_OUT = "LEB"  # its license does not let anyone use it
_MIN_SHARED = 0.3  # of the words of the shorter of two wordings: without it a version counts its verses otherwise
_SHORTEST, _LONGEST = 3, 70  # words


def read_bible(files: Files, columns: Sequence[str]) -> Records:
    """Yield the wordings of each verse, the BSB's first; a wording unlike all others is left out."""
    verses: dict[Verse, dict[str, str]] = {}
    modern: dict[Verse, str] = {}
    for file in files:
        if file.path.endswith("BSB.txt"):
            modern.update(_read_modern(file.lines))
            continue
        version, book, chapter = file.path.split("/")[2:5]
        number = re.search(r"(\d+)\.txt$", chapter)
        if number is None or version == _LEFT_OUT:
            continue
        for place, line in enumerate(filter(str.strip, file.text.split("\n")), 1):
            verses.setdefault((book, int(number[1]), place), {})[version] = line
    for verse, wordings in verses.items():
        first = [modern[verse]] if verse in modern else []
        yield _leave_out_unlike([re.sub(r"^\s*\d+[\s:.]+", "", text) for text in [*first, *wordings.values()]])


def _read_modern(lines: Sequence[str]) -> Iterator[tuple[Verse, str]]:
    """Yield the verses of the BSB: `### II Kings` begins a book, `[3:1] ...` is a verse."""
    book = ""
    for line in lines:
        if line.startswith("### "):
            book = line[4:].strip()
            for numeral, digit in (("III ", "3"), ("II ", "2"), ("I ", "1")):
                book = digit + book.removeprefix(numeral) if book.startswith(numeral) else book
            book = book.replace(" ", "")
        elif (verse := re.match(r"\[(\d+):(\d+)\]\s*(.*)", line)) is not None:
            yield (book, int(verse[1]), int(verse[2])), verse[3]


def _leave_out_unlike(texts: Sequence[str]) -> list[str]:
    texts = [text for text in texts if _SHORTEST <= len(text.split()) <= _LONGEST]
    words = [set(reduce_text(text).split()) for text in texts]

    def shares(one: set[str], other: set[str]) -> bool:
        return bool(one) and len(one & other) / max(1, min(len(one), len(other))) >= _MIN_SHARED

    return [
        text
        for place, text in enumerate(texts)
        if any(shares(words[place], other) for at, other in enumerate(words) if at != place)
    ]
