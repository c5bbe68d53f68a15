"""The ONNX graph of a bag of rows: stock operators only, the table apart from the graph.

    rows      = table[ids]                      Gather, then Cast (and a scale a row for int8)
    segments  = cumulative sum of one mark at each text's offset, less one
    vectors   = activation(pool(rows by segment) * column scales + bias)

ScatterND adds the rows of a text one after the other, so a vector does not depend on its batch.

int8 rows whose scales are whole multiples of the smallest get a second graph, for a CPU alone and twice as fast there:

    mask      = weights[ids] where a row is the text's, else 0     uint8[n, rows]
    vectors   = activation((mask @ table[ids]) * step * column scales + bias), in integers up to the sum: exact
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gramvec.bundle import CPU_GRAPH, GRAPH, Graph, Precision, Stored
from gramvec.runtime.native import MOST_WEIGHT, weights_and_step

OPSET = 18
IR_VERSION = 10  # what onnxruntime 1.22, the oldest that pyproject.toml allows, still reads

Floats = NDArray[np.float32]


def write_graph(
    folder: Path,
    *,
    table: Floats,
    bias: Floats | None,
    pooling: str,
    activation: str,
    precision: Precision,
    shared_scales: bool = False,
    layers: Sequence[tuple[Floats, Floats]] = (),
) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; returns the manifest's record of the graph.

    table: float32[rows, d]; bias: float32[d] or None; pooling "sum" | "mean"; activation "linear" | "tanh".
    precision: of the table in the file; sums are in float32 always. int8 has one float32 scale a row.
    shared_scales: for int8, a scale of each column too, applied to the sums, because in a memo's rows one column can be
    much larger than all others and take their bits; and scales of rows that are whole multiples of one step, so that
    rows are added as integers.
    layers: matrices float32[d, e] and biases float32[e] of tanh(x W + b), one after the other, on the activated sum.
    """
    dimension = table.shape[1]
    columns = column_scales(table) if shared_scales and precision == "int8" else None
    if columns is not None:
        table = table / columns
    nodes: list[Any] = []
    weights: dict[str, NDArray[Any]] = {
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "minus_one": np.array([-1], np.int64),
        "end": np.array([np.iinfo(np.int64).max], np.int64),
        "dimension": np.array([dimension], np.int64),
        "axis": np.array(0, np.int64),
    }

    node = _writer(nodes)
    rows = _rows(node, weights, table, precision, shared_scales)

    # offsets [n + 1] -> segments [rows]
    node("Slice", ["offsets", "zero", "minus_one"], "starts")  # [n]
    node("Slice", ["offsets", "one", "end"], "ends")  # [n]
    node("Shape", ["ids"], "row_count")
    node("Add", ["row_count", "one"], "mark_count")
    node("ConstantOfShape", ["mark_count"], "no_marks", value=_constant(np.int64))  # [rows + 1]
    node("Shape", ["starts"], "text_count")
    node("ConstantOfShape", ["text_count"], "ones", value=_constant(np.int64, 1))
    node("Unsqueeze", ["starts", "minus_one"], "mark_places")  # [n, 1]
    node("ScatterND", ["no_marks", "mark_places", "ones"], "marks", reduction="add")
    node("CumSum", ["marks", "axis"], "texts_begun")
    node("Slice", ["texts_begun", "zero", "minus_one"], "texts_begun_here")  # [rows]
    node("Sub", ["texts_begun_here", "one"], "segments")

    # rows [rows, d] -> pooled [n, d]
    node("Concat", ["text_count", "dimension"], "pooled_shape", axis=0)
    node("ConstantOfShape", ["pooled_shape"], "no_sum", value=_constant(np.float32))
    node("Unsqueeze", ["segments", "minus_one"], "row_places")  # [rows, 1]
    last = node("ScatterND", ["no_sum", "row_places", rows], "sum", reduction="add")
    if pooling == "mean":
        node("Sub", ["ends", "starts"], "counts")
        node("Max", ["counts", "one"], "counts_or_one")  # an empty text stays zero
        node("Cast", ["counts_or_one"], "counts_float", to=TensorProto.FLOAT)
        node("Unsqueeze", ["counts_float", "minus_one"], "divisors")  # [n, 1]
        last = node("Div", [last, "divisors"], "mean")
    _write_end(node, weights, last, columns, bias, activation, layers)
    dimension = layers[-1][0].shape[1] if layers else dimension
    model = _model(nodes, [numpy_helper.from_array(value, name) for name, value in weights.items()], dimension)
    onnx.checker.check_model(model, full_check=True)
    # The table and its scales, however small, lie apart; small constants stay in the graph.
    for tensor in model.graph.initializer:
        if tensor.name in ("table", "scales"):
            onnx.external_data_helper.set_external_data(tensor, f"{GRAPH}.data")
    onnx.save_model(model, str(folder / GRAPH))
    graph = Graph(
        opset=OPSET,
        inputs=["ids", "offsets"],
        output="vectors",
        precision=precision,
        pooling="mean" if pooling == "mean" else "sum",
        activation="tanh" if activation == "tanh" else "linear",
        # What lies where, for a runtime that does without the graph: there is none for layers.
        stored=None if layers else _stored(folder, len(table), columns, bias),
    )
    return graph.model_copy(update={"cpu": write_cpu_graph(folder, graph, dimension)})


def write_cpu_graph(folder: Path, graph: Graph, dimension: int) -> bool:
    """Write model.cpu.onnx over the weights that `graph` says lie in `folder`; False where it cannot be had."""
    stored = graph.stored
    if stored is None or stored.scales is None or graph.pooling != "sum":
        return False
    scales = np.fromfile(folder / stored.file, "<f4", stored.rows, offset=stored.scales)
    row_weights, step = weights_and_step(scales)
    if row_weights is None:
        return False
    nodes: list[Any] = []
    node = _writer(nodes)
    weights: dict[str, NDArray[Any]] = {
        "weights": row_weights,
        "step": np.array(step, np.float32),
        "nothing": np.array(0, np.uint8),
        "first": np.array([0], np.int64),
        "second": np.array([1], np.int64),
        "last": np.array([-1], np.int64),
        "end": np.array([np.iinfo(np.int64).max], np.int64),
        "begin": np.array(0, np.int64),
        "one": np.array(1, np.int64),
    }
    node("Gather", ["table", "ids"], "rows")  # int8 [rows, d]
    node("Gather", ["weights", "ids"], "row_weights")  # uint8 [rows]
    node("Shape", ["ids"], "row_shape")
    node("Squeeze", ["row_shape"], "row_count")
    node("Range", ["begin", "row_count", "one"], "places")  # [rows]
    node("Slice", ["offsets", "first", "last"], "starts")
    node("Slice", ["offsets", "second", "end"], "ends")
    node("Unsqueeze", ["starts", "last"], "starts_down")  # [n, 1]
    node("Unsqueeze", ["ends", "last"], "ends_down")
    node("GreaterOrEqual", ["places", "starts_down"], "begun")  # [n, rows]
    node("Less", ["places", "ends_down"], "not_ended")
    node("And", ["begun", "not_ended"], "own")
    node("Where", ["own", "row_weights", "nothing"], "mask")
    node("MatMulInteger", ["mask", "rows"], "integers")  # int32 [n, d]
    node("Cast", ["integers"], "whole", to=TensorProto.FLOAT)
    last = node("Mul", ["whole", "step"], "sum")
    columns = None if stored.columns is None else np.array(stored.columns, np.float32)
    bias = None if stored.bias is None else np.array(stored.bias, np.float32)
    _write_end(node, weights, last, columns, bias, graph.activation)
    table = TensorProto(name="table", data_type=TensorProto.INT8, dims=[stored.rows, dimension])
    table.data_location = TensorProto.EXTERNAL
    place = {"location": stored.file, "offset": stored.table, "length": stored.rows * dimension}
    table.external_data.extend(onnx.StringStringEntryProto(key=key, value=str(place[key])) for key in place)
    initialisers = [table, *(numpy_helper.from_array(value, name) for name, value in weights.items())]
    model = _model(nodes, initialisers, dimension)
    (folder / CPU_GRAPH).write_bytes(model.SerializeToString())
    onnx.checker.check_model(str(folder / CPU_GRAPH), full_check=True)
    return True


def _writer(nodes: list[Any]) -> Any:
    def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    return node


def _write_end(
    node: Any,
    weights: dict[str, NDArray[Any]],
    last: str,
    columns: Floats | None,
    bias: Floats | None,
    activation: str,
    layers: Sequence[tuple[Floats, Floats]] = (),
) -> None:
    if columns is not None:
        weights["columns"] = columns
        last = node("Mul", [last, "columns"], "scaled")
    if bias is not None:
        weights["bias"] = bias.astype(np.float32)
        last = node("Add", [last, "bias"], "biased")
    last = node("Tanh" if activation == "tanh" else "Identity", [last], "activated" if layers else "vectors")
    for index, (matrix, layer_bias) in enumerate(layers, start=1):
        weights[f"matrix_{index}"], weights[f"layer_bias_{index}"] = matrix, layer_bias
        node("MatMul", [last, f"matrix_{index}"], f"product_{index}")
        node("Add", [f"product_{index}", f"layer_bias_{index}"], f"layer_{index}")
        last = node("Tanh", [f"layer_{index}"], "vectors" if index == len(layers) else f"activated_{index}")


def _model(nodes: list[Any], initialisers: list[Any], dimension: int) -> Any:
    return helper.make_model(
        helper.make_graph(
            nodes,
            "gramvec",
            [
                helper.make_tensor_value_info("ids", TensorProto.INT32, ["rows"]),
                helper.make_tensor_value_info("offsets", TensorProto.INT64, ["texts_plus_one"]),
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", dimension])],
            initialisers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="gramvec",
    )


def _stored(folder: Path, rows: int, columns: Floats | None, bias: Floats | None) -> Stored:
    """Where onnx has laid the weights."""
    graph = onnx.load(str(folder / GRAPH), load_external_data=False).graph
    places = {
        one.name: next(int(entry.value) for entry in one.external_data if entry.key == "offset")
        for one in graph.initializer
        if one.external_data
    }
    return Stored(
        file=f"{GRAPH}.data",
        rows=rows,
        table=places["table"],
        scales=places.get("scales"),
        columns=None if columns is None else columns.tolist(),
        bias=None if bias is None else bias.astype(np.float32).tolist(),
    )


def _rows(node: Any, weights: dict[str, NDArray[Any]], table: Floats, precision: Precision, shared_scales: bool) -> str:
    if precision == "float32":
        weights["table"] = table.astype(np.float32)
        return str(node("Gather", ["table", "ids"], "rows"))
    if precision == "float16":
        weights["table"] = table.astype(np.float16)
        node("Gather", ["table", "ids"], "rows_stored")
        return str(node("Cast", ["rows_stored"], "rows", to=TensorProto.FLOAT))
    weights["table"], weights["scales"] = quantised(table, shared_scales=shared_scales)
    node("Gather", ["table", "ids"], "rows_stored")
    node("Cast", ["rows_stored"], "rows_unscaled", to=TensorProto.FLOAT)
    node("Gather", ["scales", "ids"], "row_scales")  # [rows, 1]
    return str(node("Mul", ["rows_unscaled", "row_scales"], "rows"))


def quantised(table: Floats, *, shared_scales: bool = False) -> tuple[NDArray[np.int8], Floats]:
    """int8[rows, d] in -127..127 and float32[rows, 1]: table is about the product; a zero row has scale 0.

    shared_scales: each scale is 1 to 128 times the 128th part of the largest.
    """
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    if shared_scales and scales.any():
        step = scales.max() / np.float32(MOST_WEIGHT)
        scales = np.clip(np.ceil(scales / step), 1, MOST_WEIGHT).astype(np.float32) * step
    divisors = np.where(scales > 0, scales, np.float32(1))
    return np.rint(table / divisors).astype(np.int8), scales.astype(np.float32)


def column_scales(table: Floats) -> Floats:
    """float32[d]: the root mean square of each column, 1 for one of zeros."""
    squares = np.sqrt(np.einsum("ij,ij->j", table, table, dtype=np.float64) / len(table))
    return np.where(squares > 0, squares, 1).astype(np.float32)


def _constant(dtype: type, value: int = 0) -> Any:
    return numpy_helper.from_array(np.array([value], dtype))
