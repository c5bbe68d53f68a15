"""The loops over steps of RNNs and LSTMs, forwards and backwards, written out.

torch.nn.LSTM has no peepholes, and a loop over steps that autograd follows keeps a dozen tensors a step and walks them
one by one. Here each step is one matrix product and a few operations in place, and the gradients of the matrices are
one product over all steps at the end: `make bench PARTS=training` says what it buys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def lstm(
    values: Tensor, ids: Tensor, recurrent: Tensor, peepholes: Tensor, sizes: list[int], *, output_gate: bool
) -> Tensor:
    """The states float32[m, h] of an LSTM with peepholes (Gers et al., 2003), from a state and a cell of zeros.

    values: float32[v, 4h], what the input adds to the gates, bias included: input gate, forget gate, candidate, output
    gate; ids: int64[m], which of them each position has, in the order of Steps, and sizes those of its steps.
    recurrent: float32[h, 4h]; peepholes: float32[3, h] of input, forget and output gate, these two from the cell before
    and that one from the cell of the step. Without an output gate there are three blocks and two peepholes, and a state
    is tanh(cell).
    """
    states: Tensor = _Lstm.apply(values, ids, recurrent, peepholes, sizes, output_gate)  # type: ignore[no-untyped-call]
    return states


def rnn(values: Tensor, ids: Tensor, recurrent: Tensor, sizes: list[int], *, activation: str) -> Tensor:
    """The states float32[m, h] of h_t = f(values[ids_t] + h_(t-1) recurrent), h_0 = 0; f linear, tanh or relu.

    values: float32[v, h], the bias included; recurrent: float32[h, h]; ids and sizes as of `lstm`.
    """
    states: Tensor = _Rnn.apply(values, ids, recurrent, sizes, activation)  # type: ignore[no-untyped-call]
    return states


def _spans(sizes: list[int]) -> Iterator[tuple[int, int, int]]:
    """Of each step: where it begins and ends, and where the step before begins (-1 of the first)."""
    begin, before = 0, -1
    for size in sizes:
        yield begin, begin + size, before
        begin, before = begin + size, begin


def _of_step_before(sizes: list[int], states: Tensor) -> Tensor:
    """float32[m - sizes[0], h]: of each position but those of the first step, the state of its text a step before."""
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
