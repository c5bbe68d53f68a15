"""Texts and their translations: of Tatoeba, of lines side by side, of CLDR, of Wiktionary and of tldr."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from corpora.readers import Files, Records
from corpora.recipe import AuthorsFile
from corpora.tatoeba import read_pairs

_NOTES = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|/[^/]*/")  # gender and part of speech, notes, pronunciation
_LONGEST = 4  # words of a translation; more describe the word, as in "feminine plural of"
_ENGLISH = "pages"  # tldr's folder; those of other languages have the language's code behind a dot
_MARKED = ("> ", "- ")


def read_sentences(files: Files, columns: Sequence[str]) -> Records:
    """Yield each English sentence of Tatoeba with its translation."""
    for file in files:
        yield from read_pairs(file)


def read_beside_first(files: Files, columns: Sequence[str]) -> Records:
    """Yield each line of the first file with the same line of each other one.

    Raises:
        ValueError: A file has more or fewer lines than the first.
    """
    for file in files[1:]:
        yield from zip(files[0].lines, file.lines, strict=True)


def read_lines(files: Files, columns: Sequence[str]) -> Records:
    """Yield each line of each file."""
    yield from ((line,) for file in files for line in file.lines)


def read_annotations(files: Files, columns: Sequence[str]) -> Records:
    """Yield the English name of each symbol of CLDR with that of each other file's language, and its keywords so."""
    first, *others = (_read_symbols(file) for file in files)
    for symbols in others:
        for symbol in first:
            if symbol in symbols:
                yield from zip(first[symbol], symbols[symbol], strict=True)


def _read_symbols(file: AuthorsFile) -> dict[str, tuple[str, str]]:
    """Return the name and the keywords of each symbol of a file, which are in no order."""
    named: Any = json.loads(file.data)["annotations"]["annotations"]
    return {
        symbol: (words["tts"][0], " ".join(sorted(words["default"])))
        for symbol, words in sorted(named.items())
        if words.get("tts") and words.get("default")
    }


def read_dictionary(files: Files, columns: Sequence[str]) -> Records:
    """Yield each word of `word {n} (meaning) :: translation {m}, translation /how it is said/` with its translations.

    One of more than four words is left out.
    """
    for file in files:
        for line in file.lines:
            head, separator, tail = line.partition(" :: ")
            word = _NOTES.sub("", head).strip()
            if separator and word and not line.startswith("#") and " SEE: " not in head:
                translations = (part.split() for part in _NOTES.sub("", tail).split(","))
                yield from ((word, " ".join(words)) for words in translations if 0 < len(words) <= _LONGEST)


def read_pages(files: Files, columns: Sequence[str]) -> Records:
    """Yield each English sentence of a page of tldr with the same sentence of the page in each other language.

    A page that has more or fewer commands or sentences than the English one is left out: it is of another version.
    """
    english: dict[str, AuthorsFile] = {}
    others: list[tuple[str, AuthorsFile]] = []
    for file in files:
        folder, _, page = file.path.partition("/")
        if folder == _ENGLISH:
            english[page] = file
        else:
            others.append((page, file))
    for page, file in others:
        if page in english:
            first, own = (list(_read_marked(one)) for one in (english[page], file))
            if len(first) == len(own):
                yield from ((one, other) for one, other in zip(first, own, strict=True) if "http" not in one)


def _read_marked(file: AuthorsFile) -> Iterator[str]:
    for line in file.lines:
        if line.startswith(_MARKED):
            name = PurePosixPath(file.path).stem
            yield re.sub(r"[\[\]`]", "", line[2:]).removesuffix(":").removeprefix(name)
