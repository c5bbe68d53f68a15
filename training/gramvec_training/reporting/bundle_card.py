"""The card of a finished bundle: scored as it is served, and sealed again with what was found."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from gramvec.bundle.bundle import GRAPH, Manifest, staged_folder, write_manifest
from gramvec.bundle.resolve import MANIFEST
from gramvec.embed.embedder import Embedder
from gramvec.errors import BundleError, InputError
from gramvec.explain.neighbors import nearest_words_of
from gramvec_training.evaluation import PHRASES, WORDS, SimilaritySet, Typos, evaluate_models, served_model
from gramvec_training.reporting.card import write_card

CARD = "README.md"
NEIGHBOURS = 6
_TABLE = f"{GRAPH}.data"
_FOR_PEOPLE = (CARD,)


@dataclass(frozen=True)
class Candidates:
    """The words among which neighbours are sought, and in a few words where they are from."""

    words: Sequence[str]
    origin: str


def assess(
    embedder: Embedder,
    beside: Embedder | None,
    sets: Sequence[SimilaritySet],
    typos: Typos,
    candidates: Candidates,
) -> dict[str, Any]:
    """All figures of a card, as values for JSON, each computed through the bundle."""
    models = [embedder] if beside is None else [embedder, beside]
    labels = [str(index) for index in range(len(models))]
    reports = evaluate_models([served_model(one) for one in models], labels, sets, typos)
    assessed: dict[str, Any] = {
        key: reports["0"][key] for key in ("tasks", "notes", "coverage", "typos") if key in reports["0"]
    }
    if beside is not None:
        kept = {key: reports["1"][key] for key in ("name", "digest", "tasks", "typos") if key in reports["1"]}
        assessed["beside"] = kept
    found = nearest_words_of(embedder, [*WORDS, *PHRASES], candidates.words, k=NEIGHBOURS)
    named = [[text for text, _ in one] for one in found]
    return {
        **assessed,
        "seed": typos.seed,
        "neighbours": {
            "candidates": len(candidates.words),
            "origin": candidates.origin,
            "words": dict(zip(WORDS, named[: len(WORDS)], strict=True)),
            "phrases": dict(zip(PHRASES, named[len(WORDS) :], strict=True)),
        },
        "bytes": sum(one.bytes for name, one in embedder.manifest.files.items() if name not in _FOR_PEOPLE),
        "device": embedder.device,
        "versions": {name: version(name) for name in ("gramvec", "numpy")},
    }


def renew(embedder: Embedder, evaluation: Mapping[str, Any]) -> Manifest:
    """Replace the bundle's card and manifest, whole or not at all; every other file keeps its bytes.

    The evaluation takes the place of the trainer's own scores in the manifest's provenance. Raises InputError where
    the bundle does not say how it was made, BundleError where its folder holds what its manifest does not list.
    """
    manifest = embedder.manifest
    check_renewable(embedder)
    provenance = {key: value for key, value in manifest.provenance.items() if key != "scores"}
    provenance["evaluation"] = dict(evaluation)
    card = write_card(
        {"kind": manifest.kind, **provenance},
        name=manifest.name,
        precision=manifest.graph.precision,
        table_bytes=manifest.files.get(_TABLE, manifest.files[GRAPH]).bytes,  # a tiny table lies in the graph
    )
    try:
        return _sealed(embedder, provenance, card)
    except OSError as error:
        raise BundleError(
            f"{embedder.bundle.path}: cannot be replaced ({error.strerror}); make it and the folder above writable"
        ) from error


def check_renewable(embedder: Embedder) -> None:
    """Raise what `renew` would, before the scoring rather than after."""
    manifest, path = embedder.manifest, embedder.bundle.path
    missing = [key for key in ("config", "command", "data", "rows") if key not in manifest.provenance]
    if missing:
        raise InputError(f"{path} has no record of how it was made; export it with gramvec-train export first.")
    strange = sorted({one.name for one in path.iterdir()} - {MANIFEST, CARD, *manifest.files})
    if strange:
        raise BundleError(f"{path / strange[0]}: not a file of the bundle; move it elsewhere")


def _sealed(embedder: Embedder, provenance: dict[str, Any], card: str) -> Manifest:
    bundle, manifest = embedder.bundle, embedder.manifest
    path = bundle.path.resolve()
    with staged_folder(path) as stage:
        for name in manifest.files:
            if name != CARD:
                shutil.copyfile(path / name, stage / name)
        (stage / CARD).write_text(card, encoding="utf-8")
        renewed = write_manifest(
            stage,
            name=manifest.name,
            kind=manifest.kind,
            dimension=manifest.dimension,
            spec=bundle.spec,
            vocabulary=bundle.vocabulary,
            memo=bundle.memoised.memo,
            lexical=manifest.identity,
            graph=manifest.graph,
            golden=manifest.golden,
            provenance=provenance,
        )
        changed = [name for name, one in manifest.files.items() if name != CARD and renewed.files[name] != one]
        if changed:
            raise BundleError(f"{path / changed[0]}: changed while it was copied; copy or export the model again")
    return renewed
