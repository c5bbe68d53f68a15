"""Natural language inference, by two heads (SIF, Table 7)."""

from __future__ import annotations

from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.supervised import LSTM, SIF, inference, listed, mean_score, regime_of

_PAPER = {"PP": None, LSTM: 77.6, SIF: 78.2}


def inferences(inputs: Inputs) -> Outcome:
    """Accuracy on SNLI, learned from its development part alone, by the head that compares."""
    return _inferences(inputs, joined=False)


def layered_inferences(inputs: Inputs) -> Outcome:
    """The same below the layers that the paper has from Bowman et al.: both vectors side by side."""
    return _inferences(inputs, joined=True)


def _inferences(inputs: Inputs, *, joined: bool) -> Outcome:
    task, layers = inference(inputs), ", three layers" if joined else ""
    found = {system: mean_score(inputs, task, system, regime_of(system), joined=joined) for system in _PAPER}
    rows: list[Row] = [
        {"system": system, "accuracy": round(score, 1), "paper": _PAPER[system]} for system, score in found.items()
    ]
    rows.append({"system": "the commonest class", "accuracy": round(task.majority(), 1), "paper": None})
    return Outcome(
        tuple(rows),
        (
            Finding(f"SIF's features are at least as good as the LSTM{layers}", found[SIF] >= found[LSTM],
                    listed(found)),
            Finding(f"SIF's features are 10 points above the commonest class{layers}",
                    found[SIF] >= task.majority() + 10, f"{found[SIF]:.1f}, {task.majority():.1f}"),
        ),
    )  # fmt: skip
