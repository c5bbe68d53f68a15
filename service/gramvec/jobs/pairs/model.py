"""The shipped pair models: of rows of two tables, and of rows of one table. `make pair-model` learns them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from gramvec.jobs.pairs.figures import EQUAL, NAMES
from gramvec.jobs.pairs.trees import Trees, trees_of
from gramvec.text.arrays import Floats

FOLDER = Path(__file__).parent
# The least probability of texts that are equal: however many there are, they are sure.
SURE = 0.99


class PairModel(NamedTuple):
    """Boosted trees of the figures of pairs."""

    trees: Trees

    def probabilities(self, figures: Floats, rivals: Floats) -> Floats:
        """Return the probability that the rows of each pair are the same thing, float32[p]. Equal texts have 0.99.

        Args:
            figures: float32[p, f], of `pair_figures`.
            rivals: float32[p, r], of `rival_figures`.
        """
        found = self.trees.probabilities(np.concatenate([figures, rivals], axis=1)).astype(np.float32)
        return np.where(figures[:, EQUAL] == 1, np.maximum(found, np.float32(SURE)), found).astype(np.float32)


def read_model(path: Path) -> PairModel:
    """Read a model that `make pair-model` wrote."""
    record = orjson.loads(path.read_bytes())
    if record["figures"] != list(NAMES):
        raise ValueError(f"{path.name}: was learned from other figures; run make pair-model")
    return PairModel(trees_of(record["trees"]))


@lru_cache(maxsize=1)
def two_table_model() -> PairModel:
    """Return the model of rows of two tables."""
    return read_model(FOLDER / "two_tables.json")


@lru_cache(maxsize=1)
def one_table_model() -> PairModel:
    """Return the model of rows of one table."""
    return read_model(FOLDER / "one_table.json")
