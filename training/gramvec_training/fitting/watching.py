"""What is looked at while a run goes on: scores for the log, and the best model so far, which is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gramvec_training.configuration import Every
from gramvec_training.encoders import Encoder


@dataclass(frozen=True)
class Log:
    """Scores that are written down: `score` gives values for JSON of the encoder as it is."""

    score: Callable[[Encoder], Any]
    every: Every


@dataclass(frozen=True)
class Selection:
    """Of the models after every so many steps, and after the last, the one with the highest `score` is kept.

    Of equal ones the first. A score that is not a number is below all others.
    """

    score: Callable[[Encoder], float]
    every: Every = "quarter"


def is_due(every: Every, done: int, steps: int, steps_per_epoch: int) -> bool:
    """Whether to look after `done` of so many steps: at every so many, and after the last.

    The quarters of an epoch are its first steps by which a quarter, two, three and all of it are done; an epoch of
    fewer than four steps has fewer.
    """
    if done == steps:
        return True
    if every == "quarter":
        return 4 * done // steps_per_epoch > 4 * (done - 1) // steps_per_epoch
    return done % every == 0
