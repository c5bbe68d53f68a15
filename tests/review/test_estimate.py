from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.jobs.review.estimate import estimate_quality

NONE = np.array([], np.int64), np.array([], np.bool_)


def test_without_answers_it_is_what_the_scores_promise():
    scores = np.array([0.9] * 100 + [0.1] * 100)
    found = estimate_quality(scores, *NONE, 0.5)
    assert found.precision.value == pytest.approx(0.9)
    assert found.recall.value == pytest.approx(0.9)
    assert found.precision.lower < 0.9 < found.precision.upper


def test_answers_move_it_and_narrow_it():
    scores = np.array([0.95] * 100 + [0.05] * 900)
    asked = np.arange(40)
    found = estimate_quality(scores, asked, np.zeros(40, np.bool_), 0.5)
    assert found.precision.value < 0.1
    before = estimate_quality(scores, *NONE, 0.5).precision
    assert found.precision.upper - found.precision.lower < before.upper - before.lower


def test_all_answered_is_counted():
    scores = np.array([0.9, 0.8, 0.3, 0.2])
    match = np.array([True, False, True, False])
    found = estimate_quality(scores, np.arange(4), match, 0.5)
    assert found.precision == (0.5, 0.5, 0.5)
    assert found.recall == (0.5, 0.5, 0.5)


def test_nothing_written_is_nothing_wrong():
    found = estimate_quality(np.array([0.1, 0.2]), *NONE, 0.9)
    assert (found.precision.value, found.recall.value) == (1.0, 0.0)


def test_intervals_hold_the_truth_most_of_the_time():
    random = np.random.default_rng(3)
    held = 0
    for _ in range(60):
        scores = random.beta(0.4, 0.6, 2_000)
        match = random.random(2_000) < scores
        asked = random.choice(2_000, 100, replace=False)
        found = estimate_quality(scores, asked, match[asked], 0.5).precision
        held += found.lower <= match[scores >= 0.5].mean() <= found.upper
    assert held >= 48


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, 1), st.data())
def test_shares_are_shares(values: list[float], threshold: float, data: st.DataObject):
    scores = np.array(values)
    asked = np.array(sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))), np.int64)
    match = np.array(data.draw(st.lists(st.booleans(), min_size=len(asked), max_size=len(asked))), np.bool_)
    for share in estimate_quality(scores, asked, match, threshold):
        assert 0 <= share.lower <= share.upper <= 1
        assert 0 <= share.value <= 1
