"""manifest.json: the description of a bundle, in records whose every value is bounded.

A manifest is untrusted, so nothing in it is used before it is checked: the file is measured
before it is read, names are plain, numbers have ranges, lists have lengths. What the numbers say of other files is
checked where these are opened (gramvec.bundle.bundle).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gramvec.bundle.resolve import MANIFEST
from gramvec.errors import BundleError, quote

FORMAT = "gramvec-bundle"
FORMAT_VERSION = 2
GRAPH = "model.onnx"
CPU_GRAPH = "model.cpu.onnx"
VOCABULARY = "vocabulary.safetensors"
MEMO = "memo.safetensors"
LEXICAL = "lexical.safetensors"
TOKENIZER = "tokenizer.json"

# The models that ship have manifests of 0.14 MB. A manifest is parsed whole, into some twenty times its bytes.
MAX_MANIFEST_BYTES = 8 * 2**20
MAX_CONTAINERS = 200_000  # a parser takes a second, and the interpreter's lock, for a million
MAX_FILES = 64
MAX_BYTES_OF_FILES = 64 * 2**30
MAX_GOLDEN_TEXTS, MAX_GOLDEN_CHARACTERS = 1_024, 65_536
MAX_COLUMNS = 65_536
MAX_ROWS = 2**31 - 1  # an id is an int32
LARGEST_STEP = 1e22  # of rows of four bits: no sum of a text leaves float32
LONGEST_NAME = 128
DEEPEST = 32  # lists and objects inside each other in `provenance`
# What a graph may ask for: int32[rows], then int64 by row, by text, and by text and one.
INPUTS, OUTPUT = ("ids", "segments", "counts", "offsets"), "vectors"

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")

Precision = Literal["float32", "float16", "int8", "int4"]
Composition = Literal["bag", "layers", "sequence"]
Pooling = Literal["sum", "mean", "last", "max"]
LayerActivation = Literal["linear", "tanh", "relu", "sigmoid"]
# What becomes of rows that are read in their order: the last state, or the maximum over places.
_IN_ORDER = ("last", "max")
_BEYOND_ROWS = {"layers": "has layers above the sum of its rows", "sequence": "reads a text's rows in their order"}


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("should hold printable characters only")
    return text


def _plain(name: str) -> str:
    if len(name) > LONGEST_NAME or _PLAIN.fullmatch(name) is None:
        raise ValueError(f"{quote(name)}: not a plain name of a file (letters, digits, and . _ + - inside)")
    return name


def _digest(text: str) -> str:
    if _DIGEST.fullmatch(text) is None:
        raise ValueError("should be 64 hexadecimal digits")
    return text


def _limit_items(items: int, *kinds: type) -> BeforeValidator:
    """Not more items, and of a list each of these types.

    pydantic would look at every item first, and keep a record of each that is wrong: gigabytes for a million.
    """

    def check(values: Any) -> Any:
        if isinstance(values, list | dict) and len(values) > items:
            raise ValueError(f"{len(values)} items, and there may be {items}")
        if kinds and isinstance(values, list) and not {*map(type, values)} <= {*kinds}:
            raise ValueError(f"Input should be a list of {kinds[0].__name__}")
        return values

    return BeforeValidator(check)


def _rows(ids: list[int]) -> list[int]:
    if ids and not (min(ids) >= 0 and max(ids) < MAX_ROWS):
        raise ValueError("holds what is no row")
    return ids


Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_printable)]
# So that a path cannot lead elsewhere, on any system, and a sentence can quote it.
FileName = Annotated[str, AfterValidator(_plain)]
Digest = Annotated[str, AfterValidator(_digest)]
Count = Annotated[int, Field(ge=0, le=MAX_ROWS)]
Offset = Annotated[int, Field(ge=0, le=MAX_BYTES_OF_FILES)]
VectorColumns = Annotated[list[float], _limit_items(MAX_COLUMNS, float, int)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _fields_are_known(cls, values: Any) -> Any:
        # Before pydantic, which would keep a record of each of a million.
        if isinstance(values, Mapping):
            for name in values:
                if name not in cls.model_fields:
                    raise ValueError(f"{quote(name)}: Extra inputs are not permitted")
        return values


class FileRecord(_Record):
    """Required size in bytes and SHA-256 (64 hex digits) of a file."""

    bytes: Offset
    sha256: Digest


class Golden(_Record):
    """A text with the features and the vector (float32, before normalization) that it must have."""

    text: str
    ids: Annotated[list[int], _limit_items(MAX_MANIFEST_BYTES, int), AfterValidator(_rows)]
    vector: VectorColumns


class StoredWeights(_Record):
    """Byte offsets of the graph's weights in the file `file`, for a runtime that reads them itself.

    table: of float32, float16 or int8[rows, dimension], by the graph's precision; for int4 uint8[rows, bytes], see
    gramvec.bundle.four_bits. scales: of float32[rows], for int8. weights: of uint8[rows], and step, for int4: a row's
    scale is its weight times the step. rows: those of the vocabulary, then those of the memo. columns, bias:
    float32[dimension] or None; a vector is activation(pool(table[id] * scales[id]) * columns + bias).
    """

    file: FileName
    rows: Count
    table: Offset
    scales: Offset | None = None
    weights: Offset | None = None
    step: Annotated[float, Field(gt=0, le=LARGEST_STEP)] | None = None
    columns: VectorColumns | None = None
    bias: VectorColumns | None = None


class Graph(_Record):
    """model.onnx: ids int32[rows], and how they are cut into texts, to vectors float32[n, dimension].

    composition: "bag", a vector is as in StoredWeights; "layers", matrices are above that sum or mean; "sequence", a
    text's rows are read in their order. In the last two a single row has no share of a vector; `stored` is None for
    sequences, and for layers it locates the rows below them, if these have as many columns as a vector.
    pooling: how a text's rows become one vector; "last" and "max" are of sequences. activation: of the vector.
    cpu: whether a bag has model.cpu.onnx, a graph over the same weights for a CPU that adds int8 rows as integers, up
    to 2^16 rows a call.
    """

    opset: Annotated[int, Field(ge=1, le=10_000)]
    inputs: Annotated[list[str], _limit_items(len(INPUTS))]
    output: str
    precision: Precision
    pooling: Pooling
    activation: LayerActivation
    composition: Composition = "bag"
    stored: StoredWeights | None = None
    cpu: bool = False

    @property
    def beyond_rows(self) -> str | None:
        """Return the end of a sentence on what the model does beyond a sum of rows, or None for a bag."""
        return _BEYOND_ROWS.get(self.composition)


class LexicalRecord(_Record):
    """Columns that say which n-grams stand in a text, after those of the graph; lexical.safetensors weighs the n-grams.

    columns: how many. orders: of the n-grams. scale: how long these columns may be beside the others' length of 1. What
    can be of these is checked where they are used (gramvec.lexical).
    """

    columns: Annotated[int, Field(ge=1, le=MAX_COLUMNS)]
    orders: Annotated[list[int], _limit_items(16, int)]
    scale: Annotated[float, Field(gt=0, le=1_000)]


class Manifest(_Record):
    """manifest.json. `provenance` is free-form JSON: how the model was made, from what, and what it scored.

    `dimension` is that of the graph's vectors, without the lexical columns.
    `memo` is the number of memo rows, which follow the vocabulary's `rows` in the table. The golden ids are those
    without the memo.
    """

    format: Literal["gramvec-bundle"]
    format_version: Literal[2]
    name: Name
    kind: Name
    dimension: Annotated[int, Field(ge=1, le=MAX_COLUMNS)]
    features: dict[str, Any]
    features_digest: str
    rows: Count
    ngrams: Count
    words: Count
    memo: Count = 0
    graph: Graph
    lexical: LexicalRecord | None = None
    golden: Annotated[list[Golden], _limit_items(MAX_GOLDEN_TEXTS)]
    files: Annotated[dict[FileName, FileRecord], _limit_items(MAX_FILES)]
    provenance: dict[str, Any]

    @property
    def table_rows(self) -> int:
        """Rows of the table: the vocabulary's, then the memo's."""
        return self.rows + self.memo


def read_manifest(path: Path, data: bytes) -> tuple[Manifest, str]:
    """Return the manifest in these bytes, and its digest, their SHA-256.

    Args:
        path: for messages.
        data: the bytes of manifest.json.

    Raises:
        BundleError: it is not JSON of this format and version, or a value is out of range.
    """
    if data.count(b"[") + data.count(b"{") > MAX_CONTAINERS:
        raise BundleError(f"{path}: more than {MAX_CONTAINERS} lists and objects; copy or export the model again")
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BundleError(f"{path}: not JSON ({error}); copy or export the model again") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise BundleError(f"{path}: not the manifest of a gramvec bundle; give a folder that gramvec-train wrote")
    version = values.get("format_version")
    if version != FORMAT_VERSION:
        raise BundleError(
            f"{path}: format version {quote(version)}, but this gramvec reads version {FORMAT_VERSION}; "
            "take the gramvec that wrote it, or export the model again"
        )
    try:
        manifest = Manifest.model_validate(values)
    except ValidationError as error:
        raise BundleError(f"{path}: {_first(error)}; copy or export the model again") from error
    if (wrong := _contradiction_of_composition(manifest) or _contradiction(manifest)) is not None:
        raise BundleError(f"{path}: {wrong}; copy or export the model again")
    return manifest, hashlib.sha256(data).hexdigest()


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    return ": ".join([*([".".join(map(quote, first["loc"]))] if first["loc"] else []), message])


def _contradiction(manifest: Manifest) -> str | None:
    """Return the first contradiction that the manifest shows by itself, or None."""
    graph, stored, d = manifest.graph, manifest.graph.stored, manifest.dimension
    inputs = {*graph.inputs}
    if "ids" not in inputs or not inputs <= {*INPUTS} or len(inputs) < len(graph.inputs) or graph.output != OUTPUT:
        return f"graph.inputs and graph.output must be some of {', '.join(INPUTS)}, and {OUTPUT}"
    read = [GRAPH, TOKENIZER if "tokenizer" in manifest.features else VOCABULARY]
    read += [LEXICAL] * (manifest.lexical is not None) + [MEMO] * (manifest.memo > 0) + [CPU_GRAPH] * graph.cpu
    for name in read + ([] if stored is None else [stored.file]):
        if name not in manifest.files:
            return f"files: {name} is not listed, and nothing is read that has no digest"
    if MANIFEST in manifest.files:
        return f"files: {MANIFEST} cannot hold its own digest"
    if sum(record.bytes for record in manifest.files.values()) > MAX_BYTES_OF_FILES:
        return f"files: more than {MAX_BYTES_OF_FILES} bytes"
    if sum(len(golden.text) for golden in manifest.golden) > MAX_GOLDEN_CHARACTERS:
        return f"golden: texts of more than {MAX_GOLDEN_CHARACTERS} characters"
    if not _is_shallow(manifest.provenance):
        return f"provenance: lists and objects more than {DEEPEST} deep"
    for index, golden in enumerate(manifest.golden):
        if not _are_columns(golden.vector, d):
            return f"golden.{index}.vector: not {d} float32 numbers"
    return None if stored is None else _contradiction_of_weights(stored, manifest)


def _contradiction_of_composition(manifest: Manifest) -> str | None:
    graph = manifest.graph
    if (graph.composition == "sequence") != (graph.pooling in _IN_ORDER):
        return f"graph.pooling: {graph.pooling} is not for graph.composition {graph.composition}"
    if graph.composition == "bag":
        if graph.activation not in ("linear", "tanh"):
            return f"graph.activation: {graph.activation} is not for graph.composition bag"
        return None
    if graph.cpu:
        return "graph.cpu: only a bag has a model.cpu.onnx"
    if graph.composition == "sequence" and graph.stored is not None:
        return "graph.composition: sequence, which has no graph.stored"
    if manifest.memo and graph.composition == "sequence":
        return "memo: rows of sums, and graph.composition is sequence"
    return None


def _contradiction_of_weights(stored: StoredWeights, manifest: Manifest) -> str | None:
    for name, columns in (("columns", stored.columns), ("bias", stored.bias)):
        if columns is not None and not _are_columns(columns, manifest.dimension):
            return f"graph.stored.{name}: not {manifest.dimension} float32 numbers"
    fours = manifest.graph.precision == "int4"
    if (stored.weights is not None, stored.step is not None) != (fours, fours) or (fours and stored.scales is not None):
        return "graph.stored: weights and step are of precision int4, and scales are not"
    if stored.rows != manifest.table_rows:
        return f"graph.stored.rows: {stored.rows}, and rows and memo are {manifest.table_rows}"
    return None


def _are_columns(values: list[float], dimension: int) -> bool:
    with np.errstate(over="ignore"):  # 1e300 is a number in JSON, but not in float32
        return len(values) == dimension and bool(np.isfinite(np.array(values, np.float32)).all())


def _is_shallow(values: dict[str, Any]) -> bool:
    """Return True if the values nest at most DEEPEST deep, with a leaf counted as a level.

    The JSON writer gives up at a depth that the reader still accepts.
    """
    level: list[Any] = [values]
    for _ in range(DEEPEST):
        inner = [value for value in level if isinstance(value, dict | list)]
        level = [item for value in inner for item in (value.values() if isinstance(value, dict) else value)]
    return not level
