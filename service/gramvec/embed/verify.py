"""Comparison of the runtimes of a model on many texts, for `gramvec verify`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from gramvec.bundle.bundle import Bundle
from gramvec.embed.embedder import Embedder
from gramvec.errors import BundleError, DeviceError, InputError
from gramvec.runtime.base import Runtime
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.ort import OnnxRuntime
from gramvec.runtime.select import AGREEMENT, differences

SAMPLE = 2_000
# Texts compared at a time.
BLOCK = 512


class Comparison(NamedTuple):
    """Largest difference between the runtime in use and another.

    Attributes:
        runtime: the name and device of the runtime in use.
        other_runtime: those of the other runtime, "" if there is none.
        texts: number of compared texts.
        largest: the largest difference, see runtime.select.differences.
        text: the text with this difference.
        why_not: the reason if no other runtime can be compared.
    """

    runtime: str
    other_runtime: str
    texts: int = 0
    largest: float = 0.0
    text: str = ""
    why_not: str = ""

    @property
    def agrees(self) -> bool:
        """Return True if no text differs by more than the rounding of a tanh."""
        return self.largest <= AGREEMENT


def compare(embedder: Embedder, texts: Iterable[str]) -> Comparison:
    """Compare a model's runtime with runtime native; if that is in use or unavailable, with ONNX Runtime on the CPU.

    Raises:
        InputError: a text is not a str or too long; with its index.
        BundleError: the other runtime refuses the bundle.
        BackendError: a runtime fails.
    """
    bundle = embedder.bundle
    name = f"{embedder.runtime} on {embedder.device}"
    try:
        other = _other(embedder)
    except DeviceError as error:
        return Comparison(name, "", why_not=str(error))
    comparison = Comparison(name, f"{other.name} on {other.device}")
    remaining = iter(texts)
    while block := _prepare(embedder, list(islice(remaining, BLOCK)), comparison.texts):
        apart = differences(embedder.raw(block).vectors, other.embed(bundle.memoized, block).vectors)
        worst = int(apart.argmax())
        comparison = comparison._replace(texts=comparison.texts + len(block))
        if not comparison.text or apart[worst] > comparison.largest:
            comparison = comparison._replace(largest=float(apart[worst]), text=block[worst])
    other.close()
    return comparison


def _prepare(embedder: Embedder, block: list[str], before: int) -> list[str]:
    try:
        return embedder.prepare(block)
    except InputError as error:
        index = before + (error.index or 0)
        reason = str(error).removeprefix(f"text {error.index} ")
        raise InputError(f"text {index} {reason}", index=index) from error


def _other(embedder: Embedder) -> Runtime:
    bundle = embedder.bundle
    if embedder.runtime != "native" and bundle.manifest.graph.beyond_rows is None:
        try:
            return NativeRuntime(bundle)
        except (BundleError, DeviceError):
            if embedder.device == "cpu":
                raise
    return OnnxRuntime.from_bundle(bundle)


def sample_texts(bundle: Bundle) -> Iterator[str]:
    """Yield the golden texts, then random texts, SAMPLE in all.

    The random ones are of the model's own words and n-grams, misspelt words and any characters, up to some thousand
    characters long.
    """
    generator = random.Random(0)
    known = [entry.text.strip() for entry in bundle.vocabulary.entries() if entry.text.strip()]
    if bundle.memoized.memo is not None:
        known += bundle.memoized.memo.decode(bundle.vocabulary)[0]
    golden = [text.text for text in bundle.manifest.golden]
    yield from golden
    for _ in range(SAMPLE - len(golden)):
        length = int(generator.paretovariate(1.2) * 4)
        yield " ".join(_word(generator, known) for _ in range(min(length, 1_000)))


def _word(generator: random.Random, known: list[str]) -> str:
    word = generator.choice(known) if known and generator.random() < 0.95 else _any_characters(generator)
    if generator.random() < 0.1:
        place = generator.randrange(len(word))
        word = word[:place] + word[place + 1 :]
    if generator.random() < 0.1:
        word = word.upper() + generator.choice(".,;:!?)\u2026")
    return word


def _any_characters(generator: random.Random) -> str:
    points = (
        generator.choice((generator.randrange(32, 0x250), generator.randrange(0xE000, 0x30000))) for _ in range(6)
    )
    return "".join(map(chr, points))
