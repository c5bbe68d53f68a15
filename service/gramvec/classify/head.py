"""A head: vectors into a calibrated score for each label; and its file, which may be a stranger's.

The file is a header of JSON, its length before it, then plain arrays: coefficients and intercepts. Its size must be the
one that the header's numbers give before anything is taken from it; all bytes are under a digest; nothing in it is run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gramvec.errors import InputError, quoted
from gramvec.tables.staging import whole

Floats = NDArray[np.float32]

MAGIC = b"gvhead01"
DIGEST_BYTES = 32
LENGTH_BYTES = 8
MOST_LABELS = 100_000
MOST_DIMENSIONS = 65_536
MOST_HEADER_BYTES = 64 << 20
MOST_NUMBERS = 1 << 28  # of all coefficients: 1 GiB
MOST_LABEL = 1024
_CHUNK_NUMBERS = 1 << 20  # products at a time: 4 MB, which stay in a cache


class HeadHeader(BaseModel):
    """What a head says of itself; model, digest: the bundle whose vectors it was learned from."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: Literal[1] = 1
    model: Annotated[str, Field(max_length=200)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    dimensions: Annotated[int, Field(ge=1, le=MOST_DIMENSIONS)]
    temperature: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    # Strict, which pydantic is not about lists for tuples alone.
    labels: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MOST_LABEL)]], Field(min_length=2, max_length=MOST_LABELS)
    ]


@dataclass(frozen=True, eq=False)
class Head:
    """coefficients float32[labels, d] and intercepts float32[labels] over vectors of length 1 of the bundle `digest`.

    labels: two or more, all different. temperature: what logits are divided by, so that scores are shares of right
    answers. threshold, 0 to 1: a text whose best score is below has no label. file_digest: SHA-256 of what the file
    holds, where it was loaded from one.
    """

    coefficients: Floats
    intercepts: Floats
    labels: tuple[str, ...]
    temperature: float
    threshold: float
    model: str
    digest: str
    file_digest: str = ""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Head:
        """The head of a file. Raises InputError, saying what to do, for what is no whole head."""
        return _read(Path(path))

    @staticmethod
    def digest_of(path: str | os.PathLike[str]) -> str:
        """The `file_digest` that a head's file says it has, from its first bytes alone. Raises InputError."""
        with _opened(Path(path)) as file:
            return _beginning(Path(path), file)[len(MAGIC) : -LENGTH_BYTES].hex()

    @cached_property
    def longest_label(self) -> int:
        """Bytes of the longest label in UTF-8."""
        return max(len(label.encode()) for label in self.labels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all. Raises InputError for what could not be read again."""
        try:
            header = HeadHeader(
                model=self.model,
                digest=self.digest,
                dimensions=self.coefficients.shape[1],
                temperature=self.temperature,
                threshold=self.threshold,
                labels=list(self.labels),
            )
        except ValidationError as error:
            raise InputError(_sentence(error)) from error
        text = orjson.dumps(header.model_dump())
        body = len(text).to_bytes(LENGTH_BYTES, "little") + text
        body += b"".join(np.ascontiguousarray(one, "<f4").tobytes() for one in (self.coefficients, self.intercepts))
        _checked(Path(path), header, self.coefficients, self.intercepts)
        with whole(Path(path)) as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)

    def check_bundle(self, digest: str) -> None:
        """Raise InputError where vectors are of another bundle than the head's."""
        if digest != self.digest:
            raise InputError(
                f"the head was learned from another model ({quoted(self.model)}, digest {self.digest[:12]}) than "
                f"this one ({digest[:12]}); name that one with --model, or learn the head anew"
            )

    def predict(self, vectors: Floats) -> Floats:
        """float32[n, labels]: scores above 0 that sum to 1, of vectors float32[n, d] of length 1.

        A vector has the same scores to the bit, alone or in any company. Raises InputError for vectors of another
        width.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.coefficients.shape[1]:
            raise InputError(
                f"the head takes vectors of {self.coefficients.shape[1]} columns; ask the model that it is of"
            )
        logits = np.empty((len(vectors), len(self.labels)), np.float32)
        step = max(_CHUNK_NUMBERS // self.coefficients.size, 1)
        for start in range(0, len(vectors), step):
            part = np.ascontiguousarray(vectors[start : start + step], np.float32)
            for first in range(0, len(self.labels), columns := max(_CHUNK_NUMBERS // vectors.shape[1], 1)):
                some = self.coefficients[first : first + columns]
                # Along rows in numpy's fixed order: the rounding of a matrix product changes with its shape.
                logits[start : start + step, first : first + columns] = (part[:, None, :] * some).sum(axis=2)
        logits += self.intercepts
        return softmax(logits, self.temperature)

    def answers(self, scores: Floats) -> list[str | None]:
        """The label of each row of `predict`'s scores, or None where the best is below the threshold."""
        best = scores.argmax(axis=1)
        known = scores[np.arange(len(scores)), best] >= self.threshold
        return [self.labels[one] if sure else None for one, sure in zip(best.tolist(), known.tolist(), strict=True)]


def softmax(logits: Floats, temperature: float) -> Floats:
    """float32[n, labels]: exp(logits / temperature), each row divided by its sum."""
    scaled = logits / np.float32(temperature)
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _read(path: Path) -> Head:
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = _beginning(path, file)
        length = int.from_bytes(head[-LENGTH_BYTES:], "little")
        if length > min(MOST_HEADER_BYTES, size - len(head)):
            raise _damaged(path, "its header is longer than the file, or than 64 MiB")
        text = file.read(length)
        header = _header(path, text)
        numbers = (header.dimensions + 1) * len(header.labels)
        if numbers > MOST_NUMBERS or len(head) + length + 4 * numbers != size:
            raise _damaged(path, "its size is not what its header says")
        body = file.read(4 * numbers)
    digest = hashlib.sha256(head[-LENGTH_BYTES:] + text + body).digest()
    if len(body) < 4 * numbers or digest != head[len(MAGIC) : -LENGTH_BYTES]:
        raise _damaged(path, "its digest differs")
    values = np.frombuffer(body, "<f4").astype(np.float32)
    coefficients = values[: -len(header.labels)].reshape(len(header.labels), header.dimensions)
    intercepts = values[-len(header.labels) :]
    _checked(path, header, coefficients, intercepts)
    return Head(
        coefficients, intercepts, tuple(header.labels), header.temperature, header.threshold, header.model,
        header.digest, digest.hex(),
    )  # fmt: skip


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _beginning(path: Path, file: BinaryIO) -> bytes:
    """MAGIC, the digest, and the header's length."""
    begin = len(MAGIC) + DIGEST_BYTES + LENGTH_BYTES
    head = file.read(begin)
    if len(head) < begin or not head.startswith(MAGIC):
        raise InputError(f"{path} is no head; give a file that gramvec classify fit wrote")
    return head


def _header(path: Path, text: bytes) -> HeadHeader:
    try:
        return HeadHeader.model_validate(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise _damaged(path, "its header is no JSON") from error
    except ValidationError as error:
        raise _damaged(path, _sentence(error)) from error


def _checked(path: Path, header: HeadHeader, coefficients: Floats, intercepts: Floats) -> None:
    if len({*header.labels}) < len(header.labels):
        raise _damaged(path, "two of its labels are the same")
    if coefficients.shape != (len(header.labels), header.dimensions) or intercepts.shape != (len(header.labels),):
        raise _damaged(path, "its arrays are not of the shape that its labels give")
    # Within this, no logit of a vector of length 1 can leave float32.
    if not (np.abs(coefficients).max() < 1e30 and np.abs(intercepts).max() < 1e30):
        raise _damaged(path, "a number in it is not finite, or too large")


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the header'}: {first['msg'].lower()}"


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged or of another version: {why}; learn the head anew, or fetch it again")
