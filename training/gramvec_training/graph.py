"""The ONNX graph of a bag of rows: stock operators only, the table apart from the graph.

    rows      = table[ids]                      Gather, then Cast (and a scale a row for int8)
    segments  = cumulative sum of one mark at each text's offset, less one
    vectors   = activation(pool(rows by segment) * column scales + bias)

ScatterND adds the rows of a text one after the other, so a vector does not depend on its batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gramvec.bundle import GRAPH, Graph, Precision, Stored

OPSET = 18
IR_VERSION = 10  # what onnxruntime 1.22, the oldest that pyproject.toml allows, still reads

SHARED_SCALES = 8  # a row that is 128 times smaller than the largest keeps one bit less for each further halving

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
) -> Graph:
    """Write model.onnx and model.onnx.data into `folder`; returns the manifest's record of the graph.

    table: float32[rows, d]; bias: float32[d] or None; pooling "sum" | "mean"; activation "linear" | "tanh".
    precision: of the table in the file; sums are in float32 always. int8 has one float32 scale a row.
    shared_scales: for int8, a scale of each column too, applied to the sums, because in a memo's rows one column can be
    much larger than all others and take their bits; and scales of rows that differ by powers of two alone, so that
    runtime native adds rows of one scale as integers.
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

    def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

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
    if columns is not None:
        weights["columns"] = columns
        last = node("Mul", [last, "columns"], "scaled")
    if bias is not None:
        weights["bias"] = bias.astype(np.float32)
        last = node("Add", [last, "bias"], "biased")
    node("Tanh" if activation == "tanh" else "Identity", [last], "vectors")

    model = helper.make_model(
        helper.make_graph(
            nodes,
            "gramvec",
            [
                helper.make_tensor_value_info("ids", TensorProto.INT32, ["rows"]),
                helper.make_tensor_value_info("offsets", TensorProto.INT64, ["texts_plus_one"]),
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", dimension])],
            [numpy_helper.from_array(value, name) for name, value in weights.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="gramvec",
    )
    onnx.checker.check_model(model, full_check=True)
    # The table and its scales, however small, lie apart; small constants stay in the graph.
    for tensor in model.graph.initializer:
        if tensor.name in ("table", "scales"):
            onnx.external_data_helper.set_external_data(tensor, f"{GRAPH}.data")
    onnx.save_model(model, str(folder / GRAPH))
    return Graph.model_validate(
        {
            "opset": OPSET,
            "inputs": ["ids", "offsets"],
            "output": "vectors",
            "precision": precision,
            "pooling": pooling,
            "activation": activation,
            "stored": _stored(folder, len(table), columns, bias),
        }
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

    shared_scales: each scale is the next of eight, each half of the one before, from the largest.
    """
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    if shared_scales and scales.any():
        halvings = np.floor(np.log2(scales.max() / np.maximum(scales, scales.max() / 2**30)))
        scales = np.ldexp(scales.max(), -np.clip(halvings, 0, SHARED_SCALES - 1).astype(np.int32))
    divisors = np.where(scales > 0, scales, np.float32(1))
    return np.rint(table / divisors).astype(np.int8), scales.astype(np.float32)


def column_scales(table: Floats) -> Floats:
    """float32[d]: the root mean square of each column, 1 for one of zeros."""
    squares = np.sqrt(np.einsum("ij,ij->j", table, table, dtype=np.float64) / len(table))
    return np.where(squares > 0, squares, 1).astype(np.float32)


def _constant(dtype: type, value: int = 0) -> Any:
    return numpy_helper.from_array(np.array([value], dtype))
