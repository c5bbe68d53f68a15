"""Conversion of bundles: another precision, a new memo, or the current graphs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from gramvec.bundle.bundle import Bundle, make_golden, open_bundle, rewrite_manifest, stage_folder
from gramvec.bundle.manifest import CPU_GRAPH, GRAPH, Manifest, Precision
from gramvec.errors import InputError
from gramvec.runtime.exact import ExactTable
from gramvec.runtime.onnx_graph import write_graphs
from gramvec_training.data.vocabulary import count_repeated
from gramvec_training.encoders.bag import make_bag
from gramvec_training.export.bundle import (
    NO_MEMO,
    ChosenChunks,
    add_long_text,
    can_have_memo,
    choose_chunks,
    export_bundle,
    open_runtime,
    read_weights,
)


def convert(
    source: str | Path,
    path: Path,
    *,
    precision: Precision | None = None,
    texts: Iterable[str] = (),
    chunks: int = 0,
    edges: int = 0,
    name: str | None = None,
) -> Manifest:
    """Write the model of the bundle `source` to the folder `path`, whole or not at all; return the new manifest.

    precision: of the stored table; None for the source's. chunks, edges: how many have rows, those that save the most
    in `texts` (see gramvec.text.memo); 0 of both for the source's memo, if it has one. The card is the source's.
    Where neither precision nor memo changes, so are all bytes of the weights, unless they are int8 rows of
    scales without a step, which are rounded again; graphs and golden texts are always written again.

    Raises:
        BundleError: A source that cannot be read.
        InputError: A memo of a model that takes means.
    """
    bundle = open_bundle(source)
    manifest, graph = bundle.manifest, bundle.manifest.graph
    if (chunks or edges) and not can_have_memo(bundle.spec, sums=graph.pooling == "sum"):
        raise InputError(f"{manifest.name}: cannot have a memo, which is for sums of n-grams of two characters or more")
    if precision in (None, graph.precision) and not chunks and not edges and _can_stay(bundle):
        return _rewrite(bundle, path, name or manifest.name)
    table, bias = read_weights(bundle)
    known = bundle.memoized.memo
    memo = NO_MEMO if known is None else ChosenChunks(*known.decode(bundle.vocabulary))
    if chunks or edges:
        memo = choose_chunks(count_repeated(texts, bundle.spec), bundle.featurizer, chunks=chunks, edges=edges)
    origin = {"digest": bundle.digest, "precision": graph.precision, "parity": manifest.provenance.get("parity")}
    provenance = {**manifest.provenance, "converted_from": origin}
    card = bundle.path / "README.md"
    return export_bundle(
        path,
        name=name or manifest.name,
        kind=manifest.kind,
        spec=bundle.spec,
        vocabulary=bundle.vocabulary,
        encoder=make_bag(
            table,
            bias,
            pooling="mean" if graph.pooling == "mean" else "sum",
            activation="tanh" if graph.activation == "tanh" else "linear",
        ),
        precision=precision or graph.precision,
        parity_texts=[golden.text for golden in manifest.golden],
        memo=memo,
        lexical=bundle.lexical,
        provenance=provenance,
        card=card.read_text(encoding="utf-8") if card.is_file() else f"# {manifest.name}\n",
    )


def _can_stay(bundle: Bundle) -> bool:
    """Return whether the weights are stored as they would be written today."""
    graph = bundle.manifest.graph
    return (
        graph.stored is not None
        and graph.beyond_rows is None
        and (graph.precision != "int8" or ExactTable.from_bundle(bundle) is not None)
    )


def _rewrite(bundle: Bundle, path: Path, name: str) -> Manifest:
    manifest = bundle.manifest
    with stage_folder(path) as folder:
        for file in manifest.files:
            if file not in (GRAPH, CPU_GRAPH):
                shutil.copyfile(bundle.path / file, folder / file)
        graph = write_graphs(folder, manifest.graph, manifest.dimension)
        runtime = open_runtime(folder, graph, manifest.dimension)
        golden = make_golden(runtime.run, bundle.featurizer, bundle.memoized, add_long_text(bundle.memoized))
        runtime.close()
        return rewrite_manifest(folder, manifest, name=name, graph=graph, golden=golden)
