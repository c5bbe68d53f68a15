"""A folder, of a stranger perhaps, into arrays that are checked: what may be read, that it is whole, and in its range.

May import features and below. A new file of the format is a check here, first; a new operator a name in `onnx_graph`.
"""

from __future__ import annotations

from gramvec.bundles.bundle import (
    CPU_GRAPH,
    DEFAULT_MODEL,
    GRAPH,
    IDENTITY,
    MEMO,
    VOCABULARY,
    Bundle,
    Golden,
    Graph,
    IdentityRecord,
    Manifest,
    Precision,
    Stored,
    open_bundle,
    staged_folder,
    write_manifest,
)
from gramvec.bundles.finding import MANIFEST, find_bundle

__all__ = [
    "CPU_GRAPH",
    "DEFAULT_MODEL",
    "GRAPH",
    "IDENTITY",
    "MANIFEST",
    "MEMO",
    "VOCABULARY",
    "Bundle",
    "Golden",
    "Graph",
    "IdentityRecord",
    "Manifest",
    "Precision",
    "Stored",
    "find_bundle",
    "open_bundle",
    "staged_folder",
    "write_manifest",
]
