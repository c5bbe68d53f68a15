"""Manifests with values of another kind, out of range, in masses, or at odds with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hostile.bundles.craft import attack, family, manifest

FILE = "manifest.json"


def put(where: str, value: Any, sentence: str, *, file: str = FILE) -> None:
    """A value at this place of the manifest, as in graph.stored.rows."""

    def make(folder: Path) -> None:
        with manifest(folder) as values:
            *parents, last = where.split(".")
            inner: Any = values
            for name in parents:
                inner = inner[int(name)] if isinstance(inner, list) else inner[name]
            inner[int(last) if isinstance(inner, list) else last] = value

    shown = repr(value)
    family(f"{where} is {shown if len(shown) < 40 else shown[:37] + '...'}", file, sentence, make)


put("files", {}, "model.onnx is not listed")
put("files", [], "files: Input should be a valid dictionary")
put("files", {f"f{i}": {"bytes": 0, "sha256": "0" * 64} for i in range(65)}, "files: 65 items")
put("files.x", 5, "files.x: Input should be a valid dictionary")
put("files.x", {"bytes": -1, "sha256": "0" * 64}, "files.x.bytes: Input should be greater than or equal to 0")
put("files.x", {"bytes": 2**63, "sha256": "0" * 64}, "files.x.bytes: Input should be less than or equal to")
put("files.x", {"bytes": 0, "sha256": "../.."}, "files.x.sha256: should be 64 hexadecimal digits")
put("files.x", {"bytes": 2**36, "sha256": "0" * 64}, "files: more than 68719476736 bytes")
put("rows", 2**63, "rows: Input should be less than or equal to 2147483647")
put("rows", -1, "rows: Input should be greater than or equal to 0")
put("rows", 1.5, "rows: Input should be a valid integer")
put("rows", True, "rows: Input should be a valid integer")
put("rows", "15", "rows: Input should be a valid integer")
put("rows", 14, "graph.stored.rows: 18, and rows and memo are 17")
put("ngrams", 10, "vocabulary.safetensors: 11 n-grams, the manifest has 10", file="vocabulary.safetensors")
put("memo", 2, "graph.stored.rows: 18, and rows and memo are 17")
put("dimension", 0, "dimension: Input should be greater than or equal to 1")
put("dimension", 2**40, "dimension: Input should be less than or equal to 65536")
put("dimension", 9, "golden.0.vector: not 9 float32 numbers")
put("name", "", "name: String should have at least 1 character")
put("name", "a\nb: 200 OK", "name: should hold printable")
put("name", "\x1b[2J", "name: should hold printable")
put("name", "x" * 10_000, "name: String should have at most 128 characters")
put("kind", "\u202e", "kind: should hold printable")
put("format_version", True, "version True")
put("format_version", "x" * 10_000, "format version " + "x" * 100 + "..., but this gramvec")
put("format_version", [[]], "format version list, but this gramvec")
put("graph.inputs", ["offsets"], "graph.inputs and graph.output")
put("graph.inputs", ["ids", "ids"], "graph.inputs and graph.output")
put("graph.inputs", [1] * 100_000, "graph.inputs: 100000 items")
put("graph.opset", 2**70, "graph.opset: Input should be a valid integer")
put("graph.opset", 17, "opset", file="model.onnx")
put("graph.precision", "float64", "graph.precision: Input should be 'float32', 'float16', 'int8' or 'int4'")
put("graph.precision", "int4", "graph.stored: weights and step are of precision int4")
put("graph.stored.weights", 0, "graph.stored: weights and step are of precision int4")
put("graph.stored.step", 0.5, "graph.stored: weights and step are of precision int4")
put("graph.stored.step", 0.0, "graph.stored.step: Input should be greater than 0")
put("graph.stored.rows", 2**62, "graph.stored.rows: Input should be less than or equal to 2147483647")
put("graph.stored.table", 2**62, "graph.stored.table: Input should be less than or equal to 68719476736")
put("graph.stored.table", -4, "graph.stored.table: Input should be greater than or equal to 0")
put("graph.stored.table", 2**30, "(bytes 1073741824 to", file="model.onnx.data")
put("graph.stored.scales", 2**30, "its scales cannot be mapped (bytes 1073741824 to", file="model.onnx.data")
put("graph.stored.columns", [1.0] * 7, "graph.stored.columns: not 8 float32 numbers")
put("graph.stored.columns", [1e39] * 8, "graph.stored.columns: not 8 float32 numbers")
put("graph.stored.bias", [[]] * 100_000, "graph.stored.bias: 100000 items")
put("graph.stored.bias", [None] * 8, "graph.stored.bias")
put("graph.stored.file", "../secret.txt", "../secret.txt")
put("graph.stored.file", "/etc/passwd", "/etc/passwd")
put("graph.stored.file", "..", "..: not a plain name")
put("graph.stored.file", "a\0b", "a\\x00b")
put("graph.stored.file", "secret.txt", "secret.txt is not listed")
put("graph.cpu", True, "model.cpu.onnx is not listed")
put("graph.cuda", True, "graph: cuda")
put("golden.0.ids", [-1], "golden.0.ids: holds")
put("golden.0.ids", [2**40], "golden.0.ids: holds")
put("golden.0.ids", [[]] * 100_000, "golden.0.ids: Input")
put("provenance.lists", [[]] * 1_000_000, "more than 200000 lists and objects")
put("golden.0.ids", [0], "golden text 0 has other features", file="vocabulary.safetensors")
put("golden.0.vector", [], "golden.0.vector: not 8 float32 numbers")
put("golden.0.vector", [1e300] * 8, "golden.0.vector: not 8 float32 numbers")
put("golden", [{"text": "", "ids": [], "vector": [0.0] * 8}] * 1_025, "golden: 1025 items")
put("golden.0.text", "\u0301" * 70_000, "65536 characters")
put("features", {}, "boundary, lowercase")
put("features.orders", 5, "orders: must be of type list, got int")
put("features.orders", [2.0, 3], "got [2.0, 3]")
put("features.orders", [[[2]]], "got [list]")
put("features.orders", [2] * 1_000_000, "there are at most 6 orders")
put("features.words", "yes", "words: must be of type bool, got str")
put("features.unknown_words", [], "unknown_words: must be of type str, got list")
put("features.unicode", {"a": 1}, "unicode: must be of type str, got dict")
put("features.unicode", "1" * 100_000, "unicode 1111")
put("features.padding", "\n" * 100_000, "padding '\\n\\n")
put("features_digest", "", "features and features_digest disagree")
put("provenance", [], "provenance: Input should be a valid dictionary")


@attack(FILE, "8388608")
def a_manifest_of_100_MB(folder: Path) -> None:  # noqa: N802
    (folder / FILE).write_bytes(b" " * 100_000_000)


@attack(FILE, "more than 200000 lists and objects")
def lists_without_end(folder: Path) -> None:
    (folder / FILE).write_bytes(b"[" * 8_000_000)


@attack(FILE, "not JSON (")
def lists_that_fill_the_stack(folder: Path) -> None:
    (folder / FILE).write_bytes(b"[" * 190_000)


@attack(FILE, "not JSON (")
def a_number_of_a_million_digits(folder: Path) -> None:
    (folder / FILE).write_bytes(b'{"format": "gramvec-bundle", "format_version": 2' + b"e9" * 1_000_000 + b"}")


@attack(FILE, "32 deep")
def a_provenance_that_cannot_be_written_again(folder: Path) -> None:
    inner: list[Any] = []
    for _ in range(300):
        inner = [inner]
    with manifest(folder) as values:
        values["provenance"] = {"a": inner}


@attack(FILE, "key0: Extra")
def half_a_million_unknown_keys(folder: Path) -> None:
    with manifest(folder) as values:
        values |= {f"key{i}": 0 for i in range(500_000)}


@attack(FILE, "files.x: key0")
def half_a_million_unknown_keys_of_a_file(folder: Path) -> None:
    with manifest(folder) as values:
        values["files"]["x"] = {f"key{i}": 0 for i in range(500_000)}


@attack(FILE, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
def a_key_of_a_million_characters(folder: Path) -> None:
    with manifest(folder) as values:
        values["a" * 1_000_000] = 0


@attack(FILE, "\\nError: all is well: Extra inputs")
def a_key_that_forges_a_line(folder: Path) -> None:
    with manifest(folder) as values:
        values["\nError: all is well"] = 0


@attack(FILE, "not JSON (")
def a_name_that_is_no_text(folder: Path) -> None:
    data = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(data.replace(b'"small"', b'"\\ud800"', 1))
