"""The page of an evaluation: scores of the models side by side, and the pairs that each judges least as people do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gramvec.jobs.report import ComparedValue, JobReport, Pair, PairList, ScoreComparison, Table, ValuePair
from gramvec_training.evaluation.backend import ScoredModel
from gramvec_training.evaluation.report import COVERAGE, ModelReport, ReportRows, list_score_tables
from gramvec_training.evaluation.similarity import SimilaritySet
from gramvec_training.shared import Doubles

MAX_PAIRS = 30
_FIRST = re.compile(r"-?\d+\.\d")


def make_evaluation_report(
    reports: Mapping[str, ModelReport],
    models: Mapping[str, ScoredModel],
    sets: Sequence[SimilaritySet],
    *,
    facts: Sequence[tuple[str, str]],
) -> JobReport:
    """Return the report of an evaluation.

    Args:
        reports: the scores of each model and rival, as `table` takes them.
        models: the models among them, whose pairs are shown.
        sets: the similarity sets.
        facts: what was done and with what.
    """
    short = shorten_names([*reports])
    reports = {short[label]: scores for label, scores in reports.items()}
    models = {short[label]: model for label, model in models.items()}
    names = ", ".join(reports)
    other_sets = _count_tasks(reports)
    counts = [
        f"{count:,} {what} set{'s' * (count != 1)}"
        for count, what in ((len(sets), "similarity"), (other_sets, "other"))
    ]
    tables = list_score_tables(reports)
    drawn = [(title, rows) for title, rows in tables if _is_drawn(title, rows)]
    scored = " and ".join(count for count in counts if count[0] != "0")
    return JobReport(
        f"Scores of {names}",
        f"{len(reports):,} model{'s' * (len(reports) != 1)} on {scored}. "
        "Of a cell with several figures the first is drawn.",
        [*facts],
        comparisons=[ScoreComparison(title, _read_values(rows), Table(title, *_split(rows))) for title, rows in drawn],
        pairs=[_find_farthest(label, model, sets) for label, model in models.items() if sets],
        tables=[Table(title, *_split(rows)) for title, rows in tables if (title, rows) not in drawn],
    )  # fmt: skip


def shorten_names(labels: Sequence[str]) -> dict[str, str]:
    """Return a name for each label of a model: a folder's own name, where no other model has it."""
    names = [Path(label).name or label for label in labels]
    return {label: name if names.count(name) == 1 else label for label, name in zip(labels, names, strict=True)}


def _count_tasks(reports: Mapping[str, ModelReport]) -> int:
    first = next(iter(reports.values()), {})
    return sum(len(family) for family in first.get("families", {}).values())


def _is_drawn(title: str, rows: ReportRows) -> bool:
    return title != COVERAGE and any("." in cell for row in rows[1:] for cell in row[1:])


def _split(rows: ReportRows) -> tuple[list[str], ReportRows]:
    return rows[0], rows[1:]


def _read_values(rows: ReportRows) -> list[ComparedValue]:
    """Return the first figure of each cell; a cell without one has no value."""
    return [
        ComparedValue(row[0], label, float(figure[0]))
        for row in rows[1:]
        for label, cell in zip(rows[0][1:], row[1:], strict=True)
        if (figure := _FIRST.match(cell))
    ]


def _find_farthest(label: str, model: ScoredModel, sets: Sequence[SimilaritySet]) -> PairList:
    """Return the pairs whose place among those of their set differs most from the place that people give them."""
    ranked: list[tuple[float, Pair]] = []
    for similarity_set in sets:
        scores = np.nan_to_num(np.asarray(model.similarity(similarity_set.left, similarity_set.right), np.float64))
        by_people, by_model = _rank_scores(similarity_set.scores), _rank_scores(scores)
        gaps = np.abs(by_people - by_model)
        for at in np.argsort(-gaps, kind="stable")[:MAX_PAIRS].tolist():
            note = f"place in the set, 1 is the most alike: {by_people[at]:.2f} by people, {by_model[at]:.2f} here"
            texts = ValuePair.mark("text", similarity_set.left[at], similarity_set.right[at])
            ranked.append((float(gaps[at]), Pair(float(scores[at]), f"{similarity_set.task}/{similarity_set.name}",
                                                f"people: {similarity_set.scores[at]:g}", [texts], note)))  # fmt: skip
    ranked.sort(key=lambda pair: -pair[0])
    return PairList(
        f"{label}: farthest from what people say",
        "Pairs whose place among the pairs of their set is least as people have it, with the model's score.",
        [pair for _, pair in ranked[:MAX_PAIRS]],
        f"the pairs that {label} judges least as people do",
    )


def _rank_scores(scores: Doubles) -> Doubles:
    """Return the share of scores that each is above, float64[n]; equal scores have the same, in the middle."""
    ordered = np.sort(scores)
    below, up_to = np.searchsorted(ordered, scores), np.searchsorted(ordered, scores, side="right")
    places: Doubles = (below + up_to) / (2 * max(1, len(scores)))
    return places
