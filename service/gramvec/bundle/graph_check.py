"""Check of a bundle's untrusted ONNX graph, made without onnx before ONNX Runtime reads the graph.

ONNX Runtime opens whatever file a graph names for its weights, runs loops that need not end, and registers operators of
other domains. An accepted graph is therefore a list of nodes with a few kinds of operators and no subgraphs. Its
weights lie in the graph, or whole inside a file of the bundle.

The field numbers are from https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. A field that is not listed here is
refused, because the check cannot judge it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from math import prod
from pathlib import Path

from gramvec.bundle.manifest import INPUTS, Manifest
from gramvec.bundle.protobuf import MalformedError, ProtobufReader, count_packed, decode_packed, decode_signed
from gramvec.errors import BundleError, quote

# What gramvec_training writes for bags of rows and layers above them, and others of their kind. None calls a graph of
# its own, none reads a file, none draws random numbers, none goes step by step. If an input is empty, none leaves its
# output as the memory was but MatMulInteger (see _check_filled), and those that onnxruntime makes of a product with
# QuantizeLinear and DequantizeLinear around it.
OPERATORS = frozenset({
    "Abs", "Add", "And", "ArgMax", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "CumSum", "Div",
    "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm",
    "Greater", "GreaterOrEqual", "Identity", "LayerNormalization", "Less", "LessOrEqual", "Log", "MatMul",
    "MatMulInteger", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceL2",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND",
    "Shape", "Sigmoid", "Sign", "Size", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Where",
})  # fmt: skip
# What it writes for encoders that read a text's rows in their order, and no other.
OPERATORS_IN_ORDER = frozenset({
    "Add", "Cast", "Concat", "Div", "Gather", "Identity", "Less", "LSTM", "MatMul", "Max", "Min", "Mul", "Range",
    "ReduceMax", "Relu", "RNN", "Shape", "Sigmoid", "Slice", "Squeeze", "Sub", "Tanh", "Unsqueeze", "Where",
})  # fmt: skip
INPUTS_IN_ORDER = ("ids", "offsets")
# Operators that may have only constants as inputs.
FOLDED = frozenset({"Add", "Cast", "Constant", "Div", "Identity", "Mul", "Neg", "Reciprocal", "Round", "Sqrt", "Sub"})
DOMAINS = ("", "ai.onnx")
# Opset 18, which gramvec_training writes, and later opsets, whose operators have no graphs inside either.
OPSETS = range(13, 64)

MAX_NODES, MAX_TENSORS, MAX_OUTPUTS, MAX_FIELDS = 1_024, 1_024, 4, 30_000
MAX_EXTENTS, LONGEST_STRING = 8, 256

_FLOAT, _INT32, _INT64 = 1, 6, 7
# TensorProto.DataType -> bytes of a number: float, uint8, int8, uint16, int16, int32, int64, bool, float16, double,
# uint32, uint64.
_SIZES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}
_EXTERNAL = 1
_MINUS_ONE = b"\xff" * 8  # of int64

FieldValue = int | memoryview
Fields = dict[str, list[FieldValue]]

# The fields that each message may have; those with "*" may occur more than once.
_MODEL = {
    1: "ir_version", 2: "producer_name", 3: "producer_version", 4: "domain", 5: "model_version", 6: "doc_string",
    7: "graph", 8: "opset_import*", 14: "metadata_props*",
}  # fmt: skip
_OPSET = {1: "domain", 2: "version"}
_GRAPH = {1: "node*", 2: "name", 5: "initializer*", 10: "doc_string", 11: "input*", 12: "output*"}
_NODE = {1: "input*", 2: "output*", 3: "name", 4: "op_type", 5: "attribute*", 6: "doc_string", 7: "domain"}
_ATTRIBUTE = {
    1: "name", 2: "f", 3: "i", 4: "s", 5: "t", 7: "floats*", 8: "ints*", 9: "strings*", 13: "doc_string", 20: "type",
}  # fmt: skip
_TENSOR = {
    1: "dims*", 2: "data_type", 4: "float_data*", 5: "int32_data*", 7: "int64_data*", 8: "name", 9: "raw_data",
    12: "doc_string", 13: "external_data*", 14: "data_location",
}  # fmt: skip
_ENTRY = {1: "key", 2: "value"}
_VALUE_INFO = {1: "name", 2: "type", 3: "doc_string"}
_TYPE = {1: "tensor_type", 6: "denotation"}
_TENSOR_TYPE = {1: "elem_type", 2: "shape"}
_SHAPE = {1: "dim*"}
_DIMENSION = {1: "dim_value", 2: "dim_param", 3: "denotation"}


def check_graph(path: Path, data: bytes, manifest: Manifest) -> None:
    """Look through the graph in the bytes of a model.onnx.

    Raises:
        BundleError: naming `path`, for what is no graph, or one that may not be.
    """
    try:
        _Graph(ProtobufReader(MAX_FIELDS), manifest).check(memoryview(data))
    except MalformedError as error:
        raise BundleError(f"{path}: no graph that a bundle may have: {error}; export the model again") from error


class _Graph:
    def __init__(self, reader: ProtobufReader, manifest: Manifest) -> None:
        self._reader = reader
        self._manifest = manifest
        in_order = manifest.graph.composition == "sequence"
        self._operators = OPERATORS_IN_ORDER if in_order else OPERATORS
        names: tuple[str, ...] = INPUTS_IN_ORDER if in_order else INPUTS
        # Type and extents of each; None for an extent that a call gives.
        self._inputs: dict[str, tuple[int, list[int | None]]] = {
            name: (_INT32 if name == "ids" else _INT64, [None]) for name in names
        }
        self._defined: dict[str, int | None] = {}  # of each tensor how many numbers it has, where it is a constant
        self._filled: set[str] = {"ids"}  # tensors of which no extent is 0 where a call has ids
        self._behind: set[str] = set()  # constants that name the axis behind all others
        self._single: set[str] = set()  # tensors whose last extent is 1

    def check(self, model: memoryview) -> None:
        fields = self._read("the model", model, _MODEL)
        opsets = [self._read("opset_import", _bytes(opset), _OPSET) for opset in fields["opset_import"]]
        _demand(
            len(opsets) == 1 and _string(opsets[0], "domain") in DOMAINS, "operators of only one domain, ONNX's own"
        )
        version = _number(opsets[0], "version")
        _demand(version in OPSETS and version == self._manifest.graph.opset, "the opset that the manifest names")
        _demand(len(fields["graph"]) == 1, "one graph")
        self._check_graph(_bytes(fields["graph"][0]))

    def _check_graph(self, graph: memoryview) -> None:
        fields = self._read("the graph", graph, _GRAPH)
        _demand(len(fields["node"]) <= MAX_NODES, f"at most {MAX_NODES} nodes")
        _demand(len(fields["initializer"]) <= MAX_TENSORS, f"at most {MAX_TENSORS} initializers")
        for name, kind, extents in self._value_infos(fields["input"]):
            _demand(
                self._inputs.get(name) == (kind, extents),
                f"inputs of {', '.join(self._inputs)}, and not {quote(name)}",
            )
            self._define(name)
        for tensor in fields["initializer"]:
            name, numbers = self._check_tensor(_bytes(tensor), may_be_external=True)
            self._define(name, numbers)
            if numbers:
                self._filled.add(name)
        for node in fields["node"]:
            self._check_node(_bytes(node))
        outputs = list(self._value_infos(fields["output"]))
        vectors, d = self._manifest.graph.output, self._manifest.dimension
        alike = all((kind, extents) == (_FLOAT, [None, d]) for _, kind, extents in outputs)
        fits = 0 < len(outputs) <= MAX_OUTPUTS and alike and outputs[0][0] == vectors
        _demand(fits, f"outputs float32[n, {d}], the first of them {vectors}")
        _demand(all(name in self._defined for name, _, _ in outputs), "outputs that nodes have")

    def _define(self, name: str, constant: int | None = None) -> None:
        _demand(name not in self._defined and name != "", f"one tensor named {quote(name)}")
        self._defined[name] = constant

    def _check_node(self, node: memoryview) -> None:
        fields = self._read("a node", node, _NODE)
        operator = _string(fields, "op_type")
        if operator not in self._operators or _string(fields, "domain") not in DOMAINS:
            raise MalformedError(f"operator {quote(operator)} is none that bundles may use")
        inner = [
            self._read(f"an attribute of {operator}", _bytes(attribute), _ATTRIBUTE)
            for attribute in fields["attribute"]
        ]
        tensors = [self._check_tensor(_bytes(tensor), may_be_external=False) for own in inner for tensor in own["t"]]
        inputs = [name for name in map(_text, fields["input"]) if name]
        for name in inputs:
            _demand(name in self._defined, f"{quote(name)} before the node that takes it")
        sizes = [size for name in inputs if (size := self._defined[name]) is not None]
        constant = None
        if len(sizes) == len(inputs):
            # onnxruntime computes it when it opens the graph, whatever size it has: no larger than what is there.
            sizes += [size for _, size in tensors]
            _demand(operator in FOLDED, f"no {operator} of only constants")
            _demand(sum(size > 1 for size in sizes) <= 1, f"no {operator} of constants that may grow")
            constant = max(sizes, default=1)
        self._check_filled(operator, fields, inner)
        for name in map(_text, fields["output"]):
            self._define(name, constant)

    def _check_filled(self, operator: str, fields: Fields, attributes: list[Fields]) -> None:
        """Refuse what onnxruntime leaves as the memory was: a product over no rows, the cells of an LSTM of no steps.

        Places of no coordinates for ScatterND end the process before onnxruntime 1.31. The runtime makes no call
        without ids, so rows that are looked up by ids are some.
        """
        inputs = [*map(_text, fields["input"])]
        if operator == "MatMulInteger":
            _demand(inputs[1:2] != [] and inputs[1] in self._filled, "rows of the table by ids in a MatMulInteger")
        if operator == "LSTM":
            _demand(len(fields["output"]) <= 2, "no cells among the outputs of an LSTM")
        if operator == "ScatterND":
            _demand(inputs[1:2] != [] and inputs[1] in self._single, "places of one coordinate in a ScatterND")
        if operator == "Unsqueeze" and inputs[1:] != [] and inputs[1] in self._behind:
            self._single.update(map(_text, fields["output"]))
        axes = [_number(attribute, "i") for attribute in attributes if _string(attribute, "name") == "axis"]
        # What is looked up in and by tensors without an extent of 0 has none; a tensor keeps its numbers in any shape.
        sources = {"Gather": inputs[:2] if not any(axes) else [""], "Cast": inputs, "Reshape": inputs[:1]}
        if operator in sources and self._filled.issuperset(sources[operator]):
            self._filled.update(map(_text, fields["output"]))

    def _value_infos(self, values: list[FieldValue]) -> Iterator[tuple[str, int, list[int | None]]]:
        """Yield name, type and extents of inputs or outputs, None for an extent that a call gives."""
        for value in values:
            fields = self._read("an input or output", _bytes(value), _VALUE_INFO)
            kind = self._inner("its type", fields, "type", _TYPE)
            tensor = self._inner("its type", kind, "tensor_type", _TENSOR_TYPE)
            shape = self._inner("its shape", tensor, "shape", _SHAPE)
            sizes = [self._read("its shape", _bytes(size), _DIMENSION) for size in shape["dim"]]
            extents = [_number(size, "dim_value") if size["dim_value"] else None for size in sizes]
            yield _string(fields, "name"), _number(tensor, "elem_type"), extents

    def _check_tensor(self, tensor: memoryview, *, may_be_external: bool) -> tuple[str, int]:
        """Check a tensor; return its name and the number of its elements."""
        fields = self._read("a tensor", tensor, _TENSOR)
        name, kind = _string(fields, "name"), _number(fields, "data_type")
        if kind not in _SIZES:
            raise MalformedError(f"tensor {quote(name)} is of type {kind}, and not of numbers")
        _demand(_varints(fields["dims"]) <= MAX_EXTENTS, f"at most {MAX_EXTENTS} extents of a tensor")
        dims = chain.from_iterable(
            [extent] if isinstance(extent, int) else decode_packed(extent) for extent in fields["dims"]
        )
        extents = [decode_signed(extent) for extent in dims]
        _demand(all(extent >= 0 for extent in extents), f"extents of tensor {quote(name)} that are not negative")
        numbers = prod(extents)
        if _number(fields, "data_location") == _EXTERNAL or fields["external_data"]:
            _demand(may_be_external, "tensors of attributes that lie in the graph")
            self._check_external(name, fields, numbers * _SIZES[kind])
            return name, numbers
        if kind == _INT64 and _MINUS_ONE in [bytes(_bytes(raw)[:9]) for raw in fields["raw_data"]]:
            self._behind.add(name)
        held = [len(_bytes(raw)) / _SIZES[kind] for raw in fields["raw_data"]]
        held += [len(_bytes(numbers)) / _SIZES[_FLOAT] for numbers in fields["float_data"]]
        held += [_varints(fields[field]) for field in ("int32_data", "int64_data") if fields[field]]
        if held != [numbers] and (held or numbers):
            raise MalformedError(f"tensor {quote(name)} does not hold the {numbers} numbers of its shape")
        return name, numbers

    def _check_external(self, name: str, fields: Fields, length: int) -> None:
        """Check that a tensor lies whole inside one listed file of the bundle, at a valid offset."""
        inline = ("raw_data", "float_data", "int32_data", "int64_data")
        _demand(not any(fields[field] for field in inline), f"one place for tensor {quote(name)}")
        _demand(_number(fields, "data_location") == _EXTERNAL, f"one place for tensor {quote(name)}")
        entries = [self._read("external_data", _bytes(entry), _ENTRY) for entry in fields["external_data"]]
        where = {_string(entry, "key"): _string(entry, "value") for entry in entries}
        if len(where) < len(entries) or set(where) != {"location", "offset", "length"}:
            raise MalformedError(f"tensor {quote(name)} lies at no location, offset and length")
        record = self._manifest.files.get(where["location"])
        if record is None:
            raise MalformedError(f"tensor {quote(name)} lies in {quote(where['location'])}, which is not listed")
        if not all(re.fullmatch(r"[0-9]{1,19}", where[key]) for key in ("offset", "length")):
            raise MalformedError(f"tensor {quote(name)} lies at no location, offset and length")
        if int(where["length"]) != length or int(where["offset"]) + length > record.bytes:
            raise MalformedError(f"tensor {quote(name)} does not lie inside of {where['location']}")

    def _inner(self, what: str, fields: Fields, name: str, known: Mapping[int, str]) -> Fields:
        _demand(len(fields[name]) == 1, f"{name} in {what}")
        return self._read(what, _bytes(fields[name][0]), known)

    def _read(self, what: str, message: memoryview, known: Mapping[int, str]) -> Fields:
        contents: Fields = {name.rstrip("*"): [] for name in known.values()}
        for number, value in self._reader.fields(message):
            name = known.get(number)
            if name is None:
                raise MalformedError(f"{what} has field {number}, which no graph of ours has")
            values = contents[name.rstrip("*")]
            # Parsers take the last, or merge them; no writer writes two.
            if values and not name.endswith("*"):
                raise MalformedError(f"{what} has {name} twice")
            values.append(value)
        return contents


def _demand(holds: bool, wanted: str) -> None:
    if not holds:
        raise MalformedError(f"there should be {wanted}")


def _bytes(value: FieldValue) -> memoryview:
    if isinstance(value, int):
        raise MalformedError("a number where a message should be")
    return value


def _number(fields: Fields, name: str) -> int:
    """Return the number of a field, 0 if it is absent."""
    value = fields[name][0] if fields[name] else 0
    if not isinstance(value, int):
        raise MalformedError(f"{name} is no number")
    return decode_signed(value)


def _varints(values: list[FieldValue]) -> int:
    """Return the number of values in a repeated field, packed or not."""
    return sum(1 if isinstance(value, int) else count_packed(value) for value in values)


def _string(fields: Fields, name: str) -> str:
    return _text(fields[name][0]) if fields[name] else ""


def _text(value: FieldValue) -> str:
    data = _bytes(value)
    if len(data) > LONGEST_STRING:
        raise MalformedError(f"a name of {len(data)} bytes")
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError("a name is not UTF-8") from error
