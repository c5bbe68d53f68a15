"""How records become the lines of a file: cleaned, without doubles, without texts that models are scored on."""

from __future__ import annotations

import hashlib
import html
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial

SHORT = 3  # words: a shorter text may be in a set that models are scored on, as any word may
_SPACES = re.compile(r"\s+")
_OTHER = re.compile(r"[^a-z0-9]+")
_SHORTEST_PARAGRAPH = 20  # characters
_SHORTEST_TURN = 15
_LONGEST_TRANSLATION = 400


def clean(text: str) -> str:
    """Return the text without entities of HTML, zero-width spaces and doubled or outer white space."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    return join_spaces(text.replace("\u200b", ""))


def join_spaces(text: str) -> str:
    """Return the text with a space for each run of white space, and none around it."""
    return _SPACES.sub(" ", text).strip()


def reduce_text(text: str) -> str:
    """Return the Latin letters and digits of a text in lower case, with single spaces: what makes texts equal."""
    return _OTHER.sub(" ", unicodedata.normalize("NFKC", text).lower()).strip()


def digest_of(reduced: str) -> str:
    """Return twelve hex digits that stand for a reduced text in withheld.txt."""
    return hashlib.sha256(reduced.encode()).hexdigest()[:12]


def write_groups(
    records: Iterable[Sequence[str]],
    *,
    withheld: Set[str] = frozenset(),
    at_most: int | None = None,
    cleaned: Callable[[str], str] = clean,
) -> Iterator[str]:
    """Yield a line for each meaning: its wordings, the original first, separated by tabs.

    Wordings that are equal when reduced count once, and so do meanings with equal wordings. A wording of more than
    three words whose digest is in `withheld` is left out, and a meaning with fewer than two wordings. Of more than
    `at_most` wordings the first is kept, and others are drawn (seed 0).
    """
    rng = random.Random(0)
    known: set[tuple[str, ...]] = set()
    for record in records:
        kept: dict[str, str] = {}
        for text in map(cleaned, record):
            reduced = reduce_text(text)
            if reduced and not (len(reduced.split()) > SHORT and digest_of(reduced) in withheld):
                kept.setdefault(reduced, text)
        wordings = list(kept.values())
        if len(wordings) < 2:
            continue
        if at_most is not None and len(wordings) > at_most:
            wordings = [wordings[0], *rng.sample(wordings[1:], at_most - 1)]
        key = tuple(sorted(map(reduce_text, wordings)))
        if key not in known:
            known.add(key)
            yield "\t".join(wordings)


def write_pairs(records: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each pair of different words in lower case; a pair counts once, whichever word is first."""
    known: set[frozenset[str]] = set()
    for first, second in records:
        pair = clean(first).lower(), clean(second).lower()
        if all(pair) and pair[0] != pair[1] and frozenset(pair) not in known:
            known.add(frozenset(pair))
            yield "\t".join(pair)


def write_translations(records: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each text with its translation: neither empty nor of more than 400 characters, each pair once.

    A text that is its own translation, in whatever case, is left out.
    """
    known: set[str] = set()
    for record in records:
        text, translation = map(clean, record)
        line = f"{text}\t{translation}"
        kept = 0 < len(text) <= _LONGEST_TRANSLATION and 0 < len(translation) <= _LONGEST_TRANSLATION
        if kept and text.casefold() != translation.casefold() and line not in known:
            known.add(line)
            yield line


def write_texts(
    records: Iterable[Sequence[str]], *, shortest: int, cleaned: Callable[[str], str] = clean
) -> Iterator[str]:
    """Yield a line for each different text of at least `shortest` characters."""
    known: set[str] = set()
    for (record,) in records:
        text = cleaned(record)
        if len(text) >= shortest and text not in known:
            known.add(text)
            yield text


def write_columns(records: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each record as it is, its columns separated by tabs."""
    for record in records:
        yield "\t".join(record)


write_paragraphs = partial(write_texts, shortest=_SHORTEST_PARAGRAPH, cleaned=join_spaces)
write_turns = partial(write_texts, shortest=_SHORTEST_TURN)
