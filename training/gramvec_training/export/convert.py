"""A bundle written again: in another precision, or with a memo."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gramvec.bundle import Manifest, Precision, open_bundle
from gramvec.errors import InputError
from gramvec_training.data import count_repeated
from gramvec_training.encoders import bag_of
from gramvec_training.export.bundle import NO_MEMO, export_bundle
from gramvec_training.export.memo import Chosen, can_have_memo, choose
from gramvec_training.export.weights import read_weights


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
    """Write the model of the bundle `source` to the folder `path`, whole or not at all; gives the new manifest.

    precision: of the stored table; None for the source's. texts, chunks, edges: rows for so many chunks and edges (see
    gramvec.vocab.memo) as save the most in these texts; 0 of both for the source's memo, if it has one. The card is the
    source's, and so are the bytes of an int8 table without a memo that stays int8.

    Raises BundleError for a source that cannot be read, InputError for a memo of a model that takes means.
    """
    bundle = open_bundle(source)
    manifest, graph = bundle.manifest, bundle.manifest.graph
    table, bias = read_weights(bundle)
    if (chunks or edges) and not can_have_memo(bundle.spec, sums=graph.pooling == "sum"):
        raise InputError(f"{manifest.name} cannot have a memo, which is for sums of n-grams of two characters or more")
    known = bundle.memoised.memo
    memo = NO_MEMO if known is None else Chosen(*known.decoded(bundle.vocabulary))
    if chunks or edges:
        memo = choose(count_repeated(texts, bundle.spec), bundle.featuriser, chunks=chunks, edges=edges)
    origin = {"digest": bundle.digest, "precision": graph.precision, "parity": manifest.provenance.get("parity")}
    provenance = {**manifest.provenance, "converted_from": origin}
    card = bundle.path / "README.md"
    return export_bundle(
        path,
        name=name or manifest.name,
        kind=manifest.kind,
        spec=bundle.spec,
        vocabulary=bundle.vocabulary,
        encoder=bag_of(table, bias, pooling=graph.pooling, activation=graph.activation),
        precision=precision or graph.precision,
        parity_texts=[golden.text for golden in manifest.golden],
        golden_texts=[golden.text for golden in manifest.golden],
        memo=memo,
        provenance=provenance,
        card=card.read_text(encoding="utf-8") if card.is_file() else f"# {manifest.name}\n",
    )
