"""Bundles of the same model in each precision, made in a temporary folder from the shipped one.

The shipped table is rounded, so a float32 table is needed that rounds to it: each value is moved at random within
the half step that rounding hid. What rounding costs is then the distance to that table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.measure import ROOT
from gramvec.bundle.bundle import GRAPH, Bundle, Precision, open_bundle
from gramvec.text.suffixes import separated, suffix_rows
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.encoders import bag_of
from gramvec_training.export import NO_MEMO, Chosen, export_bundle

Floats = NDArray[np.float32]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
SHARE = 0.99  # of the half step: float32 must not round the sum onto its end
# The loaders check that a model still gives these vectors.
GOLDEN_TEXTS = ["cheap flihgts", "two men are playing chess"]


def stored(bundle: Bundle) -> dict[str, NDArray[Any]]:
    """The constants of the bundle's graph: `table`, `scales` and `columns` (int8 only), `bias` (some models)."""
    model = onnx.load(bundle.path / GRAPH)
    return {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}


def dequantised(bundle: Bundle) -> Floats:
    """float32[rows, d]: the bundle's table as its runtimes use it, the memo's rows included."""
    arrays = stored(bundle)
    scales, columns = (arrays.get(name, np.float32(1)) for name in ("scales", "columns"))
    return np.ascontiguousarray(arrays["table"] * scales * columns, np.float32)


def reference_table(bundle: Bundle) -> Floats:
    """float32[rows, d]: a table of features by themselves whose bundle would round to this one's.

    The bundle's own if it is float32.
    """
    table = _unrounded(bundle)
    return table if bundle.memoised.memo is None else separated(table, suffix_rows(bundle.vocabulary))


def _unrounded(bundle: Bundle) -> Floats:
    arrays = stored(bundle)
    table = arrays["table"][: len(bundle.vocabulary)]
    random = np.random.default_rng(1)
    if table.dtype == np.int8:
        noise = random.uniform(-SHARE / 2, SHARE / 2, table.shape).astype(np.float32)
        noise[np.abs(table) == 127] = 0  # the largest value of a row is its scale, and not rounded
        scales = arrays["scales"][: len(table)] * arrays.get("columns", np.float32(1))
        return np.asarray((table + noise) * scales, np.float32)
    if table.dtype == np.float16:
        below, above = (np.nextafter(table, np.float16(end)).astype(np.float32) for end in (-np.inf, np.inf))
        share = random.uniform((1 - SHARE) / 2, (1 + SHARE) / 2, table.shape).astype(np.float32)
        return np.asarray((table + below) / 2 * (1 - share) + (table + above) / 2 * share, np.float32)
    return np.asarray(table, np.float32)


def write_bundle(folder: Path, like: Bundle, table: Floats, precision: Precision, vocabulary: Vocabulary) -> Path:
    """A bundle at `folder` of this table and vocabulary, in all else like another; returns `folder`."""
    graph, bias = like.manifest.graph, stored(like).get("bias")
    resized = None if bias is None else np.resize(bias, table.shape[1])
    export_bundle(
        folder,
        name=like.manifest.name,
        kind=like.manifest.kind,
        spec=like.spec,
        vocabulary=vocabulary,
        encoder=bag_of(table, resized, pooling=graph.pooling, activation=graph.activation),
        precision=precision,
        golden_texts=GOLDEN_TEXTS,
        memo=_memo(like, vocabulary),
        provenance={"made_by": "benchmarks"},
        card="A bundle for benchmarks.\n",
    )
    return folder


def _memo(bundle: Bundle, vocabulary: Vocabulary) -> Chosen:
    """The chunks and edges of the bundle's memo, without those of characters that the vocabulary lacks."""
    memo, known = bundle.memoised.memo, set(map(chr, vocabulary.alphabet.tolist()))
    if memo is None:
        return NO_MEMO
    return Chosen(*([one for one in texts if known.issuperset(one)] for texts in memo.decoded(bundle.vocabulary)))


@contextmanager
def precisions(model: str) -> Iterator[dict[Precision, Path]]:
    """Folders of bundles of the model in float32, float16 and int8, gone after the block."""
    bundle = open_bundle(model)
    table = reference_table(bundle)
    with TemporaryDirectory(dir=scratch()) as name:
        yield {one: write_bundle(Path(name) / one, bundle, table, one, bundle.vocabulary) for one in PRECISIONS}


def scratch() -> Path | None:
    """Where large temporary files go: runs/ if it is there (/tmp may be memory), else the system's choice."""
    runs = ROOT / "runs"
    return runs if runs.is_dir() else None


def distances(found: Floats, expected: Floats) -> NDArray[np.float64]:
    """float64[n]: 1 - cosine of each row with its like; 0 where both are zero."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines = np.einsum("ij,ij->i", a, b) / np.where(lengths > 0, lengths, 1)
    both_zero = ~a.any(axis=1) & ~b.any(axis=1)
    return np.asarray(np.maximum(0.0, 1 - np.where(both_zero, 1.0, cosines)), np.float64)
