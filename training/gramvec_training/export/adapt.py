"""Changes of finished tables and bundles: scales, whitening, weights by own texts, lexical columns.

A student fits its teacher with every row it has; rows of rarer kinds of feature are noisier, and shrinking them a
little helps on texts that it was not trained on. The factors are chosen on development sets and written in the config.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.bundle.bundle import Bundle, open_bundle, rewrite_manifest, stage_folder
from gramvec.bundle.manifest import Manifest
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.lexical.sketch import COLUMNS, ORDERS, LexicalSketch
from gramvec.lexical.sparse import SIF_A
from gramvec.lexical.weights import NgramWeights
from gramvec.text.vocabulary import Entry
from gramvec_training.data.vocabulary import count_documents, count_repeated
from gramvec_training.encoders.bag import make_bag
from gramvec_training.export.bundle import (
    ChosenChunks,
    can_have_memo,
    choose_chunks,
    export_bundle,
    read_weights,
    save_lexical,
)
from gramvec_training.shared import Floats

FLOOR = 1e-4  # of the largest variance: directions with less are not blown up further


def scale_kind(entry: Entry) -> str:
    """Return the kind of feature that a scale is for: "word" (also for unknown words), or an n-gram's order such as
    "4".
    """
    return str(len(entry.text)) if entry.kind == "ngram" else "word"


def scale_rows(table: Floats, entries: Sequence[Entry], scales: Mapping[str, float]) -> Floats:
    """Return the table float32[rows, d] with each row times the scale of its kind; other kinds are unchanged.

    Without any it is the table itself.
    """
    if not scales:
        return table
    factors = np.array([scales.get(scale_kind(entry), 1.0) for entry in entries], np.float32)
    return table * factors[:, None]


def make_whitening(vectors: Floats, strength: float) -> Floats:
    """Return a symmetric map float32[d, d] that divides each principal axis by its standard deviation ** strength.

    vectors: float32[n, d] of a sample of texts, brought to length 1 here and not centered. strength 0 changes nothing,
    1 whitens fully (Mu and Viswanath, 2018, remove the leading directions instead; this bends the spectrum).
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float64)
    variances, axes = np.linalg.eigh(unit.T @ unit / len(unit))
    relative = np.maximum(variances, 0) / variances.max() + FLOOR
    transform: Floats = (axes * relative ** (-strength / 2) @ axes.T).astype(np.float32)
    return transform


# Between 1e-3 and 1e-2 the matching sets of docs/choosing.md differ by a point; none was chosen on.
A = 3e-3


def adapt(
    source: str | Path,
    path: Path,
    texts: Iterable[str],
    *,
    a: float = A,
    chunks: int = 20_000,
    edges: int = 10_000,
    name: str | None = None,
) -> tuple[Manifest, int]:
    """Write the bundle `source`, weighted by these texts, to the folder `path`, whole or not at all.

    Gives the new manifest and the number of texts. A feature that is in no text keeps its row. The memo is made for
    these texts, `chunks` and `edges` as in `convert`.

    Raises:
        BundleError: A source that is not a bag of rows.
        InputError: No texts, or an `a` that is not above 0.
    """
    if not a > 0:
        raise InputError(f"a: must be above 0, got {a}", field="a")
    bundle = open_bundle(source)
    manifest, graph = bundle.manifest, bundle.manifest.graph
    table, bias = read_weights(bundle)
    lines = list(texts)
    if not lines:
        raise InputError("there are no texts to weigh by; give a file with one a line", field="texts")
    weights = weigh_features(bundle.featurizer, lines, manifest.rows, a)
    memo = ChosenChunks()
    if can_have_memo(bundle.spec, sums=graph.pooling == "sum"):
        memo = choose_chunks(count_repeated(lines, bundle.spec), bundle.featurizer, chunks=chunks, edges=edges)
    known = bundle.lexical
    adapted = {"from": bundle.digest, "texts": len(lines), "a": a}
    chosen = name or f"{manifest.name}-adapted"
    written = export_bundle(
        path,
        name=chosen,
        kind=manifest.kind,
        spec=bundle.spec,
        vocabulary=bundle.vocabulary,
        encoder=make_bag(
            table * weights[:, None],
            bias,
            pooling="mean" if graph.pooling == "mean" else "sum",
            activation="tanh" if graph.activation == "tanh" else "linear",
        ),
        precision=graph.precision,
        parity_texts=lines[:1_000],
        memo=memo,
        lexical=None if known is None else LexicalSketch.of_texts(lines, **known.shape, a=a),
        provenance={**manifest.provenance, "adapted": adapted},
        card=f"# {chosen}\n\n{manifest.name}, its features weighed by {len(lines):,} texts (a = {a:g}).\n",
    )
    return written, len(lines)


def weigh_features(featurizer: Featurizer, texts: Sequence[str], rows: int, a: float) -> Floats:
    """Return float32[rows]: a / (a + p) for each row, p the share of the texts that have it; 1 where none has."""
    shares = count_documents(texts, featurizer, rows) / max(len(texts), 1)
    return (a / (a + shares)).astype(np.float32)


def add_lexical(
    source: str | Path,
    path: Path,
    texts: Iterable[str],
    *,
    orders: Sequence[int] = ORDERS,
    columns: int = COLUMNS,
    scale: float = 1.0,
    a: float = SIF_A,
    provenance: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> tuple[Manifest, int]:
    """Write the bundle `source` with lexical columns to the folder `path`, whole or not at all.

    orders, columns, scale, a: see gramvec.lexical. provenance: entries about the texts. Lexical columns of the
    source are replaced. Gives the new manifest and the number of texts.

    Raises:
        BundleError: A source that cannot be read.
        InputError: No texts and for settings that cannot be.
    """
    bundle = open_bundle(source)
    weights, count = NgramWeights.of_texts(texts, orders, a=a)
    lexical = LexicalSketch(weights, orders, columns, scale, bundle.spec.read)
    entries = {"texts": count, "a": a, **(provenance or {})}
    return with_lexical(bundle, path, lexical, entries, name=name), count


def with_lexical(
    bundle: Bundle, path: Path, lexical: LexicalSketch, entries: Mapping[str, Any], *, name: str | None = None
) -> Manifest:
    """Write a bundle with this lexical sketch, and `entries` in its provenance; every other file is unchanged."""
    manifest = bundle.manifest
    with stage_folder(path) as folder:
        for file in manifest.files:
            shutil.copyfile(bundle.path / file, folder / file)
        record = save_lexical(folder, lexical)
        return rewrite_manifest(
            folder,
            manifest,
            name=name or manifest.name,
            lexical=record,
            provenance={**manifest.provenance, "lexical": entries},
        )
