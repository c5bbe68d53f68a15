"""Pairs by their length (CHARAGRAM, Table 7)."""

from __future__ import annotations

from gramvec_training.experiments.common import Finding, Inputs, Outcome
from gramvec_training.experiments.systems import LENGTHS, binned, longest


def pairs_by_length(inputs: Inputs) -> Outcome:
    """Bins of the longer text's words."""
    rows, scores = binned(inputs, "words", LENGTHS, longest)
    ahead = [name for name in scores["PP"] if scores["CHARAGRAM"][name] > scores["PP"][name]]
    claim = "CHARAGRAM is ahead of PARAGRAM-PHRASE at every length"
    seen = f"at {len(ahead)} of {len(scores['PP'])}"
    return Outcome(rows, (Finding(claim, len(ahead) == len(scores["PP"]), seen),))
