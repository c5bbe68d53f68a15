"""How much data PARAGRAM-PHRASE needs (Wieting et al., 2016b, appendix B.1): the first pairs, and permuted ones."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.errors import InputError
from gramvec_training.experiments.common import (
    Finding,
    Inputs,
    Outcome,
    Row,
    Words,
    common_vectors,
    learned,
    means,
    tasks_of,
)
from gramvec_training.files import write_atomically
from gramvec_training.readers import numbered_lines

_FILE = "mined_phrases.pairs.tsv.gz"  # the most frequent pairs first, as PPDB has the surest first
_PART, _SMALLEST = 4, 60  # of the data, until so few pairs are left
_TRAINING = {
    "batch": 100, "epochs": 10, "negatives": "max", "rate": 1e-2, "clip": 1.0, "l2": 1e-6, "l2_centre": "initial",
}  # fmt: skip
_BETTER = 1.0


def scores_by_amount(inputs: Inputs) -> Outcome:
    """The mean over tasks for the first 1 / 4^i of the pairs, in the file's order and permuted; ten epochs each."""
    if inputs.data is None:
        raise InputError("This experiment learns models: give --data, the folder of the training files.")
    lines = [line for _, line in numbered_lines(inputs.data / _FILE)]
    permuted = [lines[index] for index in np.random.default_rng(1).permutation(len(lines))]
    sizes = [len(lines)]
    while sizes[-1] // _PART >= _SMALLEST:
        sizes.append(sizes[-1] // _PART)
    start = Words(inputs.vectors, inputs.sets).score()
    plain = float(np.mean(list(start.values())))
    found: dict[str, list[float]] = {"file's order": [], "permuted": []}
    for name, ordered in zip(found, (lines, permuted), strict=True):
        for size in sizes[::-1]:
            # All pairs are the same in any order but that of the batches.
            data = _written(
                inputs.work / f"{'first' if ordered is lines else 'permuted'}-{size}.tsv.gz", ordered[:size]
            )
            found[name].append(_score(inputs, data))
    rows: list[Row] = [
        {"pairs": size, **{name: round(scores[index], 1) for name, scores in found.items()}}
        for index, size in enumerate(sizes[::-1])
    ]
    rows.append({"pairs": "none (avg)", **{name: round(plain, 1) for name in found}})
    orders = list(found.values())
    least = min(scores[0] for scores in orders)
    middle = [permuted >= ordered for ordered, permuted in list(zip(*orders, strict=True))[:-1]]
    return Outcome(
        tuple(rows),
        (
            Finding(
                "more pairs are always better",
                all(one < other for scores in orders for one, other in pairwise(scores)),
                "; ".join(", ".join(f"{score:.1f}" for score in scores) for scores in orders),
            ),
            Finding(
                f"some dozens of pairs help already, by {_BETTER:g} point",
                least >= plain + _BETTER,
                f"{least:.1f} with {sizes[-1]}, {plain:.1f} without",
            ),
            Finding(
                "permuted pairs are at least as good as the file's first, until all are taken",
                all(middle),
                f"at {sum(middle)} of {len(middle)} sizes",
            ),
        ),
    )


def _score(inputs: Inputs, data: Path) -> float:
    path, dimension = common_vectors(inputs)
    settings: dict[str, Any] = {
        "model": {
            "kind": "paragram-phrase", "dimension": dimension, "initial": 0.1, "vectors": str(path), "pooling": "mean",
            "activation": "linear", "bias": False,
        },
        "features": {"orders": [], "words": True, "unknown_words": "row"},
        "vocabulary": {"words_of_vectors": True},
        "training": _TRAINING,
        "data": [{"path": str(data), "layout": "pairs"}],
    }  # fmt: skip
    scores = [
        tasks_of(learned(inputs, f"amount-{data.name.split('.')[0]}", settings, seed)[1]) for seed in inputs.seeds
    ]
    mean = means(scores)
    tasks = [path.resolve().name for path in inputs.sets]
    return float(np.mean([mean[task] for task in tasks]))


def _written(path: Path, lines: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = gzip.compress(b"".join(line.rstrip(b"\n") + b"\n" for line in lines), mtime=0)
    write_atomically(path, lambda handle: handle.write(data))
    return path.resolve()
