"""Bounds on untrusted JSON, checked before it is parsed: 100,000 values in 32 levels.

A parsed value takes 50 bytes or more, so that a line of 16 MB may become 1.5 GB. A record that is nested deeper than a
writer's own limit could be read but never written.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import orjson

MAX_DEPTH = 32
MAX_VALUES = 100_000
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels; flatten it"
TOO_MANY = f"more than {MAX_VALUES:,} values; split it"

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


class TooLarge(ValueError):
    """A JSON text is over the bounds; the message names the bound."""


def parse(data: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises:
        TooLarge: it has over 100,000 values, or over 32 levels.
        orjson.JSONDecodeError: it is not valid JSON.
    """
    opened = data.count(b"[") + data.count(b"{")
    if opened > MAX_DEPTH or opened + data.count(b",") > MAX_VALUES:
        _check(_STRING.sub(b"", data))  # brackets and commas within strings do not count
    return orjson.loads(data)


def _check(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") + data.count(b",") > MAX_VALUES:
        raise TooLarge(TOO_MANY)
    steps = _STEPS[np.frombuffer(data, np.uint8)]
    depths = np.cumsum(steps[steps != 0], dtype=np.int32)
    if int(depths.max(initial=0)) > MAX_DEPTH:
        raise TooLarge(TOO_DEEP)
