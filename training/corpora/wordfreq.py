"""The frequencies of wordfreq: MessagePack of a header and, for each hundredth of a logarithm, the words with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpora.readers import Files, Records, unpack

_MAX_DEPTH = 8


def read_wordfreq(files: Files, columns: Sequence[str]) -> Records:
    """Yield each word and a hundred times the logarithm of its frequency in base ten."""
    for file in files:
        (_, *bins), _ = _decode(unpack(file.data), 0)
        for hundredth, words in enumerate(bins):
            yield from ((word, str(-hundredth)) for word in words)


def _decode(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    """Return the value of MessagePack at a place and the place after it: mappings, lists, texts and whole numbers.

    Raises:
        ValueError: There is another kind of value, or too little of one.
    """
    kind = data[at] if at < len(data) else 0xC1
    at += 1

    def number(size: int) -> tuple[int, int]:
        return int.from_bytes(data[at : at + size], "big"), at + size

    if kind < 0x80:
        return kind, at
    if 0xA0 <= kind < 0xC0:
        return _text(data, at, kind & 0x1F)
    if kind in (0xD9, 0xDA, 0xDB):
        length, at = number(1 << kind - 0xD9)
        return _text(data, at, length)
    if kind in (0xCC, 0xCD, 0xCE):
        return number(1 << kind - 0xCC)
    if depth == _MAX_DEPTH or (kind > 0x9F and kind not in (0xDC, 0xDD)):
        raise ValueError(f"has a value of MessagePack that is not expected here: {kind:#x}")
    if kind in (0xDC, 0xDD):
        length, at = number(2 << kind - 0xDC)
    else:
        length = (kind & 0x0F) * (2 if kind < 0x90 else 1)
    values = []
    for _ in range(length):
        value, at = _decode(data, at, depth + 1)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if kind < 0x90 else values), at


def _text(data: bytes, at: int, length: int) -> tuple[str, int]:
    if at + length > len(data):
        raise ValueError("ends within a text")
    return data[at : at + length].decode(), at + length
