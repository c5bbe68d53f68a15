"""Scripts that are written without spaces between words, where a word is found by its single characters and pairs.

They are Han, kana, Bopomofo, Thai, Lao, Myanmar and Khmer. Hangul is with them: it has spaces, but whether a compound
or a name has one is a matter of taste, and a syllable holds as much as three Latin letters.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

# First and last code points, ascending; as in native/search_calls.h. Digits and punctuation of these blocks are others.
UNSPACED = (
    (0xE01, 0xE3A), (0xE40, 0xE4E), (0xE81, 0xECE), (0xEDC, 0xEDF), (0x1000, 0x103F), (0x1050, 0x108F),
    (0x109A, 0x109D), (0x1100, 0x11FF), (0x1780, 0x17D3), (0x17D7, 0x17D7), (0x17DC, 0x17DD), (0x2E80, 0x2FD5),
    (0x3005, 0x3007), (0x3021, 0x302F), (0x3031, 0x3035), (0x3038, 0x303C), (0x3041, 0x309A), (0x309D, 0x309F),
    (0x30A1, 0x30FA), (0x30FC, 0x318E), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xA960, 0xA97C), (0xA9E0, 0xA9EF), (0xA9FA, 0xA9FE), (0xAA60, 0xAA76), (0xAA7A, 0xAA7F), (0xAC00, 0xD7A3),
    (0xD7B0, 0xD7FB), (0xF900, 0xFAFF), (0x1AFF0, 0x1B16F), (0x20000, 0x323AF),
)  # fmt: skip
_EDGES = np.array([edge for first, last in UNSPACED for edge in (first, last + 1)], np.uint32)
_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_one = re.compile(f"[{_CLASS}]")
_runs = re.compile(f"[{_CLASS}]+|[^{_CLASS}]+")
_gaps = re.compile(rf"(?<=[{_CLASS}])\s+(?=[{_CLASS}])")


def is_unspaced(character: str) -> bool:
    """Return True for a character of a script without spaces."""
    return _one.match(character) is not None


def are_unspaced(points: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return True for each code point that is of a script without spaces, in their shape."""
    return np.asarray(np.searchsorted(_EDGES, points, "right") & 1, np.bool_)


def close_gaps(text: str) -> str:
    """Return a text without the white space between two characters of such scripts: "東京 大学 x" is "東京大学 x"."""
    return text if text.isascii() else _gaps.sub("", text)


def words_and_runs(text: str) -> list[str]:
    """Return the words of a text, cut where such a script begins and ends; gaps within it are closed."""
    if text.isascii() or _one.search(text) is None:
        return text.split()
    return [run for word in close_gaps(text).split() for run in _runs.findall(word)]
