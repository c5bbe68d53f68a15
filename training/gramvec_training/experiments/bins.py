"""Pairs by their unknown words and by their length (CHARAGRAM, Tables 6 and 7; PARAGRAM-PHRASE, Table 5).

The models are those of the table of all systems, trained on the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gramvec_training.evaluation import ScoredModel, correlations, find_sets
from gramvec_training.experiments.base import Finding, Inputs, Outcome, Row
from gramvec_training.experiments.systems import learned_system
from gramvec_training.readers import treebank_tokens
from gramvec_training.runs import load_run, run_model

_COMPARED = ("PP", "CHARAGRAM")
_FEWEST = 30  # pairs of a bin: fewer say nothing
_FALLS = -0.3  # of a correlation over sets: -0.45 in the paper
_NOT_STS = "sick"  # whose scores the paper leaves out of these tables
_UNKNOWN: tuple[tuple[str, int, int, float, float], ...] = (
    ("0", 0, 0, 71.4, 73.8),
    ("1", 1, 1, 68.8, 78.8),
    ("2", 2, 2, 66.4, 72.8),
    ("1 or more", 1, 10**6, 68.6, 77.9),
    ("all", 0, 10**6, 71.0, 74.0),
)
_LENGTHS: tuple[tuple[str, int, int, float, float], ...] = (
    ("4 or less", 0, 4, 67.9, 72.9),
    ("5", 5, 5, 71.1, 71.9),
    ("6", 6, 6, 67.0, 69.7),
    ("7", 7, 7, 71.5, 74.0),
    ("8", 8, 8, 74.2, 74.5),
    ("9", 9, 9, 71.7, 72.7),
    ("10", 10, 10, 70.7, 74.2),
    ("11 to 15", 11, 15, 71.8, 73.7),
    ("16 to 20", 16, 20, 73.0, 75.1),
    ("21 or more", 21, 10**6, 74.5, 75.4),
)
_AVERAGES, _LSTMS = ("PP", "PP-proj"), ("LSTM, no output gate", "LSTM")
_Ints = npt.NDArray[np.int64]
_Numbered = Callable[[Sequence[str], Sequence[str], ScoredModel], _Ints]


def unknown_words(inputs: Inputs) -> Outcome:
    """Table 6: bins of the words, of both texts together, for which PARAGRAM-PHRASE has no row of their own."""

    def number(left: Sequence[str], right: Sequence[str], words: ScoredModel) -> _Ints:
        unknown = words.featuriser.vocabulary.unknown_row
        counts = np.zeros(len(left), np.int64)
        for side in (left, right):
            batch = words.featuriser(side)
            owners = np.repeat(np.arange(len(side)), batch.counts)
            counts += np.bincount(owners[batch.ids == unknown], minlength=len(side))
        return counts

    rows, scores = _table(inputs, "unknown words", _UNKNOWN, number)
    fallen = {
        system: found["0"] - found["1 or more"] for system, found in scores.items() if len(found) == len(_UNKNOWN)
    }
    seen = ", ".join(f"{system} loses {value:.1f}" for system, value in fallen.items())
    ahead = all(scores["CHARAGRAM"][name] > scores["PP"][name] for name in scores["PP"])
    return Outcome(
        rows,
        (
            Finding("unknown words cost PARAGRAM-PHRASE", fallen.get("PP", 0) > 0, seen or "too few unknown words"),
            Finding(
                "they cost CHARAGRAM less",
                len(fallen) == len(_COMPARED) and fallen["CHARAGRAM"] < fallen["PP"],
                seen or "too few unknown words",
            ),
            Finding("CHARAGRAM is ahead in every bin", ahead, "see the table"),
        ),
    )


def lengths(inputs: Inputs) -> Outcome:
    """CHARAGRAM's Table 7: bins of the longer text's words."""
    rows, scores = _table(inputs, "words", _LENGTHS, _longest)
    ahead = [name for name in scores["PP"] if scores["CHARAGRAM"][name] > scores["PP"][name]]
    claim = "CHARAGRAM is ahead of PARAGRAM-PHRASE at every length"
    seen = f"at {len(ahead)} of {len(scores['PP'])}"
    return Outcome(rows, (Finding(claim, len(ahead) == len(scores["PP"]), seen),))


def lengths_of_compositions(inputs: Inputs) -> Outcome:
    """PARAGRAM-PHRASE's Table 5: averages and LSTMs in the same bins, whose values our text of the paper has lost."""
    bins = [(name, least, most) for name, least, most, *_ in _LENGTHS]
    rows, scores = _table(inputs, "words", bins, _longest, (*_AVERAGES, *_LSTMS))
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


def shares(inputs: Inputs) -> Outcome:
    """CHARAGRAM's section 5.1: each set's share of words without a row, and its scores."""
    models = _models(inputs, _COMPARED)
    words = models["PP"][0].featuriser
    rows: list[Row] = []
    for one in find_sets(inputs.sets)[0]:
        batch = words([*one.left, *one.right])
        share = float(np.mean(batch.ids == words.vocabulary.unknown_row))
        row: dict[str, str | float | None] = {"set": f"{one.task}/{one.name}", "unknown, %": round(100 * share, 2)}
        for system, some in models.items():
            found = [correlations(model.similarity(one.left, one.right), one.scores)[0] for model in some]
            row[system] = round(100 * float(np.mean(found)), 1)
        rows.append(row)
    unknown, *scores = (np.array([row[column] or 0 for row in rows], float) for column in ("unknown, %", *_COMPARED))
    together = [correlations(unknown, score)[0] for score in scores]
    seen = ", ".join(f"{system} {value:+.2f}" for system, value in zip(_COMPARED, together, strict=True))
    claims = (
        (
            f"the more unknown words a set has, the lower PARAGRAM-PHRASE's score: below {_FALLS:g}",
            together[0] < _FALLS,
        ),
        ("of CHARAGRAM's it is not so", together[1] >= _FALLS),
    )
    return Outcome(tuple(rows), tuple(Finding(claim, bool(holds), seen) for claim, holds in claims))


def _longest(left: Sequence[str], right: Sequence[str], words: ScoredModel) -> _Ints:
    del words
    return np.array([max(len(treebank_tokens(one).split()) for one in pair) for pair in zip(left, right, strict=True)])


def _table(
    inputs: Inputs,
    column: str,
    bins: Sequence[tuple[str, int, int, *tuple[float, ...]]],
    number: _Numbered,
    compared: Sequence[str] = _COMPARED,
) -> tuple[tuple[Row, ...], Mapping[str, Mapping[str, float]]]:
    """Rows, and of each system the score, mean over seeds, of each bin with enough pairs."""
    sets = [one for one in find_sets(inputs.sets)[0] if one.task != _NOT_STS]
    left, right = ([text for one in sets for text in getattr(one, side)] for side in ("left", "right"))
    gold = np.concatenate([one.scores for one in sets])
    models = _models(inputs, compared)
    numbers = number(left, right, models["PP"][0])
    predicted = {system: [model.similarity(left, right) for model in some] for system, some in models.items()}
    scores: dict[str, dict[str, float]] = {system: {} for system in compared}
    rows: list[Row] = []
    for name, least, most, *paper in bins:
        within = (numbers >= least) & (numbers <= most)
        row: dict[str, str | float | None] = {column: name, "pairs": int(within.sum())}
        enough = within.sum() >= _FEWEST
        for system in compared:
            if enough:
                found = [correlations(values[within], gold[within])[0] for values in predicted[system]]
                scores[system][name] = 100 * float(np.mean(found))
            row[system] = round(scores[system][name], 1) if enough else None
        row |= {f"{system}, paper": value for system, value in zip(compared, paper, strict=False)}
        rows.append(row)
    return tuple(rows), scores


def _models(inputs: Inputs, systems: Sequence[str]) -> dict[str, list[ScoredModel]]:
    """Of each system the model of each seed."""
    return {
        system: [run_model(load_run(learned_system(inputs, system, seed)[0])) for seed in inputs.seeds]
        for system in systems
    }
