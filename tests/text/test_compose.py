"""Composition in linear time gives what the standard library's gives, to the letter."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.text.characters import LONG_RUN, compose

# Every character that canonical ordering may move, or that decomposes into such.
MARKS = [
    one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.combining(unicodedata.normalize("NFD", one)[0])
]
FEW = [MARKS[i] for i in range(0, len(MARKS), 11)]
# Marks of three classes, those that decompose into two or into others, and starters that compose with them.
PICKED = "\u0301\u0323\u0327\u0344\u0340\u0343\u0f73\u0f75\u0f81\u0f71\u093c\u094d\u3099"
STARTERS = "aeuAo\u1ea5\u1e69\u00e9\u0915\u30ab\uac00\u1100\u1161\u11a8\u0f40 \U0001f600\u212b\u0958"


def plain(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def test_what_decomposes_into_marks_alone_is_known() -> None:
    """With this interpreter's Unicode. The standard promises that decompositions never change."""
    of_marks = {one for one in MARKS if not unicodedata.combining(one)}
    assert of_marks == set("\u0f73\u0f75\u0f81")
    for one in set(MARKS) - of_marks:
        assert set(map(unicodedata.combining, unicodedata.normalize("NFD", one))) == {unicodedata.combining(one)}
    for one in of_marks:
        assert all(map(unicodedata.combining, unicodedata.normalize("NFD", one)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "e" + "\u0301" * 400,
        "a" + "\u0301\u0323" * 200,  # each of the second kind is before all of the first
        "a" + "\u0301" * 90 + "\u0323" * 90,  # the far one composes, since nothing of its class is between
        "a" + "\u0327" * 90 + "\u0323" * 90 + "b\u0323",
        "\u1ea5" + "\u0323" * 200,  # a starter whose own marks come after those of the run
        "\u0344" * 200,  # two marks each
        "x" + "\u0340" * 70 + "\u0323" * 70 + "\u0341" * 20,  # singletons
        "\u0f40" + "\u0f73" * 140,  # starters by their class that are two marks
        "\u0f73" * 140 + "\u0f72" * 70,
        "\u1100\u1161" + "\u11a8" * 100,  # Hangul: no marks at all
        "\uac00" + "\u3099" * 100 + "\u0323" * 100,
        "\u0323" * 200,  # nothing before it
        "\u30ab" + "\u3099" * 2 + "\u0323" * 200,
        "word " * 50 + "\u0301" * 90 + "\u0323" * 90 + " word" * 50,
        ("\u0301" * 90 + "\u0323" * 90 + "a") * 3,
    ],
)
def test_worked_cases(text: str) -> None:
    assert compose(text) == plain(text)


@pytest.mark.parametrize("length", [LONG_RUN - 1, LONG_RUN, LONG_RUN + 1, 2 * LONG_RUN, 2 * LONG_RUN + 1])
@pytest.mark.parametrize("before", range(0, 2 * LONG_RUN + 2, 17))
def test_runs_of_every_length_at_every_place(length: int, before: int) -> None:
    run = "".join(PICKED[i % len(PICKED)] for i in range(length))
    assert compose("o" * before + run + "\u0323e\u0301") == plain("o" * before + run + "\u0323e\u0301")


runs = st.builds(
    lambda alphabet, starter, pattern, times: starter + "".join(alphabet[i % len(alphabet)] for i in pattern) * times,
    st.sampled_from([PICKED, "".join(FEW), "\u0301\u0323"]),
    st.sampled_from(["", *STARTERS]),
    st.lists(st.integers(0, 200), max_size=40),
    st.integers(1, 24),
)


@given(st.lists(runs | st.text(st.sampled_from(STARTERS + PICKED), max_size=90) | st.text(max_size=30), max_size=4))
def test_it_is_the_standard_librarys(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert compose(text) == plain(text)


def test_a_run_of_a_million_takes_no_longer_than_it_is_long() -> None:
    """By insertion it would take an hour and a half."""
    text = "a" + "\u0301" * 500_000 + "\u0323" * 500_000
    composed = compose(text)
    assert composed.startswith("\u1ea1\u0323")
    assert unicodedata.combining(composed[-1]) == 230
    assert len(composed) == len(text) - 1
