"""Matching: the rows of a table that are the same thing as the rows of another, by their letters or by labels.

`candidates` has the pairs of rows that are worth a look, `gramvec.jobs.pairs` their probabilities, `match_tables` both
and what is chosen, `features` and `fit_matcher` what labels teach. docs/matching.md has examples.
"""

from __future__ import annotations

from gramvec.jobs.matching.api import Matcher, explain_pairs, match, pair_scores

__all__ = ["Matcher", "explain_pairs", "match", "pair_scores"]
