from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gramvec.jobs.report import mark_differences
from gramvec.jobs.report.differences import MAX_CHARACTERS

TEXTS = st.text(st.sampled_from("abAB é12 .-\u0130ß東"), max_size=40)


def test_letters_words_and_numbers_are_told_apart():
    left, right = mark_differences("Acme Ltd 12 red", "acme ltd 13 blue")
    assert left == [("Acme Ltd ", "same"), ("12", "number"), (" ", "same"), ("red", "word")]
    assert [part.text for part in right if part.kind == "number"] == ["13"]
    left, right = mark_differences("vehicles", "vehicals")
    assert left == [("vehicl", "same"), ("e", "letters"), ("s", "same")]
    assert right == [("vehic", "same"), ("a", "letters"), ("ls", "same")]


def test_case_and_white_space_make_no_difference():
    left, right = mark_differences("Red  Bull", "red bull")
    assert {part.kind for part in left + right} == {"same"}


def test_an_empty_text_has_no_segments():
    assert mark_differences("", "x y") == ([], [("x", "word"), (" ", "same"), ("y", "word")])


def test_long_texts_are_cut():
    left, _ = mark_differences("a" * (MAX_CHARACTERS + 1), "b")
    assert "".join(part.text for part in left) == "a" * MAX_CHARACTERS + "…"


@given(TEXTS, TEXTS)
def test_segments_are_the_texts(one: str, other: str):
    left, right = mark_differences(one, other)
    assert "".join(part.text for part in left) == one
    assert "".join(part.text for part in right) == other
    assert all(a.kind != b.kind for a, b in pairwise(left))


@given(TEXTS)
def test_a_text_beside_itself_has_no_difference(text: str):
    assert all(part.kind == "same" for side in mark_differences(text, text) for part in side)
