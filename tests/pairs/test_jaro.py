"""Likeness by Jaro and Winkler: worked by hand, and the loop in C against Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.jobs.pairs.jaro import jaro_winkler, pack_texts, text_likeness
from gramvec.native import loops


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        # Of Winkler's paper.
        ("martha", "marhta", 0.9611), ("dwayne", "duane", 0.84), ("dixon", "dicksonx", 0.8133),
        ("abc", "abc", 1.0), ("abc", "xyz", 0.0), ("", "", 1.0), ("", "a", 0.0), ("a", "a", 1.0), ("ab", "ba", 0.0),
    ],
)  # fmt: skip
def test_likeness_by_hand(one: str, other: str, likeness: float) -> None:
    assert jaro_winkler(one, other) == pytest.approx(likeness, abs=1e-4)
    assert jaro_winkler(other, one) == jaro_winkler(one, other)


def test_sixty_four_characters_are_compared() -> None:
    assert jaro_winkler("a" * 64 + "b", "a" * 64 + "c") == 1.0


letters = st.text("abcd é東", max_size=9) | st.text(max_size=90)


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
@given(st.lists(letters, min_size=1, max_size=6), st.lists(letters, min_size=1, max_size=6))
def test_loop_and_python_have_the_same_likeness(left: list[str], right: list[str]) -> None:
    i, j = (at.ravel() for at in np.meshgrid(np.arange(len(left)), np.arange(len(right))))
    found = text_likeness(pack_texts(left), pack_texts(right), i, j)
    expected = [jaro_winkler(left[a], right[b]) for a, b in zip(i.tolist(), j.tolist(), strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    np.testing.assert_array_equal(found, text_likeness(pack_texts(right), pack_texts(left), j, i))


def test_without_the_loops_python_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramvec.native.loops", None)
    row = np.zeros(1, np.int64)
    assert text_likeness(pack_texts(["martha"]), pack_texts(["marhta"]), row, row)[0] == pytest.approx(0.9611, abs=1e-4)


@pytest.mark.skipif(loops is None, reason="the loops in C are not built")
def test_arrays_that_do_not_fit_together_are_refused() -> None:
    texts, row, out = pack_texts(["ab", "c"]), np.zeros(1, np.int64), np.empty(1, np.float32)
    broken = [(texts[0][:1], texts[1]), (texts[0], texts[1][::-1].copy())]
    for left, i in [(texts, row + 2), (texts, row - 1), *((some, row) for some in broken)]:
        with pytest.raises(ValueError, match="do not fit"):
            loops.jaro_winkler(left, texts, i, row, out)
    with pytest.raises(ValueError, match="do not fit"):
        loops.jaro_winkler(texts, texts, row, np.zeros(2, np.int64), out)
