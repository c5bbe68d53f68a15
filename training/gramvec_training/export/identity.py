"""A bundle with columns that say which n-grams stand in a text, weighed by texts: the model itself stays as it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramvec.bundle.bundle import IDENTITY, Bundle, IdentityRecord, Manifest, open_bundle, staged_folder, write_manifest
from gramvec.lexical.sketch import COLUMNS, ORDERS, Identity
from gramvec.lexical.sparse import SIF_A
from gramvec.lexical.weights import NgramWeights


def add_identity(
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
    """Write the bundle `source` with identity.bin to the folder `path`, whole or not at all; every other file stays.

    orders, columns, scale, a: see gramvec.lexical. provenance: what is said of the texts. An identity that the source
    has is replaced. Gives the new manifest and the number of texts.
    Raises BundleError for a source that cannot be read, InputError for no texts and for settings that cannot be.
    """
    bundle = open_bundle(source)
    weights, count = NgramWeights.of_texts(texts, orders, a=a)
    identity = Identity(weights, orders, columns, scale)
    said = {"texts": count, "a": a, **(provenance or {})}
    return with_identity(bundle, path, identity, said, name=name), count


def with_identity(
    bundle: Bundle, path: Path, identity: Identity, said: Mapping[str, Any], *, name: str | None = None
) -> Manifest:
    """Write a bundle with this identity, `said` under it in its provenance, to the folder; every other file stays."""
    manifest = bundle.manifest
    with staged_folder(path) as folder:
        for file in manifest.files:
            shutil.copyfile(bundle.path / file, folder / file)
        record = saved_identity(folder, identity)
        return write_manifest(
            folder,
            name=name or manifest.name,
            kind=manifest.kind,
            dimension=manifest.dimension,
            spec=bundle.spec,
            vocabulary=bundle.vocabulary,
            memo=bundle.memoised.memo,
            identity=record,
            graph=manifest.graph,
            golden=manifest.golden,
            provenance={**manifest.provenance, "identity": said},
        )


def saved_identity(folder: Path, identity: Identity | None) -> IdentityRecord | None:
    """Write identity.bin into a folder, and give what the manifest says of it; None for None."""
    if identity is None:
        return None
    identity.weights.save(folder / IDENTITY)
    return IdentityRecord(columns=identity.columns, orders=list(identity.orders), scale=identity.scale)
