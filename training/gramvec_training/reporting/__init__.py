"""Figures -> what people read: tables, plots, a run's summary, a bundle's card.

It imports evaluation, and the serving side. A new kind of document is a file here.
"""

from __future__ import annotations

from gramvec_training.reporting.bundle_card import Candidates, assess, check_renewable, renew
from gramvec_training.reporting.card import write_card
from gramvec_training.reporting.families import family_tables, number
from gramvec_training.reporting.plots import check_matplotlib, plot_curves, plot_run, plot_runs, plot_scores
from gramvec_training.reporting.run import read_record, scores_over_steps, summary
from gramvec_training.reporting.tables import markdown, markdown_table, mean_rows, share, table, to_json

__all__ = [
    "Candidates",
    "assess",
    "check_matplotlib",
    "check_renewable",
    "family_tables",
    "markdown",
    "markdown_table",
    "mean_rows",
    "number",
    "plot_curves",
    "plot_run",
    "plot_runs",
    "plot_scores",
    "read_record",
    "renew",
    "scores_over_steps",
    "share",
    "summary",
    "table",
    "to_json",
    "write_card",
]
