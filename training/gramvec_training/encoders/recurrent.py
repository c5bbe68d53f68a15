"""RNN, iRNN and LSTM with peepholes; their loops over steps, forward and backward, are written out.

torch.nn.LSTM has no peepholes, and a loop over steps that autograd follows keeps a dozen tensors a step and walks them
one by one. Here each step is one matrix product and a few operations in place, and the gradients of the matrices are
one product over all steps at the end: `make bench PARTS=training` measures it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from onnx import TensorProto
from torch import Tensor, nn
from torch.autograd import Function

from gramvec.bundle.manifest import GRAPH, Graph, Precision
from gramvec.runtime.onnx_graph import Writer, write_rows
from gramvec_training.encoders.base import LONGEST, Arrays, Encoder, EncoderGraph, Steps, normal, project_rows
from gramvec_training.encoders.graphs import INPUTS, record_graph, write_lengths, write_steps
from gramvec_training.sections import ENCODERS, EncoderSettings
from gramvec_training.shared import Floats

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def lstm(
    values: Tensor, ids: Tensor, recurrent: Tensor, peepholes: Tensor, sizes: list[int], *, output_gate: bool
) -> Tensor:
    """Return the states float32[m, h] of an LSTM with peepholes (Gers et al., 2003), from zero state and cell.

    values: float32[v, 4h], what the input adds to the gates, bias included: input gate, forget gate, candidate, output
    gate; ids: int64[m], which of them each position has, in the order of Steps, and sizes those of its steps.
    recurrent: float32[h, 4h]; peepholes: float32[3, h] of input, forget and output gate, these two from the cell before
    and that one from the cell of the step. Without an output gate there are three blocks and two peepholes, and a state
    is tanh(cell).
    """
    states: Tensor = _Lstm.apply(values, ids, recurrent, peepholes, sizes, output_gate)  # type: ignore[no-untyped-call]
    return states


def rnn(values: Tensor, ids: Tensor, recurrent: Tensor, sizes: list[int], *, activation: str) -> Tensor:
    """Return the states float32[m, h] of h_t = f(values[ids_t] + h_(t-1) recurrent), h_0 = 0; f is linear, tanh or
    relu.

    values: float32[v, h], the bias included; recurrent: float32[h, h]; ids and sizes as of `lstm`.
    """
    states: Tensor = _Rnn.apply(values, ids, recurrent, sizes, activation)  # type: ignore[no-untyped-call]
    return states


def _spans(sizes: list[int]) -> Iterator[tuple[int, int, int]]:
    """Return for each step its start, its end, and the start of the previous step (-1 for the first)."""
    begin, before = 0, -1
    for size in sizes:
        yield begin, begin + size, before
        begin, before = begin + size, begin


def _of_step_before(sizes: list[int], states: Tensor) -> Tensor:
    """Return float32[m - sizes[0], h]: for each position after the first step, the text's previous state."""
    parts = [states[before : before + end - begin] for begin, end, before in _spans(sizes) if before >= 0]
    return torch.cat(parts) if parts else states[:0]


class _Rnn(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ids: Tensor, recurrent: Tensor, sizes: list[int], activation: str) -> Tensor:
        states = values.index_select(0, ids)  # [m, h]
        for begin, end, before in _spans(sizes):
            state = states[begin:end]
            if before >= 0:
                state.addmm_(states[before : before + end - begin], recurrent)
            if activation != "linear":
                _ = state.tanh_() if activation == "tanh" else state.relu_()
        ctx.save_for_backward(ids, recurrent, states)
        ctx.sizes, ctx.activation, ctx.rows = sizes, activation, len(values)
        return states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ids, recurrent, states = ctx.saved_tensors
        inner = gradient.clone()  # [m, h], of the sums before the activation
        back = recurrent.T
        for begin, end, before in reversed(list(_spans(ctx.sizes))):
            part = inner[begin:end]
            if ctx.activation == "tanh":
                _tanh_backward(part, states[begin:end], grad_input=part)
            elif ctx.activation == "relu":
                part.mul_(states[begin:end] > 0)
            if before >= 0:
                inner[before : before + end - begin].addmm_(part, back)
        of_values = inner.new_zeros(ctx.rows, inner.shape[1]).index_add_(0, ids, inner)
        first = ctx.sizes[0] if ctx.sizes else 0
        of_recurrent = _of_step_before(ctx.sizes, states).T @ inner[first:]
        return of_values, None, of_recurrent, None, None


class _Lstm(Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, ids: Tensor, recurrent: Tensor, peepholes: Tensor, sizes: list[int], output_gate: bool
    ) -> Tensor:
        h = recurrent.shape[0]
        gates = values.index_select(0, ids)  # [m, 4h], which become the activated gates
        cells, tanhs = gates.new_empty(len(gates), h), gates.new_empty(len(gates), h)
        states = torch.empty_like(tanhs) if output_gate else tanhs
        for begin, end, before in _spans(sizes):
            gate, cell = gates[begin:end], cells[begin:end]
            size = end - begin
            old_cell = cells[before : before + size]
            both = gate[:, : 2 * h]
            if before >= 0:
                gate.addmm_(states[before : before + size], recurrent)
                both.view(-1, 2, h).addcmul_(old_cell.unsqueeze(1), peepholes[:2])
            both.sigmoid_()
            candidate = gate[:, 2 * h : 3 * h].tanh_()
            torch.mul(gate[:, :h], candidate, out=cell)
            if before >= 0:
                cell.addcmul_(gate[:, h : 2 * h], old_cell)
            torch.tanh(cell, out=tanhs[begin:end])
            if output_gate:
                out = gate[:, 3 * h :].addcmul_(cell, peepholes[2]).sigmoid_()
                torch.mul(out, tanhs[begin:end], out=states[begin:end])
        ctx.save_for_backward(ids, recurrent, peepholes, gates, cells, tanhs, states)
        ctx.sizes, ctx.output_gate, ctx.rows = sizes, output_gate, len(values)
        return states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ids, recurrent, peepholes, gates, cells, tanhs, states = ctx.saved_tensors
        h, back = recurrent.shape[0], recurrent.T
        of_states = gradient.clone()  # [m, h]
        of_cells = torch.zeros_like(cells)  # [m, h]
        inner = torch.empty_like(gates)  # [m, 4h], of the sums before the activations
        for begin, end, before in reversed(list(_spans(ctx.sizes))):
            gate, part, of_state, of_cell = (
                gates[begin:end],
                inner[begin:end],
                of_states[begin:end],
                of_cells[begin:end],
            )
            tanh = tanhs[begin:end]
            if ctx.output_gate:
                out, of_out = gate[:, 3 * h :], part[:, 3 * h :]
                torch.mul(of_state, tanh, out=of_out)
                _sigmoid_backward(of_out, out, grad_input=of_out)
                of_cell.addcmul_(of_out, peepholes[2])
                of_state.mul_(out)
            of_cell.add_(_tanh_backward(of_state, tanh, grad_input=of_state))
            candidate, into = gate[:, 2 * h : 3 * h], gate[:, :h]
            torch.mul(of_cell, candidate, out=part[:, :h])
            torch.mul(of_cell, into, out=part[:, 2 * h : 3 * h])
            _tanh_backward(part[:, 2 * h : 3 * h], candidate, grad_input=part[:, 2 * h : 3 * h])
            if before < 0:
                part[:, h : 2 * h].zero_()
            else:
                torch.mul(of_cell, cells[before : before + end - begin], out=part[:, h : 2 * h])
            _sigmoid_backward(part[:, : 2 * h], gate[:, : 2 * h], grad_input=part[:, : 2 * h])
            if before >= 0:
                earlier = slice(before, before + end - begin)
                of_states[earlier].addmm_(part, back)
                of_earlier = of_cells[earlier]
                of_earlier.addcmul_(of_cell, gate[:, h : 2 * h])
                of_earlier.addcmul_(part[:, :h], peepholes[0]).addcmul_(part[:, h : 2 * h], peepholes[1])
        of_values = inner.new_zeros(ctx.rows, inner.shape[1]).index_add_(0, ids, inner)
        first = ctx.sizes[0] if ctx.sizes else 0
        of_recurrent = _of_step_before(ctx.sizes, states).T @ inner[first:]
        old_cells = _of_step_before(ctx.sizes, cells)
        of_peepholes = [(inner[first:, at * h : (at + 1) * h] * old_cells).sum(0) for at in (0, 1)]
        if ctx.output_gate:
            of_peepholes.append((inner[:, 3 * h :] * cells).sum(0))
        return of_values, None, of_recurrent, torch.stack(of_peepholes), None, None


class RnnSettings(EncoderSettings):
    """Plain recurrent network over words or characters; the vector is its last state."""

    kind: Literal["rnn"] = "rnn"
    reads_in_order: ClassVar[bool] = True
    activation: Literal["tanh", "linear", "relu"] = "tanh"


class IrnnSettings(EncoderSettings):
    """iRNN: linear, initialized at the identity, last state divided by the length; it starts as the average."""

    kind: Literal["irnn"] = "irnn"
    reads_in_order: ClassVar[bool] = True
    keeps_width: ClassVar[bool] = True


_HALF = 0.01  # of the uniform first values, the authors' library's


@ENCODERS.register(RnnSettings, IrnnSettings)
class Rnn(Encoder):
    """h_t = f(e_t W_x + h_(t-1) W_h + b), h_0 = 0, over the rows e_t of a text in their order; g(x) = h_n.

    iRNN is linear, W_x and W_h begin as the identity, and g(x) = h_n / n: at the start exactly the average. Its L2 term
    draws the matrices to the identity, which is their center "initial". The biases begin at zero.
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
        """Return whether the last state is divided by the length."""
        return isinstance(self.settings, IrnnSettings)

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """Return the vectors float32[n, dimension] of a batch."""
        steps = Steps.from_offsets(offsets)
        rows = self.table if table is None else table  # [rows, width]
        values, at = project_rows(rows, ids[steps.places], self.inputs, self.bias)
        last = steps.take_last(rnn(values, at, self.recurrent, steps.sizes, activation=self.activation))  # [n, d]
        return last / offsets.diff().clamp(min=1, max=LONGEST).unsqueeze(1) if self.averages else last

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of a network that reads the rows in their order."""
        return EncoderGraph(table, partial(_write_graph, encoder=self), sums=False, in_order=True)


class LstmSettings(EncoderSettings):
    """LSTM with peepholes (Gers et al., 2003) over words or characters, with or without an output gate."""

    kind: Literal["lstm"] = "lstm"
    reads_in_order: ClassVar[bool] = True
    output_gate: bool = True


@ENCODERS.register(LstmSettings)
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
        """Return the vectors float32[n, dimension] of a batch."""
        steps = Steps.from_offsets(offsets)
        rows = self.table if table is None else table  # [rows, width]
        values, at = project_rows(rows, ids[steps.places], self.inputs, self.bias)
        gated = self.settings.output_gate
        states = lstm(values, at, self.recurrent, self.peepholes, steps.sizes, output_gate=gated)  # [m, d]
        return steps.take_last(states)  # [n, d]

    def graph(self, table: Floats, arrays: Arrays) -> EncoderGraph:
        """Return the graph of a network that reads the rows in their order."""
        return EncoderGraph(table, partial(_write_graph, encoder=self), sums=False, in_order=True)


_OPEN = 50.0  # the bias of an output gate that is not there: sigmoid(50) is 1 in float32


def _write_graph(folder: Path, encoder: Rnn | Lstm, *, table: Floats, precision: Precision) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; return the manifest's record of the graph.

        places  = starts + step where a text is long enough, else behind the end     int64[steps, n + 1]
        rows    = table[(ids, 0)[places]]                                            float32[steps, n + 1, width]
        vectors = the last states of LSTM or RNN, for as many steps as each text has

    A text of no rows goes along (the + 1): of a single text onnxruntime's RNN takes the product of a vector and a
    matrix, which adds in another order than that of two matrices, and a vector must not depend on its batch.

    precision: of the table in the file; everything else is float32. int8 has one float32 scale a row.
    """
    w, d = Writer(), encoder.dimension
    write_lengths(w)
    w.constant("not_a_text", [0])
    w.node("Concat", ["lengths", "not_a_text"], "lengths_and_none", axis=0)  # [n + 1]
    w.node("Concat", ["starts", "not_a_text"], "starts_and_none", axis=0)
    write_steps(w, "lengths_and_none", minimum=1)
    w.node("Unsqueeze", ["steps", "minus_one"], "steps_down")  # [steps, 1]
    w.node("Less", ["steps_down", "lengths_and_none"], "inside")  # [steps, n + 1]
    w.node("Add", ["steps_down", "starts_and_none"], "places")
    w.node("Where", ["inside", "places", "row_count"], "places_or_end")
    w.constant("some_row", [0], np.int32)
    w.node("Concat", ["ids", "some_row"], "ids_and_one", axis=0)  # what stands behind the end is never looked at
    w.node("Gather", ["ids_and_one", "places_or_end"], "ids_in_step")
    write_rows(w, "ids_in_step", precision, table)
    w.node("Cast", ["lengths_and_none"], "lengths_narrow", to=TensorProto.INT32)

    arrays = encoder.arrays()
    if isinstance(encoder, Lstm):
        names = _lstm_weights(w, arrays, output_gate=encoder.settings.output_gate)
        w.node("LSTM", ["rows", *names, "lengths_narrow", "", "", "peepholes"], "last", "states", hidden_size=d)
        activation = "tanh"
    else:
        names = _rnn_weights(w, arrays)
        activation = encoder.activation
        operator = {"linear": "Affine", "tanh": "Tanh", "relu": "Relu"}[activation]
        scale = {"activation_alpha": [1.0], "activation_beta": [0.0]} if operator == "Affine" else {}
        w.node(
            "RNN", ["rows", *names, "lengths_narrow"], "last", "states", hidden_size=d, activations=[operator], **scale
        )
    w.node("Squeeze", ["last", "zero"], "last_flat")  # [n + 1, d]
    averages = isinstance(encoder, Rnn) and encoder.averages
    last = w.node("Slice", ["last_flat", "zero", "minus_one"], "last_of_texts" if averages else "vectors")
    if averages:
        w.constant("one", [1])
        w.node("Max", ["lengths", "one"], "lengths_or_one")
        w.node("Cast", ["lengths_or_one"], "lengths_float", to=TensorProto.FLOAT)
        w.node("Unsqueeze", ["lengths_float", "minus_one"], "divisors")
        w.node("Div", [last, "divisors"], "vectors")
    w.save(folder / GRAPH, INPUTS, {"vectors": d})
    return record_graph(precision, "last", activation)


def _lstm_weights(w: Writer, arrays: Arrays, *, output_gate: bool) -> tuple[str, str, str]:
    """Add W, R, B and the peepholes in the operator's order: input gate, output gate, forget gate, candidate."""
    d = arrays["recurrent"].shape[0]

    def in_order(blocks: Floats, absent: float) -> Floats:
        gates = np.split(blocks, blocks.shape[-1] // d, axis=-1)
        gate = gates[3] if output_gate else np.full_like(gates[0], absent)
        return np.concatenate([gates[0], gate, gates[1], gates[2]], axis=-1)

    peepholes = arrays["peepholes"]
    into_output = peepholes[2] if output_gate else np.zeros(d, np.float32)
    w.weight("inputs", in_order(arrays["inputs"], 0).T[np.newaxis])
    w.weight("recurrent", in_order(arrays["recurrent"], 0).T[np.newaxis])
    w.weight("bias", np.concatenate([in_order(arrays["bias"], _OPEN), np.zeros(4 * d, np.float32)])[np.newaxis])
    w.weight("peepholes", np.concatenate([peepholes[0], into_output, peepholes[1]])[np.newaxis])
    return "inputs", "recurrent", "bias"


def _rnn_weights(w: Writer, arrays: Arrays) -> tuple[str, str, str]:
    w.weight("inputs", arrays["inputs"].T[np.newaxis])
    w.weight("recurrent", arrays["recurrent"].T[np.newaxis])
    w.weight("bias", np.concatenate([arrays["bias"], np.zeros_like(arrays["bias"])])[np.newaxis])
    return "inputs", "recurrent", "bias"
