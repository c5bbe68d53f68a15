"""One step: the rows of a batch as a small leaf, the loss, and the lazy and dense updates."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gramvec_training.encoders import Encoder
from gramvec_training.fitting.optimisers import OPTIMISERS, LazyOptimiser, rate_at
from gramvec_training.objectives import Examples, Objective, moved


class Trainer:
    """An encoder that learns an objective. The step number alone decides the batch, the draws and the rate."""

    def __init__(self, encoder: Encoder, objective: Objective, device: torch.device) -> None:
        self.encoder = encoder
        self.objective = objective
        self.device = device
        schedule = objective.schedule
        lazy = OPTIMISERS[objective.optimiser]
        self._table = lazy(encoder.table, l2=schedule.l2, centre=schedule.l2_centre, clip=objective.clip)
        self._dense: dict[str, nn.Parameter] = {**encoder.dense(), **objective.parameters()}
        # A dense parameter is one row that every step touches: torch's own Adam takes two seconds to import.
        self._of_dense: dict[str, LazyOptimiser] = {
            name: lazy(parameter.view(1, -1), l2=schedule.l2_composition, clip=objective.clip)
            for name, parameter in self._dense.items()
        }
        self._only_row = torch.zeros(1, dtype=torch.int64, device=device)

    def take(self, examples: Examples) -> torch.Tensor:
        """Learn from what `Objective.examples_at` gave; gives the loss, on the device and without a gradient."""
        objective, batch = self.objective, examples.batch
        rows, ids, offsets = (moved(one, self.device) for one in (batch.rows, batch.ids, batch.offsets))

        leaf = self._table.leaf(rows)  # [u, width]
        loss = objective.loss(self.encoder(ids, offsets, leaf), examples)
        gradients = torch.autograd.grad(loss, [leaf, *self._dense.values()])

        schedule = objective.schedule
        rate = rate_at(examples.step, objective.steps, schedule.rate, schedule.decay)
        self._table.step(rows, leaf, gradients[0], rate)
        for optimiser, gradient in zip(self._of_dense.values(), gradients[1:], strict=True):
            optimiser.step(self._only_row, optimiser.leaf(self._only_row), gradient.reshape(1, -1), rate)
        return loss.detach()

    def state(self) -> dict[str, Any]:
        """Parameters and optimisers: with the number of steps done, all that the following steps depend on."""
        return {
            "table": self.encoder.table.detach(),
            "dense": {name: parameter.detach() for name, parameter in self._dense.items()},
            "optimisers": {"table": self._table.state()}
            | {name: optimiser.state() for name, optimiser in self._of_dense.items()},
            "objective": self.objective.state(),
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self.encoder.table.copy_(state["table"])
        self._table.restore(state["optimisers"]["table"])
        for name, parameter in self._dense.items():
            parameter.copy_(state["dense"][name])
            self._of_dense[name].restore(state["optimisers"][name])
        self.objective.restore(state["objective"])
