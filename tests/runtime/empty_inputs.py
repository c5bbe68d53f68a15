"""Print the operators that leave outputs unwritten where an input is empty, of those that a bundle's graph may have.

Each runs alone, on empty inputs that leave it something to write, after memory for sessions was filled with one byte
and another: what differs was never written. python tests/runtime/empty_inputs.py
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ValueInfoProto, helper, numpy_helper

from gramvec.bundle.graph_check import OPERATORS, OPERATORS_IN_ORDER
from gramvec.runtime.ort import bound_arena

Inputs = Sequence[Any]
FLOATS, BYTES, WHOLE = np.float32, np.uint8, np.int64
# Each number of the output is one of an input, or of a broadcast one: without inputs there is nothing to write.
ELEMENTWISE = {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "CumSum", "Div", "Equal",
    "Erf", "Exp", "Expand", "Flatten", "Floor", "Gelu", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual",
    "Log", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pow", "Range", "Reciprocal", "Relu", "Reshape", "Round", "Shape",
    "Sigmoid", "Sign", "Size", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Where",
}  # fmt: skip


def empty(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype)


def whole(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, WHOLE)


def cases() -> dict[str, list[tuple[Inputs, int, dict[str, Any]]]]:
    """Inputs, number of outputs and attributes of each operator."""
    found: dict[str, list[tuple[Inputs, int, dict[str, Any]]]] = {
        "MatMulInteger": [
            ([empty(a, 2, 0), empty(b, 0, 300)], 1, {}) for a in (BYTES, np.int8) for b in (BYTES, np.int8)
        ],
        "MatMul": [
            ([empty(t, *a), empty(t, *b)], 1, {})
            for t in (FLOATS, np.float16, np.float64, np.int32, WHOLE)
            for a, b in (((2, 0), (0, 300)), ((3, 2, 0), (3, 0, 300)), ((0,), (0,)))
        ],
        "Gemm": [
            ([empty(FLOATS, 2, 0), empty(FLOATS, 0, 300), *more], 1, {"beta": 0.5})
            for more in ([], [empty(FLOATS, 300)])
        ],
        "LayerNormalization": [([empty(FLOATS, 2, 0), empty(FLOATS, 0)], 3, {})],
        "ArgMax": [([empty(t, 2, 0)], 1, {"axis": 1}) for t in (FLOATS, np.int32)],
        "Gather": [([empty(FLOATS, 0, 3), whole(0, 0)], 1, {})],
        "GatherElements": [([empty(FLOATS, 0, 3), whole([0] * 3, [0] * 3)], 1, {})],
        "GatherND": [
            ([empty(FLOATS, 0, 3), whole([0], [0])], 1, {}),
            ([empty(FLOATS, 2, 3), empty(WHOLE, 2, 0)], 1, {}),
        ],
        "ScatterElements": [([empty(FLOATS, 2, 300), empty(WHOLE, 0, 300), empty(FLOATS, 0, 300)], 1, {})],
        "ScatterND": [
            # Places of no coordinates end the process before onnxruntime 1.31; the check of graphs refuses them.
            ([empty(FLOATS, 2, 300), empty(WHOLE, 0, 1), empty(FLOATS, 0, 300)], 1, {"reduction": reduction})
            for reduction in ("none", "add")
        ],
        "Pad": [([empty(FLOATS, 2, 0), whole(0, 3, 0, 300)], 1, {"mode": mode}) for mode in ("constant", "edge")],
    }
    for operator in ("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"):
        found[operator] = [
            ([empty(t, *shape), whole(axis)], 1, {"keepdims": kept})
            for t in (FLOATS, np.int32, WHOLE)
            for shape, axis in (((2, 0), 1), ((0, 300), 0), ((4, 0, 300), 1), ((0,), 0))
            for kept in (0, 1)
        ]
    for operator, gates in (("LSTM", 4), ("RNN", 1)):
        matrices = [empty(FLOATS, 1, gates * 300, 3), empty(FLOATS, 1, gates * 300, 300)]
        bias = empty(FLOATS, 1, 2 * gates * 300)
        found[operator] = [
            ([empty(FLOATS, 0, 2, 3), *matrices], 2, {"hidden_size": 300}),
            *(
                ([empty(FLOATS, 5, 2, 3), *matrices, bias, np.array(steps, np.int32)], 2, {"hidden_size": 300})
                for steps in ([0, 3], [0, 0])
            ),
        ]
    found["LSTM's cells"] = [([*found["LSTM"][0][0]], 3, {"hidden_size": 300})]
    return found


def session_of(operator: str, inputs: Inputs, outputs: int, attributes: dict[str, Any]) -> Any:
    names, results = [f"i{at}" for at in range(len(inputs))], [f"o{at}" for at in range(outputs)]
    kinds = [helper.np_dtype_to_tensor_dtype(one.dtype) for one in inputs]
    # Axes and pads are constants, as some versions of onnxruntime want them.
    constants = {
        name: one
        for name, one in list(zip(names, inputs, strict=True))[1:]
        if one.dtype == WHOLE and one.size and operator != "Expand"
    }
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, **attributes)],
        "probe",
        [
            helper.make_tensor_value_info(name, kind, [None] * one.ndim)
            for name, kind, one in zip(names, kinds, inputs, strict=True)
            if name not in constants
        ],
        [ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(one, name) for name, one in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), options(), providers=["CPUExecutionProvider"])
    return session, {name: one for name, one in zip(names, inputs, strict=True) if name not in constants}


def options() -> Any:
    made = ort.SessionOptions()
    made.intra_op_num_threads = 1
    made.enable_mem_pattern = False
    made.log_severity_level = 4
    bound_arena(ort, made)
    return made


def fill(session: Any, byte: int) -> None:
    """Take memory of many sizes, write one byte all over it, and give it back."""
    value = ort.OrtValue.ortvalue_from_numpy(np.array([byte], BYTES))
    sizes = [*range(256, 8_192, 256), 40_000, 2**20]
    kept = [
        session.run_with_ort_values(None, {"i0": value, "i1": ort.OrtValue.ortvalue_from_numpy(whole(size))})
        for size in sizes * 2
    ]
    del kept


def main() -> None:
    filler, _ = session_of("Expand", [empty(BYTES, 1), empty(WHOLE, 1)], 1, {})
    unwritten = set()
    probes = cases()
    missing = (OPERATORS | OPERATORS_IN_ORDER) - ELEMENTWISE - {*probes}
    assert not missing, f"no case for {missing}"
    for operator, own in probes.items():
        for inputs, outputs, attributes in own:
            try:
                session, feed = session_of(operator.partition("'")[0], inputs, outputs, attributes)
                found = []
                for byte in (0x11, 0x22, 0x33):
                    fill(filler, byte)
                    found.append([one.tobytes() for one in session.run(None, feed)])
            except Exception:  # onnxruntime raises its own classes: it refuses the case
                continue
            if found[0] != found[1] or found[1] != found[2]:
                unwritten.add(operator)
    sys.stdout.write(f"unwritten: {', '.join(sorted(unwritten))}\n")


if __name__ == "__main__":
    main()
