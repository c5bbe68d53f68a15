"""Weights -> a bundle: graphs, memo, rows shaped for serving, parity with the trainer; and bundles written again.

It imports configuration, data and encoders, and the serving side. A new encoder's graph is a branch of `graphed`.
"""

from __future__ import annotations

from gramvec_training.export.adapting import adapt, feature_weights
from gramvec_training.export.bundle import NO_MEMO, PARITY, export_bundle
from gramvec_training.export.convert import convert
from gramvec_training.export.golden import golden_texts
from gramvec_training.export.graph import write_cpu_graph, write_graph, write_graphs
from gramvec_training.export.identity import add_lexical, with_lexical
from gramvec_training.export.memo import Chosen, can_have_memo, choose, memo_of
from gramvec_training.export.shape import kind_of, scaled, whitening_transform
from gramvec_training.export.weights import read_weights, stored_of
from gramvec_training.export.writers import Graphed, graphed

__all__ = [
    "NO_MEMO",
    "PARITY",
    "Chosen",
    "Graphed",
    "adapt",
    "add_lexical",
    "can_have_memo",
    "choose",
    "convert",
    "export_bundle",
    "feature_weights",
    "golden_texts",
    "graphed",
    "kind_of",
    "memo_of",
    "read_weights",
    "scaled",
    "stored_of",
    "whitening_transform",
    "with_lexical",
    "write_cpu_graph",
    "write_graph",
    "write_graphs",
]
