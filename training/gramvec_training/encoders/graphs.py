"""ONNX graphs of encoders, of stock operators only: what graphs of rows in their order have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from gramvec.bundle.manifest import Graph, Precision
from gramvec.errors import InputError
from gramvec.runtime.onnx_graph import OPSET, Writer
from gramvec_training.encoders.base import LONGEST, Encoder, EncoderGraph

INPUTS = {"ids": (TensorProto.INT32, ["rows"]), "offsets": (TensorProto.INT64, ["texts_plus_one"])}


def graph_encoder(encoder: Encoder) -> EncoderGraph:
    """Return the table and the graph of an encoder.

    Raises:
        InputError: The weights hold NaN or infinity, or the encoder has no graph.
    """
    arrays = encoder.arrays()
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError("the weights hold NaN or infinity: training diverged; lower the learning rate")
    return encoder.graph(np.ascontiguousarray(arrays["table"], np.float32), arrays)


def record_graph(precision: Precision, pooling: Any, activation: Any) -> Graph:
    """Return the manifest's record of a graph that reads rows in their order."""
    return Graph(
        opset=OPSET,
        inputs=["ids", "offsets"],
        output="vectors",
        precision=precision,
        pooling=pooling,
        activation=activation,
        composition="sequence",
    )


def write_lengths(w: Writer) -> None:
    """Add starts and lengths [n] from offsets [n + 1], and the number of ids."""
    w.constant("zero", [0])
    w.constant("minus_one", [-1])
    w.constant("second", [1])
    w.constant("end", [np.iinfo(np.int64).max])
    w.constant("most", [LONGEST])
    w.node("Slice", ["offsets", "zero", "minus_one"], "starts")
    w.node("Slice", ["offsets", "second", "end"], "ends")
    w.node("Sub", ["ends", "starts"], "whole_lengths")
    w.node("Min", ["whole_lengths", "most"], "lengths")
    w.node("Shape", ["ids"], "row_count")  # [1]


def write_steps(w: Writer, lengths: str, *, minimum: int) -> None:
    """Add longest [1], at least `minimum`, and steps int64[longest]."""
    w.constant("least", [minimum])
    w.node("Concat", [lengths, "least"], "lengths_and_least", axis=0)
    w.node("ReduceMax", ["lengths_and_least"], "longest", keepdims=1)
    w.node("Squeeze", ["longest"], "step_count")
    w.constant("begin", 0)
    w.constant("stride", 1)
    w.node("Range", ["begin", "step_count", "stride"], "steps")
