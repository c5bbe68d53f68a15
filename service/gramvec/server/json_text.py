"""Untrusted JSON text: how many values it holds, its first values, and the reason why it is not JSON.

A body of 8 MB may hold four million values, which take 25 times its memory as Python's objects. No request that can be
answered has that many, so values are counted before the text is parsed, at the cost of a copy.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from gramvec.server.errors import HttpError

# The bytes that begin, separate and end values, and quotes.
_STRUCTURE = b'",[]{}'
_OTHERS = bytes(set(range(256)) - set(_STRUCTURE))
_CLOSING = {ord("["): b"]", ord("{"): b"}"}
# Bytes that are scanned between two checks of the count.
_STEP = 64 * 1024
# A string as a whole, or a byte that begins, separates or ends values. Quantifiers are possessive, so that no byte is
# tried twice, and a string that does not end reaches to the end of the text.
_token = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)


def holds_more(raw: bytes, most: int) -> bool:
    """Return True if a JSON text holds more than about `most` values: members, elements and their containers.

    The answer is False for a text of at most `most` values, True for one of twice as many, and either for text that is
    not JSON.
    """
    # A value takes two bytes at least. Strings are removed only if that matters.
    if len(raw) <= 2 * most or not _may_hold_more(raw, most):
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = raw.translate(None, _OTHERS)
    if structure.count(b'"') > 4 * most:  # a member has two strings at most
        return True
    outside = structure.split(b'"')[::2]
    return sum(map(len, outside)) > 2 * most  # what begins also ends


def _may_hold_more(raw: bytes, most: int) -> bool:
    found = 0
    for start in range(0, len(raw), _STEP):
        found += sum(raw.count(one, start, start + _STEP) for one in (b",", b"[", b"{"))
        if found >= most:
            return True
    return False


def first_values(raw: bytes, most: int) -> bytes:
    """Return the beginning of a JSON text with about twice `most` values, closed so that it is JSON itself.

    A text of at most `most` values is returned unchanged. Text that is not JSON stays text that is not JSON.
    """
    open_ones: list[bytes] = []
    # Each value but the first begins after a bracket or a comma; an empty list or object has a bracket of its own. So
    # `most` values have fewer than twice as many of both.
    begun = 0
    for number, token in enumerate(_token.finditer(raw)):
        start, end = token.span()
        one = raw[start]
        if one in _CLOSING:
            open_ones.append(_CLOSING[one])
        elif one in b"]}" and open_ones:
            open_ones.pop()
        begun += one in b"[{,"
        # No JSON has this many strings and closing brackets for its values.
        if begun >= 2 * most or number > 8 * most:
            return raw[: start if one == ord(",") else end] + b"".join(reversed(open_ones))
    return raw


def parse_slowly(raw: bytes) -> Any:
    """Return the value of a JSON text (RFC 8259: UTF-8, no NaN) that may hold lone surrogates.

    Raises:
        HttpError: 400 with the place where the text stops being JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # orjson refuses the escape of a lone surrogate as if it were bad JSON. It is good JSON of a bad text, and the
        # response has to name that text.
        if "surrogate" not in str(error):
            raise _not_json(str(error)) from None
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _not_json(str(error)) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _not_json(reason: str) -> HttpError:
    return HttpError(400, "validation", f"the body is not JSON in UTF-8: {reason}")
