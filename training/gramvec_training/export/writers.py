"""Which graph an encoder has: each kind of encoder is written by one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.bundle.bundle import Graph, Precision
from gramvec.errors import InputError
from gramvec_training.encoders import Arrays, Average, Bag, CharCnn, Encoder, Lstm, Rnn, TwoLayer, Weighted, folded
from gramvec_training.export.graph import Layers, write_graph
from gramvec_training.export.parts import write_layer_graphs
from gramvec_training.export.sequences import write_char_cnn_graph, write_recurrent_graph
from gramvec_training.types import Floats


@dataclass(frozen=True)
class Graphed:
    """An encoder as its graph has it: `table` float32[rows, width], and what writes the graph.

    sums: whether a vector is a function of the sum of the text's rows, so that rows may stand for sums of others.
    in_order: whether the order of the rows counts.
    """

    table: Floats
    writer: Callable[..., Graph]
    sums: bool
    in_order: bool = False

    def write(self, folder: Path, precision: Precision, *, table: Floats | None = None) -> Graph:
        """Write model.onnx and its data; `table` is another than the encoder's, with further rows, say."""
        rows = self.table if table is None else table
        return self.writer(folder, table=rows, precision=precision)


def graphed(encoder: Encoder) -> Graphed:
    """An encoder as its graph has it. Raises InputError for weights with NaN or infinity, and for what has no graph.

    The common components of a bag (SIF, Algorithm 1, with u fixed here and not computed from the sentences at hand) are
    removed from the rows, which for a sum or mean of them is the same.
    """
    arrays = encoder.arrays()
    if not all(np.isfinite(one).all() for one in arrays.values()):
        raise InputError("the weights hold NaN or infinity: training diverged; lower the learning rate")
    table = np.ascontiguousarray(arrays["table"], np.float32)
    if isinstance(encoder, Bag):
        return _of_bag(encoder, table, arrays)
    if isinstance(encoder, Weighted):
        return Graphed(folded(table), partial(write_graph, pooling="mean", activation="linear", bias=None), False)
    if isinstance(encoder, TwoLayer):
        activation = encoder.settings.activation
        second = [(arrays["second"], arrays["second_bias"], activation)]
        rest: dict[str, Any] = {"pooling": "sum", "activation": activation, "bias": arrays["bias"], "layers": second}
        return Graphed(table, partial(_with_layers, **rest), True)
    if isinstance(encoder, Average):
        layers = [
            (arrays[f"matrices.{i}"], arrays[f"biases.{i}"], encoder.settings.activation)
            for i in range(len(encoder.matrices))
        ]
        rest = {"pooling": "mean", "activation": "linear", "bias": None, "layers": layers}
        return Graphed(table, partial(_with_layers, **rest), False)
    if isinstance(encoder, (Rnn, Lstm)):
        return Graphed(table, partial(write_recurrent_graph, encoder=encoder), False, in_order=True)
    if isinstance(encoder, CharCnn):
        return Graphed(table, partial(write_char_cnn_graph, encoder=encoder), False, in_order=True)
    raise InputError(f"there is no graph for {type(encoder).__name__}; it cannot be exported")


def _with_layers(folder: Path, *, table: Floats, layers: Layers, **rest: Any) -> Graph:
    """The whole graph, and what is above the pooled rows where the service pools them itself."""
    graph = write_graph(folder, table=table, layers=layers, **rest)
    if graph.stored is None:
        return graph
    # A mean is no larger than its rows; a sum may be.
    bound = float(np.abs(table).max(initial=0)) if rest["pooling"] == "mean" and rest["bias"] is None else None
    write_layer_graphs(folder, rest["activation"], layers, bound=bound)
    return graph.model_copy(update={"cpu": True, "cuda": True})


def _of_bag(encoder: Bag, table: Floats, arrays: Arrays) -> Graphed:
    settings, u = encoder.settings, arrays.get("components")
    if settings.presence:
        raise InputError("the service counts a feature as often as it is there, the model once: not to be exported")
    if u is not None:
        table = np.asarray(table - (table @ u.T) @ u, np.float32)
    if settings.activation == "relu":
        raise InputError("a bag with relu is for taggers, which are not exported; take linear or tanh")
    rest: dict[str, Any] = {"pooling": settings.pooling, "activation": settings.activation, "bias": arrays.get("bias")}
    return Graphed(table, partial(write_graph, **rest), settings.pooling == "sum")
