"""A bundle with columns that say which n-grams stand in a text, weighed by texts: the model itself stays as it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramvec.bundle.bundle import LEXICAL, Bundle, LexicalRecord, Manifest, open_bundle, staged_folder, write_manifest
from gramvec.lexical.sketch import COLUMNS, ORDERS, LexicalSketch
from gramvec.lexical.sparse import SIF_A
from gramvec.lexical.weights import NgramWeights


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
    """Write the bundle `source` with identity.bin to the folder `path`, whole or not at all; every other file stays.

    orders, columns, scale, a: see gramvec.lexical. provenance: what is said of the texts. Lexical columns of
    the source are replaced. Gives the new manifest and the number of texts.
    Raises BundleError for a source that cannot be read, InputError for no texts and for settings that cannot be.
    """
    bundle = open_bundle(source)
    weights, count = NgramWeights.of_texts(texts, orders, a=a)
    lexical = LexicalSketch(weights, orders, columns, scale)
    said = {"texts": count, "a": a, **(provenance or {})}
    return with_lexical(bundle, path, lexical, said, name=name), count


def with_lexical(
    bundle: Bundle, path: Path, lexical: LexicalSketch, said: Mapping[str, Any], *, name: str | None = None
) -> Manifest:
    """Write a bundle with this lexical sketch, and `said` in its provenance, to the folder; every other file stays."""
    manifest = bundle.manifest
    with staged_folder(path) as folder:
        for file in manifest.files:
            shutil.copyfile(bundle.path / file, folder / file)
        record = saved_lexical(folder, lexical)
        return write_manifest(
            folder,
            name=name or manifest.name,
            kind=manifest.kind,
            dimension=manifest.dimension,
            spec=bundle.spec,
            vocabulary=bundle.vocabulary,
            memo=bundle.memoised.memo,
            lexical=record,
            graph=manifest.graph,
            golden=manifest.golden,
            provenance={**manifest.provenance, "lexical": said},
        )


def saved_lexical(folder: Path, lexical: LexicalSketch | None) -> LexicalRecord | None:
    """Write identity.bin into a folder, and give what the manifest says of it; None for None."""
    if lexical is None:
        return None
    lexical.weights.save(folder / LEXICAL)
    return LexicalRecord(columns=lexical.columns, orders=list(lexical.orders), scale=lexical.scale)
