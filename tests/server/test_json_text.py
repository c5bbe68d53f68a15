"""How many values a JSON text holds, beside what Python's own parser makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.server.schemas import first_values, holds_more

texts = st.text(st.sampled_from('",[]{}:\\ab\n\u00e9'), max_size=6)
values = st.recursive(
    texts | st.integers(0, 99) | st.none(),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(texts, inner, max_size=9),
    max_leaves=30,
)


def count(value: Any) -> int:
    """Members, elements, and what they are in."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(values, st.integers(1, 40), st.booleans())
def test_a_few_too_many_are_doubtful_and_no_others(value: Any, most: int, ascii_only: bool) -> None:
    for separators in ((",", ":"), (" , ", " : ")):
        raw = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode()
        if count(value) <= most:
            assert not holds_more(raw, most)
        elif count(value) > 2 * most + 1:
            assert holds_more(raw, most)


def begins(part: Any, whole: Any) -> bool:
    """Whether a value is the beginning of another one."""
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(map(begins, part, whole))
    if isinstance(whole, dict) and isinstance(part, dict):
        same = list(part) == list(whole)[: len(part)]
        return same and all(begins(part[name], whole[name]) for name in part)
    return bool(part == whole)


@given(values, st.integers(1, 40))
def test_the_first_ones_are_json_and_as_they_were(value: Any, most: int) -> None:
    first = json.loads(first_values(json.dumps(value).encode(), most))
    assert begins(first, value)
    assert count(first) <= 2 * most + 2
    if count(value) <= most:
        assert first == value


@given(st.binary(max_size=60) | st.text(st.sampled_from('",[]{}\\a')).map(str.encode), st.integers(1, 9))
def test_of_what_is_no_json_they_say_something(raw: bytes, most: int) -> None:
    holds_more(raw, most)
    json_like = first_values(raw, most)
    assert len(json_like) <= len(raw) + 2 * most + 1


@pytest.mark.parametrize(
    "raw",
    [
        b"[" + b'\\"' * 1_000_000 + b"," * 2_000_000,  # a string begins at each, and none ends
        b'"' + b"\\" * 4_000_001,
        b'["' + b'\\"' * 2_000_000,
        b"[" * 4_000_000,
        b'"",' * 1_000_000,
    ],
    ids=["quotes outside", "backslashes", "one string", "brackets", "empty strings"],
)
def test_nothing_is_tried_twice(raw: bytes) -> None:
    """Where it were, this would take hours."""
    holds_more(raw, 9_000)
    assert first_values(raw, 9_000)
