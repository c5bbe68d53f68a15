"""ONNX graphs that reach for other files, for memory, for time, or for code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile.bundles.craft import attack, content, family, manifest

FILE = "model.onnx"


def edit(folder: Path, change: Callable[[Any], None]) -> None:
    path = folder / FILE
    model = onnx.load(str(path), load_external_data=False)
    change(model)
    path.write_bytes(model.SerializeToString())
    with manifest(folder):
        pass


def graph(name: str, sentence: str, change: Callable[[Any], None]) -> None:
    family(f"a graph {name}", FILE, sentence, lambda folder: edit(folder, change))


def table_of(model: Any) -> Any:
    return next(one for one in model.graph.initializer if one.name == "table")


def external(**entries: str) -> Callable[[Any], None]:
    """Another place for the table."""

    def change(model: Any) -> None:
        table = table_of(model)
        have = {one.key: one.value for one in table.external_data} | entries
        del table.external_data[:]
        for key, value in have.items():
            if value:
                table.external_data.add(key=key, value=value)

    return change


def node(operator: str, *inputs: str, domain: str = "", **attributes: Any) -> Callable[[Any], None]:
    """One more node, in front."""

    def change(model: Any) -> None:
        added = helper.make_node(operator, list(inputs), ["more"], domain=domain, **attributes)
        model.graph.node.insert(0, added)

    return change


def constants(operator: str, *values: Any, **attributes: Any) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for index, value in enumerate(values):
            model.graph.initializer.append(numpy_helper.from_array(np.array(value), f"constant{index}"))
        node(operator, *(f"constant{index}" for index in range(len(values))), **attributes)(model)

    return change


graph(
    "with a table in a file above",
    "tensor table lies in ../../secret.txt, which is not listed",
    external(location="../../secret.txt"),
)
graph(
    "with a table in a file of the system",
    "tensor table lies in /etc/passwd, which is not listed",
    external(location="/etc/passwd"),
)
graph(
    "with a table in memory",
    "tensor table lies in */_ORT_MEM_ADDR_/*, which",
    external(location="*/_ORT_MEM_ADDR_/*", offset="4194304"),
)
graph(
    "with a table in the manifest",
    "tensor table lies in manifest.json, which is not",
    external(location="manifest.json"),
)
graph("with a table beyond its file", "inside of model.onnx.data", external(offset="99999999"))
graph("with a table before its file", "location, offset and length", external(offset="-64"))
graph("with a table at no number", "location, offset and length", external(offset="0x10"))
graph("with a table at too large a number", "tensor table lies at no location", external(offset="1" * 40))
graph("with a table that is too long", "tensor table", external(length=str(2**62)))
graph("with a table that is too short", "tensor table", external(length="4"))
graph("with a table without a length", "location, offset and length", external(length=""))
graph("with a table and a checksum", "location, offset and length", external(checksum="x"))


@attack(FILE, "inside of model.onnx.data")
def a_graph_with_a_table_of_2_to_the_124_numbers(folder: Path) -> None:
    def change(model: Any) -> None:
        table_of(model).dims[:] = [2**62, 2**62]

    edit(folder, change)


@attack(FILE, "extents of tensor table that are not negative")
def a_graph_with_a_table_of_fewer_than_no_rows(folder: Path) -> None:
    def change(model: Any) -> None:
        table_of(model).dims[:] = [-1, 8]

    edit(folder, change)


@attack(FILE, "at most 8 extents of a tensor")
def a_graph_with_a_table_of_twenty_thousand_extents(folder: Path) -> None:
    def change(model: Any) -> None:
        table_of(model).dims[:] = [2**62] * 20_000

    edit(folder, change)


def inner() -> Any:
    return helper.make_graph([], "inner", [], [])


graph("that loops for ever", "operator Loop", node("Loop", "", "", body=inner()))
graph(
    "that branches",
    "operator If",
    node("If", "ids", then_branch=inner(), else_branch=inner()),
)
graph("that scans", "operator Scan", node("Scan", "ids", body=inner(), num_scan_inputs=1))
graph("in an operator", "an attribute of Identity has field 6, which", node("Identity", "ids", body=inner()))
graph("of Python", "operator PyOp", node("PyOp", "ids", domain="com.microsoft.pyop"))
graph("of another domain", "operator Add", node("Add", "ids", "ids", domain="com.microsoft"))
graph("of chance", "operator RandomNormal", node("RandomNormal", shape=[9]))
graph("that dreams of texts", "operator StringNormalizer is none", node("StringNormalizer", "ids"))
graph(
    "that adds up no rows",
    "MatMulInteger",
    lambda model: [
        node("MatMulInteger", "codes", "fewer")(model),
        model.graph.node.insert(0, helper.make_node("Slice", ["codes", "zero", "zero"], ["fewer"])),
        model.graph.node.insert(0, helper.make_node("Cast", ["ids"], ["codes"], to=TensorProto.INT8)),
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.int64), "zero")),
    ],
)
graph(
    "that adds up what no rows became",
    "MatMulInteger",
    lambda model: [
        node("MatMulInteger", "codes", "reshaped")(model),
        model.graph.node.insert(0, helper.make_node("Reshape", ["looked_up", "shape"], ["reshaped"])),
        model.graph.node.insert(0, helper.make_node("Gather", ["codes", "fewer"], ["looked_up"])),
        model.graph.node.insert(0, helper.make_node("Slice", ["ids", "zero", "zero"], ["fewer"])),
        model.graph.node.insert(0, helper.make_node("Cast", ["ids"], ["codes"], to=TensorProto.INT8)),
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.int64), "zero")),
        model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 1], np.int64), "shape")),
    ],
)
graph(
    "that adds up an empty table",
    "MatMulInteger",
    lambda model: [
        node("MatMulInteger", "codes", "empty")(model),
        model.graph.node.insert(0, helper.make_node("Cast", ["ids"], ["codes"], to=TensorProto.INT8)),
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((0, 8), np.int8), "empty")),
    ],
)
graph(
    "that scatters to places of no coordinates",
    "ScatterND",
    lambda model: [
        node("ScatterND", "table", "nowhere", "rows")(model),
        model.graph.node.insert(0, helper.make_node("Gather", ["table", "ids"], ["rows"])),
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 0), np.int64), "nowhere")),
    ],
)
graph("that becomes another", "operator DequantizeLinear is none", node("DequantizeLinear", "table", "scales"))
graph("of memory without end", "no ConstantOfShape of only constants", constants("ConstantOfShape", [2**40]))
graph("that repeats a constant", "no Tile of only constants", constants("Tile", [1.0], [2**40]))
graph("that counts to a million millions", "no Range of only constants", constants("Range", 0, 2**40, 1))
graph(
    "of an outer product",
    "no Mul of constants that may grow",
    constants("Mul", np.zeros((2**10, 1)), np.zeros((1, 2**10))),
)
graph("that doubles a constant", "no Concat of only constants", constants("Concat", [1.0], [1.0], axis=0))
graph("of what is nowhere", "nowhere before the node that takes it", node("Identity", "nowhere"))
graph("that bites its tail", "more before the node that takes it", node("Identity", "more"))
graph("with one tensor twice", "one tensor named table", lambda model: model.graph.initializer.append(table_of(model)))
graph("with a name of a million letters", "a name of 1000000 bytes", node("Identity", "ids" + "x" * 999_997))
graph("of nodes without end", "at most 1024 nodes", lambda model: model.graph.node.extend(list(model.graph.node) * 200))
graph("of texts", "tensor has field 6", constants("Identity", ["text"]))
graph(
    "that takes a text",
    "inputs of ids",
    lambda model: model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.STRING, ["n"])),
)
graph(
    "with an input of two extents",
    "inputs of ids",
    lambda model: model.graph.input[1].type.tensor_type.shape.dim.add(dim_value=2),
)
graph(
    "of other vectors",
    "outputs float32[n, 8]",
    lambda model: setattr(model.graph.output[0].type.tensor_type.shape.dim[1], "dim_value", 9),
)
graph("without vectors", "outputs float32[n, 8]", lambda model: setattr(model.graph.output[0], "name", "others"))
graph(
    "of two domains",
    "one domain",
    lambda model: model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3)),
)
graph("of training", "model has field 20", lambda model: model.training_info.add())
graph(
    "with an operator of its own",
    "model has field 25",
    lambda model: model.functions.add(name="Add"),
)
graph(
    "with scarce weights",
    "graph has field 15",
    lambda model: model.graph.sparse_initializer.add(),
)
graph(
    "with a tensor cut short",
    "tensor constant0 does not hold the 100 numbers",
    lambda model: model.graph.initializer.append(
        TensorProto(name="constant0", data_type=1, dims=[100], raw_data=b"1234")
    ),
)
graph(
    "with a constant in a file",
    "tensors of attributes that lie in the graph",
    node("Constant", value=TensorProto(name="x", data_type=1, dims=[1], data_location=1)),
)


@attack(FILE, "wire type")
def a_graph_that_is_none(folder: Path) -> None:
    with content(folder, FILE) as data:
        data[:] = b"no graph"


@attack(FILE, "a field is cut off")
def a_graph_cut_short(folder: Path) -> None:
    with content(folder, FILE) as data:
        del data[-10:]


@attack(FILE, "ir_version twice")
def a_graph_in_two_parts(folder: Path) -> None:
    """A parser puts them together."""
    with content(folder, FILE) as data:
        data += bytes(data)


@attack(FILE, "more fields")
def a_graph_of_millions_of_fields(folder: Path) -> None:
    with content(folder, FILE) as data:
        data += b"\x72\x00" * 5_000_000


@attack(FILE, "a number is cut off")
def a_graph_of_a_number_without_end(folder: Path) -> None:
    with content(folder, FILE) as data:
        data[:] = b"\xff" * 1_000_000
