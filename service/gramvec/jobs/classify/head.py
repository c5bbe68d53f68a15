"""A classification head: texts and their vectors to a score for each label; and its file.

Of a head of one label a text, the score of a label is its share among all labels and "none of them", whose logit is
`none` plus `novelty` for the n-grams and words that no learned text had. Of a head of several labels a text, it is the
label's share beside "not this one", whose logit is the same.

The file may be untrusted. It has safetensors' layout with a checksum of all bytes (see gramvec.text.array_file), and
nothing in it is executed.

A text has the same scores to the bit, in any batch: all products are sums of whole numbers, which float64 and
int64 hold exactly in any order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gramvec.errors import InputError, quote
from gramvec.jobs.classify.ngrams import (
    BLOCK_CHARACTERS,
    BLOCK_TEXTS,
    CHARACTERS,
    FEATURES_A_CHARACTER,
    KEYS,
    WORDS,
    NgramColumns,
)
from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.tables.staging import whole
from gramvec.lexical.hashing import COLUMN_BITS
from gramvec.text import json_bounds
from gramvec.text.array_file import ArraySpec, pack_arrays, read_arrays
from gramvec.text.arrays import Floats
from gramvec.text.inputs import blocks, list_texts, not_a_text

KIND, VERSION = "head", 4
ARRAYS: dict[str, ArraySpec] = {
    "labels": "|u1", "intercepts": "<f4", "vector_weights": ("<i2", 2), "ngram_keys": "<i4", "ngram_idf": "<f4",
    "ngram_units": "<f4", "ngram_weights": ("|i1", 2),
}  # fmt: skip
REMEDY = "learn the head again, or fetch it again"
MAX_LABELS = 100_000
MAX_DIMENSIONS = 65_536
MAX_NGRAMS = 1 << 18
MAX_BYTES = 1 << 30
MAX_LABEL = 1024
MAX_LOGIT = 1e6  # of any text: far from where float32 overflows
MAX_NOVELTY = 100.0
_CHUNK_NUMBERS = 1 << 20  # products at a time: 4 MB, which stay in a cache
_BLAS_PRODUCTS = 1 << 17
_UNIT = 1 << 20  # steps of a vector's numbers, from -1 to 1
_STEPS = 1 << 14  # steps of an n-gram's value times its unit: int32 holds the sums of 2^18 n-grams


ZeroToOne = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class HeadHeader(BaseModel):
    """Values of a head's file. model, digest: the bundle whose vectors the head was fitted on."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    model: Annotated[str, Field(max_length=200)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    unit: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
    several: bool
    none: Annotated[float, Field(ge=-MAX_LOGIT, le=MAX_LOGIT, allow_inf_nan=False)]
    novelty: Annotated[float, Field(ge=0, le=MAX_NOVELTY, allow_inf_nan=False)]
    unseen: Annotated[float, Field(ge=0, le=1e3, allow_inf_nan=False)]
    threshold: ZeroToOne
    thresholds: dict[str, ZeroToOne]
    # A list: pydantic is strict about the type of a tuple's items only for lists.
    labels: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]], Field(min_length=2, max_length=MAX_LABELS)
    ]


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """Linear weights of n-grams.

    Args:
        vocabulary: the k n-grams.
        weights: int8[k, labels].
        units: float32[k], what 1 in a row of `weights` stands for.
    """

    vocabulary: NgramColumns
    weights: NDArray[np.int8]
    units: Floats

    @classmethod
    def of(cls, vocabulary: NgramColumns, weights: Floats) -> HeadWeights:
        """Round weights float32[k, labels] to 127ths of each row's largest."""
        units = (np.abs(weights).max(axis=1, initial=0) / 127).astype(np.float32)
        return cls(vocabulary, np.rint(weights / np.where(units > 0, units, 1)[:, None]).astype(np.int8), units)

    @cached_property
    def parts(self) -> list[int]:
        """Parts that the n-grams are of, among CHARACTERS and WORDS."""
        return [part for part in (CHARACTERS, WORDS) if (self.vocabulary.keys >> COLUMN_BITS == part).any()]

    def logits(self, texts: Sequence[str]) -> Iterator[tuple[int, NDArray[np.float64], float]]:
        """Yield the index of each text, its logits float64[labels], and how much of it is new.

        That is 0 to 2: of its characters and of its words the share of their length that no learned text had.
        """
        unit = float(self.units.max(initial=0)) / _STEPS or 1.0
        step = max(_CHUNK_NUMBERS // self.weights.shape[1], 1)
        for start, stop in blocks(texts, BLOCK_TEXTS, BLOCK_CHARACTERS):
            found = self.vocabulary.weigh(texts[start:stop])
            values = np.rint(found.value * self.units[found.place] / unit).astype(np.int32)[:, None]
            ends = np.searchsorted(found.text, np.arange(stop - start), side="right").tolist()
            news = (1 - found.known[:, self.parts]).sum(axis=1).tolist()
            begin = 0
            for text, end in enumerate(ends):
                sums = np.zeros(self.weights.shape[1], np.int32)
                for first in range(begin, end, step):
                    part = slice(first, min(first + step, end))
                    sums += (self.weights.take(found.place[part], axis=0) * values[part]).sum(axis=0, dtype=np.int32)
                yield start + text, sums.astype(np.float64) * unit, news[text]
                begin = end


@dataclass(frozen=True, eq=False)
class Head:
    """Linear classifier over a bundle's vectors and the n-grams of texts.

    Args:
        vector_weights: int16[labels, d], of vectors of length 1 of the bundle `digest`.
        unit: what 1 in `vector_weights` stands for.
        ngrams: the weights of n-grams; None for a head that sees vectors only.
        intercepts: float32[labels].
        labels: two or more, all different.
        threshold: 0 to 1; a label whose score is lower is unsure.
        model: the bundle's name.
        digest: the bundle's digest.
        thresholds: of the labels that have another one.
        several: a text may have several labels.
        none: the logit of no label.
        novelty: what is added to it for a text whose characters, or words, are all new.
        file_digest: SHA-256 of the file's contents, where the head was loaded from one.
    """

    vector_weights: NDArray[np.int16]
    unit: float
    ngrams: HeadWeights | None
    intercepts: Floats
    labels: tuple[str, ...]
    threshold: float
    model: str
    digest: str
    thresholds: Mapping[str, float] = field(default_factory=dict)
    several: bool = False
    none: float = -MAX_LOGIT
    novelty: float = 0.0
    file_digest: str = field(default="", compare=False)

    @classmethod
    def of(cls, coefficients: Floats, intercepts: Floats, *, ngrams: HeadWeights | None = None, **fields: Any) -> Head:
        """Return a head whose weights of vectors are coefficients float32[labels, d], rounded to 32,767ths."""
        unit = float(np.abs(coefficients).max(initial=0)) / 32767
        rounded = np.rint(coefficients / unit) if unit > 0 else np.zeros(coefficients.shape)
        return cls(rounded.astype(np.int16), unit, ngrams, np.asarray(intercepts, np.float32), **fields)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Head:
        """Load a head from its file. Raises InputError, saying what to do, for anything but an intact head."""
        return _read(Path(path))

    @cached_property
    def longest_label(self) -> int:
        """Bytes of the longest label in UTF-8."""
        return max(len(label.encode()) for label in self.labels)

    @property
    def dimensions(self) -> int:
        """Columns of the vectors."""
        return int(self.vector_weights.shape[1])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all. Raises InputError for a head that `load` would refuse."""
        try:
            header = HeadHeader(
                model=self.model, digest=self.digest, unit=self.unit, several=self.several, none=self.none,
                novelty=self.novelty, unseen=self.ngrams.vocabulary.unseen if self.ngrams else 0.0,
                threshold=self.threshold, thresholds=dict(self.thresholds), labels=list(self.labels),
            )  # fmt: skip
        except ValidationError as error:
            raise InputError(_sentence(error)) from error
        _check(Path(path), self)
        ngrams = self.ngrams or HeadWeights(
            NgramColumns(np.zeros(0, np.int32), np.zeros(0, np.float32)),
            np.zeros((0, len(self.labels)), np.int8),
            np.zeros(0, np.float32),
        )
        arrays: dict[str, NDArray[Any]] = {
            "labels": np.frombuffer(orjson.dumps(header.labels), np.uint8),
            "intercepts": self.intercepts,
            "vector_weights": self.vector_weights,
            "ngram_keys": ngrams.vocabulary.keys,
            "ngram_idf": ngrams.vocabulary.idf,
            "ngram_units": ngrams.units,
            "ngram_weights": ngrams.weights,
        }
        dtypes = {name: spec[0] if isinstance(spec, tuple) else spec for name, spec in ARRAYS.items()}
        packed = pack_arrays(
            KIND, VERSION, {name: array.astype(dtypes[name]) for name, array in arrays.items()},
            values={"head": header.model_dump_json(exclude={"labels"})}, checksum=True,
        )  # fmt: skip
        with whole(Path(path)) as file:
            file.write(packed)

    def work(self, texts: Sequence[str]) -> int:
        """Return at most how many products with weights of n-grams `predict` makes for texts."""
        if self.ngrams is None:
            return 0
        max_features = len(self.ngrams.units)
        return len(self.labels) * sum(min(FEATURES_A_CHARACTER * (len(text) + 2), max_features) for text in texts)

    def check_bundle(self, digest: str, dimensions: int | None = None) -> None:
        """Raise InputError where vectors are of another bundle than the head's, or have other dimensions."""
        if digest != self.digest:
            raise InputError(
                f"the head was learned from another model ({quote(self.model)}, digest {self.digest[:12]}) than "
                f"this one ({digest[:12]}); name that one with `model`, or learn the head again"
            )
        if dimensions not in (None, self.dimensions):
            raise InputError(
                f"the head is damaged: it takes vectors of {self.dimensions} columns, its model has {dimensions}; "
                "learn the head again"
            )

    def predict(self, texts: Iterable[str], vectors: Floats) -> Floats:
        """Score texts.

        Args:
            texts: n of them, any iterable of str.
            vectors: float32[n, d], of length 1 or 0.

        Returns:
            float32[n, labels]: scores, 0 to 1. Without `several` those of a text sum to 1 less that of no label.

        Raises:
            InputError: vectors have another width or number, a text is not a str, or has a lone surrogate.
        """
        texts = list_texts(texts)
        wrong = next((place for place, text in enumerate(texts) if not isinstance(text, str)), None)
        if wrong is not None:
            raise not_a_text(wrong, texts[wrong])
        if len(texts) != len(vectors):
            raise InputError(f"{len(texts)} texts and {len(vectors)} vectors; give one of each for the other")
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions:
            raise InputError(f"the head takes vectors of {self.dimensions} columns; ask the model that it is of")
        logits = self._of_vectors(vectors)
        none = np.full(len(vectors), self.none, np.float32)
        if self.ngrams is not None:
            for row, of_ngrams, new in self.ngrams.logits(texts):
                logits[row] += of_ngrams
                none[row] += np.float32(self.novelty * new)
        return score_logits(logits, none, several=self.several)

    def _of_vectors(self, vectors: Floats) -> Floats:
        """Return logits float32[n, labels] with the intercepts."""
        # Products of whole numbers, whose sums are below 2^53. Calls are small: the threads of a BLAS library take
        # 0.6 ms to begin a larger one.
        columns = max(_BLAS_PRODUCTS // self.dimensions, 1)
        rows = max(_BLAS_PRODUCTS // (self.dimensions * min(columns, len(self.labels))), 1)
        logits = np.empty((len(vectors), len(self.labels)), np.float32)
        for first in range(0, len(self.labels), columns):
            weights = self.vector_weights[first : first + columns].astype(np.float64).T
            for start in range(0, len(vectors), rows):
                part = np.rint(np.clip(vectors[start : start + rows], -2, 2).astype(np.float64) * _UNIT)
                logits[start : start + rows, first : first + columns] = (part @ weights) * (self.unit / _UNIT)
        logits += self.intercepts
        return logits

    @cached_property
    def _bounds(self) -> Floats:
        return np.array([self.thresholds.get(label, self.threshold) for label in self.labels], np.float32)

    def answers(self, scores: Floats) -> LabelAnswers:
        """Return the answer that each row of `predict`'s scores is; a list that is a table, too."""
        bounds = self._bounds
        places = scores.argmax(axis=1)
        rows = np.arange(len(scores))
        known = scores[rows, places] >= bounds[places]
        answers = [
            LabelAnswer((self.labels[place],), score, sure)
            for place, score, sure in zip(places.tolist(), scores[rows, places].tolist(), known.tolist(), strict=True)
        ]
        if self.several:
            for row in np.flatnonzero((scores >= bounds).any(axis=1)).tolist():
                columns = np.flatnonzero(scores[row] >= bounds)
                columns = columns[np.argsort(-scores[row, columns], kind="stable")]
                labels = tuple(self.labels[label] for label in columns.tolist())
                answers[row] = LabelAnswer(labels, float(scores[row, columns[0]]), True)
        return LabelAnswers(answers)


class LabelAnswer(NamedTuple):
    """Answer of a head for a text.

    labels: the best label; of a head of several labels those that reach their thresholds, the best one first, or the
    best one where none does. score: of the first one. known: whether it reaches its threshold.
    """

    labels: tuple[str, ...]
    score: float
    known: bool


class LabelAnswers(list[LabelAnswer], ResultTable):
    """Answers of a head for texts, in their order."""

    def columns(self) -> dict[str, FrameColumn]:
        """Return the label of each text, several of them as one text with bars, its score, and whether it is known."""
        return {
            "label": [" | ".join(answer.labels) for answer in self],
            "score": np.array([answer.score for answer in self], np.float32),
            "known": [answer.known for answer in self],
        }

    def facts(self) -> dict[str, float]:
        """Return nothing: thresholds are those of each label."""
        return {}


def score_logits(logits: Floats, none: Floats, *, several: bool) -> Floats:
    """Return scores float32[n, labels] of logits float32[n, labels] and that of no label, float32[n].

    Without `several`, exp(logit) divided by the sum of a row's and exp(none); with it, by exp(logit) + exp(none).
    """
    if several:
        # As exact far from 0 as near it, and without an overflow.
        powers = np.exp(-np.abs(logits - none[:, None]))
        each: Floats = np.where(logits >= none[:, None], np.float32(1), powers) / (1 + powers)
        return each
    top = np.maximum(logits.max(axis=1), none)[:, None]
    powers = np.exp(logits - top)
    shares: Floats = powers / (powers.sum(axis=1, keepdims=True) + np.exp(none[:, None] - top))
    return shares


def _read(path: Path) -> Head:
    try:
        # A FIFO without a writer opens at once, and is empty.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                raise InputError(f"{path}: has {size:,} bytes, a head has at most {MAX_BYTES:,}; give another file")
            data = file.read(size)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    found = read_arrays(path, data, KIND, VERSION, ARRAYS, checksum=True, error=InputError, remedy=REMEDY)
    arrays = found.arrays
    try:
        values = json_bounds.parse(found.values.get("head", "").encode("utf-8", "surrogatepass"))
        labels = json_bounds.parse(arrays["labels"].tobytes())
        header = HeadHeader.model_validate({**values, "labels": labels} if isinstance(values, dict) else values)
    except (json_bounds.TooLarge, orjson.JSONDecodeError) as error:
        raise _damage_error(path, f"its values are not JSON ({error})") from error
    except ValidationError as error:
        raise _damage_error(path, _sentence(error)) from error
    ngrams = HeadWeights(
        NgramColumns(arrays["ngram_keys"], arrays["ngram_idf"], header.unseen),
        arrays["ngram_weights"],
        arrays["ngram_units"],
    )
    head = Head(
        arrays["vector_weights"], header.unit, ngrams if ngrams.weights.size else None, arrays["intercepts"],
        tuple(header.labels), header.threshold, header.model, header.digest, header.thresholds, header.several,
        header.none, header.novelty, found.values["sha256"],
    )  # fmt: skip
    _check(path, head)
    return head


def _check(path: Path, head: Head) -> None:
    """Raise InputError unless a head's arrays fit together, and no text can have a logit that overflows."""
    _check_labels(path, head)
    weights = head.vector_weights
    if len(weights) != len(head.labels) or head.intercepts.shape != (len(head.labels),) or not weights.size:
        raise _damage_error(path, "its arrays are not of the shape that its labels give")
    # A vector has length 1, and of all n-grams of a text the characters have, and the words.
    if head.dimensions > MAX_DIMENSIONS:
        raise _damage_error(path, f"it has more than {MAX_DIMENSIONS:,} dimensions")
    largest = np.abs(head.intercepts).max() + head.unit * np.sqrt(float(head.dimensions)) * (1 << 15)
    if head.ngrams is not None:
        known = head.ngrams.vocabulary
        if head.ngrams.weights.shape != (len(known.keys), len(head.labels)) or len(head.ngrams.units) != len(
            known.keys
        ):
            raise _damage_error(path, "its weights of n-grams are not of the shape that its labels give")
        if len(known.keys) > MAX_NGRAMS:
            raise _damage_error(path, f"it has more than {MAX_NGRAMS:,} n-grams")
        if not (np.all(np.diff(known.keys) > 0) and np.all(known.keys >= 0) and np.all(known.keys < KEYS)):
            raise _damage_error(path, "its n-grams do not ascend")
        if not (np.all(known.idf > 0) and np.all(known.idf < 1e3) and np.all(head.ngrams.units >= 0)):
            raise _damage_error(path, "a weight of an n-gram is negative or too large")
        largest += 2 * 128 * np.sqrt(float(len(known.keys))) * head.ngrams.units.max(initial=0)
    if not largest < MAX_LOGIT:
        raise _damage_error(path, "a number in it is not finite, or too large")


def _check_labels(path: Path, head: Head) -> None:
    if len({*head.labels}) < len(head.labels):
        raise _damage_error(path, "two of its labels are the same")
    if head.thresholds.keys() - {*head.labels}:
        raise _damage_error(path, "a threshold is of no label")


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the header'}: {first['msg'].lower()}"


def _damage_error(path: Path, why: str) -> InputError:
    return InputError(f"{path}: is damaged or of another version: {why}; {REMEDY}")
