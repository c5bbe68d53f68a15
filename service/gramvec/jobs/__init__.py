"""Jobs over tables: match, deduplicate, classify, search, embed files, review.

Each package is a job or what jobs share: `common` (options, progress, journals), `tables` (readers and writers),
`report` (pages of HTML), `pairs` (the model of two rows). The core of gramvec, from `text` to `explain`, imports none.

A job is a record of its command's options, which are checked when it is made; `run` does what the command does:

>>> from gramvec.jobs import MatchJob
>>> MatchJob(left="ours.csv", right="theirs.csv", on="name", output="matches.csv").run()  # doctest: +SKIP

`run()` prints nothing; `run(TerminalWatch())` shows progress and messages as the command does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramvec.jobs.bulk.job import EmbedJob
    from gramvec.jobs.classify.head import Head
    from gramvec.jobs.classify.job import FitJob, PredictJob
    from gramvec.jobs.common.bars import TerminalWatch
    from gramvec.jobs.duplicates.job import DedupeJob
    from gramvec.jobs.matching.api import Matcher
    from gramvec.jobs.matching.job import MatchJob, PairsJob
    from gramvec.jobs.review.job import LabelReviewJob, PairReviewJob
    from gramvec.jobs.search.job import AddJob, BuildJob, RebuildJob, RemoveJob, SearchJob

__all__ = [
    "AddJob",
    "BuildJob",
    "DedupeJob",
    "EmbedJob",
    "FitJob",
    "Head",
    "LabelReviewJob",
    "MatchJob",
    "Matcher",
    "PairReviewJob",
    "PairsJob",
    "PredictJob",
    "RebuildJob",
    "RemoveJob",
    "SearchJob",
    "TerminalWatch",
]

# Imported on first use: a program that matches tables needs none of what an index wants.
_WHERE = {
    "AddJob": "search.job",
    "BuildJob": "search.job",
    "DedupeJob": "duplicates.job",
    "EmbedJob": "bulk.job",
    "FitJob": "classify.job",
    "Head": "classify.head",
    "LabelReviewJob": "review.job",
    "MatchJob": "matching.job",
    "Matcher": "matching.api",
    "PairReviewJob": "review.job",
    "PairsJob": "matching.job",
    "PredictJob": "classify.job",
    "RebuildJob": "search.job",
    "RemoveJob": "search.job",
    "SearchJob": "search.job",
    "TerminalWatch": "common.bars",
}


def __getattr__(name: str) -> Any:
    """Import a job's record on first use."""
    if name in _WHERE:
        return getattr(import_module(f"gramvec.jobs.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
