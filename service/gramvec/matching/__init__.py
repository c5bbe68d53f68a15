"""Matching: for each row of a table the nearest rows of another, by n-grams or by labels.

A new feature of a pair is added in `features`; docs/matching.md has examples.
"""

from __future__ import annotations

from gramvec.matching.api import Matcher, match

__all__ = ["Matcher", "match"]
