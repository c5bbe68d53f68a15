"""ONNX graphs of encoders that read rows in order, and the choice of the graph for every encoder.

The graphs use stock operators only.

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
from onnx import TensorProto

from gramvec.bundle.manifest import GRAPH, Graph, Precision
from gramvec.errors import InputError
from gramvec.runtime.onnx_graph import ACTIVATIONS, OPSET, Writer, write_graph, write_rows
from gramvec_training.encoders.bag import Average, Bag, TwoLayer, Weighted, folded
from gramvec_training.encoders.base import LONGEST, Arrays, Encoder
from gramvec_training.encoders.char_cnn import CharCnn
from gramvec_training.encoders.recurrent import Lstm, Rnn
from gramvec_training.shared import Floats

INPUTS = {"ids": (TensorProto.INT32, ["rows"]), "offsets": (TensorProto.INT64, ["texts_plus_one"])}
OPEN = 50.0  # the bias of an output gate that is not there: sigmoid(50) is 1 in float32


def write_recurrent_graph(folder: Path, encoder: Rnn | Lstm, *, table: Floats, precision: Precision) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; return the manifest's record of the graph.

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
    return _record(precision, "last", activation)


def write_char_cnn_graph(folder: Path, encoder: CharCnn, *, table: Floats, precision: Precision) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; return the manifest's record of the graph.

    The products of the table and the filters are stored in place of these: for the characters of a language one or two
    megabytes.

    Raises:
        InputError: Another precision than float32.
    """
    if precision != "float32":
        raise InputError(
            f"a character CNN stores what its filters make of each character, in float32 and not in {precision}: there "
            'are few characters; set export.precision = "float32"'
        )
    w, arrays = Writer(), encoder.arrays()
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
        w.node("MatMul", ["found", layer], "product")
        w.node("Add", ["product", w.weight("bias", arrays["bias"])], "biased")
        w.node(ACTIVATIONS[encoder.settings.activation], ["biased"], "vectors")
    w.save(folder / GRAPH, INPUTS, {"vectors": encoder.dimension})
    last = encoder.settings.activation if encoder.settings.layer else encoder.settings.filter_activation
    return _record(precision, "max", last)


def _record(precision: Precision, pooling: Any, activation: Any) -> Graph:
    return Graph(
        opset=OPSET,
        inputs=["ids", "offsets"],
        output="vectors",
        precision=precision,
        pooling=pooling,
        activation=activation,
        composition="sequence",
    )


def _write_lengths(w: Writer) -> None:
    """Add starts and lengths [n] from offsets [n + 1], and the number of ids."""
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
    """Add longest [1], at least `least`, and steps int64[longest]."""
    w.constant("least", [least])
    w.node("Concat", [lengths, "least"], "lengths_and_least", axis=0)
    w.node("ReduceMax", ["lengths_and_least"], "longest", keepdims=1)
    w.node("Squeeze", ["longest"], "step_count")
    w.constant("begin", 0)
    w.constant("stride", 1)
    w.node("Range", ["begin", "step_count", "stride"], "steps")


def _lstm_weights(w: Writer, arrays: Arrays, *, output_gate: bool) -> tuple[str, str, str]:
    """Add W, R, B and the peepholes in the operator's order: input gate, output gate, forget gate, candidate."""
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
    """Add the largest sums of one width; return their name, float32[n, filters]."""
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


@dataclass(frozen=True)
class Graphed:
    """An encoder's `table` float32[rows, width], and the function that writes its graph.

    sums: whether a vector is a function of the sum of the text's rows, so that rows may stand for sums of others.
    in_order: whether the order of the rows counts.
    """

    table: Floats
    writer: Callable[..., Graph]
    sums: bool
    in_order: bool = False

    def write(self, folder: Path, precision: Precision, *, table: Floats | None = None) -> Graph:
        """Write model.onnx and its data; `table` replaces the encoder's, for example with further rows."""
        rows = self.table if table is None else table
        return self.writer(folder, table=rows, precision=precision)


def graph_encoder(encoder: Encoder) -> Graphed:
    """Return the table and the graph writer of an encoder.

    The common components of a bag (SIF, Algorithm 1, with u fixed here and not computed from the sentences at hand) are
    removed from the rows, which for a sum or mean of them is the same.

    Raises:
        InputError: The weights hold NaN or infinity, or the encoder has no graph.
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
        return Graphed(table, partial(write_graph, **rest), True)
    if isinstance(encoder, Average):
        layers = [
            (arrays[f"matrices.{i}"], arrays[f"biases.{i}"], encoder.settings.activation)
            for i in range(len(encoder.matrices))
        ]
        rest = {"pooling": "mean", "activation": "linear", "bias": None, "layers": layers}
        return Graphed(table, partial(write_graph, **rest), False)
    if isinstance(encoder, (Rnn, Lstm)):
        return Graphed(table, partial(write_recurrent_graph, encoder=encoder), False, in_order=True)
    if isinstance(encoder, CharCnn):
        return Graphed(table, partial(write_char_cnn_graph, encoder=encoder), False, in_order=True)
    raise InputError(f"there is no graph for {type(encoder).__name__}; it cannot be exported")


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
