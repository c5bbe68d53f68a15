"""ONNX graphs of bags: nodes, small constants in the graph, and arrays in the file of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gramvec.bundle.four_bits import LEVELS_OF_BYTES, bytes_a_row, quantize_rows
from gramvec.bundle.manifest import CPU_GRAPH, GRAPH, Graph, LayerActivation, Precision, StoredWeights
from gramvec.errors import InputError
from gramvec.runtime.native import MAX_WEIGHT, weights_and_step
from gramvec.text.arrays import Floats

Extents = Sequence[str | int]


@dataclass
class Writer:
    """Nodes and initializers of one ONNX graph, in the order in which they are added."""

    nodes: list[Any] = field(default_factory=list)
    tensors: dict[str, Any] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)

    def node(self, operator: str, inputs: Sequence[str], output: str, *more: str, **attributes: Any) -> str:
        """Add a node; return the name of its last output, before which the outputs `more` come."""
        self.nodes.append(helper.make_node(operator, list(inputs), [*more, output], name=output, **attributes))
        return output

    def constant(self, name: str, value: Any, dtype: Any = np.int64) -> str:
        """Add an initializer that is stored in the graph, and return its name."""
        self.tensors[name] = numpy_helper.from_array(np.asarray(value, dtype), name)
        return name

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """Add an initializer that is stored in the file of weights, and return its name."""
        self.tensors[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        self.apart.add(name)
        return name

    def add_stored(self, name: str, kind: int, shape: Sequence[int], file: str, offset: int, size: int) -> str:
        """Add an initializer that lies in a file of weights already, of `size` bytes a number, and return its name."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        place = {"location": file, "offset": offset, "length": prod(shape) * size}
        tensor.external_data.extend(onnx.StringStringEntryProto(key=key, value=str(place[key])) for key in place)
        self.tensors[name] = tensor
        return name

    def save(self, path: Path, inputs: Mapping[str, tuple[int, Extents]], outputs: Mapping[str, int]) -> None:
        """Write the graph, and beside it model.onnx.data with the arrays that are stored apart.

        inputs: type and extents of each; outputs: columns of each, all float32[texts, columns].
        """
        model = helper.make_model(
            helper.make_graph(
                self.nodes,
                "gramvec",
                [helper.make_tensor_value_info(name, kind, extents) for name, (kind, extents) in inputs.items()],
                [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", d]) for name, d in outputs.items()],
                list(self.tensors.values()),
            ),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="gramvec",
        )
        for tensor in model.graph.initializer:
            if tensor.name in self.apart:
                onnx.external_data_helper.set_external_data(tensor, f"{GRAPH}.data")
        if self.apart:
            onnx.save_model(model, str(path))
        else:
            path.write_bytes(model.SerializeToString())
        onnx.checker.check_model(str(path), full_check=True)


def write_rows(w: Writer, ids: str, precision: Precision, table: Floats) -> str:
    """Add the look-up of ids of any shape, and return its name: "rows", float32[shape, width]."""
    if precision == "int4":
        raise InputError(
            "rows of four bits are for models that add rows, and this one reads them in their order; take int8"
        )
    if precision == "int8":
        values, scales = quantize_table(table)
        w.node("Gather", [w.weight("table", values), ids], "rows_stored")
        w.node("Cast", ["rows_stored"], "rows_unscaled", to=TensorProto.FLOAT)
        w.node("Gather", [w.weight("scales", scales), ids], "row_scales")  # [shape, 1]
        return w.node("Mul", ["rows_unscaled", "row_scales"], "rows")
    stored = w.weight("table", table.astype(precision))
    if precision == "float32":
        return w.node("Gather", [stored, ids], "rows")
    w.node("Gather", [stored, ids], "rows_stored")
    return w.node("Cast", ["rows_stored"], "rows", to=TensorProto.FLOAT)


OPSET = 18
IR_VERSION = 10  # all that pyproject.toml allows read it
# Where arrays begin in the file of weights; the last has as many bytes behind it, which runtime native reads.
ALIGNMENT = 64

_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8,
    "int4": TensorProto.UINT8,
}
_PART_ROWS = 1024

_BYTES = {"float32": 4, "float16": 2, "int8": 1, "int4": 1}

# Type and extents of what a graph may take.
INPUTS: dict[str, tuple[int, Extents]] = {
    "ids": (TensorProto.INT32, ["rows"]),
    "segments": (TensorProto.INT64, ["rows"]),
    "counts": (TensorProto.INT64, ["texts"]),
    "offsets": (TensorProto.INT64, ["texts_plus_one"]),
}

_ONE = np.float32(1)
# Matrices float32[d, e], biases float32[e], and how they are activated.
Layers = Sequence[tuple[Floats, Floats, LayerActivation]]
ACTIVATIONS: dict[LayerActivation, str] = {
    "linear": "Identity",
    "tanh": "Tanh",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
}


def write_graph(
    folder: Path,
    *,
    table: Floats,
    bias: Floats | None,
    pooling: Literal["sum", "mean"],
    activation: LayerActivation,
    precision: Precision,
    layers: Layers = (),
) -> Graph:
    """Write the weights and their graphs into `folder`; return the manifest's record of them.

    table: float32[rows, d]; bias: float32[d] or None; pooling "sum" | "mean"; activation "linear" | "tanh",
    with layers any of ACTIVATIONS.
    precision: of the table in the file; sums are in float32 always. int8 has a scale for each row, a whole multiple of
    one step, and one for each column, applied to the sums: in a memo's rows one column can be much larger than all
    others and take their bits. int4 has both too.
    layers: f(x W + b), one after the other, on the activated sum.
    """
    columns = column_scales(table) if precision in ("int8", "int4") else None
    file, stored = folder / f"{GRAPH}.data", None
    if precision == "int4":
        fours = quantize_rows(table, _ONE if columns is None else columns)
        stored = _write_weights(file, fours.codes, fours.weights, columns, bias)
        stored = stored.model_copy(update={"weights": stored.scales, "scales": None, "step": float(fours.step)})
    elif precision == "int8":
        rows, scales = quantize_table(table, _ONE if columns is None else columns)
        stored = _write_weights(file, rows, scales, columns, bias)
    else:
        stored = _write_weights(file, table.astype(precision), None, columns, bias)
    graph = Graph(
        opset=OPSET,
        inputs=[],
        output="vectors",
        precision=precision,
        pooling=pooling,
        activation=activation,
        stored=stored,
    )
    return write_graphs(folder, graph, table.shape[1], layers)


def write_graphs(folder: Path, graph: Graph, dimension: int, layers: Layers = ()) -> Graph:
    """Write model.onnx, and model.cpu.onnx if possible, over the weights that `graph` locates in `folder`.

    dimension: of the table. layers: see write_graph. Returns the record of what was written, in which `stored` is left
    where vectors have as many columns as the table. graph.stored must not be None.
    """
    stored = graph.stored
    assert stored is not None
    w = _open_table(graph, stored, dimension)
    node = w.node
    last, is_whole = _write_scaled(w, folder, graph, stored, dimension)
    node("Shape", ["counts"], "text_count")
    node("Concat", ["text_count", "dimension"], "sums_shape", axis=0)
    node("ConstantOfShape", ["sums_shape"], "nothing", value=numpy_helper.from_array(np.zeros(1, np.float32)))
    node("Unsqueeze", ["segments", "minus_one"], "places")  # [rows, 1]
    last = node("ScatterND", ["nothing", "places", last], "sums", reduction="add")
    if is_whole:
        last = node("Mul", [last, "step"], "sums_scaled")
    if graph.pooling == "mean":
        w.constant("one", [1])
        node("Max", ["counts", "one"], "counts_or_one")  # an empty text stays zero
        node("Cast", ["counts_or_one"], "counts_float", to=TensorProto.FLOAT)
        node("Unsqueeze", ["counts_float", "minus_one"], "divisors")  # [n, 1]
        last = node("Div", [last, "divisors"], "mean")
    _write_end(w, last, graph, layers)
    inputs = {name: INPUTS[name] for name in ("ids", "segments", "counts")}
    outputs = {"vectors": layers[-1][0].shape[1] if layers else dimension}
    outputs |= {"sums": dimension} if is_whole else {}
    w.save(folder / GRAPH, inputs, outputs)
    written = graph.model_copy(update={"opset": OPSET, "inputs": list(inputs), "output": "vectors"})
    if layers:
        activation = layers[-1][2]
        kept = stored if layers[-1][0].shape[1] == dimension else None
        return written.model_copy(
            update={"composition": "layers", "activation": activation, "stored": kept, "cpu": False}
        )
    return written.model_copy(update={"cpu": write_cpu_graph(folder, written, dimension)})


def _write_scaled(w: Writer, folder: Path, graph: Graph, stored: StoredWeights, dimension: int) -> tuple[str, bool]:
    """Add the look-up of rows times their scales or weights; return its name, and whether they are whole numbers.

    Adds the constants `minus_one` and `dimension`, and `step` if they are.
    """
    node = w.node
    if stored.scales is not None:
        w.add_stored("scales", TensorProto.FLOAT, [stored.rows, 1], stored.file, stored.scales, 4)
    w.constant("minus_one", [-1])
    w.constant("dimension", [dimension])
    if stored.weights is None:
        last = node("Gather", ["table", "ids"], "rows_stored")
    else:
        last = _cut_columns(w, _write_levels(w, dimension), dimension)
    if graph.precision != "float32":
        last = node("Cast", [last], "rows_unscaled", to=TensorProto.FLOAT)
    if stored.weights is not None:
        w.constant("step", stored.step, np.float32)
        w.add_stored("weights", TensorProto.INT8, [stored.rows, 1], stored.file, stored.weights, 1)  # at most 127
        node("Gather", ["weights", "ids"], "row_weights_stored")  # [rows, 1]
        node("Cast", ["row_weights_stored"], "row_weights", to=TensorProto.FLOAT)
        return node("Mul", [last, "row_weights"], "rows_whole"), True
    if stored.scales is None:
        return last, False
    weights, step = weights_and_step(_scales(folder, stored))
    if weights is None:
        node("Gather", ["scales", "ids"], "row_scales")
        return node("Mul", [last, "row_scales"], "rows_scaled"), False
    w.constant("step", step, np.float32)
    node("Div", ["scales", "step"], "about_weights")
    node("Round", ["about_weights"], "weights")
    node("Gather", ["weights", "ids"], "row_weights")  # [rows, 1]
    return node("Mul", [last, "row_weights"], "rows_whole"), True


def write_cpu_graph(folder: Path, graph: Graph, dimension: int) -> bool:
    """Write model.cpu.onnx over the weights that `graph` locates in `folder`; return False if it is not possible."""
    stored = graph.stored
    if stored is None or graph.pooling != "sum":
        return False
    w = _open_table(graph, stored, dimension)
    node, step = w.node, stored.step
    if stored.weights is not None:
        w.add_stored("weights", TensorProto.UINT8, [stored.rows], stored.file, stored.weights, 1)
    elif stored.scales is not None:
        row_weights, step = weights_and_step(_scales(folder, stored))
        if row_weights is None:
            return False
        w.constant("weights", row_weights, np.uint8)
    else:
        return False
    w.constant("step", step, np.float32)
    w.constant("nothing", 0, np.uint8)
    places = {"first": [0], "second": [1], "last": [-1], "end": [np.iinfo(np.int64).max], "begin": 0, "one": 1}
    for name, place in places.items():
        w.constant(name, place)
    rows = node("Gather", ["table", "ids"], "rows") if stored.weights is None else _write_levels(w, dimension)
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
    last = node("MatMulInteger", ["mask", rows], "integers")  # int32 [n, d], from int8 [rows, d]
    if stored.weights is not None:
        last = _cut_columns(w, last, dimension)
    node("Cast", [last], "whole", to=TensorProto.FLOAT)
    last = node("Mul", ["whole", "step"], "sum")
    _write_end(w, last, graph)
    w.save(folder / CPU_GRAPH, {name: INPUTS[name] for name in ("ids", "offsets")}, {"vectors": dimension})
    return True


def _open_table(graph: Graph, stored: StoredWeights, dimension: int) -> Writer:
    w, extents = Writer(), [stored.rows, dimension if stored.weights is None else bytes_a_row(dimension)]
    w.add_stored("table", _TYPES[graph.precision], extents, stored.file, stored.table, _BYTES[graph.precision])
    return w


def _write_levels(w: Writer, dimension: int) -> str:
    """Add the look-up of rows of four bits, and return its name: int8[rows, dimension], and one more if that is odd."""
    node = w.node
    w.constant("levels", LEVELS_OF_BYTES, np.int8)
    w.constant("rows_shape", [-1, 2 * bytes_a_row(dimension)])
    node("Gather", ["table", "ids"], "rows_packed")
    node("Cast", ["rows_packed"], "rows_bytes", to=TensorProto.INT32)
    node("Gather", ["levels", "rows_bytes"], "rows_pairs")  # [rows, bytes, 2]
    return node("Reshape", ["rows_pairs", "rows_shape"], "rows_levels")


def _cut_columns(w: Writer, last: str, dimension: int) -> str:
    """Leave out the column that the last byte of a row has beyond an odd dimension; return the name of what is left."""
    if dimension % 2 == 0:
        return last
    w.constant("column_0", [0])
    w.constant("column_behind", [dimension])
    w.constant("across", [1])
    return w.node("Slice", [last, "column_0", "column_behind", "across"], "without_padding")


def _write_end(w: Writer, last: str, graph: Graph, layers: Layers = ()) -> None:
    """Add columns, bias and activation in the order of runtime native, then the layers."""
    node = w.node
    assert graph.stored is not None
    if graph.stored.columns is not None:
        w.constant("columns", graph.stored.columns, np.float32)
        last = node("Mul", [last, "columns"], "scaled")
    if graph.stored.bias is not None:
        w.constant("bias", graph.stored.bias, np.float32)
        last = node("Add", [last, "bias"], "biased")
    last = node(ACTIVATIONS[graph.activation], [last], "activated" if layers else "vectors")
    for index, (matrix, layer_bias, f) in enumerate(layers, start=1):
        w.constant(f"matrix_{index}", matrix, matrix.dtype)
        w.constant(f"layer_bias_{index}", layer_bias, layer_bias.dtype)
        node("MatMul", [last, f"matrix_{index}"], f"product_{index}")
        node("Add", [f"product_{index}", f"layer_bias_{index}"], f"layer_{index}")
        last = node(ACTIVATIONS[f], [f"layer_{index}"], "vectors" if index == len(layers) else f"activated_{index}")


def _write_weights(
    path: Path, rows: NDArray[Any], scales: NDArray[Any] | None, columns: Floats | None, bias: Floats | None
) -> StoredWeights:
    """Write the rows, and their scales or weights behind them; return where they are."""
    places: list[int] = []
    with path.open("wb") as file:
        for array in (rows, scales):
            places.append(file.tell())
            if array is not None:
                file.write(np.ascontiguousarray(array).data)  # its error names what the disk refused, unlike tofile's
                file.write(bytes(ALIGNMENT - file.tell() % ALIGNMENT))
        file.write(bytes(ALIGNMENT))
    return StoredWeights(
        file=path.name,
        rows=len(rows),
        table=places[0],
        scales=None if scales is None else places[1],
        columns=None if columns is None else columns.tolist(),
        bias=None if bias is None else bias.astype(np.float32).tolist(),
    )


def _scales(folder: Path, stored: StoredWeights) -> Floats:
    assert stored.scales is not None
    return np.fromfile(folder / stored.file, "<f4", stored.rows, offset=stored.scales)


def quantize_table(table: Floats, columns: Floats | np.float32 = _ONE) -> tuple[NDArray[np.int8], Floats]:
    """Return int8[rows, d] in -127..127 and float32[rows, 1]; their product approximates table / columns.

    Each scale is 1 to 128 times one step, the 128th part of the largest; all are 0 for a table of zeros.
    """
    # By parts that stay in the cache: each step of a whole table's arithmetic would take another 300 MB.
    parts = [slice(begin, begin + _PART_ROWS) for begin in range(0, len(table), _PART_ROWS)]
    scales = np.empty((len(table), 1), np.float32)
    for part in parts:
        scales[part] = np.abs(table[part] / columns).max(axis=1, keepdims=True) / np.float32(127)
    if scales.any():
        step = scales.max() / np.float32(MAX_WEIGHT)
        scales = np.clip(np.ceil(scales / step), 1, MAX_WEIGHT).astype(np.float32) * step
    divisors = np.where(scales > 0, scales, np.float32(1))
    rows = np.empty(table.shape, np.int8)
    for part in parts:
        rows[part] = np.rint(table[part] / columns / divisors[part])
    return rows, scales.astype(np.float32)


def column_scales(table: Floats) -> Floats:
    """Return float32[d]: the root mean square of each column, 1 for a column of zeros."""
    squares = np.sqrt(np.einsum("ij,ij->j", table, table, dtype=np.float64) / len(table))
    return np.where(squares > 0, squares, 1).astype(np.float32)
