"""Bundles of format 1, as gramvec 0.1 wrote them, rewritten in today's format; weights and vectors stay to the byte."""

from __future__ import annotations

import hashlib
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.bundle.bundle import manifest_bytes, open_bundle, staged_folder
from gramvec.bundle.manifest import FORMAT_VERSION, LEXICAL, MEMO, MOST_BYTES, VOCABULARY, read_manifest
from gramvec.bundle.resolve import MANIFEST, find_bundle
from gramvec.errors import BundleError
from gramvec.features.spec import FeatureSpec
from gramvec.lexical import weights
from gramvec.text import memo, vocabulary
from gramvec.text.array_file import pack_arrays

# Old file -> new file, kind and version.
_FILES = {
    "vocab.bin": (VOCABULARY, vocabulary.KIND, vocabulary.VERSION),
    "memo.bin": (MEMO, memo.KIND, memo.VERSION),
    "identity.bin": (LEXICAL, weights.KIND, weights.VERSION),
}
_PARTS = "model.cuda.onnx"
_HEADER, _ENTRY = struct.Struct("<8sIIQ"), struct.Struct("<16s8sQQ")


def is_format_1(source: str | Path) -> bool:
    """Return whether the manifest of a bundle says format 1."""
    with (find_bundle(source) / MANIFEST).open("rb") as file:
        data = file.read(MOST_BYTES)
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(values, dict) and values.get("format_version") == 1


def upgrade(source: str | Path, path: Path, *, name: str | None = None) -> None:
    """Write a bundle of format 1 to the folder `path` in today's format, whole or not at all.

    Raises:
        BundleError: a file of the source is missing or damaged, or its encoder reads rows in their order and has parts
            that this version does not serve; train and export such a model again.
    """
    folder = find_bundle(source)
    values: dict[str, Any] = orjson.loads((folder / MANIFEST).read_bytes())
    graph = values.get("graph", {})
    if graph.pop("cuda", False) or (graph.get("composition", "bag") != "bag" and graph.get("cpu")):
        raise BundleError(f"{folder}: it has graphs for parts of an encoder; train and export the model again")
    with staged_folder(path) as stage:
        for file, record in values.pop("files").items():
            if hashlib.sha256((folder / file).read_bytes()).hexdigest() != record["sha256"]:
                raise BundleError(f"{folder / file}: its SHA-256 is not the manifest's; copy the bundle again")
            if file in _FILES:
                target, kind, version = _FILES[file]
                (stage / target).write_bytes(pack_arrays(kind, version, _arrays(folder / file)))
            else:
                shutil.copyfile(folder / file, stage / file)
        features = values["features"]
        features["normalization"] = features.pop("normalization")
        records = {
            one.name: {"bytes": one.stat().st_size, "sha256": hashlib.sha256(one.read_bytes()).hexdigest()}
            for one in sorted(stage.iterdir())
        }
        values |= {"format_version": FORMAT_VERSION, "name": name or values["name"], "files": records}
        spec = FeatureSpec.from_dict(features)
        values |= {"features": spec.to_dict(), "features_digest": spec.digest}
        if (lexical := values.pop("identity", None)) is not None:
            values["lexical"] = lexical
        provenance = values["provenance"]
        if "identity" in provenance:
            provenance["lexical"] = provenance.pop("identity")
        manifest, _ = read_manifest(folder / MANIFEST, orjson.dumps(values))
        (stage / MANIFEST).write_bytes(manifest_bytes(manifest))
        open_bundle(stage)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file of format 1: magic, version, directory, aligned data."""
    data = path.read_bytes()
    found: dict[str, NDArray[Any]] = {}
    try:
        count = _HEADER.unpack_from(data)[2]
        for place in range(count):
            name, dtype, offset, length = _ENTRY.unpack_from(data, _HEADER.size + place * _ENTRY.size)
            found[name.rstrip(b"\0").decode()] = np.frombuffer(data, dtype.rstrip(b"\0").decode(), length, offset)
    except (struct.error, TypeError, ValueError) as error:
        raise BundleError(f"{path}: it is damaged ({error}); copy the bundle again") from error
    return found
