"""Loading of a model by its name or folder."""

from __future__ import annotations

import copyreg
import os

import numpy as np

from gramvec.bundle.bundle import DEFAULT_MODEL, Bundle, open_bundle
from gramvec.embed.embedder import MAX_CHARACTERS, Embedder
from gramvec.embed.vectors import Space, check_space, unit
from gramvec.errors import BundleError, DeviceError
from gramvec.lexical.sketch import LexicalSketch
from gramvec.runtime.base import Device, Runtime
from gramvec.runtime.select import RuntimeName, open_runtime

# Largest accepted error of a component of a vector of length 1.
UNIT_TOLERANCE = 1e-6


def load(
    name_or_path: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    device: Device = "auto",
    max_characters: int = MAX_CHARACTERS,
    runtime: RuntimeName = "auto",
    threads: int | None = None,
    space: Space = "semantic",
) -> Embedder:
    """Open a model by name (in models/) or path, verify its files, and check it on its golden texts.

    Args:
        name_or_path: a name in models/, or a bundle's folder.
        device: "cpu", "cuda" or "auto".
        max_characters: see Embedder, as for threads and space.
        runtime: "onnx", "native" (a compiled loop for a CPU) or "auto", see gramvec.runtime.select.
        threads: see Embedder.
        space: see Embedder.

    Raises:
        BundleError: the bundle is damaged or unsuitable.
        DeviceError: the device or runtime is unavailable.
        InputError: the model does not have this space.
    """
    check_space(space)
    bundle = open_bundle(name_or_path)
    opened = _open(bundle, device, runtime)
    return Embedder(bundle, opened, max_characters=max_characters, threads=threads, space=space)


def reopen(
    path: str,
    digest: str,
    settings: tuple[Device, RuntimeName, int, int, Space],
    lexical: LexicalSketch | None,
) -> Embedder:
    """Reopen a pickled model; `digest` is its bundle's. Raises BundleError if the path now holds another model."""
    device, runtime, max_characters, threads, space = settings
    bundle = open_bundle(path)
    if bundle.digest != digest:
        raise BundleError(f"{path}: another model than the one that was pickled; pickle it again")
    opened = _open(bundle, device, runtime)
    return Embedder(bundle, opened, max_characters=max_characters, threads=threads, space=space, lexical=lexical)


def _reduce(embedder: Embedder) -> tuple[object, tuple[object, ...]]:
    """Return the function that reopens a model, and its arguments."""
    settings = embedder.device, embedder.runtime, embedder.max_characters, embedder.threads, embedder.space
    where = str(embedder.bundle.path.resolve())
    return reopen, (where, embedder.bundle.digest, settings, embedder.own_lexical)


copyreg.pickle(Embedder, _reduce)  # type: ignore[arg-type]


def _open(bundle: Bundle, device: Device, runtime: RuntimeName) -> Runtime:
    """Open the runtime, and check it and the loop that makes every vector a unit vector on the golden vectors."""
    opened = open_runtime(bundle, device, runtime)
    vectors = np.array([golden.vector for golden in bundle.manifest.golden], np.float32)
    vectors = vectors.reshape(len(vectors), bundle.manifest.dimension)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    expected = vectors / np.where(lengths > 0, lengths, 1)
    if not np.allclose(unit(vectors), expected, rtol=0, atol=UNIT_TOLERANCE):
        raise DeviceError("the compiled loops give vectors that are not of length 1; install gramvec again")
    return opened
