"""Plain recurrent networks: RNN and iRNN (Wieting et al., 2016b)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gramvec_training.configuration import IrnnSettings, RnnSettings
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.recurrence import rnn
from gramvec_training.encoders.sequences import LONGEST, Steps, projected

_HALF = 0.01  # of the uniform first values, the authors' library's


class Rnn(Encoder):
    """h_t = f(e_t W_x + h_(t-1) W_h + b), h_0 = 0, over the rows e_t of a text in their order; g(x) = h_n.

    iRNN is linear, W_x and W_h begin as the identity, and g(x) = h_n / n: at the start exactly the average. Its L2 term
    draws the matrices to the identity, which is their centre "initial". The biases begin at zero.
    """

    def __init__(
        self, table: Tensor, settings: RnnSettings | IrnnSettings, dimension: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.settings = settings
        self.dimension = dimension
        self.table = nn.Parameter(table)  # [rows, width]
        if isinstance(settings, IrnnSettings):
            self.activation: str = "linear"
            first, second = torch.eye(dimension), torch.eye(dimension)
        else:
            self.activation = settings.activation
            first = torch.empty(table.shape[1], dimension).uniform_(-_HALF, _HALF, generator=generator)
            second = torch.empty(dimension, dimension).uniform_(-_HALF, _HALF, generator=generator)
        self.inputs = nn.Parameter(first)  # [width, d]
        self.recurrent = nn.Parameter(second)  # [d, d]
        self.bias = nn.Parameter(torch.zeros(dimension))  # [d]

    @property
    def averages(self) -> bool:
        """Whether the last state is divided by the length."""
        return isinstance(self.settings, IrnnSettings)

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        steps = Steps.of(offsets)
        rows = self.table if table is None else table  # [rows, width]
        values, at = projected(rows, ids[steps.places], self.inputs, self.bias)
        last = steps.last_of(rnn(values, at, self.recurrent, steps.sizes, activation=self.activation))  # [n, d]
        return last / offsets.diff().clamp(min=1, max=LONGEST).unsqueeze(1) if self.averages else last
