"""Experiments -> results that are kept, and of these the page that has every table and figure of the papers.

It imports experiments, reporting and the ground floor. What the papers hold is in outline.py; a new
item is a line there.
"""

from __future__ import annotations

from gramvec_training.papers.digests import digests_of
from gramvec_training.papers.page import RESULTS, draw_page, drawings, page
from gramvec_training.papers.quick import cut
from gramvec_training.papers.results import Result, as_text, perform, read_results

__all__ = [
    "RESULTS", "Result", "as_text", "cut", "digests_of", "draw_page", "drawings", "page", "perform", "read_results",
]  # fmt: skip
