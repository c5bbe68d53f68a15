"""Near copies among texts, and the parts in which texts are held out, near copies together.

A text of which a near copy was learned is answered better than a new text, so its score is no estimate for new texts.
Near copies have equal vectors, or the same words but for one (of 5 to 12 words, digits alike), or the same digest of
their pairs of words (of more words). Of up to 3,000 texts, those are near copies, too, whose n-grams of characters are
alike, without those that many labels have: one sentence with other greetings, closings and misspellings.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gramvec.errors import import_extra
from gramvec.jobs.classify.ngrams import CHARACTERS, features
from gramvec.lexical.hashing import COLUMN_BITS
from gramvec.text.arrays import Floats, Int64s

_WORD = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
SHORTEST, LONGEST = 5, 12  # words of which one may differ
MAX_WORDS = 400  # of a text that are looked at
_SKETCHES, _SMALLEST = 4, 3  # digests of a longer text, and the hashes in each: copies share most pairs of words
# Texts whose n-grams are compared, characters of each that are looked at, and how alike near copies are. Of twelve
# labels of HWU64 with five sentences each, in some 200 texts with other greetings, closings and misspellings, 0.7 finds
# 71 to 76 groups, and what is said of held-out texts is within 3 points of what other sentences get (10 to 15 above
# without); at 0.5 it is 10 below for 1,280 plain texts of 64 labels, at 0.7 within 3.
MAX_COMPARED, MAX_CHARACTERS, ALIKE, BLOCK = 3_000, 2_000, 0.7, 256
SEED = 1


def near_copies(texts: Sequence[str], vectors: Floats, labels: Int64s | None = None) -> Int64s:
    """Return the number of the group of near copies of each text, int64[n], from 0.

    Args:
        texts: n of them.
        vectors: float32[n, d].
        labels: int64[n], one of each text; None compares no n-grams.
    """
    owner: dict[object, int] = {}
    parent = list(range(len(texts)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    def join(first: int, row: int) -> None:
        other, own = root(first), root(row)
        parent[max(own, other)] = min(own, other)

    for row, text in enumerate(texts):
        for key in (vectors[row].tobytes(), *_keys(text)):
            first = owner.setdefault(key, row)
            if first != row:
                join(first, row)
    if labels is not None and 1 < len(texts) <= MAX_COMPARED:
        for first, row in _alike(texts, labels):
            join(first, row)
    roots = np.array([root(row) for row in range(len(texts))], np.int64)
    groups: Int64s = np.unique(roots, return_inverse=True)[1].astype(np.int64)
    return groups


def _alike(texts: Sequence[str], labels: Int64s) -> Iterator[tuple[int, int]]:
    """Yield pairs of texts whose n-grams of characters have at least the cosine ALIKE, weighted by how rare they are.

    N-grams of texts of more than a quarter of the labels, and of more than one label, have no part in it.
    """
    sparse = import_extra("scipy.sparse", "classify", "learning a head")
    found = features([text[:MAX_CHARACTERS] for text in texts])
    of_characters = found.key >> COLUMN_BITS == CHARACTERS
    text, column = found.text[of_characters], found.key[of_characters]
    column = np.unique(column, return_inverse=True)[1].astype(np.int64)
    width = int(column.max(initial=-1)) + 1
    if not width:
        return
    text, column = np.divmod(np.unique(text * width + column), width)
    seen = np.unique(labels[text] * width + column) % width
    is_common = np.bincount(seen, minlength=width) > max(1, (int(labels.max()) + 1) // 4)
    weights = np.log((len(texts) + 1) / (np.bincount(column, minlength=width) + 0.5))
    weights = np.where(is_common, 0.0, np.maximum(weights, 0.0))
    rows = sparse.csr_matrix((weights[column], (text, column)), shape=(len(texts), width))
    rows.eliminate_zeros()
    lengths = np.sqrt(np.maximum(np.asarray(rows.multiply(rows).sum(axis=1)).ravel(), 1e-12))
    rows = sparse.csr_matrix(sparse.diags(1 / lengths) @ rows)
    for start in range(0, len(texts), BLOCK):
        products = (rows[start : start + BLOCK] @ rows.T).tocoo()
        near = (products.data >= ALIKE) & (products.col < products.row + start)
        yield from zip(products.col[near].tolist(), (products.row[near] + start).tolist(), strict=True)


def _keys(text: str) -> Iterator[object]:
    words = _WORD.findall(_DIGITS.sub("0", text.casefold()))[:MAX_WORDS]
    if not words:
        return
    yield " ".join(words)
    if SHORTEST <= len(words) <= LONGEST:
        for place in range(len(words)):
            yield " ".join([*words[:place], *words[place + 1 :]])
    elif len(words) > LONGEST:
        pairs = {f"{first} {second}".encode() for first, second in pairwise(words)}
        hashes = np.fromiter(map(zlib.crc32, pairs), np.uint32, len(pairs))
        seeded = hashes[:, None] ^ np.array([_seed_differences(len(pair)) for pair in pairs], np.uint32)
        yield from ((sketch, *some) for sketch, some in enumerate(np.sort(seeded, axis=0)[:_SMALLEST].T.tolist()))


@lru_cache(1 << 12)
def _seed_differences(size: int) -> list[int]:
    """Return crc32(a, seed) ^ crc32(a) for the seed of each sketch: the same for all bytes of this size."""
    return [zlib.crc32(bytes(size), seed) ^ zlib.crc32(bytes(size)) for seed in range(_SKETCHES)]


def parts_held_out(groups: Int64s, labels: Int64s, parts: int) -> Int64s:
    """Return the part in which each text is held out, int64[n], from 0; -1 for never.

    A group is in one part, and about as many texts of a label are in each. A label with one group is never held out.

    Args:
        groups: int64[n], of near copies.
        labels: int64[n], one of each text.
        parts: how many there are.
    """
    first, sizes = np.unique(groups, return_index=True, return_counts=True)[1:]
    of_group = labels[first]
    order = np.lexsort([np.random.default_rng(SEED).random(len(first)), -sizes, of_group])
    part_of = np.full(len(first), -1, np.int64)
    single = np.bincount(of_group)[of_group] < 2
    label, held, begin = -1, np.zeros(parts, np.int64), 0
    for group in order[~single[order]].tolist():
        if of_group[group] != label:
            # Labels of a few texts do not all fill the first parts.
            label, held = int(of_group[group]), np.zeros(parts, np.int64)
        part = min(range(parts), key=lambda place: (held[place], (place - begin) % parts))
        part_of[group], begin = part, part + 1
        held[part] += sizes[group]
    return part_of[groups]
