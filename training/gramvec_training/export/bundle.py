"""From trained weights to a bundle, checked against the trainer on real texts before it is written."""

from __future__ import annotations

from gramvec_training.types import Floats

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import GRAPH, MEMO, VOCABULARY, Manifest, Precision, staged_folder, write_manifest
from gramvec.errors import InputError
from gramvec.lexical.sketch import LexicalSketch
from gramvec.runtime.onnx import OnnxRuntime
from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer
from gramvec.text.spec import FeatureSpec
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.encoders import Encoder, encoder_function
from gramvec_training.export.golden import GOLDEN_TEXTS, made_golden, runtime_of
from gramvec_training.export.golden import golden_texts as texts_of_every_kind
from gramvec_training.export.identity import saved_lexical
from gramvec_training.export.memo import Chosen, memo_of
from gramvec_training.export.writers import Graphed, graphed


NO_MEMO = Chosen()
PARITY = 1e-6  # largest 1 - cosine between the trainer and ONNX Runtime, both in float32


def export_bundle(
    path: Path,
    *,
    name: str,
    kind: str,
    spec: FeatureSpec,
    vocabulary: Vocabulary,
    encoder: Encoder,
    precision: Precision = "float32",
    parity_texts: Sequence[str] = (),
    golden_texts: Sequence[str] | None = None,
    memo: Chosen = NO_MEMO,
    lexical: LexicalSketch | None = None,
    provenance: Mapping[str, Any],
    card: str,
) -> Manifest:
    """Write a bundle to the folder `path`, whole or not at all, and return its manifest.

    encoder: with a row of its table for each entry of the vocabulary. Its vectors of the parity texts are what the
        graph's are compared with, in float32; what the stored precision adds is measured on the same texts and
        recorded.
    precision: of the stored table.
    golden_texts: stored with their features and vectors; whoever opens the bundle computes them again. None for those
        of gramvec_training.export.golden.
    memo: chunks and edges that get a row with the sum of their features; for encoders of sums alone.
    lexical: what makes the columns that say which n-grams stand in a text; None for none.

    Raises InputError if the arguments do not fit together, or if the graph's vectors differ from the encoder's by more
    than 1e-6 (1 - cosine).
    """
    parts = graphed(encoder)
    if len(parts.table) != len(vocabulary):
        raise InputError(f"a table of shape {parts.table.shape} does not fit a vocabulary of {len(vocabulary)} rows")
    if any(memo) and not parts.sums:
        raise InputError("a memo holds sums, and the model takes means: export it without a memo")
    table, dimension = parts.table, encoder.dimension
    featurizer = memoised = Featurizer(spec, vocabulary)
    memory = None
    if any(memo):
        memory, table = memo_of(memo, featurizer, table)
        memoised = Featurizer(spec, vocabulary, memo=memory)
    if golden_texts is None:
        # What is read in order rounds a little at every step, on each processor another way: no long text there.
        golden_texts = GOLDEN_TEXTS if parts.in_order else texts_of_every_kind(memoised)

    parity: dict[str, Any] = {"texts": len(parity_texts)}
    exact = _run_in_float32(memoised, parity_texts, parts, table, dimension)
    if len(parity_texts):
        parity["float32_vs_trainer"] = _largest_distance(exact, encoder_function(encoder, featurizer)(parity_texts))
        if not parity["float32_vs_trainer"] <= PARITY:
            raise InputError(
                f"the graph and the trainer differ by {parity['float32_vs_trainer']:.1e} (1 - cosine), "
                f"over {PARITY:.0e}; this is a fault of the exporter, please report it"
            )

    with staged_folder(Path(path)) as folder:
        vocabulary.save(folder / VOCABULARY)
        if memory is not None:
            memory.save(folder / MEMO)
        graph = parts.write(folder, precision, table=table)
        runtime = runtime_of(folder, graph, dimension)
        if len(parity_texts):
            stored = runtime.run(memoised(parity_texts))
            parity["stored_vs_float32"] = _largest_distance(stored, exact)
        golden = made_golden(runtime, featurizer, memoised, golden_texts)
        runtime.close()
        (folder / "README.md").write_text(card, encoding="utf-8")
        return write_manifest(
            folder,
            name=name,
            kind=kind,
            dimension=dimension,
            spec=spec,
            vocabulary=vocabulary,
            memo=memory,
            lexical=saved_lexical(folder, lexical),
            graph=graph,
            golden=golden,
            provenance={**provenance, "parity": parity},
        )


def _run_in_float32(
    featurizer: Featurizer, texts: Sequence[str], parts: Graphed, table: Floats, dimension: int
) -> Floats:
    if not len(texts):
        return np.zeros((0, dimension), np.float32)
    batch = featurizer(texts)
    # Over the rows of these texts alone: the whole table would be 300 MB, written to be read once.
    ids = batch.ids
    if len(ids) and not parts.in_order:
        used, places = np.unique(ids, return_inverse=True)
        table, ids = table[used], places.astype(np.int32)
    with tempfile.TemporaryDirectory() as name:
        parts.write(Path(name), "float32", table=table)
        runtime = OnnxRuntime(Path(name) / GRAPH, dimension)
        vectors = runtime.run(FeatureBatch(ids, batch.offsets))
        runtime.close()
        return vectors


def _largest_distance(found: Floats, expected: Floats) -> float:
    """The largest 1 - cosine of two rows, in float64; two zero rows are equal, zero and non-zero differ by 1."""
    a, b = found.astype(np.float64), np.asarray(expected, np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines = np.einsum("ij,ij->i", a, b) / np.where(lengths > 0, lengths, 1)
    both_zero = ~a.any(axis=1) & ~b.any(axis=1)
    return max(0.0, float(np.max(1 - np.where(both_zero, 1.0, cosines), initial=0.0)))
