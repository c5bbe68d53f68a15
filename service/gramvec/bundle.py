"""The bundle: a folder that holds one model, immutable, every file of it checked when it is opened.

docs/bundle-format.md describes the files. Opening checks the manifest's version, the size and SHA-256 of every
file, and that the golden texts still have the features that they had when the bundle was made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from gramvec.errors import BundleError, InputError
from gramvec.features import FeatureSpec, Featuriser
from gramvec.finding import MANIFEST, find_bundle
from gramvec.finite import check_finite
from gramvec.vocab import Memo, Vocabulary

FORMAT = "gramvec-bundle"
FORMAT_VERSION = 1
DEFAULT_MODEL = "gramvec-en"
GRAPH = "model.onnx"
CPU_GRAPH = "model.cpu.onnx"
VOCABULARY = "vocab.bin"
MEMO = "memo.bin"

Precision = Literal["float32", "float16", "int8"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileRecord(_Record):
    """What a file must be: its size in bytes and its SHA-256 (64 hex digits)."""

    bytes: int
    sha256: str


class Golden(_Record):
    """A text with the features and the vector (float32, before normalisation) that it must have."""

    text: str
    ids: list[int]
    vector: list[float]


class Stored(_Record):
    """Where the graph's weights lie, for a runtime that reads them itself: byte offsets into the file `file`.

    table: of float32, float16 or int8[rows, dimension], by the graph's precision. scales: of float32[rows], for int8.
    rows: those of the vocabulary, then those of the memo. columns, bias: float32[dimension] or None; a vector is
    activation(pool(table[id] * scales[id]) * columns + bias).
    """

    file: str
    rows: int
    table: int
    scales: int | None = None
    columns: list[float] | None = None
    bias: list[float] | None = None


class Graph(_Record):
    """model.onnx: ids int32[rows] and offsets int64[n + 1] to vectors float32[n, dimension].

    cpu: whether model.cpu.onnx is there, the same over the same weights with operators that only a CPU has: it adds
    int8 rows as integers, up to 2^16 of them in a call.
    """

    opset: int
    inputs: list[str]
    output: str
    precision: Precision
    pooling: Literal["sum", "mean"]
    activation: Literal["linear", "tanh"]
    stored: Stored | None = None
    cpu: bool = False


class Manifest(_Record):
    """manifest.json. `provenance` is free-form JSON: how the model was made, from what, and what it scored.

    `memo` is the number of memo rows, which follow the vocabulary's `rows` in the table. The golden ids are those
    without the memo.
    """

    format: Literal["gramvec-bundle"]
    format_version: Literal[1]
    name: str
    kind: str
    dimension: int
    features: dict[str, Any]
    features_digest: str
    rows: int
    ngrams: int
    words: int
    memo: int = 0
    graph: Graph
    golden: list[Golden]
    files: dict[str, FileRecord]
    provenance: dict[str, Any]


class Bundle:
    """An opened and verified bundle. `digest` is the SHA-256 of manifest.json, which names all other digests."""

    def __init__(
        self, path: Path, manifest: Manifest, digest: str, featuriser: Featuriser, memoised: Featuriser
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.digest = digest
        self.featuriser = featuriser  # every n-gram and word by itself
        self.memoised = memoised  # fewer rows of the same sum, where the bundle has a memo

    @property
    def spec(self) -> FeatureSpec:
        """The FeatureSpec of the manifest."""
        return self.featuriser.spec

    @property
    def vocabulary(self) -> Vocabulary:
        """The mapped vocab.bin."""
        return self.featuriser.vocabulary

    @property
    def graph_path(self) -> Path:
        """model.onnx; its table lies beside it."""
        return self.path / GRAPH

    @property
    def cpu_graph_path(self) -> Path | None:
        """model.cpu.onnx, where the bundle has it."""
        return self.path / CPU_GRAPH if self.manifest.graph.cpu else None


def open_bundle(name_or_path: str | os.PathLike[str], *, compiled: bool | None = None) -> Bundle:
    """Open and verify a bundle. `compiled` chooses the featuriser's pass, see Featuriser.

    Raises BundleError, naming the file and what to do, for a file that is missing, damaged or of another version.
    """
    path = find_bundle(name_or_path)
    manifest, digest = _read_manifest(path / MANIFEST)
    for name, record in manifest.files.items():
        _verify_file(path / name, record)
    check_finite(path, manifest.graph, manifest.dimension)
    vocabulary = Vocabulary.open(path / VOCABULARY)
    memo = Memo.open(path / MEMO) if MEMO in manifest.files else None
    try:
        spec = FeatureSpec.from_dict(manifest.features)
        memoised = Featuriser(spec, vocabulary, compiled=compiled, memo=memo)
        featuriser = memoised.without_memo()
    except InputError as error:
        raise BundleError(f"{path / MANIFEST}: {error}") from error
    if spec.digest != manifest.features_digest:
        raise BundleError(f"{path / MANIFEST}: features and features_digest disagree; export the model again")
    if len(vocabulary) != manifest.rows:
        raise BundleError(f"{path / VOCABULARY}: {len(vocabulary)} rows, the manifest says {manifest.rows}")
    if (0 if memo is None else len(memo)) != manifest.memo:
        raise BundleError(f"{path / MEMO}: not the {manifest.memo} rows of the manifest; export the model again")
    _check_golden_ids(path, manifest, featuriser)
    return Bundle(path, manifest, digest, featuriser, memoised)


def _read_manifest(path: Path) -> tuple[Manifest, str]:
    try:
        data = path.read_bytes()
        values = orjson.loads(data)
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); export the model again") from error
    except orjson.JSONDecodeError as error:
        raise BundleError(f"{path}: not JSON ({error}); copy or export the model again") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise BundleError(f"{path}: not the manifest of a gramvec bundle; give a folder that gramvec-train wrote")
    version = values.get("format_version")
    if version != FORMAT_VERSION:
        raise BundleError(
            f"{path}: format version {version}, but this gramvec reads version {FORMAT_VERSION}; "
            "export the model again or install the gramvec that wrote it"
        )
    try:
        return Manifest.model_validate(values), hashlib.sha256(data).hexdigest()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{path}: {where}: {first['msg']}; copy or export the model again") from error


def _verify_file(path: Path, record: FileRecord) -> None:
    if path.name in ("", "..") or path.name == MANIFEST:
        raise BundleError(f"{path}: not a file that a manifest may list; export the model again")
    try:
        size = path.stat().st_size
        if size != record.bytes:
            raise BundleError(f"{path}: {size} bytes, the manifest says {record.bytes}; copy or export the model again")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); copy or export the model again") from error
    if digest != record.sha256:
        raise BundleError(f"{path}: its SHA-256 is not the manifest's; copy or export the model again")


def _check_golden_ids(path: Path, manifest: Manifest, featuriser: Featuriser) -> None:
    batch = featuriser([golden.text for golden in manifest.golden])
    for index, golden in enumerate(manifest.golden):
        ids = batch.ids[batch.offsets[index] : batch.offsets[index + 1]]
        if not np.array_equal(ids, np.array(golden.ids, np.int32)):
            raise BundleError(
                f"{path / VOCABULARY}: golden text {index} has other features than when the bundle was made; "
                "install the gramvec that wrote it or export the model again"
            )


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path` that takes its place, whole, when the block ends; on an error it is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield stage
        stage.chmod(0o755)
        for file in stage.iterdir():
            file.chmod(0o644)  # some writers leave files that only their owner may read
        if path.exists():
            old = stage.with_name(stage.name + ".old")
            path.rename(old)
            stage.rename(path)
            shutil.rmtree(old)
        else:
            stage.rename(path)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_manifest(
    folder: Path,
    *,
    name: str,
    kind: str,
    dimension: int,
    spec: FeatureSpec,
    vocabulary: Vocabulary,
    memo: Memo | None = None,
    graph: Graph,
    golden: Sequence[Golden],
    provenance: dict[str, Any],
) -> Manifest:
    """Write manifest.json into a folder that already holds the bundle's other files, and return it."""
    files = {
        file.name: FileRecord(bytes=file.stat().st_size, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
        for file in sorted(folder.iterdir())
        if file.name != MANIFEST
    }
    manifest = Manifest(
        format="gramvec-bundle",
        format_version=1,
        name=name,
        kind=kind,
        dimension=dimension,
        features=spec.to_dict(),
        features_digest=spec.digest,
        rows=len(vocabulary),
        ngrams=vocabulary.n_ngrams,
        words=vocabulary.n_words,
        memo=0 if memo is None else len(memo),
        graph=graph,
        golden=list(golden),
        files=files,
        provenance=provenance,
    )
    (folder / MANIFEST).write_bytes(orjson.dumps(manifest.model_dump(), option=orjson.OPT_INDENT_2) + b"\n")
    return manifest
