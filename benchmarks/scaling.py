"""How the time of a text grows with its length, the batch, the vocabulary and the dimension, each alone.

Texts to vectors, native runtime, one thread. The vocabulary's axis keeps the most frequent rows of the shipped model's;
the dimension's has random tables over 50,000 of its rows. `python -m benchmarks.plot` draws the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import gramvec
from benchmarks.measure import Setting, interleaved
from benchmarks.results import Group, Part
from benchmarks.tables import reference_table, scratch, write_bundle
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.text.vocabulary import Vocabulary

LENGTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)  # characters
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)  # texts a call
ROWS = (1_000, 4_000, 16_000, 64_000, 256_000)  # the last is cut to what there is
DIMENSIONS = (64, 128, 256, 512, 1024)
ROWS_OF_DIMENSIONS = 50_000

Tasks = Mapping[int, tuple[Callable[[], object], int]]


def run(setting: Setting) -> Part:
    part = Part()
    with ExitStack() as stack:
        shipped = gramvec.load(setting.model, device="cpu", runtime="native", threads=1)
        stack.callback(shipped.close)
        part.add("scaling_length", _axis(setting, "length", "characters", _lengths(setting, shipped)))
        part.add("scaling_batch", _axis(setting, "batch", "a call", _batches(setting, shipped)))
        part.add("scaling_vocabulary", _axis(setting, "vocabulary", "rows", _vocabularies(setting, stack)))
        part.add("scaling_dimension", _axis(setting, "dimension", "columns", _dimensions(setting, stack)))
    return part


def _axis(setting: Setting, title: str, unit: str, tasks: Tasks) -> Group:
    timings = interleaved(
        {str(x): task for x, (task, _) in tasks.items()},
        {str(x): work for x, (_, work) in tasks.items()},
        setting.rounds,
    )
    rows = [
        {
            "name": f"{x:,} {unit}",
            "x": x,
            "us_per_text": round(1e6 / timings[str(x)].per_cpu_second, 3),
            "spread": round(timings[str(x)].spread, 3),
        }
        for x in tasks
    ]
    return Group(f"scaling: {title}", "CPU microseconds a text", rows)


def _lengths(setting: Setting, embedder: gramvec.Embedder) -> Tasks:
    """The same number of characters in each, so that long texts do not take for ever; at least one text."""
    prose = " ".join(setting.texts)
    tasks: dict[int, tuple[Callable[[], object], int]] = {}
    for length in LENGTHS:
        source = prose * (length // len(prose) + 1)
        texts = [source[start : start + length] for start in range(0, len(source) - length + 1, length)]
        tasks[length] = _all_of(embedder, texts[: len(setting.texts)])
    return tasks


def _batches(setting: Setting, embedder: gramvec.Embedder) -> Tasks:
    return {size: _all_of(embedder, setting.texts, size) for size in BATCHES if size <= len(setting.texts)}


def _vocabularies(setting: Setting, stack: ExitStack) -> Tasks:
    bundle = open_bundle(setting.model)
    table = reference_table(bundle)
    sizes = sorted({min(rows, len(table)) for rows in ROWS})
    return {size: _opened(stack, setting, bundle, table, size) for size in sizes}


def _dimensions(setting: Setting, stack: ExitStack) -> Tasks:
    bundle = open_bundle(setting.model)
    rows = min(ROWS_OF_DIMENSIONS, len(bundle.vocabulary))
    random = np.random.default_rng(1)
    return {
        dimension: _opened(stack, setting, bundle, random.standard_normal((rows, dimension), np.float32), rows)
        for dimension in DIMENSIONS
    }


def _opened(
    stack: ExitStack, setting: Setting, like: Bundle, table: np.ndarray, rows: int
) -> tuple[Callable[[], object], int]:
    folder = stack.enter_context(TemporaryDirectory(dir=scratch()))
    vocabulary = Vocabulary.build(
        like.vocabulary.entries()[:rows], lowercase=like.vocabulary.lowercase, symbols=like.spec.has_symbols
    )
    path = write_bundle(Path(folder) / "bundle", like, table[:rows], like.manifest.graph.precision, vocabulary)
    embedder = gramvec.load(path, device="cpu", runtime="native", threads=1)
    stack.callback(embedder.close)
    return _all_of(embedder, setting.texts)


def _all_of(embedder: gramvec.Embedder, texts: list[str], size: int = 512) -> tuple[Callable[[], object], int]:
    blocks = [texts[start : start + size] for start in range(0, len(texts), size)]
    return lambda: [embedder.embed(block) for block in blocks], len(texts)
