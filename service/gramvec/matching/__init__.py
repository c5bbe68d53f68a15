"""Matching: the rows of a table that are the same thing as the rows of another, by their letters or by labels.

`scoring` has the score without labels, `nearest` the nearest rows, `features` and `fit_matcher` what labels teach.
docs/matching.md has examples.
"""

from __future__ import annotations

from gramvec.matching.api import Matcher, match

__all__ = ["Matcher", "match"]
