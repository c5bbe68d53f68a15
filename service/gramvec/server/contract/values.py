"""How many values a JSON text holds, and its first ones: known before anything is made of it, at the cost of a copy.

A body of 8 MB may hold four million values, which take 25 times its memory as Python's objects. No request that can be
answered has so many.
"""

from __future__ import annotations

import re

# What begins, parts and ends values, and strings.
_STRUCTURE = b'",[]{}'
_OTHERS = bytes(set(range(256)) - set(_STRUCTURE))
_CLOSING = {ord("["): b"]", ord("{"): b"}"}
# As much is looked through before the next look at whether it is enough.
_STEP = 64 * 1024
# A string, which is passed over as a whole, or what begins, parts and ends values. Nothing is tried twice: possessive,
# and a string that does not end goes to the end of the text.
_token = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)


def holds_more(raw: bytes, most: int) -> bool:
    """Whether a JSON text holds more than about so many values: members, elements, and what they are in.

    Never for a text of so many or fewer, surely for one of twice as many. Of what is no JSON it says something, too.
    """
    # A value takes two bytes at least. What is in strings is looked away from only if it matters.
    if len(raw) <= 2 * most or not _may_hold_more(raw, most):
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = raw.translate(None, _OTHERS)
    if structure.count(b'"') > 4 * most:  # a member has two strings at most
        return True
    outside = structure.split(b'"')[::2]
    return sum(map(len, outside)) > 2 * most  # what is begun is ended


def _may_hold_more(raw: bytes, most: int) -> bool:
    found = 0
    for start in range(0, len(raw), _STEP):
        found += sum(raw.count(one, start, start + _STEP) for one in (b",", b"[", b"{"))
        if found >= most:
            return True
    return False


def first_values(raw: bytes, most: int) -> bytes:
    """The beginning of a JSON text with about twice so many values, closed so that it is one itself.

    A text of so many values or fewer is left as it is; of what is no JSON something comes back that is none either.
    """
    open_ones: list[bytes] = []
    # Each value but the first begins after a bracket or a comma; an empty list or object has a bracket for nothing. So
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
        # No JSON has so many strings and closing brackets to so few values.
        if begun >= 2 * most or number > 8 * most:
            return raw[: start if one == ord(",") else end] + b"".join(reversed(open_ones))
    return raw
