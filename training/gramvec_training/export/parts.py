"""The graphs of parts of an encoder, which the service calls again and again or above sums of its own.

model.cpu.onnx and model.cuda.onnx, of the weights that lie in model.onnx.data. Of a recurrent encoder they are one step
over the texts of a call, of which v rows are different:

    values    = table[ids] W + b                                       float32[v, d], of each gate
    state     = f(values[places] + state R), with the cells of an LSTM          float32[n, d]

A row's product is made once for all texts that have it at this step. On CUDA a place of -1 leaves a text as it is. Of
layers they are what is above the sum or mean of a text's rows:

    vectors   = f(h(pooled) W + b), and so on                                   float32[n, d]

A device adds the terms of a product in an order that follows the batch. So for CUDA a product is made of whole numbers
that float64 holds exactly, whatever the order: x in steps of a 2^23rd of the most it can be (or of the largest of its
row), and a matrix in steps of which no column has more than 2^29, so that no sum exceeds 2^53.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from gramvec.bundle.bundle import CPU_GRAPH, CUDA_GRAPH, GRAPH, Precision
from gramvec_training.configuration import LayerActivation
from gramvec_training.encoders import Lstm, Rnn
from gramvec_training.export.graph import ACTIVATIONS, Layers
from gramvec_training.export.writer import Writer, stored_in, write_rows

__all__ = ["ACTIVATIONS", "BOUNDED", "write_layer_graphs", "write_product", "write_step_graphs"]

# Steps of the left side, and of a column of the right side: 2^52 in all, and a bit to spare.
STEPS, STEPS_OF_COLUMN = 2.0**23, 2.0**29
# Activations of which nothing exceeds 1.
BOUNDED = ("tanh", "sigmoid")
SPARE = 1.02  # rows in fewer bits may be a little larger than they were
LEAST = 1e-30  # of a row of zeros, whose largest number cannot be a step


def write_product(
    w: Writer, x: str, matrix: str, output: str, *,
    matrix_of: NDArray[Any], bound: float | None, exact: bool, transposed: bool = False,
) -> str:  # fmt: skip
    """x float32[n, k] times a matrix float32[k, d], or float32[d, k] `transposed`, whose numbers are `matrix_of`.

    exact: so that the result does not depend on the order of the additions. bound: what |x| never exceeds, or None.
    """
    if not exact:
        return _multiplied(w, x, matrix, output, transposed=transposed)
    sums = np.abs(matrix_of.astype(np.float64)).sum(axis=1 if transposed else 0)
    step = float(sums.max(initial=0)) / STEPS_OF_COLUMN or 1.0
    w.constant(f"step_{output}", step, np.float64)
    w.node("Cast", [matrix], f"wide_{output}", to=TensorProto.DOUBLE)
    w.node("Div", [f"wide_{output}", f"step_{output}"], f"about_{output}")
    w.node("Round", [f"about_{output}"], f"whole_{output}")  # computed once, when the graph is opened
    steps, unit = _in_steps(w, x, bound)
    _multiplied(w, steps, f"whole_{output}", f"sums_{output}", transposed=transposed)
    w.node("Mul", [f"sums_{output}", unit], f"by_unit_{output}")
    w.node("Mul", [f"by_unit_{output}", f"step_{output}"], f"by_step_{output}")
    return w.node("Cast", [f"by_step_{output}"], output, to=TensorProto.FLOAT)


def _multiplied(w: Writer, x: str, matrix: str, output: str, *, transposed: bool) -> str:
    if transposed:
        return w.node("Gemm", [x, matrix], output, transB=1)
    return w.node("MatMul", [x, matrix], output)


def _in_steps(w: Writer, x: str, bound: float | None) -> tuple[str, str]:
    """x as whole numbers of steps, float64[n, k], and the step: a number, or one a row."""
    steps, unit = f"steps_of_{x}", f"unit_of_{x}"
    if any(node.name == steps for node in w.nodes):
        return steps, unit
    if bound is not None:
        w.constant(unit, SPARE * bound / STEPS or 1.0, np.float64)
    else:
        w.constant(f"one_of_{x}", [1])
        w.constant(f"least_{x}", LEAST, np.float32)
        w.constant(f"in_steps_{x}", STEPS, np.float64)
        w.node("Abs", [x], f"sizes_of_{x}")
        # [n, 1]; ReduceMax would want cuDNN.
        w.node("TopK", [f"sizes_of_{x}", f"one_of_{x}"], f"where_of_{x}", f"largest_of_{x}", axis=1)
        w.node("Max", [f"largest_of_{x}", f"least_{x}"], f"some_of_{x}")
        w.node("Cast", [f"some_of_{x}"], f"wide_most_{x}", to=TensorProto.DOUBLE)
        w.node("Div", [f"wide_most_{x}", f"in_steps_{x}"], unit)
    w.node("Cast", [x], f"wide_of_{x}", to=TensorProto.DOUBLE)
    w.node("Div", [f"wide_of_{x}", unit], f"about_of_{x}")
    return w.node("Round", [f"about_of_{x}"], steps), unit


def write_layer_graphs(folder: Path, activation: LayerActivation, layers: Layers, *, bound: float | None) -> None:
    """Write what is above the pooled rows; `activation` is theirs. bound: what no pooled number exceeds, or None."""
    for name in (CPU_GRAPH, CUDA_GRAPH):
        w = Writer()
        last = w.node(ACTIVATIONS[activation], ["pooled"], "activated")
        most = 1.0 if activation in BOUNDED else bound if activation == "linear" else None
        for index, (matrix, bias, f) in enumerate(layers, start=1):
            w.constant(f"matrix_{index}", matrix, np.float32)
            w.constant(f"bias_{index}", bias, np.float32)
            write_product(
                w, last, f"matrix_{index}", f"product_{index}", matrix_of=matrix, bound=most, exact=name == CUDA_GRAPH
            )
            w.node("Add", [f"product_{index}", f"bias_{index}"], f"layer_{index}")
            output = "vectors" if index == len(layers) else f"activated_{index}"
            last = w.node(ACTIVATIONS[f], [f"layer_{index}"], output)
            most = 1.0 if f in BOUNDED else None
        pooled = {"pooled": (TensorProto.FLOAT, ["texts", layers[0][0].shape[0]])}
        w.save(folder / name, pooled, {"vectors": layers[-1][0].shape[1]})


def write_step_graphs(folder: Path, encoder: Rnn | Lstm, precision: Precision) -> None:
    """Write one step of a recurrent encoder, of the weights of the model.onnx that was written into the folder."""
    for name in (CPU_GRAPH, CUDA_GRAPH):
        _Step(folder, encoder, precision, exact=name == CUDA_GRAPH).write(folder / name)


class _Step:
    """ids int32[v], places int64[n], state and cell float32[n, d] -> the next ones. `exact` is of CUDA's."""

    def __init__(self, folder: Path, encoder: Rnn | Lstm, precision: Precision, *, exact: bool) -> None:
        self._encoder, self._precision, self._exact = encoder, precision, exact
        self._arrays = encoder.arrays()
        self._w = Writer(stored_in(folder / GRAPH))
        self._matrices = {
            name: numpy_helper.to_array(self._w.stored[name], str(folder))[0] for name in ("inputs", "recurrent")
        }  # [4d, width] and [4d, d] in the operators' order
        self._d = encoder.dimension

    def write(self, path: Path) -> None:
        w, d, kinds = self._w, self._d, TensorProto
        w.constant("minus_one", [-1])
        places = "places"
        if self._exact:
            w.constant("first", [0])
            w.node("Less", ["places", "first"], "left")  # texts that have ended
            w.node("Unsqueeze", ["left", "minus_one"], "left_down")  # [n, 1]
            places = w.node("Max", ["places", "first"], "places_or_first")
        write_rows(w, "ids", self._precision)  # [v, width]
        inputs: dict[str, tuple[int, Any]] = {
            "ids": (kinds.INT32, ["rows"]), "places": (kinds.INT64, ["texts"]), "state": (kinds.FLOAT, ["texts", d])
        }  # fmt: skip
        outputs = {"vectors": d}
        if isinstance(self._encoder, Lstm):
            inputs["cell"], outputs["cells"] = (kinds.FLOAT, ["texts", d]), d
            self._lstm(places)
        elif self._encoder.averages:
            inputs["counts"], outputs["states"] = (kinds.INT64, ["texts"]), d
            self._rnn(places, "states")
            w.constant("one", [1])
            w.node("Max", ["counts", "one"], "counts_or_one")
            w.node("Cast", ["counts_or_one"], "counts_float", to=kinds.FLOAT)
            w.node("Unsqueeze", ["counts_float", "minus_one"], "divisors")
            w.node("Div", ["states", "divisors"], "vectors")
        else:
            self._rnn(places, "vectors")
        w.save(path, inputs, outputs)

    def _rnn(self, places: str, output: str) -> None:
        assert isinstance(self._encoder, Rnn)
        f = self._encoder.activation
        summed = self._gate("only", 0, self._arrays["bias"], places, bound=1.0 if f in BOUNDED else None)
        operators: dict[str, LayerActivation] = {"linear": "linear", "tanh": "tanh", "relu": "relu"}
        self._kept(self._w.node(ACTIVATIONS[operators[f]], [summed], "activated"), "state", output)

    def _lstm(self, places: str) -> None:
        """The equations of encoders/lstm.py, whose states and outputs never exceed 1."""
        w, arrays, d = self._w, self._arrays, self._d
        output_gate = isinstance(self._encoder, Lstm) and self._encoder.settings.output_gate
        biases = np.split(arrays["bias"], len(arrays["bias"]) // d)  # input, forget, candidate, output
        for index, name in enumerate(("into", "from", "out")[: len(arrays["peepholes"])]):
            w.constant(f"peephole_{name}", arrays["peepholes"][index], np.float32)
        # The operator's blocks: input gate, output gate, forget gate, candidate.
        gates = {"into": (0, biases[0]), "from": (2, biases[1]), "new": (3, biases[2])}
        gates |= {"out": (1, biases[3])} if output_gate else {}
        sums = {name: self._gate(name, block, bias, places, bound=1.0) for name, (block, bias) in gates.items()}
        for name in ("into", "from"):
            w.node("Mul", ["cell", f"peephole_{name}"], f"seen_{name}")
            w.node("Add", [sums[name], f"seen_{name}"], f"all_{name}")
            w.node("Sigmoid", [f"all_{name}"], f"gate_{name}")
        w.node("Tanh", [sums["new"]], "candidate")
        w.node("Mul", ["gate_into", "candidate"], "added")
        w.node("Mul", ["gate_from", "cell"], "kept")
        cell = w.node("Add", ["kept", "added"], "cell_after")
        state = w.node("Tanh", [cell], "cell_tanh")
        if output_gate:
            w.node("Mul", [cell, "peephole_out"], "seen_out")
            w.node("Add", [sums["out"], "seen_out"], "all_out")
            w.node("Sigmoid", ["all_out"], "gate_out")
            state = w.node("Mul", ["gate_out", state], "state_after")
        self._kept(cell, "cell", "cells")
        self._kept(state, "state", "vectors")

    def _gate(self, name: str, block: int, bias: Any, places: str, *, bound: float | None) -> str:
        """values[places] + state R of one block of the stored matrices, float32[n, d]."""
        w, d = self._w, self._d
        most = float(np.abs(self._arrays["table"]).max(initial=0)) or 1.0
        for side, x, limit in (("inputs", "rows", most), ("recurrent", "state", bound)):
            matrix = self._matrices[side][block * d : (block + 1) * d]
            part = w.part(f"{side}_{name}", side, block * d * matrix.shape[1], matrix.shape)
            write_product(
                w, x, part, f"product_{side}_{name}", matrix_of=matrix, bound=limit, exact=self._exact, transposed=True
            )
        w.constant(f"bias_{name}", bias, np.float32)
        w.node("Add", [f"product_inputs_{name}", f"bias_{name}"], f"values_{name}")  # [v, d]
        w.node("Gather", [f"values_{name}", places], f"given_{name}")  # [n, d]
        return w.node("Add", [f"given_{name}", f"product_recurrent_{name}"], f"sum_{name}")

    def _kept(self, after: str, before: str, output: str) -> None:
        """Of texts that have ended what they had."""
        if self._exact:
            self._w.node("Where", ["left_down", before, after], output)
        else:
            self._w.node("Identity", [after], output)
