"""Averages and LSTMs by length (PARAGRAM-PHRASE, Table 5)."""

from __future__ import annotations

from gramvec_training.experiments.common import Finding, Inputs, Outcome
from gramvec_training.experiments.systems import LENGTHS, binned, longest

_AVERAGES, _LSTMS = ("PP", "PP-proj"), ("LSTM, no output gate", "LSTM")


def lengths_of_compositions(inputs: Inputs) -> Outcome:
    """Bins of the longer text's words, whose values our text of the paper has lost."""
    bins = [(name, least, most) for name, least, most, *_ in LENGTHS]
    rows, scores = binned(inputs, "words", bins, longest, (*_AVERAGES, *_LSTMS))
    gaps = {
        name: max(scores[one][name] for one in _AVERAGES) - max(scores[one][name] for one in _LSTMS)
        for name in scores["PP"]
    }
    seen = ", ".join(f"{name}: {gap:+.1f}" for name, gap in gaps.items())
    return Outcome(
        rows,
        (
            Finding("the better average is ahead of the better LSTM at every length", min(gaps.values()) > 0, seen),
            Finding(
                "the LSTMs are nearest to the averages on the shortest texts",
                next(iter(gaps.values())) == min(gaps.values()),
                seen,
            ),
        ),
    )
