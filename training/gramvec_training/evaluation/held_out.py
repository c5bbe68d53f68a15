"""How well a model finds the other side of each held-out pair among those of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramvec_training.data import HeldOut
from gramvec_training.types import Encode


def retrieval(pairs: HeldOut, unit: Encode) -> dict[str, float]:
    """How well a model finds each left text's right side among all right sides.

    unit: n texts to float32[n, d], each of length 1 or zero. Right sides of the same meaning do not compete.

    top1: percentage found first; mrr: mean of 1 / rank, times 100 (a tie counts against the model); cosine: mean of
    the pairs; margin: mean of that cosine less the highest one with another right side.
    """
    scores = unit(pairs.left) @ unit(pairs.right).T  # [n, n]
    own = scores.diagonal().copy()
    scores[pairs.meanings[:, None] == pairs.meanings] = -np.inf
    ranks = 1 + (scores >= own[:, None]).sum(axis=1)
    return {
        "top1": float(100 * (ranks == 1).mean()),
        "mrr": float(100 * (1 / ranks).mean()),
        "cosine": float(own.mean()),
        "margin": float((own - scores.max(axis=1)).mean()),
    }


def report(result: dict[str, Any]) -> str:
    """A text table of a record's `held_out`: `pairs`, and `retrieval` of the model `before` (or None) and `after`."""
    columns = {name: result[name] for name in ("before", "after") if result[name] is not None}
    rows = [
        ("right side found first, %", "top1", ".1f"),
        ("mean reciprocal rank x 100", "mrr", ".1f"),
        ("cosine of a pair", "cosine", ".3f"),
        ("margin to the best other", "margin", ".3f"),
    ]
    lines = [f"{result['pairs']:,} held-out pairs".ljust(26) + "".join(f"{name:>9}" for name in columns)]
    lines += [
        label.ljust(26) + "".join(f"{values[key]:9{form}}" for values in columns.values()) for label, key, form in rows
    ]
    return "\n".join(lines)
