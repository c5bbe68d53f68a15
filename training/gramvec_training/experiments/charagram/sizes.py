"""How many n-grams, and of which orders: CHARAGRAM on words (CHARAGRAM, Table 5)."""

from __future__ import annotations

import numpy as np

from gramvec.errors import InputError
from gramvec_training.experiments.charagram.convergence import WORDS
from gramvec_training.experiments.common import Finding, Inputs, Outcome, Row, learned
from gramvec_training.runs import TABLE_5_ORDERS, TABLE_5_SIZES

_TRAINING = {"batch": 50, "epochs": 2, "decay": "none", "negatives": "max"}
# Spearman on SL999.
_PAPER = {
    100: (6.2, 7.0, 7.7, 9.1, 8.8),
    1_000: (15.2, 33.0, 38.7, 43.2, 43.9),
    50_000: (14.4, 52.4, 67.8, 69.2, 69.5),
}
_LONG = (2, 3, 4, 5, 6)


def word_sizes(inputs: Inputs) -> Outcome:
    """Spearman on the first set of words, mean over seeds, for the k most frequent n-grams of each order."""
    if not inputs.word_sets:
        raise InputError("This experiment scores single words: give --word-sets, a folder or file of such pairs.")
    scores = {(size, orders): _score(inputs, size, orders) for size in TABLE_5_SIZES for orders in TABLE_5_ORDERS}
    rows: list[Row] = []
    for size in TABLE_5_SIZES:
        row: dict[str, str | float | None] = {"n-grams of each order": size}
        row |= {f"{_named(orders)}": round(scores[size, orders], 1) for orders in TABLE_5_ORDERS}
        row |= {f"{_named(one)}, paper": value for one, value in zip(TABLE_5_ORDERS, _PAPER[size], strict=True)}
        rows.append(row)
    small, middle, large = ([scores[size, orders] for orders in TABLE_5_ORDERS[1:]] for size in TABLE_5_SIZES)
    most = scores[TABLE_5_SIZES[-1], _LONG]
    usual = scores[TABLE_5_SIZES[-1], (2, 3, 4)]
    best = max(scores, key=lambda one: scores[one])
    rising = all(one < two < three for one, two, three in zip(small, middle, large, strict=True))
    return Outcome(
        tuple(rows),
        (
            Finding("more n-grams are better, with every set of orders but 2 alone", rising, "see the table"),
            Finding("with 50,000 orders to 6 are better than to 4", most > usual, f"{most:.1f}, {usual:.1f}"),
            Finding(
                "the best is 50,000 of orders 2 to 6",
                best == (TABLE_5_SIZES[-1], _LONG),
                f"best {best[0]:,} of {_named(best[1])}",
            ),
        ),
    )


def _named(orders: tuple[int, ...]) -> str:
    return "2" if orders == (2,) else f"2-{orders[-1]}"


def _score(inputs: Inputs, size: int, orders: tuple[int, ...]) -> float:
    settings = {
        "model": {"kind": "charagram-phrase", "dimension": 100, "activation": "linear"},
        "features": {"orders": orders},
        "vocabulary": {"max_ngrams_each": size},
        "training": _TRAINING,
        "data": WORDS,
        "dev": {"sets": [str(inputs.word_sets[0].resolve())]},
    }
    name = f"ngrams-{size}-{orders[-1]}"
    found = [learned(inputs, name, settings, seed)[1]["scores"]["tasks"] for seed in inputs.seeds]
    return float(np.mean([task["mean"]["spearman"] for tasks in found for task in tasks.values()]))
