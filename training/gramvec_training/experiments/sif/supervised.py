"""Supervised similarity, entailment and sentiment (SIF, Table 2)."""

from __future__ import annotations

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.supervised import (
    LSTM,
    OPEN_LSTM,
    PHRASES,
    SIF,
    Task,
    entailment,
    listed,
    mean_score,
    nb_svm_accuracy,
    regime_of,
    sentiment,
    similarity,
)

_PAPER = {
    "PP": (84.9, 83.1, 79.4),
    "DAN": (85.96, 84.5, 83.4),
    "RNN": (73.13, 76.4, 86.5),
    OPEN_LSTM: (85.45, 83.2, 86.6),
    LSTM: (83.41, 82.0, 89.2),
    SIF: (86.03, 84.6, 82.2),
}
_ALIKE = 2.0


def supervised_table(inputs: Inputs) -> Outcome:
    """Each system, learned with its head; SIF's own vectors are fixed. Beside them what is simplest."""
    tasks = (similarity(inputs), entailment(inputs), sentiment(inputs, PHRASES))
    found = {system: [mean_score(inputs, task, system, regime_of(system)) for task in tasks] for system in _PAPER}
    rows: list[Row] = [
        _row(system, tasks, scores) | _row("", tasks, list(_PAPER[system]), ", paper") | {"system": system}
        for system, scores in found.items()
    ]
    nothing = dict.fromkeys((f"{task.name}, paper" for task in tasks), None)
    rows.append(_row("the commonest class", tasks, [None, tasks[1].majority(), tasks[2].majority()]) | nothing)
    rows.append(_row("NB-SVM", tasks, [None, None, nb_svm_accuracy(tasks[2])]) | nothing)

    def column(place: int) -> dict[str, float]:
        return {system: scores[place] for system, scores in found.items()}

    findings = []
    for place, task in enumerate(tasks[:2]):
        best = max(score for system, score in column(place).items() if system != SIF)
        claim = f"SIF's features are at most {_ALIKE:g} points below the best trained model on {task.name}"
        findings.append(Finding(claim, found[SIF][place] >= best - _ALIKE, listed(column(place))))
    last = column(2)
    claim = f"on sentiment the better LSTM is at least {_ALIKE:g} points above SIF's features and trained averages"
    averages = max(last[SIF], last["PP"], last["DAN"])
    findings.append(Finding(claim, max(last[LSTM], last[OPEN_LSTM]) >= averages + _ALIKE, listed(last)))
    claim = "on sentiment the LSTM with output gate is above the one without"
    findings.append(Finding(claim, last[LSTM] > last[OPEN_LSTM], listed({one: last[one] for one in (LSTM, OPEN_LSTM)})))
    return Outcome(tuple(rows), tuple(findings))


def _row(
    system: str, tasks: tuple[Task, ...], scores: list[float] | list[float | None], ending: str = ""
) -> dict[str, str | float | None]:
    named = zip(tasks, scores, strict=True)
    return {"system": system} | {
        f"{task.name}{ending}": None if score is None else round(score, 2 if ending else 1) for task, score in named
    }
