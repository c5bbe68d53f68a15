"""Number and orders of n-grams in tagging (CHARAGRAM, Table 5)."""

from __future__ import annotations

import numpy as np

from gramvec_training.experiments.charagram.taggers import learned_tagger, sized
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row
from gramvec_training.runs import TABLE_5_ORDERS, TABLE_5_SIZES

_EPOCHS = 2
_PAPER = {
    100: (95.52, 96.09, 96.15, 96.13, 96.16),
    1_000: (96.72, 96.86, 96.97, 97.02, 97.03),
    50_000: (96.81, 97.00, 97.02, 97.04, 97.09),
}
_USUAL = TABLE_5_ORDERS.index((2, 3, 4))
_FEW = 1.5  # points: what 100 n-grams cost


def tagging_by_ngrams(inputs: Inputs) -> Outcome:
    """Accuracy on the held-out part after the last epoch, mean over seeds."""
    scores: dict[int, list[float]] = {}
    for size in TABLE_5_SIZES:
        scores[size] = []
        for orders in TABLE_5_ORDERS:
            name = f"ngrams-{size}-{orders[-1]}"
            some = [learned_tagger(inputs, name, sized(size, orders), _EPOCHS, seed) for seed in inputs.seeds]
            scores[size].append(_mean([one.curve[-1] for one in some]))
    named = ["2" if orders == (2,) else f"2-{orders[-1]}" for orders in TABLE_5_ORDERS]
    rows: tuple[Row, ...] = tuple(
        {"n-grams of each order": size}
        | {name: round(score, 2) for name, score in zip(named, some, strict=True)}
        | {f"{name}, paper": value for name, value in zip(named, _PAPER[size], strict=True)}
        for size, some in scores.items()
    )
    few, middle, many = (scores[size] for size in TABLE_5_SIZES)
    best = max(max(some) for some in scores.values())
    return Outcome(
        rows,
        (
            Finding("tagging: more n-grams are better, with every set of orders",
                    all(a < b < c for a, b, c in zip(few, middle, many, strict=True)), "see the table"),
            Finding(f"tagging: 100 n-grams of each of orders 2 to 4 cost at most {_FEW:g} points",
                    best - few[_USUAL] <= _FEW, f"{best:.2f}, {few[_USUAL]:.2f}"),
            Finding("tagging: orders to 6 are better than 2 alone at every size",
                    all(some[-1] > some[0] for some in scores.values()),
                    ", ".join(f"{some[-1] - some[0]:+.2f}" for some in scores.values())),
        ),
    )  # fmt: skip


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
