"""A graph as it is written down: nodes, constants inside, and arrays that lie in the file of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gramvec.bundle.bundle import GRAPH, Precision
from gramvec_training.export.graph import IR_VERSION, OPSET, quantised
from gramvec_training.types import Floats

__all__ = ["OPSET", "Writer", "stored_in", "write_rows"]

Extents = Sequence[str | int]


@dataclass
class Writer:
    """Nodes and initializers as they are written down.

    stored: arrays of model.onnx, by name, that lie in the file of weights already; a second graph has them from there.
    """

    stored: Mapping[str, Any] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    tensors: dict[str, Any] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)

    def node(self, operator: str, inputs: Sequence[str], output: str, *more: str, **attributes: Any) -> str:
        """A node of one output, whose name is given back; `more` outputs come before it."""
        self.nodes.append(helper.make_node(operator, list(inputs), [*more, output], name=output, **attributes))
        return output

    def constant(self, name: str, value: Any, dtype: Any = np.int64) -> str:
        """An initializer that lies in the graph."""
        self.tensors[name] = numpy_helper.from_array(np.asarray(value, dtype), name)
        return name

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """An initializer that lies in the file of weights, from now on or already."""
        if name in self.stored:
            self.tensors[name] = self.stored[name]
        else:
            self.tensors[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
            self.apart.add(name)
        return name

    def part(self, name: str, whole: str, begin: int, shape: tuple[int, ...]) -> str:
        """An initializer that is a part of a stored one: float32[shape], from number `begin` on."""
        place = {entry.key: entry.value for entry in self.stored[whole].external_data}
        place["offset"] = str(int(place["offset"]) + 4 * begin)
        place["length"] = str(4 * int(np.prod(shape)))
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.extend(onnx.StringStringEntryProto(key=key, value=place[key]) for key in place)
        self.tensors[name] = tensor
        return name

    def save(self, path: Path, inputs: Mapping[str, tuple[int, Extents]], outputs: Mapping[str, int]) -> None:
        """Write the graph, and model.onnx.data where there are arrays that do not lie in it yet.

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


def stored_in(path: Path) -> dict[str, Any]:
    """The arrays of a written graph that lie in its file of weights, by name."""
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return {one.name: one for one in tensors if one.data_location == TensorProto.EXTERNAL}


def write_rows(w: Writer, ids: str, precision: Precision, table: Floats | None = None) -> str:
    """ids of any shape -> "rows" float32[shape, width]; without a table it is that which is stored."""
    if precision == "int8":
        values, scales = (None, None) if table is None else quantised(table)
        w.node("Gather", [w.weight("table", values), ids], "rows_stored")  # type: ignore[arg-type]
        w.node("Cast", ["rows_stored"], "rows_unscaled", to=TensorProto.FLOAT)
        w.node("Gather", [w.weight("scales", scales), ids], "row_scales")  # type: ignore[arg-type]  # [shape, 1]
        return w.node("Mul", ["rows_unscaled", "row_scales"], "rows")
    stored = w.weight("table", table if table is None else table.astype(precision))  # type: ignore[arg-type]
    if precision == "float32":
        return w.node("Gather", [stored, ids], "rows")
    w.node("Gather", [stored, ids], "rows_stored")
    return w.node("Cast", ["rows_stored"], "rows", to=TensorProto.FLOAT)
