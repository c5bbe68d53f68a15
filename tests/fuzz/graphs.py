"""ONNX graphs with changed fields and bytes: what the walker lets through is what onnx reads, and within the rules."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

from fuzz import mutate
from gramvec.bundle.graph_check import OPERATORS, OPERATORS_IN_ORDER, check_graph
from gramvec.bundle.manifest import Manifest, read_manifest
from gramvec.bundle.protobuf import MalformedError, ProtobufReader, decode_packed
from gramvec.errors import BundleError

# One of each composition beyond a bag.
BEYOND_BAGS = ("dan", "irnn", "lstm", "charcnn-a")
STRINGS = [
    "",
    "../../x",
    "/etc/passwd",
    "*/_ORT_MEM_ADDR_/*",
    "model.onnx.data",
    "0",
    "-1",
    "1e9",
    "x" * 400,
    "ids",
    "table",
]


def prepare(bases: Path) -> None:
    """Bundles to start from."""
    mutate.write_bases(bases)
    if not (bases / BEYOND_BAGS[-1]).exists():
        sys.path.append(str(Path(__file__).parents[1] / "runtime"))
        from test_sequences_served import written  # with torch, which takes a second

        for name in BEYOND_BAGS:
            written(bases / name, name)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """A hundred graphs, which are small."""
    base = bases / numbers.choice([*sorted(mutate.SPECS), *BEYOND_BAGS])
    manifest, _ = read_manifest(base / "manifest.json", (base / "manifest.json").read_bytes())
    graphs = [(file.name, file.read_bytes()) for file in sorted(base.glob("*.onnx"))]
    for _ in range(100):
        name, data = numbers.choice(graphs)
        if numbers.random() < 0.7:
            model = onnx.ModelProto.FromString(data)
            for _ in range(numbers.choice([1, 1, 2, 4])):
                change(numbers, model)
            data = model.SerializeToString()
        if numbers.random() < 0.5:
            data = mutate.content(numbers, data)
        (folder / name).write_bytes(data)
        judge(folder / name, data, manifest)
        walk(data)


def walk(data: bytes) -> None:
    """The reader by itself, on whatever is there."""
    try:
        for _, value in ProtobufReader(1_000).fields(memoryview(data)):
            if isinstance(value, memoryview):
                for _ in decode_packed(value[:100]):
                    pass
    except MalformedError:
        pass


def judge(path: Path, data: bytes, manifest: Manifest) -> None:
    """What is let through, as a library reads it that trusts it."""
    try:
        check_graph(path, data, manifest)
    except BundleError as error:
        mutate.check_sentence(error, path)
        return
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return  # onnxruntime says so, too
    graph = model.graph
    assert not model.functions
    assert not model.training_info
    assert not graph.sparse_initializer
    assert len(model.opset_import) == 1
    assert model.opset_import[0].domain in ("", "ai.onnx")
    allowed = OPERATORS_IN_ORDER if manifest.graph.composition == "sequence" else OPERATORS
    for node in graph.node:
        assert node.op_type in allowed
        assert node.domain in ("", "ai.onnx")
        for attribute in node.attribute:
            assert not attribute.HasField("g")
            assert not attribute.graphs
            assert not attribute.HasField("sparse_tensor")
            assert not attribute.t.external_data
    for tensor in graph.initializer:
        assert all(extent >= 0 for extent in tensor.dims)
        if tensor.external_data or tensor.data_location == TensorProto.EXTERNAL:
            where = {entry.key: entry.value for entry in tensor.external_data}
            assert set(where) == {"location", "offset", "length"}
            assert 0 <= int(where["offset"]) <= int(where["offset"]) + int(where["length"])
            assert int(where["offset"]) + int(where["length"]) <= manifest.files[where["location"]].bytes


def change(numbers: random.Random, model: Any) -> None:
    """One field of one message, of those that are there or might be."""
    graph = model.graph
    if numbers.random() < 0.4 and graph.node:
        change_node(numbers, numbers.choice(graph.node))
    elif numbers.random() < 0.5 and graph.initializer:
        change_tensor(numbers, numbers.choice(graph.initializer))
    elif (kind := numbers.randrange(4)) == 0:
        operator, name = numbers.choice(sorted(OPERATORS)), numbers.choice(["ids", "table", "offsets"])
        node = helper.make_node(operator, [name], [numbers.choice(STRINGS)])
        graph.node.insert(numbers.randrange(len(graph.node) + 1), node)
    elif kind == 1:
        model.opset_import.add().domain = numbers.choice(["", "com.microsoft"])
    elif kind == 2:
        numbers.choice([model.functions, model.training_info, graph.sparse_initializer, graph.value_info]).add()
    elif extents := numbers.choice([*graph.input, *graph.output]).type.tensor_type.shape.dim:
        extents[0].dim_value = mutate.number(numbers) % (1 << 63)


def change_node(numbers: random.Random, node: Any) -> None:
    """Operator, domain, inputs or attributes."""
    kind = numbers.randrange(4)
    if kind == 0:
        node.op_type = numbers.choice(["Loop", "If", "Scan", "PyOp", "Gather", "ConstantOfShape", "MatMul", "Tile", ""])
    elif kind == 1:
        node.domain = numbers.choice(["com.microsoft", "ai.onnx", "ai.onnx.ml", ""])
    elif kind == 2:
        node.input[:] = [numbers.choice([*node.input, *STRINGS]) for _ in range(numbers.randrange(4))]
    else:
        node.attribute.append(attribute(numbers))


def change_tensor(numbers: random.Random, tensor: Any) -> None:
    """Extents, type, or where it lies."""
    kind = numbers.randrange(4)
    if kind == 0:
        tensor.dims[:] = [mutate.number(numbers) % (1 << 63) for _ in range(numbers.randrange(4))]
    elif kind == 1:
        tensor.data_type = numbers.randrange(20)
    elif kind == 2 and tensor.external_data:
        numbers.choice(tensor.external_data).value = numbers.choice([*STRINGS, str(mutate.number(numbers))])
    else:
        tensor.data_location = numbers.choice([0, 1])
        entry = tensor.external_data.add()
        entry.key = numbers.choice(["location", "offset", "length", "checksum"])
        entry.value = numbers.choice(STRINGS)


def attribute(numbers: random.Random) -> Any:
    """One that an operator might read."""
    inner = helper.make_graph([], "inner", [], [])
    return numbers.choice([
        lambda: helper.make_attribute("body", inner),
        lambda: helper.make_attribute("graphs", [inner]),
        lambda: helper.make_attribute("axis", mutate.number(numbers) % (1 << 63)),
        lambda: helper.make_attribute("value", TensorProto(data_type=1, dims=[2], data_location=1)),
        lambda: helper.make_attribute("value", TensorProto(data_type=1, dims=[2], raw_data=bytes(8))),
        lambda: helper.make_attribute("strings", ["a", "b"]),
    ])()  # fmt: skip
