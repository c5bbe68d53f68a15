"""Plain texts for a teacher or for SIF: lines, columns and word lists of many files, and short spans cut from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import InputError
from gramvec_training.data import numbered_lines, read_frequencies, read_texts

Layout = Literal["lines", "columns", "words"]

_SENTENCE_ENDS = ".!?"
_EDGES = " ,.;:\"'()[]“”?!"
_SPAN_WORDS = (2, 6)


class TextSource(BaseModel):
    """A file of texts. `columns` takes every column of a TSV file, `words` the most frequent words of a counts file.

    `sentences` cuts a line where a sentence ends. Longer texts than `max_characters` are left out; of the others at
    most `cap` are taken, at random from the seed, or, of words, the most frequent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    licence: str = "not stated"
    layout: Layout = "lines"
    sentences: bool = False
    max_characters: Annotated[int, Field(ge=1)] | None = None
    cap: Annotated[int, Field(ge=1)] | None = None

    @property
    def name(self) -> str:
        """The file's name up to its first dot."""
        return self.path.name.split(".", 1)[0]


def collect_texts(
    sources: Sequence[TextSource], data: Path, *, spans: int, seed: int
) -> tuple[list[str], dict[str, int]]:
    """The distinct texts of all sources in a random order, and how many new ones each source gave.

    spans: so many short phrases, of two to six words, are cut from the sentences at random and added.
    Raises InputError, naming the file, where one is missing or gives no text.
    """
    seen: dict[str, None] = {}
    counts: dict[str, int] = {}
    for index, source in enumerate(sources):
        rng = np.random.default_rng([seed, index])
        before = len(seen)
        seen.update(dict.fromkeys(_taken(source, data, rng)))
        counts[source.name] = counts.get(source.name, 0) + len(seen) - before
    texts = list(seen)
    rng = np.random.default_rng([seed, len(sources)])
    if spans:
        chosen = (texts[i] for i in rng.permutation(len(texts))[:spans].tolist())
        seen.update(dict.fromkeys(span for text in chosen if (span := _span(text, rng))))
        counts["spans"] = len(seen) - len(texts)
        texts = list(seen)
    return [texts[i] for i in rng.permutation(len(texts)).tolist()], counts


def _taken(source: TextSource, data: Path, rng: np.random.Generator) -> list[str]:
    path = data / source.path
    distinct = dict.fromkeys(
        text for text in _read(source, path) if source.max_characters is None or len(text) <= source.max_characters
    )
    texts = list(distinct)
    if not texts:
        raise InputError(f"{path} gives no text that is wanted; check its layout and max_characters.")
    if source.cap is None or len(texts) <= source.cap:
        return texts
    if source.layout == "words":
        return texts[: source.cap]
    return [texts[i] for i in np.sort(rng.permutation(len(texts))[: source.cap]).tolist()]


def _read(source: TextSource, path: Path) -> Iterable[str]:
    if source.layout == "words":
        counts = read_frequencies(path)
        return sorted(counts, key=lambda word: (-counts[word], word))
    if source.layout == "columns":
        return _columns(path)
    lines = read_texts(path)
    return (sentence for line in lines for sentence in _sentences(line)) if source.sentences else lines


def _columns(path: Path) -> Iterator[str]:
    for _, raw in numbered_lines(path):
        for column in raw.decode("utf-8", "ignore").split("\t"):
            if text := column.strip():
                yield text


def _sentences(line: str) -> Iterator[str]:
    """Cut after ".", "!" or "?" where the next word begins with a capital; good enough for prose."""
    words = line.split()
    begin = 0
    for i in range(1, len(words)):
        if words[i - 1][-1] in _SENTENCE_ENDS and words[i].lstrip(_EDGES)[:1].isupper():
            yield " ".join(words[begin:i])
            begin = i
    if begin < len(words):
        yield " ".join(words[begin:])


def _span(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    least, most = _SPAN_WORDS
    if len(words) < most - 1:
        return ""
    length = int(rng.integers(least, min(most, len(words)) + 1))
    start = int(rng.integers(len(words) - length + 1))
    return " ".join(words[start : start + length]).strip(_EDGES)
