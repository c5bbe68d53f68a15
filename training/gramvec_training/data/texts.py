"""Plain texts for a teacher or for SIF: lines, columns and word lists of many files, and short spans cut from them."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gramvec.errors import InputError
from gramvec_training.configuration import TextSource
from gramvec_training.readers import numbered_lines, read_texts

# Where a sentence of prose ends: good enough to cut paragraphs.
_SENTENCE_END = re.compile(r'(?<=[.!?])\s+(?=[A-Z"“])')
_EDGES = " ,.;:\"'()[]“”?!"
_SPAN_WORDS = (2, 6)
_SPAN_FROM = 5  # words that a text has at least if a span is cut from it


def collect_texts(
    sources: Sequence[TextSource], data: Path, *, seed: int, spans: int = 0, limit: int | None = None
) -> tuple[list[str], dict[str, int]]:
    """Distinct texts of all sources, those marked `first` before the others, each part shuffled, and counts by name.

    spans: from so many texts, drawn at random, a phrase of two to six words is cut and added. limit: keep the first so
    many of all. A text counts for the first source that has it, a cut phrase for "spans".
    Raises InputError, naming the file, where one is missing or gives no text.
    """
    rng = random.Random(seed)
    origin: dict[str, str] = {}
    ordered: list[str] = []
    for first in (True, False):
        part: list[str] = []
        for source in sources:
            if source.first is first:
                taken = _taken(source, data, rng)
                part += taken
                for text in taken:
                    origin.setdefault(text, source.name)
        if spans and not first:
            part += _spans(rng.sample(part, min(spans, len(part))), rng)
        earlier = set(ordered)
        distinct = [text for text in dict.fromkeys(part) if text not in earlier]
        rng.shuffle(distinct)
        ordered += distinct
    kept = ordered[:limit]
    counts = dict.fromkeys((source.name for source in sources), 0)
    for text in kept:
        name = origin.get(text, "spans")
        counts[name] = counts.get(name, 0) + 1
    return kept, counts


def source_texts(source: TextSource, data: Path) -> list[str]:
    """All texts of a source that are neither too short nor too long, repeated ones too, in the order of its file.

    Raises InputError where the file is missing or gives no text.
    """
    path = data / source.path
    shortest, longest = 1 if source.layout == "words" else 2, source.max_characters or sys.maxsize
    texts = [text for text in _read(source, path) if shortest <= len(text) <= longest]
    if not texts:
        raise InputError(f"{path} gives no text that is wanted; check its layout and max_characters.")
    return texts


def _taken(source: TextSource, data: Path, rng: random.Random) -> list[str]:
    texts = source_texts(source, data)
    if source.cap is None or len(texts) <= source.cap:
        return texts
    return texts[: source.cap] if source.layout == "words" else rng.sample(texts, source.cap)


def _read(source: TextSource, path: Path) -> Iterable[str]:
    if source.layout == "words":
        return (line.split()[0] for line in read_texts(path))
    if source.layout == "columns":
        return dict.fromkeys(_columns(path, source.columns))
    if source.layout == "similarity":
        files = sorted(path.glob("*.tsv")) if path.is_dir() else [path]
        return (text for file in files for text in _columns(file, 3, first=1))
    if source.sentences:
        return dict.fromkeys(sentence for line in read_texts(path) for sentence in _SENTENCE_END.split(line))
    return read_texts(path)


def _columns(path: Path, end: int | None, *, first: int = 0) -> Iterator[str]:
    for _, raw in numbered_lines(path):
        for column in raw.decode("utf-8", "ignore").split("\t")[first:end]:
            if text := column.strip():
                yield text


def _spans(texts: Iterable[str], rng: random.Random) -> Iterator[str]:
    for text in texts:
        words = text.split()
        if len(words) < _SPAN_FROM:
            continue
        length = rng.randint(*_SPAN_WORDS)
        start = rng.randint(0, len(words) - length) if len(words) > length else 0
        if span := " ".join(words[start : start + length]).strip(_EDGES):
            yield span
