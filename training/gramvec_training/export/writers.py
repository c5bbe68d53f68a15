"""Which graph an encoder has: each kind of encoder is written by one function."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.bundle import Graph, Precision
from gramvec.errors import InputError
from gramvec_training.encoders import Bag, Encoder, TwoLayer
from gramvec_training.export.graph import write_graph
from gramvec_training.types import Floats


@dataclass(frozen=True)
class Graphed:
    """An encoder as its graph has it: `table` float32[rows, width], and what `write_graph` takes besides.

    sums: whether a vector is a function of the sum of the text's rows, so that rows may stand for sums of others.
    """

    table: Floats
    rest: dict[str, Any]
    sums: bool

    def write(self, folder: Path, precision: Precision, *, table: Floats | None = None) -> Graph:
        """Write model.onnx and its data; `table` is another than the encoder's, with further rows, say."""
        rows = self.table if table is None else table
        return write_graph(folder, table=rows, precision=precision, **self.rest)


def graphed(encoder: Encoder) -> Graphed:
    """An encoder as its graph has it. Raises InputError for weights with NaN or infinity.

    The common components of a bag (SIF, Algorithm 1, with u fixed here and not computed from the sentences at hand) are
    removed from the rows, which for a sum or mean of them is the same.
    """
    arrays = encoder.arrays()
    if not all(np.isfinite(one).all() for one in arrays.values()):
        raise InputError("the weights hold NaN or infinity: training diverged; lower the learning rate")
    table = np.ascontiguousarray(arrays["table"], np.float32)
    if isinstance(encoder, Bag):
        settings, u = encoder.settings, arrays.get("components")
        if u is not None:
            table = np.asarray(table - (table @ u.T) @ u, np.float32)
        rest: dict[str, Any] = {
            "pooling": settings.pooling,
            "activation": settings.activation,
            "bias": arrays.get("bias"),
        }
        return Graphed(table, rest, settings.pooling == "sum")
    if isinstance(encoder, TwoLayer):
        layers = [(arrays["second"], arrays["second_bias"])]
        rest = {"pooling": "sum", "activation": "tanh", "bias": arrays["bias"], "layers": layers}
        return Graphed(table, rest, True)
    raise InputError(f"there is no graph for {type(encoder).__name__}; it cannot be exported")
