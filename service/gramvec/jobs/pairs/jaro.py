"""Likeness of short texts by Jaro and Winkler (Winkler 1990, String Comparator Metrics and Enhanced Decision Rules).

Letters are common that are equal and no further apart than half of the longer text; of common letters in another order
half are swapped. Texts that begin alike are more alike by a tenth of what is missing for each of four letters, if they
are over 0.7. `loops.jaro_winkler` is the same in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.text.arrays import Floats, Int32s, Int64s

# Characters that are compared.
LONGEST = 64
_PREFIX, _FROM = 4, 0.7


def jaro_winkler(one: str, other: str) -> float:
    """Return how alike the first 64 characters of two texts are, 0 to 1."""
    # Which letters are common depends on whose come first.
    one, other = sorted((one[:LONGEST], other[:LONGEST]), key=lambda text: (len(text), text))
    n, m = len(one), len(other)
    if not n or not m:
        return float(n == m)
    window = max(max(n, m) // 2 - 1, 0)
    taken: set[int] = set()
    matched = []
    for i, letter in enumerate(one):
        for j in range(max(0, i - window), min(m - 1, i + window) + 1):
            if other[j] == letter and j not in taken:
                taken.add(j)
                matched.append(letter)
                break
    if not matched:
        return 0.0
    common = float(len(matched))
    swapped = sum(letter != other[j] for letter, j in zip(matched, sorted(taken), strict=True))
    found = (common / n + common / m + (common - swapped // 2) / common) / 3
    if found <= _FROM:
        return found
    prefix = 0
    while prefix < min(n, m, _PREFIX) and one[prefix] == other[prefix]:
        prefix += 1
    return found + prefix * 0.1 * (1 - found)


def pack_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int32s]:
    """Return the first 64 code points of texts, one text after the other, and where each begins, int32[n + 1]."""
    cut = [text[:LONGEST] for text in texts]
    characters = np.frombuffer("".join(cut).encode("utf-32-le", "surrogatepass"), np.uint32)
    return characters, np.append(0, np.cumsum([len(text) for text in cut], dtype=np.int64)).astype(np.int32)


def text_likeness(
    left: tuple[NDArray[np.uint32], Int32s], right: tuple[NDArray[np.uint32], Int32s], i: Int64s, j: Int64s
) -> Floats:
    """Return `jaro_winkler` of pairs of texts of `pack_texts`, float32[p].

    Args:
        left: texts of one side.
        right: texts of the other side.
        i: int64[p], places of left texts.
        j: int64[p], places of right texts.
    """
    out = np.empty(len(i), np.float32)
    loops: Any = native.loops  # or None
    if loops is not None:
        loops.jaro_winkler(left, right, np.ascontiguousarray(i), np.ascontiguousarray(j), out)
        return out
    texts, others = _unpack_texts(*left), _unpack_texts(*right)
    for at, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        out[at] = jaro_winkler(texts[a], others[b])
    return out


def _unpack_texts(characters: NDArray[np.uint32], starts: Int32s) -> list[str]:
    return [characters[a:b].tobytes().decode("utf-32-le", "surrogatepass") for a, b in pairwise(starts.tolist())]
