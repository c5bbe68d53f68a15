"""What the shipped models make of the same texts, a digest a line: make test-arm compares two machines' lines."""

from __future__ import annotations

import hashlib
import sys
from itertools import islice
from pathlib import Path

import numpy as np

import gramvec
from gramvec.bundle.bundle import open_bundle
from gramvec.embed.verify import sample_texts
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.ort import OnnxRuntime

TEXTS = 2_000
MODELS = Path(__file__).parents[1] / "models"


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


for folder in sorted(path.parent for path in MODELS.glob("*/manifest.json")):
    bundle = open_bundle(folder)
    texts = list(islice(sample_texts(bundle), TEXTS))
    say(folder.name, "unit", digest(gramvec.load(str(folder)).embed(texts)))
    features = bundle.memoized(texts)
    say(folder.name, "features", digest(features.ids), digest(features.offsets))
    say(folder.name, "native", *(digest(NativeRuntime(bundle, width=width).run(features)) for width in (512, 256, 0)))
    graph = OnnxRuntime(bundle.graph_path, bundle.manifest.dimension, cpu_graph=bundle.cpu_graph_path)
    say(folder.name, "onnx", digest(graph.run(features)))
