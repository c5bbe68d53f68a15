"""Training texts: collected from the sources of a config, featurized once, and cut into batches."""

from __future__ import annotations

import hashlib
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from gramvec.errors import InputError
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Int32s
from gramvec_training.readers.lines import read_lines, read_texts
from gramvec_training.sections import TextSource
from gramvec_training.shared import Bools, Ints


class FeatureArrays(Protocol):
    """Output of a featurizer: flat `ids` int32[rows] and `offsets` int64[n + 1]."""

    @property
    def ids(self) -> Int32s:
        """Rows of the table, text after text."""
        ...

    @property
    def offsets(self) -> Ints:
        """Start of each text's ids, and the number of all ids."""
        ...


Featurize = Callable[[Sequence[str]], FeatureArrays]


@dataclass(frozen=True)
class TrainingBatch:
    """Bags of a batch, with ids that count within the batch's own rows.

    `rows` int64[u]: the distinct rows of the table that the batch touches, ascending. `ids` int32[m]: positions in
    `rows`. `offsets` int32[n + 1]: where each text's ids begin. `texts` int64[n]: the texts' numbers in the corpus.
    """

    rows: Ints
    ids: Int32s
    offsets: Int32s
    texts: Ints


class Corpus:
    """All texts as flat ids and offsets: 4 bytes a feature and 8 a text, twice that while it is built.

    A million distinct pairs of 69 n-grams a side take 0.6 GB; of sentences of 120 characters, orders 2 to 4, 2.9 GB.
    """

    def __init__(self, ids: Int32s, offsets: Ints, rows: int) -> None:
        self.ids = ids  # int32[features of all texts]
        self.offsets = offsets  # int64[texts + 1]
        self._place = np.zeros(rows, dtype=np.int32)  # scratch of `batch`: row of the table -> position

    @classmethod
    def from_texts(
        cls, texts: Sequence[str], featurize: Featurize, rows: int, *, chunk: int = 4096,
        progress: Progress = NO_PROGRESS,
    ) -> Corpus:  # fmt: skip
        """Featurize `texts` for a table of `rows` rows; `progress` shows the task "features"."""
        progress.start("features", len(texts), "texts")
        ids: list[Int32s] = []
        lengths: list[Ints] = []
        for start in range(0, len(texts), chunk):
            part = texts[start : start + chunk]
            features = featurize(part)
            ids.append(features.ids)
            lengths.append(np.diff(features.offsets))
            progress.advance(len(part))
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        if texts:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        return cls(np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32), offsets, rows)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """Return int64[texts]: the number of features of each text."""
        return np.diff(self.offsets)

    def cut(self, texts: Ints) -> tuple[Int32s, Int32s]:
        """Return `ids` int32[m] into the table and `offsets` int32[n + 1] of the numbered texts, in the given order."""
        starts = self.offsets[texts]
        lengths = self.offsets[texts + 1] - starts
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        flat = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return self.ids[flat], offsets.astype(np.int32)

    def batch(self, texts: Ints, kept: Callable[[Int32s], Bools] | None = None) -> TrainingBatch:
        """Return the batch of the numbered texts; its rows are found without sorting the ids.

        kept: int32[m] ids -> bool[m], which features stay; None for all.
        """
        ids, offsets = self.cut(texts)
        if kept is not None:
            stays = kept(ids)
            ids, offsets = ids[stays], np.append(0, np.cumsum(stays))[offsets].astype(np.int32)
        order = np.arange(len(ids), dtype=np.int32)
        self._place[ids] = order
        rows = np.sort(ids[self._place[ids] == order])
        self._place[rows] = np.arange(len(rows), dtype=np.int32)
        return TrainingBatch(rows.astype(np.int64), self._place[ids], offsets, texts)

    @property
    def digest(self) -> str:
        """Return 64 hex digits over ids and offsets; equal digests train the same model."""
        state = hashlib.sha256(self.offsets.tobytes())
        state.update(np.ascontiguousarray(self.ids).data)
        return state.hexdigest()


# Where a sentence of prose ends: good enough to cut paragraphs.
_SENTENCE_END = re.compile(r'(?<=[.!?])\s+(?=[A-Z"“])')
_EDGES = " ,.;:\"'()[]“”?!"
_SPAN_WORDS = (2, 6)
_SPAN_FROM = 5  # words that a text has at least if a span is cut from it


def collect_texts(
    sources: Sequence[TextSource], data: Path, *, seed: int, spans: int = 0, limit: int | None = None
) -> tuple[list[str], dict[str, int]]:
    """Return the distinct texts of all sources, `first` sources before the others, and counts by source name.

    Each of the two parts is shuffled.

    spans: of how many texts, drawn at random, a phrase of two to six words is added. limit: the number of texts that
    are kept, from the first on. A text counts for the first source that has it, a cut phrase for "spans".

    Raises:
        InputError: At the file: one is missing or gives no text.
    """
    rng = random.Random(seed)
    origin: dict[str, str] = {}
    ordered: list[str] = []
    for first in (True, False):
        part: list[str] = []
        for source in sources:
            if source.first is first:
                taken = _take(source, data, rng)
                part += taken
                for text in taken:
                    origin.setdefault(text, source.name)
        if spans and not first:
            part += _cut_spans(rng.sample(part, min(spans, len(part))), rng)
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


def read_source_texts(source: TextSource, data: Path) -> list[str]:
    """Return all texts of a source within its length limits, repeated ones too, in file order.

    Raises:
        InputError: The file is missing or gives no text.
    """
    path = data / source.path
    shortest, longest = 1 if source.layout == "words" else 2, source.max_characters or sys.maxsize
    texts = [text for text in _read(source, path) if shortest <= len(text) <= longest]
    if not texts:
        raise InputError(f"{path}: gives no text that is wanted; check its layout and max_characters")
    return texts


def _take(source: TextSource, data: Path, rng: random.Random) -> list[str]:
    texts = read_source_texts(source, data)
    if source.cap is None or len(texts) <= source.cap:
        return texts
    return texts[: source.cap] if source.layout == "words" else rng.sample(texts, source.cap)


def _read(source: TextSource, path: Path) -> Iterable[str]:
    if source.layout == "words":
        return (line.split()[0] for line in read_texts(path))
    if source.layout == "columns":
        return dict.fromkeys(_read_columns(path, source.columns))
    if source.layout == "similarity":
        files = sorted(path.glob("*.tsv")) if path.is_dir() else [path]
        return (text for file in files for text in _read_columns(file, 3, first=1))
    if source.sentences:
        return dict.fromkeys(sentence for line in read_texts(path) for sentence in _SENTENCE_END.split(line))
    return read_texts(path)


def _read_columns(path: Path, end: int | None, *, first: int = 0) -> Iterator[str]:
    for _, line, _ in read_lines(path):
        for column in line.split("\t")[first:end]:
            if text := column.strip():
                yield text


def _cut_spans(texts: Iterable[str], rng: random.Random) -> Iterator[str]:
    for text in texts:
        words = text.split()
        if len(words) < _SPAN_FROM:
            continue
        length = rng.randint(*_SPAN_WORDS)
        start = rng.randint(0, len(words) - length) if len(words) > length else 0
        if span := " ".join(words[start : start + length]).strip(_EDGES):
            yield span
