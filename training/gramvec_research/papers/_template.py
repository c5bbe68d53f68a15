"""TEMPLATE: the file of a paper, to be copied; its name begins with _, so that it is no paper itself.

A paper's file has its runs, its tables with the paper's values, its claims, and what of the paper is made here. This
example asks how far pairs should be held from others.
"""

from __future__ import annotations

from gramvec_research.shared import (
    Experiment,
    ExperimentInputs,
    Finding,
    Item,
    Paper,
    ResultTable,
    learn_run,
    list_values,
    mean_scores,
    tasks_of,
)

_PAPER_VALUES = {0.2: 60.0, 0.4: 61.0, 0.8: 59.0}  # Spearman's of its Table 1, where a paper has them


def score_margins(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 1: the score of each margin, mean over the seeds and the tasks."""
    scores = {}
    for margin in _PAPER_VALUES:
        settings = {
            "model": {"kind": "charagram-phrase", "dimension": 8},
            "training": {"batch": 8, "steps": 20, "margin": margin},
            "data": [{"path": "pairs.tsv"}],
        }
        records = [learn_run(inputs, f"margin-{margin}", settings, seed)[1] for seed in inputs.seeds]
        tasks = mean_scores([tasks_of(record, "spearman") for record in records])
        scores[margin] = sum(tasks.values()) / len(tasks)
    rows = tuple(
        {"margin": margin, "spearman": round(score, 1), "paper": _PAPER_VALUES[margin]}
        for margin, score in scores.items()
    )
    seen = list_values({str(margin): score for margin, score in scores.items()})
    return ResultTable(rows, (Finding("0.4 is the best margin", max(scores, key=scores.__getitem__) == 0.4, seen),))


PAPER = Paper(
    name="TEMPLATE",
    reference="An example, 2026",
    items=(
        Item(where="Table 1", what="the score of each margin", paper="best at 0.4", experiments=("template-table-1",)),
    ),
    experiments=(
        Experiment(
            name="template-table-1",
            table="TEMPLATE, Table 1",
            title="Scores over the margin",
            stands_in="forty pairs for a million",
            run=score_margins,
            learns=True,
        ),
    ),
)
