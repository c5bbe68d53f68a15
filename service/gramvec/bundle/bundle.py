"""Bundle: an immutable folder that holds one model; every file is checked when the bundle is opened.

docs/bundle-format.md describes the files. A bundle is untrusted even if its digests are right: opening one ends in a
Bundle that is safe to use, or in an error of one sentence.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.bundle.graph_check import check_graph
from gramvec.bundle.manifest import (
    CPU_GRAPH,
    FORMAT,
    GRAPH,
    LEXICAL,
    MAX_MANIFEST_BYTES,
    MEMO,
    TOKENIZER,
    VOCABULARY,
    FileRecord,
    Golden,
    Graph,
    LexicalRecord,
    Manifest,
    Precision,
)
from gramvec.bundle.resolve import MANIFEST, find_bundle
from gramvec.bundle.verified_files import VerifiedFiles, open_folder
from gramvec.bundle.weights import MappedWeights, check_numbers, map_weights
from gramvec.errors import BundleError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.features.tokens import TokenFeaturizer, TokenSpec, TokenVocabulary
from gramvec.lexical.sketch import LexicalSketch
from gramvec.lexical.weights import NgramWeights
from gramvec.text.arrays import FeatureBatch, Floats
from gramvec.text.memo import Memo
from gramvec.text.vocabulary import Vocabulary

__all__ = ["GRAPH", "TOKENIZER", "Manifest", "Precision"]  # hub.static_models takes these from here

DEFAULT_MODEL = "gramvec-en"
GOLDEN_TEXTS = (
    "vehicles",
    "a man is playing the guitar",
    "Where can I buy a second-hand bicycle?",
    "the talks were broken off on Tuesday, two officials said",
    "definately recieved teh pacakge",
    "",
    "x",
    "don't stop, (e.g.) 3.14% of #1!!",
    "\t many \n\n kinds\u00a0of\u3000space ",
    "CAF\u00c9 na\u00efve e\u0301te\u0301 Stra\u00dfe \u0130stanbul",
    "\u03a3\u03bf\u03c6\u03cc\u03c2 \u041c\u043e\u0441\u043a\u0432\u0430",
    "\u65e5\u672c\u8a9e \U0001f642\U0001f642 emoji",
)


class Bundle:
    """An opened and verified bundle. `digest` is the SHA-256 of manifest.json, which names all other digests."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        digest: str,
        memoized: Featurizer,
        weights: MappedWeights | None,
        lexical: LexicalSketch | None = None,
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.digest = digest
        self.memoized = memoized  # fewer rows of the same sum, where the bundle has a memo
        self.featurizer = memoized.without_memo()  # every n-gram and word by itself
        self.weights = weights  # None where the manifest does not say where they lie
        self.lexical = lexical  # None where a text has no columns beside the graph's

    @property
    def spec(self) -> FeatureSpec:
        """The FeatureSpec of the manifest."""
        return self.featurizer.spec

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary that vocabulary.safetensors holds."""
        return self.featurizer.vocabulary

    @property
    def graph_path(self) -> Path:
        """model.onnx; its table lies beside it."""
        return self.path / GRAPH

    @property
    def cpu_graph_path(self) -> Path | None:
        """model.cpu.onnx, where the bundle has it."""
        return self.path / CPU_GRAPH if self.manifest.graph.cpu else None


def open_bundle(name_or_path: str | os.PathLike[str], *, compiled: bool | None = None) -> Bundle:
    """Open and verify a bundle. `compiled` chooses the featurizer's pass, see Featurizer.

    Raises BundleError, naming the file and what to do, for a file that is missing, damaged or of another version.
    """
    path = find_bundle(name_or_path)
    with open_folder(path) as folder:
        manifest, digest = folder.manifest()
        files = folder.verify(manifest)
    weights = _weights(path, manifest, files)
    for name in [GRAPH] + [CPU_GRAPH] * manifest.graph.cpu:
        check_graph(path / name, files.contents.pop(name), manifest)
    try:
        kind = TokenSpec if "tokenizer" in manifest.features else FeatureSpec
        spec = kind.from_dict(manifest.features)
    except InputError as error:
        raise BundleError(f"{path / MANIFEST}: {error}") from error
    if spec.digest != manifest.features_digest:
        raise BundleError(f"{path / MANIFEST}: features and features_digest disagree; export the model again")
    memoized: Featurizer
    if isinstance(spec, TokenSpec):
        tokens = TokenVocabulary(path / TOKENIZER, files.contents[TOKENIZER], manifest.rows)
        _check_counts(path / TOKENIZER, manifest, tokens)
        memoized = TokenFeaturizer(spec, tokens)
    else:
        memoized = _features(path, manifest, files, spec, compiled)
    bundle = Bundle(path, manifest, digest, memoized, weights, _lexical(path, manifest, files, spec))
    _check_golden_ids(path, manifest, bundle.featurizer)
    return bundle


def _features(
    path: Path, manifest: Manifest, files: VerifiedFiles, spec: FeatureSpec, compiled: bool | None
) -> Featurizer:
    vocabulary = Vocabulary.read(path / VOCABULARY, files.contents[VOCABULARY])
    _check_counts(path / VOCABULARY, manifest, vocabulary)
    memo = Memo.read(path / MEMO, files.contents[MEMO], vocabulary) if MEMO in manifest.files else None
    if (0 if memo is None else len(memo)) != manifest.memo:
        raise BundleError(f"{path / MEMO}: not the {manifest.memo} rows of the manifest; export the model again")
    try:
        return Featurizer(spec, vocabulary, compiled=compiled, memo=memo)
    except InputError as error:
        raise BundleError(f"{path / MANIFEST}: {error}") from error


def _weights(path: Path, manifest: Manifest, files: VerifiedFiles) -> MappedWeights | None:
    stored = manifest.graph.stored
    if stored is None or files.weights is None:
        return None
    weights = map_weights(path / stored.file, files.weights, stored, manifest)
    check_numbers(weights)
    return weights


def _lexical(path: Path, manifest: Manifest, files: VerifiedFiles, spec: FeatureSpec) -> LexicalSketch | None:
    record = manifest.lexical
    if record is None:
        return None
    weights = NgramWeights.read(path / LEXICAL, files.contents[LEXICAL])
    try:
        return LexicalSketch(weights, record.orders, record.columns, record.scale, spec.read)
    except InputError as error:
        raise BundleError(f"{path / MANIFEST}: lexical: {error}; export the model again") from error


def _check_counts(file: Path, manifest: Manifest, vocabulary: Vocabulary) -> None:
    for name, count, expected in (
        ("rows", len(vocabulary), manifest.rows),
        ("n-grams", vocabulary.n_ngrams, manifest.ngrams),
        ("words", vocabulary.n_words, manifest.words),
    ):
        if count != expected:
            raise BundleError(f"{file}: {count} {name}, the manifest has {expected}")


def _check_golden_ids(path: Path, manifest: Manifest, featurizer: Featurizer) -> None:
    file = TOKENIZER if isinstance(featurizer, TokenFeaturizer) else VOCABULARY
    batch = featurizer([golden.text for golden in manifest.golden])
    rows = np.split(batch.ids, batch.offsets[1:-1])
    for index, (golden, ids) in enumerate(zip(manifest.golden, rows, strict=False)):
        if not np.array_equal(ids, np.array(golden.ids, np.int64)):
            raise BundleError(
                f"{path / file}: golden text {index} has other features than when the bundle was made; "
                "install the gramvec that wrote it or export the model again"
            )


@contextmanager
def stage_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path` that takes its place when the block ends, and is removed on an error."""
    check_target(path, overwrite=True)
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


def make_golden(
    run: Callable[[FeatureBatch], Floats], featurizer: Featurizer, memoized: Featurizer, texts: Sequence[str]
) -> list[Golden]:
    """Return golden texts: each with the rows of its features and the vector that a runtime's `run` computes."""
    batch, vectors = featurizer(texts), run(memoized(texts))
    rows = np.split(batch.ids, batch.offsets[1:-1])
    return [
        Golden(text=text, ids=ids.tolist(), vector=vector.tolist())
        for text, ids, vector in zip(texts, rows, vectors, strict=True)
    ]


def write_manifest(
    folder: Path,
    *,
    name: str,
    kind: str,
    dimension: int,
    spec: FeatureSpec,
    vocabulary: Vocabulary,
    memo: Memo | None = None,
    lexical: LexicalRecord | None = None,
    graph: Graph,
    golden: Sequence[Golden],
    provenance: dict[str, Any],
) -> Manifest:
    """Write manifest.json into a folder that already holds the bundle's other files, and return it."""
    manifest = Manifest(
        format="gramvec-bundle",
        format_version=2,
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
        lexical=lexical,
        golden=list(golden),
        files={},
        provenance=provenance,
    )
    return rewrite_manifest(folder, manifest)


def rewrite_manifest(folder: Path, manifest: Manifest, **changes: Any) -> Manifest:
    """Write a manifest with these fields changed and the digests of the folder's files, and return it."""
    files = {
        file.name: FileRecord(bytes=file.stat().st_size, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
        for file in sorted(folder.iterdir())
        if file.name != MANIFEST
    }
    renewed = manifest.model_copy(update={**changes, "files": files})
    (folder / MANIFEST).write_bytes(manifest_bytes(renewed))
    return renewed


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the contents of a manifest.json; fields that a model has no use for are left out."""
    without: dict[str, Any] = {"lexical": True} if manifest.lexical is None else {}
    if manifest.graph.stored is not None and manifest.graph.precision != "int4":
        without["graph"] = {"stored": {"weights", "step"}}
    return orjson.dumps(manifest.model_dump(exclude=without), option=orjson.OPT_INDENT_2) + b"\n"


def check_target(folder: Path, *, overwrite: bool) -> None:
    """Raise InputError where a bundle cannot be put into this folder."""
    if folder.is_symlink():
        raise InputError(f"{folder}: is a link; name the folder itself")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; choose another folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if other := _other_file(folder):
        raise InputError(f"{folder}: holds {other}, which is not of a model and would be lost; choose another folder")
    if not overwrite:
        raise InputError(f"{folder}: holds a model already; choose another folder or pass --overwrite")


def _other_file(folder: Path) -> str | None:
    """Return the name of a file in a folder that is of no model, or None where all are those of one model."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            manifest = orjson.loads(file.read(MAX_MANIFEST_BYTES))
        files = set(manifest["files"]) if manifest["format"] == FORMAT else set()
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        files = set()
    # A manifest of something else is a file as any other.
    known = files | {MANIFEST} if files else set()
    for inner, _, names in os.walk(folder):
        for name in sorted(names):
            there = Path(inner, name).relative_to(folder).as_posix()
            if there not in known:
                return there
    return None


def copy_bundle(name_or_path: str | os.PathLike[str], folder: Path, *, overwrite: bool = False) -> Bundle:
    """Copy a bundle into `folder`, verify the copy and open it; the folder appears as a whole or not at all.

    Raises:
        BundleError: the bundle is damaged.
        InputError: the folder is in use.
        OSError: the folder cannot be written.
    """
    check_target(folder, overwrite=overwrite)
    source = open_bundle(name_or_path)
    with stage_folder(folder) as stage:
        for name in (*source.manifest.files, MANIFEST):
            shutil.copyfile(source.path / name, stage / name)
        if open_bundle(stage).digest != source.digest:
            raise BundleError(f"{source.path}: was changed while it was copied; copy it again")
    return open_bundle(folder)
