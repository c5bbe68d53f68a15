"""Heads for labelled texts: PARAGRAM-PHRASE's Table 4, SIF's Tables 2, 3, 7 and 8."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramvec_training.experiments.base import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.heads import SIF, Regime, scored_head
from gramvec_training.experiments.labelled import Task, entailment, inference, reviews, sentiment, similarity
from gramvec_training.experiments.nb_svm import nb_svm

_LSTM, _OPEN = "LSTM", "LSTM, no output gate"
_PHRASES = 10_000  # of the sentiment treebank
_REGIMES: tuple[Regime, ...] = ("trained", "universal", "features")
_COMPOSITIONS = ("PP", "PP-proj", _OPEN, _LSTM)
_RECURRENT = ("RNN", _OPEN, _LSTM)
# SIF's Tables 2 and 3; PP-proj from universal parameters is PARAGRAM-PHRASE's Table 4.
_PAPER = {
    "PP": (84.9, 83.1, 79.4),
    "DAN": (85.96, 84.5, 83.4),
    "RNN": (73.13, 76.4, 86.5),
    _OPEN: (85.45, 83.2, 86.6),
    _LSTM: (83.41, 82.0, 89.2),
    SIF: (86.03, 84.6, 82.2),
}
_PAPER_SHUFFLED = {"RNN": (54.50, 61.7, 84.2), _OPEN: (77.24, 78.2, 82.9), _LSTM: (79.39, 81.0, 84.1)}
_PAPER_INFERENCE = {"PP": None, _LSTM: 77.6, SIF: 78.2}
_PAPER_REVIEWS = {1_000: (82.0, 84.0), 200: (77.0, 73.0)}
_AHEAD, _ALIKE = 1.0, 2.0
_DRAWS = 5  # of reviews


def regimes(inputs: Inputs) -> Outcome:
    """Pearson's r of a similarity head over an encoder that learns with it, from anew or from what it is, or is fixed.

    trained: begun at the word vectors; universal: begun at the finished model, to which all is drawn; features: fixed.
    """
    task = similarity(inputs)
    found = {system: {regime: _mean(inputs, task, system, regime) for regime in _REGIMES} for system in _COMPOSITIONS}
    rows: list[Row] = [
        {"system": system, **{name: round(score, 1) for name, score in scores.items()},
         "trained, paper": _PAPER.get(system, (None,))[0], "universal, paper": 86.68 if system == "PP-proj" else None}
        for system, scores in found.items()
    ]  # fmt: skip
    above = {system: scores["universal"] - scores["trained"] for system, scores in found.items()}
    below = {system: scores["trained"] - scores["features"] for system, scores in found.items()}
    best = max(found, key=lambda system: found[system]["universal"])
    return Outcome(
        tuple(rows),
        (
            Finding(f"universal parameters are at least {_AHEAD:g} point above training from word vectors, for all",
                    min(above.values()) >= _AHEAD, _listed(above, signed=True)),
            Finding(f"fixed features are at least {_AHEAD:g} point below training, for all",
                    min(below.values()) >= _AHEAD, _listed(below, signed=True)),
            Finding("from universal parameters PP-proj is the best", best == "PP-proj",
                    _listed({system: scores["universal"] for system, scores in found.items()})),
        ),
    )  # fmt: skip


def table(inputs: Inputs) -> Outcome:
    """SIF's Table 2: each system, learned with its head; SIF's own vectors are fixed. Beside them what is simplest."""
    tasks = (similarity(inputs), entailment(inputs), sentiment(inputs, _PHRASES))
    found = {system: [_mean(inputs, task, system, _regime(system)) for task in tasks] for system in _PAPER}
    rows: list[Row] = [
        _row(system, tasks, scores) | _row("", tasks, list(_PAPER[system]), ", paper") | {"system": system}
        for system, scores in found.items()
    ]
    nothing = dict.fromkeys((f"{task.name}, paper" for task in tasks), None)
    rows.append(_row("the commonest class", tasks, [None, tasks[1].majority(), tasks[2].majority()]) | nothing)
    rows.append(_row("NB-SVM", tasks, [None, None, _nb_svm(tasks[2])]) | nothing)

    def column(place: int) -> dict[str, float]:
        return {system: scores[place] for system, scores in found.items()}

    findings = []
    for place, task in enumerate(tasks[:2]):
        best = max(score for system, score in column(place).items() if system != SIF)
        claim = f"SIF's features are at most {_ALIKE:g} points below the best trained model on {task.name}"
        findings.append(Finding(claim, found[SIF][place] >= best - _ALIKE, _listed(column(place))))
    last = column(2)
    claim = f"on sentiment the better LSTM is at least {_ALIKE:g} points above SIF's features and trained averages"
    averages = max(last[SIF], last["PP"], last["DAN"])
    findings.append(Finding(claim, max(last[_LSTM], last[_OPEN]) >= averages + _ALIKE, _listed(last)))
    claim = "on sentiment the LSTM with output gate is above the one without"
    findings.append(Finding(claim, last[_LSTM] > last[_OPEN], _listed({one: last[one] for one in (_LSTM, _OPEN)})))
    return Outcome(tuple(rows), tuple(findings))


def shuffled(inputs: Inputs) -> Outcome:
    """SIF's Table 3: recurrent models that learn and are scored with the words of each text in another order."""
    tasks = (similarity(inputs), entailment(inputs), sentiment(inputs, _PHRASES))
    rows: list[Row] = []
    falls: dict[str, list[float]] = {}
    for system in _RECURRENT:
        falls[system] = []
        for place, task in enumerate(tasks):
            usual = _mean(inputs, task, system, "trained")
            other = float(
                np.mean([scored_head(inputs, task.shuffled(seed), system, "trained", seed) for seed in inputs.seeds])
            )
            falls[system].append(usual - other)
            rows.append({
                "system": system, "task": task.name, "usual": round(usual, 1), "shuffled": round(other, 1),
                "usual, paper": _PAPER[system][place], "shuffled, paper": _PAPER_SHUFFLED[system][place],
            })  # fmt: skip
    seen = "; ".join(f"{system} {', '.join(f'{-fall:+.1f}' for fall in some)}" for system, some in falls.items())
    least = min(min(some) for some in falls.values())
    first = {system: some[0] for system, some in falls.items()}
    return Outcome(
        tuple(rows),
        (
            Finding(f"every recurrent model falls by {_AHEAD:g} point on every task", least >= _AHEAD, seen),
            Finding("RNN falls most on similarity", max(first, key=lambda one: first[one]) == "RNN", seen),
        ),
    )


def inferences(inputs: Inputs) -> Outcome:
    """SIF's Table 7: accuracy on SNLI, learned from its development part alone, by the head that compares."""
    return _inferences(inputs, joined=False)


def layered_inferences(inputs: Inputs) -> Outcome:
    """The same below the layers that the paper has from Bowman et al.: both vectors side by side."""
    return _inferences(inputs, joined=True)


def _inferences(inputs: Inputs, *, joined: bool) -> Outcome:
    task, layers = inference(inputs), ", three layers" if joined else ""
    found = {system: _mean(inputs, task, system, _regime(system), joined=joined) for system in _PAPER_INFERENCE}
    rows: list[Row] = [
        {"system": system, "accuracy": round(score, 1), "paper": _PAPER_INFERENCE[system]}
        for system, score in found.items()
    ]
    rows.append({"system": "the commonest class", "accuracy": round(task.majority(), 1), "paper": None})
    return Outcome(
        tuple(rows),
        (
            Finding(f"SIF's features are at least as good as the LSTM{layers}", found[SIF] >= found[_LSTM],
                    _listed(found)),
            Finding(f"SIF's features are 10 points above the commonest class{layers}",
                    found[SIF] >= task.majority() + 10, f"{found[SIF]:.1f}, {task.majority():.1f}"),
        ),
    )  # fmt: skip


def few_labels(inputs: Inputs) -> Outcome:
    """SIF's Table 8: reviews, from all, 1,000 and 200 labels; each the mean over five draws of them."""
    task = reviews(inputs)
    rows: list[Row] = []
    ahead: dict[int, float] = {}
    sizes = sorted({min(size, len(task.learned)) for size in (len(task.learned), *_PAPER_REVIEWS)}, reverse=True)
    for size in sizes:
        drawn = [task.only(size, seed=draw) for draw in range(1, _DRAWS + 1)]
        ours = float(np.mean([scored_head(inputs, one, SIF, "features", draw) for draw, one in enumerate(drawn, 1)]))
        rival = float(np.mean([_nb_svm(one) for one in drawn]))
        ahead[size] = ours - rival
        paper = _PAPER_REVIEWS.get(size, (None, None))
        rows.append({
            "labels": size, "SIF": round(ours, 1), "NB-SVM": round(rival, 1), "SIF, paper": paper[0],
            "NB-SVM, paper": paper[1],
        })  # fmt: skip
    seen = ", ".join(f"{size:,}: {value:+.1f}" for size, value in ahead.items())
    return Outcome(
        tuple(rows),
        (
            Finding(
                f"with most labels NB-SVM is at least {_AHEAD:g} point above SIF", ahead[sizes[0]] <= -_AHEAD, seen
            ),
            Finding(f"with fewest SIF is at least {_AHEAD:g} point above NB-SVM", ahead[sizes[-1]] >= _AHEAD, seen),
        ),
    )


def _regime(system: str) -> Regime:
    return "features" if system == SIF else "trained"


def _mean(inputs: Inputs, task: Task, system: str, regime: Regime, *, joined: bool = False) -> float:
    return float(np.mean([scored_head(inputs, task, system, regime, seed, joined=joined) for seed in inputs.seeds]))


def _nb_svm(task: Task) -> float:
    learned, scored = ([text for (text,) in part.texts] for part in (task.learned, task.scored))
    return 100 * float(np.mean(nb_svm(learned, task.learned.truth > 0, scored) == (task.scored.truth > 0)))


def _row(
    system: str, tasks: tuple[Task, ...], scores: list[float] | list[float | None], ending: str = ""
) -> dict[str, str | float | None]:
    named = zip(tasks, scores, strict=True)
    return {"system": system} | {
        f"{task.name}{ending}": None if score is None else round(score, 2 if ending else 1) for task, score in named
    }


def _listed(values: Mapping[str, float], *, signed: bool = False) -> str:
    return ", ".join(f"{name} {value:{'+' if signed else ''}.1f}" for name, value in values.items())
