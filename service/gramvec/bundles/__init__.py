"""A folder, of a stranger perhaps, into arrays that are checked: what may be read, that it is whole, and in its range.

May import features and below. A new file of the format is a check here, first; a new operator a name in `onnx_graph`.
"""

from __future__ import annotations

from gramvec.bundles.bundle import (
    CPU_GRAPH,
    CUDA_GRAPH,
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
from gramvec.bundles.copying import check_target, copy_bundle
from gramvec.bundles.finding import MANIFEST, find_bundle
from gramvec.bundles.manifest import MOST_BYTES as MOST_MANIFEST_BYTES
from gramvec.bundles.manifest import read_manifest

__all__ = [
    "CPU_GRAPH",
    "CUDA_GRAPH",
    "DEFAULT_MODEL",
    "GRAPH",
    "IDENTITY",
    "MANIFEST",
    "MEMO",
    "MOST_MANIFEST_BYTES",
    "VOCABULARY",
    "Bundle",
    "Golden",
    "Graph",
    "IdentityRecord",
    "Manifest",
    "Precision",
    "Stored",
    "check_target",
    "copy_bundle",
    "find_bundle",
    "open_bundle",
    "read_manifest",
    "staged_folder",
    "write_manifest",
]
