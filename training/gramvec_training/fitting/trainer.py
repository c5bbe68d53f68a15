"""Training step on a device: forward, backward, and the lazy and dense optimizers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gramvec.errors import DeviceError, InputError
from gramvec_training.encoders.base import Encoder
from gramvec_training.fitting.optimizers import LazyOptimizer, make_optimizer, rate_at
from gramvec_training.objectives.base import Examples, Objective, move


def choose_device(name: str) -> torch.device:
    """Return the torch device; `auto` is CUDA where torch has it, else the CPU.

    Raises:
        DeviceError: `cuda` is asked for and unavailable.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise DeviceError(
            f"torch {torch.__version__} finds no CUDA device here; choose --device cpu or install a CUDA build"
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def settle(device: torch.device, threads: int) -> None:
    """Set the number of CPU threads and, on CUDA, deterministic operations."""
    torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)


class Trainer:
    """An encoder that learns an objective."""

    def __init__(self, encoder: Encoder, objective: Objective, device: torch.device) -> None:
        self.encoder = encoder
        self.objective = objective
        self.device = device
        schedule = objective.schedule
        self._table: LazyOptimizer | None = None
        if not schedule.fixed_table:
            self._table = make_optimizer(encoder.table, schedule, l2=schedule.l2, center=schedule.l2_center)
        own = objective.parameters()
        self._dense: dict[str, nn.Parameter] = {**encoder.dense(), **own}
        if schedule.fixed_table and not self._dense:
            raise InputError("training.fixed_table leaves nothing to learn: the encoder has no other parameters")
        # A dense parameter is one row that every step touches: torch's own Adam takes two seconds to import.
        self._of_dense: dict[str, LazyOptimizer] = {
            name: make_optimizer(
                parameter.view(1, -1),
                schedule,
                l2=objective.l2_own if name in own else schedule.l2_composition,
                center="zero" if name in own else schedule.l2_composition_center,
            )
            for name, parameter in self._dense.items()
        }
        self._only_row = torch.zeros(1, dtype=torch.int64, device=device)

    def take(self, examples: Examples) -> Tensor:
        """Learn from the examples of a step; return the loss, on the device and without a gradient."""
        objective, batch, schedule = self.objective, examples.batch, self.objective.schedule
        rows, ids, offsets = (move(array, self.device) for array in (batch.rows, batch.ids, batch.offsets))

        table = self._table
        leaf = table.leaf(rows) if table else self.encoder.table.detach().index_select(0, rows)  # [u, width]
        loss = objective.loss(self._vectors(ids, offsets, leaf, examples.step), examples)
        learned = [*([] if self._table is None else [leaf]), *self._dense.values()]
        gradients = list(torch.autograd.grad(loss, learned))

        rate = rate_at(examples.step, objective.steps, schedule.rate, schedule.decay)
        if self._table is not None:
            self._table.step(rows, leaf, gradients.pop(0), rate)
        for optimizer, gradient in zip(self._of_dense.values(), gradients, strict=True):
            optimizer.step(self._only_row, optimizer.leaf(self._only_row), gradient.reshape(1, -1), rate)
        return loss.detach()

    def _vectors(self, ids: Tensor, offsets: Tensor, leaf: Tensor, step: int) -> Tensor:
        if not self.encoder.draws:
            return self.encoder(ids, offsets, leaf)  # type: ignore[no-any-return]
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.objective.schedule.seed * 2**31 + step)
            self.encoder.train()
            vectors: Tensor = self.encoder(ids, offsets, leaf)
            self.encoder.eval()
            return vectors

    def values(self) -> dict[str, Tensor]:
        """Return all learned parameters by name, not copied."""
        return {"table": self.encoder.table.detach()} | {
            name: parameter.detach() for name, parameter in self._dense.items()
        }

    @torch.no_grad()
    def take_values(self, values: dict[str, Tensor]) -> None:
        """Load what `values` returned."""
        self.encoder.table.copy_(values["table"])
        for name, parameter in self._dense.items():
            parameter.copy_(values[name])

    def state(self) -> dict[str, Any]:
        """Return parameters and optimizer states, on which later steps depend besides the step number."""
        return {
            "values": self.values(),
            "table": None if self._table is None else self._table.state(),
            "dense": {name: optimizer.state() for name, optimizer in self._of_dense.items()},
            "objective": self.objective.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Load what `state` returned."""
        self.take_values(state["values"])
        if self._table is not None:
            self._table.restore(state["table"])
        for name, optimizer in self._of_dense.items():
            optimizer.restore(state["dense"][name])
        self.objective.restore(state["objective"])
