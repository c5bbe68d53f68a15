"""How parameters are learned, whatever the loss: by which optimiser, how long, and what they are drawn to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gramvec_training.configuration.strict import Count, Penalty, Positive, Seed, Strict

Optimiser = Literal["adam", "adagrad", "sgd"]
Decay = Literal["linear", "none"]
Centre = Literal["zero", "initial"]
# So many steps, or the quarters of an epoch, as the papers have it.
Every = Count | Literal["quarter"]


class Schedule(Strict):
    """Either `steps` or `epochs`; `batch` counts examples.

    The L2 terms are 0.5 * l2 * ||theta - centre||^2, added to the batch's mean loss, as in the authors' code (the
    papers' formulas have no 0.5). They and the optimisers are lazy on the table: see gramvec_training.fitting. The
    centre "initial" is what a parameter was at the start: word vectors from a file, iRNN's identity, a finished model.
    """

    batch: Annotated[int, Field(ge=2)]
    optimiser: Optimiser = "adam"
    rate: Positive = 1e-3
    decay: Decay = "linear"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0  # of SGD: classical
    epsilon: Positive | None = None  # beside the root: 1e-8 of Adam, 1e-10 of AdaGrad
    epsilon_in_root: bool = False  # AdaGrad's: g / sqrt(sum of g^2 + epsilon), the papers' code with 1e-6
    clip: Positive | None = None  # the greatest length of each parameter's gradient
    steps: Count | None = None
    epochs: Count | None = None
    fixed_table: bool = False  # the rows stay as they begin, and the other parameters alone are learned
    l2: Penalty = 0.0  # on the table
    l2_centre: Centre = "zero"
    l2_composition: Penalty = 0.0  # on all other parameters of the encoder
    l2_composition_centre: Centre = "zero"
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_length(self) -> Schedule:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        return self

    @model_validator(mode="after")
    def _of_the_optimiser(self) -> Schedule:
        if self.momentum and self.optimiser != "sgd":
            raise ValueError(f'momentum belongs to optimiser "sgd", not "{self.optimiser}"')
        if self.epsilon is not None and self.optimiser == "sgd":
            raise ValueError('epsilon belongs to optimiser "adam" or "adagrad", not "sgd"')
        if self.epsilon_in_root and self.optimiser != "adagrad":
            raise ValueError(f'epsilon_in_root belongs to optimiser "adagrad", not "{self.optimiser}"')
        return self
