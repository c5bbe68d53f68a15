"""Lazy Adam, AdaGrad and SGD: a step reads and writes only the rows that its batch touches.

On a table of 100,000 n-grams a batch touches a few thousand, so a dense step would spend most of its time on rows
whose gradient is zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gramvec_training.sections import Center, Decay, Schedule

# Rows that are updated at a time: with 300 columns they stay in a core's cache through the dozen passes of Adam,
# which takes 9 ms for 5,700 rows instead of 13 to 17.
CHUNK_ROWS = 512


class LazyOptimizer(ABC):
    """Base class of lazy optimizers: rows as a leaf, L2, clipping, and updates that stay in the cache.

    `l2` adds l2 * (row - center) to the gradient of the touched rows, that is 0.5 * l2 * ||row - center||^2 to the
    loss: `center` "zero" (CHARAGRAM) or "initial", the values of the table when the optimizer was made
    (PARAGRAM-PHRASE, iRNN). The factor 0.5 is in the authors' code and not in the papers' formula; here l2 is the
    lambda of the code, half of the formula's. It too is lazy: an untouched row is not pulled.

    `clip` scales the gradient of the whole table, L2 included, so that its Euclidean length is at most `clip` (the
    norm constraint of PARAGRAM-PHRASE's code, one length for each tensor of parameters).

    Besides the table there are as many float32 of its size as the optimizer has `moments`, and one more with
    `center` "initial" and an l2 above 0.
    """

    moments: tuple[str, ...]

    def __init__(self, table: Tensor, *, l2: float = 0.0, center: Center = "zero", clip: float | None = None) -> None:
        self._table = table.detach()  # [rows, d], shared with the encoder
        self._moments = {name: _zeros_like(self._table) for name in self.moments}
        self._l2 = l2
        self._initial = _copy(self._table) if l2 and center == "initial" else None
        self._clip = clip
        self._steps = 0

    def leaf(self, rows: Tensor) -> Tensor:
        """Return a copy float32[u, d] of the distinct rows int64[u], with respect to which gradients are taken."""
        return self._table.index_select(0, rows).requires_grad_()

    @torch.no_grad()
    def step(self, rows: Tensor, leaf: Tensor, gradient: Tensor, rate: float) -> None:
        """Update the rows int64[u] from `leaf` and its gradient, float32[u, d] each; `leaf` is overwritten."""
        if self._l2:
            pulled = leaf if self._initial is None else leaf - self._initial.index_select(0, rows)
            gradient = gradient.add(pulled, alpha=self._l2)
        if self._clip is not None:
            gradient = gradient * (self._clip / gradient.norm().clamp(min=self._clip))
        self._steps += 1
        chunk = CHUNK_ROWS if gradient.device.type == "cpu" else max(len(rows), 1)
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            self._update(rows[part], leaf.detach()[part], gradient[part], rate)

    @abstractmethod
    def _update(self, rows: Tensor, values: Tensor, gradient: Tensor, rate: float) -> None: ...

    def state(self) -> dict[str, Tensor | int | None]:
        """Return moments [rows, d], the initial table where it is used, and the number of steps."""
        return {**self._moments, "initial": self._initial, "steps": self._steps}

    def restore(self, state: dict[str, Tensor | int | None]) -> None:
        """Load what `state` returned for a table of the same shape."""
        for name, moment in self._moments.items():
            value = state[name]
            assert isinstance(value, Tensor)
            moment.copy_(value)
        initial, steps = state["initial"], state["steps"]
        assert isinstance(steps, int)
        if self._initial is not None:
            assert isinstance(initial, Tensor)
            self._initial.copy_(initial)
        self._steps = steps


def _zeros_like(table: Tensor) -> Tensor:
    # numpy's zeros take memory only where they are written to, torch's everywhere: 2 of 12 s for four pairs and
    # 240,000 rows, of which a small file touches few.
    if table.device.type != "cpu":
        return torch.zeros_like(table)
    return torch.from_numpy(np.zeros(table.shape, torch.empty(0, dtype=table.dtype).numpy().dtype))


def _copy(table: Tensor) -> Tensor:
    # numpy's arrays lie on pages of 2 MB, torch's on 4 KB: of 288 MB a tenth of a second, not half.
    return torch.from_numpy(table.numpy().copy()) if table.device.type == "cpu" else table.clone()


class LazyAdam(LazyOptimizer):
    """Adam (Kingma and Ba, 2015) over the rows of one table, each row's moments updated when it is touched.

    A row's first update equals dense Adam's at that step, whichever step it is; later ones differ in that the moments
    do not decay, and the row does not coast, while it is untouched. The bias correction counts all steps.
    """

    moments = ("first", "second")
    _betas = (0.9, 0.999)

    def __init__(self, table: Tensor, *, epsilon: float = 1e-8, **shared: Any) -> None:
        super().__init__(table, **shared)
        self._epsilon = epsilon

    def _update(self, rows: Tensor, values: Tensor, gradient: Tensor, rate: float) -> None:
        beta1, beta2 = self._betas
        first = self._moments["first"].index_select(0, rows).lerp_(gradient, 1 - beta1)
        second = self._moments["second"].index_select(0, rows).mul_(beta2)
        second.addcmul_(gradient, gradient, value=1 - beta2)
        self._moments["first"].index_copy_(0, rows, first)
        self._moments["second"].index_copy_(0, rows, second)

        correction1 = 1 - beta1**self._steps
        correction2 = 1 - beta2**self._steps
        scale = second.sqrt_().div_(correction2**0.5).add_(self._epsilon)
        self._table.index_copy_(0, rows, values.addcdiv_(first, scale, value=-rate / correction1))


class LazyAdaGrad(LazyOptimizer):
    """AdaGrad (Duchi et al., 2011): row -= rate * g / (sqrt(sum of all g^2 so far) + epsilon), each entry by itself.

    in_root: row -= rate * g / sqrt(sum + epsilon), as Lasagne has it, with 1e-6: the code of PARAGRAM-PHRASE. An
    entry's first step is then rate * |g| / 1e-3 where |g| is far below 1e-3, and not the whole rate.
    Without L2 it is dense AdaGrad exactly, since AdaGrad does not change a row whose gradient is zero.
    """

    moments = ("squares",)

    def __init__(self, table: Tensor, *, epsilon: float = 1e-10, in_root: bool = False, **shared: Any) -> None:
        super().__init__(table, **shared)
        self._epsilon = epsilon
        self._in_root = in_root

    def _update(self, rows: Tensor, values: Tensor, gradient: Tensor, rate: float) -> None:
        squares = self._moments["squares"].index_select(0, rows).addcmul_(gradient, gradient)
        self._moments["squares"].index_copy_(0, rows, squares)
        scale = squares.add_(self._epsilon).sqrt_() if self._in_root else squares.sqrt_().add_(self._epsilon)
        self._table.index_copy_(0, rows, values.addcdiv_(gradient, scale, value=-rate))


class LazySgd(LazyOptimizer):
    """Stochastic gradient descent with classical momentum: v = momentum * v - rate * g, row += v (Polyak, 1964).

    A row's velocity neither fades nor moves it while it is untouched; without momentum it is dense SGD exactly.
    """

    moments = ("velocity",)

    def __init__(self, table: Tensor, *, momentum: float = 0.0, **shared: Any) -> None:
        super().__init__(table, **shared)
        self._momentum = momentum

    def _update(self, rows: Tensor, values: Tensor, gradient: Tensor, rate: float) -> None:
        velocity = self._moments["velocity"].index_select(0, rows).mul_(self._momentum).sub_(gradient, alpha=rate)
        self._moments["velocity"].index_copy_(0, rows, velocity)
        self._table.index_copy_(0, rows, values.add_(velocity))


def make_optimizer(table: Tensor, schedule: Schedule, *, l2: float, center: Center) -> LazyOptimizer:
    """Return the schedule's optimizer over one table float32[rows, d]."""
    shared: dict[str, Any] = {"l2": l2, "center": center, "clip": schedule.clip}
    if schedule.optimizer == "sgd":
        return LazySgd(table, momentum=schedule.momentum, **shared)
    if schedule.epsilon is not None:
        shared["epsilon"] = schedule.epsilon
    if schedule.optimizer == "adagrad":
        return LazyAdaGrad(table, in_root=schedule.epsilon_in_root, **shared)
    return LazyAdam(table, **shared)


def rate_at(step: int, steps: int, rate: float, decay: Decay) -> float:
    """Return the learning rate of a step counted from 0: constant, or falling linearly from `rate` to 0."""
    return rate * (1 - step / steps) if decay == "linear" else rate
