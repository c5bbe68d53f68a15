"""The ONNX graphs of encoders that read a text's rows in their order: stock operators only.

    places    = starts + step where a text is long enough, else behind the end     int64[steps, n + 1]
    rows      = table[(ids, 0)[places]]                                            float32[steps, n + 1, width]
    vectors   = the last states of LSTM or RNN, for so many steps as each text has

A text of no rows goes along (the + 1): of a single text onnxruntime's RNN takes the product of a vector and a matrix,
which adds in another order than that of two matrices, and a vector must not depend on its batch.

    products  = table @ the filters' j-th character, at export                     float32[rows + 1, filters], j < w
    sums      = products_0[ids at t] + products_1[ids at t + 1] + ...              float32[n, steps, filters]
    maxima    = the largest of the places that the text has
    vectors   = h(phi(maxima + bias) W + bias)

The operator Conv would do the same, from the rows: but onnxruntime cuts its sums by how many places there are, so that
a vector would depend on the longest text of the batch, and it multiplies where these look up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from gramvec.bundle.bundle import CPU_GRAPH, CUDA_GRAPH, GRAPH, Graph, Precision
from gramvec.errors import InputError
from gramvec_training.encoders.bag import Average, Bag, TwoLayer, Weighted, folded
from gramvec_training.encoders.base import LONGEST, Arrays, Encoder
from gramvec_training.encoders.char_cnn import CharCnn
from gramvec_training.encoders.recurrent import Lstm, Rnn
from gramvec_training.export.onnx_graph import ACTIVATIONS, OPSET, Layers, Writer, stored_in, write_graph, write_rows
from gramvec_training.sections import LayerActivation
from gramvec_training.shared import Floats

INPUTS = {"ids": (TensorProto.INT32, ["rows"]), "offsets": (TensorProto.INT64, ["texts_plus_one"])}
OPEN = 50.0  # the bias of an output gate that is not there: sigmoid(50) is 1 in float32


def write_recurrent_graph(folder: Path, encoder: Rnn | Lstm, *, table: Floats, precision: Precision) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; returns the manifest's record of the graph.

    precision: of the table in the file; everything else is float32. int8 has one float32 scale a row.
    """
    w, d = Writer(), encoder.dimension
    _write_lengths(w)
    w.constant("no_text", [0])
    w.node("Concat", ["lengths", "no_text"], "lengths_and_none", axis=0)  # [n + 1]
    w.node("Concat", ["starts", "no_text"], "starts_and_none", axis=0)
    _write_steps(w, "lengths_and_none", least=1)
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
    write_step_graphs(folder, encoder, precision)
    return _record(precision, "last", activation, cpu=True)


def write_char_cnn_graph(folder: Path, encoder: CharCnn, *, table: Floats, precision: Precision) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; returns the manifest's record of the graph.

    The products of the table and the filters are stored in place of these: for the characters of a language one or two
    megabytes. Raises InputError for another precision than float32.
    """
    if precision != "float32":
        raise InputError(
            f"a character CNN stores what its filters make of each character, in float32 and not in {precision}: there "
            'are few characters; set export.precision = "float32"'
        )
    for path in (folder / GRAPH, folder / CUDA_GRAPH):
        _write_char_cnn(path, encoder, table)
    last = encoder.settings.activation if encoder.settings.layer else encoder.settings.filter_activation
    return _record(precision, "max", last)


def _write_char_cnn(path: Path, encoder: CharCnn, table: Floats) -> None:
    """model.onnx, or after it model.cuda.onnx, whose product is exact."""
    exact = path.name == CUDA_GRAPH
    w, arrays = Writer(stored_in(path.with_name(GRAPH)) if exact else {}), encoder.arrays()
    widest = max(wide for wide, _ in encoder.settings.counts)
    _write_lengths(w)
    _write_steps(w, "lengths", least=1)
    w.constant("further", [widest - 1])
    w.node("Add", ["longest", "further"], "columns")
    w.constant("first", 0)
    w.constant("by_one", 1)
    w.node("Squeeze", ["columns"], "column_count")
    w.node("Range", ["first", "column_count", "by_one"], "every_column")  # [steps + widest - 1]
    w.node("Unsqueeze", ["lengths", "minus_one"], "lengths_down")  # [n, 1]
    w.node("Unsqueeze", ["starts", "minus_one"], "starts_down")
    w.node("Less", ["every_column", "lengths_down"], "inside")  # [n, steps + widest - 1]
    w.node("Add", ["every_column", "starts_down"], "places")
    w.node("Where", ["inside", "places", "row_count"], "places_or_end")
    w.constant("nothing", [len(table)], np.int32)
    w.node("Concat", ["ids", "nothing"], "ids_and_nothing", axis=0)
    w.node("Gather", ["ids_and_nothing", "places_or_end"], "characters")  # [n, steps + widest - 1]
    w.constant("across", [1])
    w.constant("lowest", -3e38, np.float32)
    maxima = [
        _write_maxima(w, table, arrays[f"filters.{i}"], wide) for i, (wide, _) in enumerate(encoder.settings.counts)
    ]
    w.node("Concat", maxima, "maxima", axis=1)  # [n, filters]
    w.weight("filter_bias", arrays["filter_bias"])
    w.node("Add", ["maxima", "filter_bias"], "filters_biased")
    phi = ACTIVATIONS[encoder.settings.filter_activation]
    if not encoder.settings.layer:
        w.node(phi, ["filters_biased"], "vectors")
    else:
        w.node(phi, ["filters_biased"], "found")
        layer = w.weight("layer", arrays["layer"])
        bound = 1.0 if encoder.settings.filter_activation in BOUNDED else None
        write_product(w, "found", layer, "product", matrix_of=arrays["layer"], bound=bound, exact=exact)
        w.node("Add", ["product", w.weight("bias", arrays["bias"])], "biased")
        w.node(ACTIVATIONS[encoder.settings.activation], ["biased"], "vectors")
    w.save(path, INPUTS, {"vectors": encoder.dimension})


def _record(precision: Precision, pooling: Any, activation: Any, *, cpu: bool = False) -> Graph:
    return Graph(
        opset=OPSET,
        inputs=["ids", "offsets"],
        output="vectors",
        precision=precision,
        pooling=pooling,
        activation=activation,
        composition="sequence",
        cpu=cpu,
        cuda=True,
    )


def _write_lengths(w: Writer) -> None:
    """offsets [n + 1] -> starts and lengths [n], and how many ids there are."""
    w.constant("zero", [0])
    w.constant("minus_one", [-1])
    w.constant("second", [1])
    w.constant("end", [np.iinfo(np.int64).max])
    w.constant("most", [LONGEST])
    w.node("Slice", ["offsets", "zero", "minus_one"], "starts")
    w.node("Slice", ["offsets", "second", "end"], "ends")
    w.node("Sub", ["ends", "starts"], "whole_lengths")
    w.node("Min", ["whole_lengths", "most"], "lengths")
    w.node("Shape", ["ids"], "row_count")  # [1]


def _write_steps(w: Writer, lengths: str, *, least: int) -> None:
    """longest [1], at least so many, and steps int64[longest]."""
    w.constant("least", [least])
    w.node("Concat", [lengths, "least"], "lengths_and_least", axis=0)
    w.node("ReduceMax", ["lengths_and_least"], "longest", keepdims=1)
    w.node("Squeeze", ["longest"], "step_count")
    w.constant("begin", 0)
    w.constant("stride", 1)
    w.node("Range", ["begin", "step_count", "stride"], "steps")


def _lstm_weights(w: Writer, arrays: Arrays, *, output_gate: bool) -> tuple[str, str, str]:
    """W, R and B as the operator has them: input gate, output gate, forget gate, candidate; and the peepholes."""
    d = arrays["recurrent"].shape[0]

    def in_order(blocks: Floats, absent: float) -> Floats:
        found = np.split(blocks, blocks.shape[-1] // d, axis=-1)
        gate = found[3] if output_gate else np.full_like(found[0], absent)
        return np.concatenate([found[0], gate, found[1], found[2]], axis=-1)

    peepholes = arrays["peepholes"]
    into_output = peepholes[2] if output_gate else np.zeros(d, np.float32)
    w.weight("inputs", in_order(arrays["inputs"], 0).T[np.newaxis])
    w.weight("recurrent", in_order(arrays["recurrent"], 0).T[np.newaxis])
    w.weight("bias", np.concatenate([in_order(arrays["bias"], OPEN), np.zeros(4 * d, np.float32)])[np.newaxis])
    w.weight("peepholes", np.concatenate([peepholes[0], into_output, peepholes[1]])[np.newaxis])
    return "inputs", "recurrent", "bias"


def _rnn_weights(w: Writer, arrays: Arrays) -> tuple[str, str, str]:
    w.weight("inputs", arrays["inputs"].T[np.newaxis])
    w.weight("recurrent", arrays["recurrent"].T[np.newaxis])
    w.weight("bias", np.concatenate([arrays["bias"], np.zeros_like(arrays["bias"])])[np.newaxis])
    return "inputs", "recurrent", "bias"


def _write_maxima(w: Writer, table: Floats, filters: Floats, wide: int) -> str:
    """The name of the largest sums of one width, float32[n, filters]: characters [n, steps + widest - 1]."""
    products = (table @ filters).reshape(len(table), wide, -1)
    last = ""
    for j in range(wide):
        part = np.concatenate([products[:, j], np.zeros((1, products.shape[2]), np.float32)])
        w.constant(f"from_{wide}_{j}", [j])
        w.node("Add", ["longest", f"from_{wide}_{j}"], f"to_{wide}_{j}")
        w.node("Slice", ["characters", f"from_{wide}_{j}", f"to_{wide}_{j}", "across"], f"characters_{wide}_{j}")
        w.weight(f"products_{wide}_{j}", part)
        found = w.node("Gather", [f"products_{wide}_{j}", f"characters_{wide}_{j}"], f"parts_{wide}_{j}")
        last = w.node("Add", [last, found], f"sums_{wide}_{j}") if last else found
    # Places where the filter ends within the text, or the first one.
    w.constant(f"less_{wide}", [1 - wide])
    w.constant(f"one_{wide}", [1])
    w.node("Add", ["lengths_down", f"less_{wide}"], f"ends_{wide}")  # [n, 1]
    w.node("Max", [f"ends_{wide}", f"one_{wide}"], f"counts_{wide}")
    w.node("Less", ["steps", f"counts_{wide}"], f"known_{wide}")  # [n, steps]
    w.node("Unsqueeze", [f"known_{wide}", "minus_one"], f"mask_{wide}")  # [n, steps, 1]
    w.node("Where", [f"mask_{wide}", last, "lowest"], f"masked_{wide}")
    return w.node("ReduceMax", [f"masked_{wide}", "across"], f"maxima_{wide}", keepdims=0)


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


@dataclass(frozen=True)
class Graphed:
    """An encoder as its graph has it: `table` float32[rows, width], and what writes the graph.

    sums: whether a vector is a function of the sum of the text's rows, so that rows may stand for sums of others.
    in_order: whether the order of the rows counts.
    """

    table: Floats
    writer: Callable[..., Graph]
    sums: bool
    in_order: bool = False

    def write(self, folder: Path, precision: Precision, *, table: Floats | None = None) -> Graph:
        """Write model.onnx and its data; `table` is another than the encoder's, with further rows, say."""
        rows = self.table if table is None else table
        return self.writer(folder, table=rows, precision=precision)


def graphed(encoder: Encoder) -> Graphed:
    """An encoder as its graph has it. Raises InputError for weights with NaN or infinity, and for what has no graph.

    The common components of a bag (SIF, Algorithm 1, with u fixed here and not computed from the sentences at hand) are
    removed from the rows, which for a sum or mean of them is the same.
    """
    arrays = encoder.arrays()
    if not all(np.isfinite(one).all() for one in arrays.values()):
        raise InputError("the weights hold NaN or infinity: training diverged; lower the learning rate")
    table = np.ascontiguousarray(arrays["table"], np.float32)
    if isinstance(encoder, Bag):
        return _of_bag(encoder, table, arrays)
    if isinstance(encoder, Weighted):
        return Graphed(folded(table), partial(write_graph, pooling="mean", activation="linear", bias=None), False)
    if isinstance(encoder, TwoLayer):
        activation = encoder.settings.activation
        second = [(arrays["second"], arrays["second_bias"], activation)]
        rest: dict[str, Any] = {"pooling": "sum", "activation": activation, "bias": arrays["bias"], "layers": second}
        return Graphed(table, partial(_with_layers, **rest), True)
    if isinstance(encoder, Average):
        layers = [
            (arrays[f"matrices.{i}"], arrays[f"biases.{i}"], encoder.settings.activation)
            for i in range(len(encoder.matrices))
        ]
        rest = {"pooling": "mean", "activation": "linear", "bias": None, "layers": layers}
        return Graphed(table, partial(_with_layers, **rest), False)
    if isinstance(encoder, (Rnn, Lstm)):
        return Graphed(table, partial(write_recurrent_graph, encoder=encoder), False, in_order=True)
    if isinstance(encoder, CharCnn):
        return Graphed(table, partial(write_char_cnn_graph, encoder=encoder), False, in_order=True)
    raise InputError(f"there is no graph for {type(encoder).__name__}; it cannot be exported")


def _with_layers(folder: Path, *, table: Floats, layers: Layers, **rest: Any) -> Graph:
    """The whole graph, and what is above the pooled rows where the service pools them itself."""
    graph = write_graph(folder, table=table, layers=layers, **rest)
    if graph.stored is None:
        return graph
    # A mean is no larger than its rows; a sum may be.
    bound = float(np.abs(table).max(initial=0)) if rest["pooling"] == "mean" and rest["bias"] is None else None
    write_layer_graphs(folder, rest["activation"], layers, bound=bound)
    return graph.model_copy(update={"cpu": True, "cuda": True})


def _of_bag(encoder: Bag, table: Floats, arrays: Arrays) -> Graphed:
    settings, u = encoder.settings, arrays.get("components")
    if settings.presence:
        raise InputError("the service counts a feature as often as it is there, the model once: not to be exported")
    if u is not None:
        table = np.asarray(table - (table @ u.T) @ u, np.float32)
    if settings.activation == "relu":
        raise InputError("a bag with relu is for taggers, which are not exported; take linear or tanh")
    rest: dict[str, Any] = {"pooling": settings.pooling, "activation": settings.activation, "bias": arrays.get("bias")}
    return Graphed(table, partial(write_graph, **rest), settings.pooling == "sum")
