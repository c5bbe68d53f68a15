"""Protocol Buffers on the wire, read one message at a time: for what has to be looked at before a library parses it.

The encoding is that of https://protobuf.dev/programming-guides/encoding/. Nothing is copied, nothing recurses, and what
is read is bounded by the number of fields. Groups, which no message of today has, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10
_TWO_TO_64 = 1 << 64


class MalformedError(ValueError):
    """The bytes are no message, or one of more fields than are read."""


class ProtobufReader:
    """Reader of messages that together have a limited number of fields."""

    def __init__(self, max_fields: int) -> None:
        self._left = max_fields

    def fields(self, message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
        """Yield the number and value of each field: an unsigned int of 64 bits, or bytes (4 or 8 if fixed).

        Raises MalformedError.
        """
        at = 0
        while at < len(message):
            self._left -= 1
            if self._left < 0:
                raise MalformedError("more fields than are read")
            tag, at = _varint(message, at)
            number, kind = tag >> 3, tag & 7
            if number == 0:
                raise MalformedError("a field has number 0")
            if kind == VARINT:
                value, at = _varint(message, at)
                yield number, value
                continue
            if kind == BYTES:
                size, at = _varint(message, at)
            elif (size := _SIZES.get(kind, -1)) < 0:
                raise MalformedError(f"a field of wire type {kind}")
            if size > len(message) - at:
                raise MalformedError("a field is cut off")
            yield number, message[at : at + size]
            at += size


def decode_signed(value: int) -> int:
    """Return the int64 that a varint stands for."""
    return value - _TWO_TO_64 if value >= _TWO_TO_64 >> 1 else value


def decode_packed(values: memoryview) -> Iterator[int]:
    """Return the varints of a packed field. Raises MalformedError."""
    at = 0
    while at < len(values):
        value, at = _varint(values, at)
        yield value


def count_packed(values: memoryview) -> int:
    """Return the number of varints in a packed field: each ends in a byte below 128."""
    return int(np.count_nonzero(np.frombuffer(values, np.uint8) < 0x80))


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value % _TWO_TO_64, at + index + 1
    raise MalformedError("a number is cut off, or too long")
