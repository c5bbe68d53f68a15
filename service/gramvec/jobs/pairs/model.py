"""The shipped pair models: of rows of two tables, and of rows of one table. `make pair-model` learns them."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from gramvec.jobs.pairs.figures import EQUAL, NAMES
from gramvec.jobs.pairs.trees import Trees, trees_of
from gramvec.text.arrays import Floats, Int64s

FOLDER = Path(__file__).parent
# The least probability of texts that are equal: however many there are, they are sure.
SURE = 0.99
# Probabilities and shares count as no nearer to 1, or 0.
MOST_LIKELY = 1 - 1e-4
# Of the pairs that `unique` goes by, so many are right in nine of ten tables; where not all pairs are, and not only a
# few of them, the least probability of one.
SURE_SHARE, SURE_PAIR, FEW_PAIRS = 0.9, 0.8, 5


class ExpectedShare(NamedTuple):
    """The share of pairs that is expected to be right, 0 to 1: in eight of ten tables it is from `low` to `high`."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = f"{self.low:.0%}", f"{self.high:.0%}"
        return high if low == high else f"{low.rstrip('%')} to {high}"


def facts_of(threshold: float, expected: ExpectedShare | None) -> dict[str, float]:
    """Return a threshold and the ends of the expected share by name, as frames of results have them."""
    ends = {} if expected is None else {"expected_low": expected.low, "expected_high": expected.high}
    return {"threshold": threshold, **ends}


class Promise(NamedTuple):
    """How far off the mean probability of the pairs that are written was, on tables that were not learned from.

    Attributes:
        starts: mean probabilities, from which on low and high are others, ascending from 0.
        low: of each, what is added to the log odds: one table in ten had less.
        high: likewise; one in ten had more.
    """

    starts: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def of(self, scores: Floats) -> ExpectedShare | None:
        """Return the share of pairs that is expected to be right by their probabilities; None of no pairs."""
        if not len(scores):
            return None
        return ExpectedShare(*self.range(float(scores.astype(np.float64).mean())))

    def sure_from(self, scores: Floats, threshold: float) -> float:
        """Return the lowest score of the pairs that are sure: of which SURE_SHARE is right in nine of ten tables.

        Args:
            scores: float32[p], probabilities of pairs of at least the threshold.
            threshold: returned where all of them are sure.
        """
        ranked = np.sort(scores.astype(np.float64))[::-1]
        least = self._least_mean(SURE_SHARE)
        means = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
        if not len(ranked) or means[-1] >= least:
            return threshold
        sure = ranked[means >= least]
        lowest = max(SURE_PAIR, float(sure[-1]) if len(sure) else 1.0)
        return lowest if int((ranked < lowest).sum()) > FEW_PAIRS else threshold

    def precise_from(self, scores: Floats, precision: float, numbers: Int64s | None = None) -> float | None:
        """Return the lowest score of pairs of which, in nine of ten tables, at least a share is right; None for none.

        Args:
            scores: float32[p], probabilities.
            precision: the share, 0 to 1.
            numbers: int64[p], how many pairs each stands for; None for one.
        """
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order].astype(np.float64)
        number = np.ones(len(ranked)) if numbers is None else numbers[order].astype(np.float64)
        means = np.cumsum(ranked * number) / np.maximum(np.cumsum(number), 1)
        # Pairs of one score are taken together.
        last = np.append(np.diff(ranked) != 0, True)[: len(ranked)]
        enough = np.flatnonzero(last & (means >= self._least_mean(precision)))
        return float(ranked[enough[-1]]) if len(enough) else None

    def _least_mean(self, precision: float) -> float:
        """Return the least mean probability that, as any higher one, promises a share in nine of ten tables.

        It is inf where none does.
        """
        least = ends = math.inf
        for start, low in zip(reversed(self.starts), reversed(self.low), strict=True):
            needed = 1 / (1 + math.exp(low) * (1 - precision) / precision)
            if max(start, needed) >= ends or needed > MOST_LIKELY:
                break
            least, ends = max(start, needed), start
            if needed > start:
                break
        return least

    def range(self, promised: float) -> tuple[float, float]:
        """Return the shares of right pairs that are to be expected where the mean probability is `promised`."""
        place = sum(promised >= start for start in self.starts) - 1
        odds = log_odds(promised)
        ends = (1 / (1 + math.exp(-(odds + added[place]))) for added in (self.low, self.high))
        low, high = ends
        return low, high


def log_odds(share: float) -> float:
    """Return the logarithm of share / (1 - share), of shares that are not too near to 0 and 1."""
    share = min(max(share, 1 - MOST_LIKELY), MOST_LIKELY)
    return math.log(share / (1 - share))


class PairModel(NamedTuple):
    """Boosted trees of the figures of pairs, and what their probabilities promise.

    Attributes:
        first: trees of what two rows have in common, and of their rivals. They say how clean the tables are.
        trees: trees of the same, and of that.
        promise: of the probabilities.
    """

    first: Trees
    trees: Trees
    promise: Promise

    def probabilities(self, figures: Floats) -> Floats:
        """Return the probability that the rows of each pair are the same thing, float32[p]. Equal texts have 0.99.

        Args:
            figures: float32[p, len(NAMES)]: of `pair_figures`, of `rival_figures`, of `table_figures`; NaN for what
                pairs that are given do not have.
        """
        found = self.trees.probabilities(figures).astype(np.float32)
        return np.where(figures[:, EQUAL] == 1, np.maximum(found, np.float32(SURE)), found).astype(np.float32)


def read_model(path: Path) -> PairModel:
    """Read a model that `make pair-model` wrote."""
    record = orjson.loads(path.read_bytes())
    if record["figures"] != list(NAMES):
        raise ValueError(f"{path.name}: was learned from other figures; run make pair-model")
    promise = Promise(*(tuple(record["promise"][name]) for name in Promise._fields))
    return PairModel(trees_of(record["first"]), trees_of(record["trees"]), promise)


@lru_cache(maxsize=1)
def two_table_model() -> PairModel:
    """Return the model of rows of two tables."""
    return read_model(FOLDER / "two_tables.json")


@lru_cache(maxsize=1)
def one_table_model() -> PairModel:
    """Return the model of rows of one table."""
    return read_model(FOLDER / "one_table.json")


def pair_model(*, same: bool) -> PairModel:
    """Return the model of rows of one table where both are the same, else that of two."""
    return one_table_model() if same else two_table_model()
