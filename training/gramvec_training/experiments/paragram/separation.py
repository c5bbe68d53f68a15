"""How well trained models keep their training pairs from other texts (Wieting et al., 2016b, section 5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.systems import learned_system
from gramvec_training.readers import numbered_lines
from gramvec_training.runs import load_run, run_model

_FILE = "mined_phrases.pairs.tsv.gz"  # most of what the systems learn from
_PAIRS, _BATCH = 2_000, 100
_PAPER = {"PP": 0.7535, "PP-proj": 0.7572, "LSTM, no output gate": 0.7463, "LSTM": 0.7565}
_ALIKE = 0.1


def separation_of_pairs(inputs: Inputs) -> Outcome:
    """The mean of 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) over pairs (g1, g2), with n the nearest of the others."""
    if inputs.data is None:
        raise InputError("This experiment learns models: give --data, the folder of the training files.")
    lines = [line.decode().rstrip("\r\n").split("\t") for _, line in numbered_lines(inputs.data / _FILE)]
    drawn = np.random.default_rng(1).permutation(len(lines))[:_PAIRS]
    left, right = [lines[index][0] for index in drawn], [lines[index][1] for index in drawn]
    found: dict[str, float] = {}
    for system in _PAPER:
        models = [run_model(load_run(learned_system(inputs, system, seed)[0])) for seed in inputs.seeds]
        apart = [separation(model.encode(left), model.encode(right)) for model in models]
        found[system] = float(np.mean(apart))
    rows: tuple[Row, ...] = tuple(
        {"system": system, "separation": round(value, 3), "paper": _PAPER[system]} for system, value in found.items()
    )
    apart_by = max(found.values()) - min(found.values())
    averages = max(found["PP"], found["PP-proj"])
    lstms = max(found["LSTM"], found["LSTM, no output gate"])
    return Outcome(
        rows,
        (
            Finding(f"all are alike, within {_ALIKE:g}", apart_by <= _ALIKE, f"{apart_by:.3f} between them"),
            Finding(
                "so LSTMs do not fit the training pairs better than averages",
                lstms <= averages + _ALIKE,
                f"averages {averages:.3f}, LSTMs {lstms:.3f}",
            ),
        ),
    )


def separation(left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]) -> float:
    """The mean, in batches of 100 pairs, of which n is the nearest text of the other pairs on either side."""
    values = []
    for start in range(0, len(left), _BATCH):
        one, other = (_unit(side[start : start + _BATCH]) for side in (left, right))
        if len(one) < 2:
            continue
        both = np.concatenate([one, other])
        own = np.tile(np.eye(len(one), dtype=bool), 2)  # the two texts of the pair itself
        nearest = [np.where(own, -np.inf, side @ both.T).max(axis=1) for side in (one, other)]
        values.append(2 * np.einsum("nd,nd->n", one, other) - nearest[0] - nearest[1])
    return float(np.mean(np.concatenate(values)))


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.asarray(vectors / lengths, dtype=np.float64)
