"""Features to vectors: one contract, behind which a device does the sums; which one serves is chosen by golden texts.

May import bundles and below. A new device or kind of graph is a file here, and a line in `choice`.
"""

from __future__ import annotations

from gramvec.runtime.choice import RuntimeName, open_runtime
from gramvec.runtime.contract import Batching, Device, Runtime, Sums
from gramvec.runtime.exact import ExactTable
from gramvec.runtime.golden import AGREEMENT, differences
from gramvec.runtime.native import MOST_WEIGHT, NativeRuntime, weights_and_step
from gramvec.runtime.onnx import OnnxRuntime

__all__ = [
    "AGREEMENT",
    "MOST_WEIGHT",
    "Batching",
    "Device",
    "ExactTable",
    "NativeRuntime",
    "OnnxRuntime",
    "Runtime",
    "RuntimeName",
    "Sums",
    "differences",
    "open_runtime",
    "weights_and_step",
]
