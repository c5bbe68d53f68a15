"""What runs in the process that gramvec.runtime.apart starts: one batch in, its vectors by ONNX Runtime out.

Vectors are all that it ever says. What goes wrong here is asked again where somebody can hear why.
"""

from __future__ import annotations

import os
import pickle
import sys

from gramvec.features import FeatureBatch
from gramvec.runtime.onnx import CUDA, OnnxRuntime, turn_telemetry_off


def main() -> None:
    """Answer the question on stdin: a pickle of graph, dimension, cpu_graph, ids and offsets, as OnnxRuntime has them.

    The answer on stdout is float32[n, d] in its bytes; none, and exit code 1, where onnxruntime has a CUDA provider.
    """
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints says nothing in between
    turn_telemetry_off()
    import onnxruntime  # before the question is there: it takes the longest

    if CUDA in onnxruntime.get_available_providers():
        os._exit(1)
    graph, dimension, cpu_graph, ids, offsets = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our parent
    runtime = OnnxRuntime(graph, dimension, "cpu", cpu_graph=cpu_graph, module=onnxruntime)
    answer.write(runtime.run(FeatureBatch(ids, offsets)).tobytes())
    answer.flush()
    os._exit(0)  # there is nothing to tidy up
