"""The loops in C, with sanitizers, over arrays that were changed: what opens must say what numpy and a reference say.

A round opens a changed vocabulary and memo as a bundle is opened. What is refused there is given to the loops all the
same, who must refuse it, or search it without leaving it. Texts go through from several threads.
"""

from __future__ import annotations

import random
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import mutate, reference
from gramvec import native
from gramvec.bundle.four_bits import unpack_levels
from gramvec.errors import BundleError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text import hashing
from gramvec.text.characters import ID_MASK
from gramvec.text.memo import Memo
from gramvec.text.vocabulary import Vocabulary
from hostile.bundles.craft import Arrays, packed, read

THREADS = 3
MAX_FOR_REFERENCE = 2_000
COMPOSE = "NFC"


def prepare(bases: Path) -> None:
    """Bundles to start from."""
    mutate.write_bases(bases)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """One pair of files, and texts."""
    name = numbers.choice(sorted(mutate.SPECS))
    spec = mutate.SPECS[name]
    files = {}
    for file in ("vocabulary.safetensors", "memo.safetensors"):
        if (bases / name / file).exists():
            data = (bases / name / file).read_bytes()
            files[file] = mutate.arrays(numbers, read(data)) if numbers.random() < 0.5 else read(data)
            (folder / file).write_bytes(packed(data, files[file]))
    letters = "".join(map(chr, read((bases / name / "vocabulary.safetensors").read_bytes())["alphabet"].tolist()))
    texts = mutate.texts(numbers, letters)
    (folder / "texts").write_text(repr(texts))
    try:
        vocabulary = Vocabulary.open(folder / "vocabulary.safetensors")
        path = folder / "memo.safetensors"
        memo = Memo.read(path, path.read_bytes(), vocabulary) if path.name in files else None
        compiled = Featurizer(spec, vocabulary, memo=memo, compiled=True)
    except (BundleError, InputError):
        search(numbers, spec, files, texts)
        return
    compare(spec, vocabulary, memo, compiled, texts)
    add_up(numbers, compiled, texts)
    search(numbers, spec, files, texts, vocabulary)


def compare(
    spec: FeatureSpec, vocabulary: Vocabulary, memo: Memo | None, compiled: Featurizer, texts: list[str]
) -> None:
    """C, numpy and the slow way, and the same texts alone and from several threads."""
    plain = Featurizer(spec, vocabulary, compiled=False)
    found, expected = compiled.without_memo()(texts), plain(texts)
    assert found == expected
    assert found.unknown == expected.unknown
    together = compiled(texts)
    parts = [texts[start : start + 3] for start in range(0, len(texts), 3)]
    with ThreadPoolExecutor(THREADS) as pool:
        apart = list(pool.map(compiled, parts))
    assert np.array_equal(together.ids, np.concatenate([np.zeros(0, np.int32), *(one.ids for one in apart)]))
    if memo is not None:
        known = reference.known(vocabulary, memo)
        for index, text in enumerate(texts):
            if len(text) > MAX_FOR_REFERENCE:
                continue
            rows = sorted(together.ids[together.offsets[index] : together.offsets[index + 1]].tolist())
            assert rows == reference.sums(text, spec, vocabulary, memo, known), text
        without = Memo.build([], vocabulary)
        in_c, in_numpy = (Featurizer(spec, vocabulary, compiled=one, memo=without)(texts) for one in (True, False))
        assert [*map(sorted, rows_of(in_c))] == [*map(sorted, rows_of(in_numpy))]


def rows_of(batch: Any) -> list[list[int]]:
    """Each text's rows."""
    return [part.tolist() for part in np.split(batch.ids, batch.offsets[1:-1])] if len(batch) else []


def add_up(numbers: random.Random, compiled: Featurizer, texts: list[str]) -> None:
    """The sums of a table that ends where its bytes end."""
    assert native.loops is not None
    d = numbers.choice([1, 3, 7, 16, 63, 64, 65, 330])
    rows = len(compiled.vocabulary) + (0 if compiled.memo is None else len(compiled.memo))
    random_numbers = np.random.default_rng(numbers.randrange(2**32))
    kind = numbers.choice(["weighted", "fours", "int8", "float16", "float32"])
    weights = scales = None
    if kind == "fours":
        table = random_numbers.integers(0, 256, (rows, (d + 1) // 2)).astype(np.uint8)
        weights = random_numbers.integers(0, 128, rows).astype(np.uint8)
    elif kind in ("weighted", "int8"):
        table = random_numbers.integers(-127, 128, (rows, d)).astype(np.int8)
        scales = None if kind == "weighted" else random_numbers.normal(size=rows).astype(np.float32)
        weights = random_numbers.integers(1, 129, rows).astype(np.uint8) if kind == "weighted" else None
    else:
        table = random_numbers.normal(size=(rows, d)).astype(kind)
    data = table.tobytes() + bytes(native.loops.BLOCK if weights is not None else 0)
    item, width = 0 if kind == "fours" else table.itemsize, numbers.choice([512, 256, 0])
    stride = table.shape[1] * table.itemsize
    opened = native.loops.Table(
        data, rows, d, stride, item, scales, weights, 1.0, numbers.random() < 0.5, None, None, width
    )
    batch = compiled(texts)
    summed, direct = (np.full((len(texts), d), np.nan, np.float32) for _ in range(2))
    assert opened(batch.ids, batch.offsets, summed) == -1
    counts, unknown, _, wrong = opened.embed(compiled.loops, texts, compiled.memo is not None, direct)
    assert (wrong, unknown) == (None, batch.unknown)
    assert np.array_equal(np.frombuffer(counts, np.int64), batch.counts)
    assert summed.tobytes() == direct.tobytes()
    if weights is not None:
        levels = unpack_levels(table, d) if kind == "fours" else table
        exact = levels.astype(np.float64) * weights[:, None]
        expected = np.array([exact[rows].sum(axis=0) for rows in rows_of(batch)]).reshape(-1, d)
        assert np.allclose(summed * np.maximum(1, batch.counts)[:, None], expected, rtol=1e-5) or np.array_equal(
            summed, expected.astype(np.float32)
        )


def search(
    numbers: random.Random,
    spec: FeatureSpec,
    files: dict[str, Arrays],
    texts: list[str],
    opened: Vocabulary | None = None,
) -> None:
    """What no bundle may hold, given to the loops: they refuse it, or keep inside of it."""
    assert native.loops is not None
    vocabulary, memo = files["vocabulary.safetensors"], files.get("memo.safetensors")
    meta = [*vocabulary["meta"].tolist(), *[numbers.choice([-1, 0, 3, 2**62])] * 5]
    memo_meta = [*(memo["meta"].tolist() if memo else []), *[numbers.choice([0, 1, 4, -(2**63)])] * 4]
    pages: Any = np.zeros(0x1100, np.uint16)
    entries: Any = np.zeros(512, np.uint32)
    entries[: 256 + 64] = [1 << 16 | numbers.randrange(1 << 4) for _ in range(256 + 64)]
    entries[ord(" ")] = 2 << 16 | numbers.choice([0, 1, 7])
    pages[numbers.randrange(0x1100)] = numbers.choice([0, 1, 1, 1, 2, 65_535])
    orders: tuple[int, ...] = spec.orders
    if numbers.random() < 0.3:
        orders = tuple(numbers.choice([1, 2, 3, 6, 7, -1, 2**40]) for _ in range(numbers.randrange(8)))
    bits = numbers.choice([meta[1], 4, 16])
    edges = (memo["edge_keys"], memo["edge_rows"]) if memo else (vocabulary["ngram_keys"], vocabulary["ngram_rows"])
    if opened is not None:
        # All is sound but what the edges reach, and which orders there are: the most rows that there can be.
        pages, entries, bits = opened.table.pages, opened.table.entries, opened.bits
        memo_meta[2] = numbers.choice([0, 1, 1, 2, 3, 4, 5])
        edges = all_edges(numbers, opened)
    chunks = words_of(vocabulary, "word_starts", "word_chars", "word_rows")
    if memo:
        chunks = words_of(memo, "starts", "chars", "rows")
    try:
        featurize = native.loops.Featurizer(
            lambda text: unicodedata.normalize(COMPOSE, text), pages, entries, orders, bits,
            vocabulary["ngram_keys"], vocabulary["ngram_rows"], spec.words,
            words_of(vocabulary, "word_starts", "word_chars", "word_rows"), meta[3],
            max(-(2**31), min(2**31 - 1, meta[2])), chunks, memo_meta[1], memo_meta[2], *edges,
        )  # fmt: skip
    except (ValueError, OverflowError, MemoryError):
        return
    table = native.loops.Table(np.zeros((3, 2), np.int8), 3, 2, 2, 1, None, None, 1.0, False, None, None, 512)
    letters = mutate.LETTERS + " "
    full = [" ".join(numbers.choice(mutate.LETTERS) for _ in range(numbers.randrange(40))), letters * 30]
    # Alone, there is no room of others behind a text's rows.
    for some in [texts, *([one] for one in [*full, *texts[:3]])]:
        for sums in [False, True] if orders else [False]:
            rows, offsets, _ = featurize(some, sums)
            assert np.all(np.frombuffer(rows, np.int32) >= 0)
            assert np.frombuffer(offsets, np.int64)[-1] * 4 == len(rows)
            table.embed(featurize, some, sums, np.zeros((len(some), 2), np.float32))


def all_edges(numbers: random.Random, vocabulary: Vocabulary) -> tuple[Any, Any]:
    """Keys and rows of most of what can be made of two letters and a space, up to five of them."""
    ids = [int(vocabulary.table[ord(letter)]) & ID_MASK for letter in mutate.LETTERS + " "]
    keys = {
        hashing.pack(one, vocabulary.bits)
        for length in range(2, 6)
        for one in product(ids, repeat=length)
        if all(one) and length * vocabulary.bits <= 64 and numbers.random() < 0.9
    }
    return np.array(sorted(keys), np.uint64), np.arange(len(keys), dtype=np.int32)


def words_of(arrays: Arrays, *names: str) -> tuple[Any, ...]:
    """The three arrays of words or chunks."""
    return tuple(arrays[name] for name in names)
