"""The LSTM of PARAGRAM-PHRASE over words and of CHARAGRAM's comparison over characters, charLSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gramvec_training.configuration import LstmSettings
from gramvec_training.encoders.base import Encoder, normal
from gramvec_training.encoders.recurrence import lstm
from gramvec_training.encoders.sequences import Steps, projected


class Lstm(Encoder):
    """An LSTM with peepholes (Gers et al., 2003) over the rows e_t of a text in their order; g(x) = h_n.

    i_t = sigmoid(e_t W_xi + h_(t-1) W_hi + p_i c_(t-1) + b_i), f_t likewise,
    c_t = f_t c_(t-1) + i_t tanh(e_t W_xc + h_(t-1) W_hc + b_c),
    o_t = sigmoid(e_t W_xo + h_(t-1) W_ho + p_o c_t + b_o), h_t = o_t tanh(c_t); without output gate h_t = tanh(c_t).
    (Wieting et al., 2016b, section 3.) Matrices and peepholes begin normal with standard deviation 0.1, the biases at
    zero, the forget gate's too; the first state and cell are zeros. A text without rows is its first state.
    """

    def __init__(self, table: Tensor, settings: LstmSettings, dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.dimension = dimension
        blocks = 4 if settings.output_gate else 3  # input gate, forget gate, candidate, output gate
        self.table = nn.Parameter(table)  # [rows, width]
        self.inputs = nn.Parameter(normal(table.shape[1], blocks * dimension, generator=generator))  # [width, 4d]
        self.recurrent = nn.Parameter(normal(dimension, blocks * dimension, generator=generator))  # [d, 4d]
        self.peepholes = nn.Parameter(normal(blocks - 1, dimension, generator=generator))  # [3, d]
        self.bias = nn.Parameter(torch.zeros(blocks * dimension))  # [4d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        steps = Steps.of(offsets)
        rows = self.table if table is None else table  # [rows, width]
        values, at = projected(rows, ids[steps.places], self.inputs, self.bias)
        gated = self.settings.output_gate
        states = lstm(values, at, self.recurrent, self.peepholes, steps.sizes, output_gate=gated)  # [m, d]
        return steps.last_of(states)  # [n, d]
