"""A bundle with one byte changed, one cut off, or one number that is none, is refused by name of the file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from gramvec.errors import BundleError
from gramvec_training.export.bundle import ChosenChunks
from hostile.bundles.craft import manifest
from support.errors import assert_names
from support.wire import SAMPLES, small_bundle

FILES = ["README.md", "manifest.json", "memo.safetensors", "model.onnx", "model.onnx.data", "vocabulary.safetensors"]
PLACES = {"first": 0.0, "early": 0.1, "middle": 0.5, "late": 0.9, "last": 1.0}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = small_bundle(tmp_path_factory.mktemp("bundle") / "small", memo=ChosenChunks(["fast", "car"], ["t c"]))
    assert sorted(file.name for file in bundle.iterdir()) == FILES
    return bundle


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "small"))


def refusal(bundle: Path) -> str:
    with pytest.raises(BundleError) as caught:
        gramvec.load(bundle, device="cpu").close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_off_anywhere_is_refused(bundle: Path, name: str, place: str) -> None:
    file = bundle / name
    os.truncate(file, int(PLACES[place] * (file.stat().st_size - 2)))
    assert str(file) in refusal(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_longer_or_gone_is_refused(bundle: Path, name: str) -> None:
    file = bundle / name
    content = file.read_bytes()
    file.write_bytes(content + b"x")
    assert str(file) in refusal(bundle)
    file.unlink()
    assert str(file) in refusal(bundle)
    file.mkdir()
    assert str(file) in refusal(bundle)


def flip(file: Path, place: float) -> None:
    size = file.stat().st_size
    at = min(size - 2, int(place * size))  # the last byte of a text is its line's end
    with file.open("r+b") as opened:
        opened.seek(at)
        (byte,) = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ 0x10]))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
def test_a_flipped_bit_in_any_file_is_refused(tmp_path: Path, precision: str) -> None:
    """A precision may have files of its own."""
    bundle = small_bundle(tmp_path / "small", memo=ChosenChunks(["fast", "car"], ["t c"]), precision=precision)
    gramvec.load(bundle, device="cpu").close()
    for file in bundle.iterdir():
        content = file.read_bytes()
        for place in PLACES.values() if file.name != "manifest.json" else [0.0, 1.0]:
            flip(file, place)
            assert str(file) in refusal(bundle)
            file.write_bytes(content)
    gramvec.load(bundle, device="cpu").close()


def test_a_flipped_bit_in_the_manifest_is_refused_or_seen_in_the_digest(bundle: Path) -> None:
    """It holds free text too (names, provenance). What opens has the vectors of before and another digest."""
    file = bundle / "manifest.json"
    content = file.read_bytes()
    before = gramvec.load(bundle, device="cpu")
    vectors = before.embed(SAMPLES)
    refused = 0
    places = range(0, len(content), 17)
    for at in places:
        file.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        try:
            opened = gramvec.load(bundle, device="cpu")
        except BundleError:
            refused += 1
            continue
        assert opened.digest != before.digest
        np.testing.assert_array_equal(opened.embed(SAMPLES), vectors)
        opened.close()
    before.close()
    assert refused > len(places) / 2


def with_matching_digests(bundle: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """As a trainer would have written it: the digests are those of the files as they are now."""
    with manifest(bundle) as values:
        change(values)


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("golden", [True, False])
def test_a_table_with_a_number_that_is_none_is_refused(
    tmp_path: Path, precision: str, value: float, golden: bool
) -> None:
    """Also in a row that no golden text has."""
    bundle = small_bundle(tmp_path / "small", precision=precision, golden_texts=SAMPLES if golden else ["zzz"])
    stored = json.loads((bundle / "manifest.json").read_bytes())["graph"]["stored"]
    table = np.memmap(bundle / stored["file"], precision, "r+", stored["table"], (stored["rows"], 8))
    table[3, 5] = value
    table.flush()
    with_matching_digests(bundle)
    assert_names(refusal(bundle), str(bundle / stored["file"]), "row 3", "NaN")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_scale_that_is_no_number_is_refused(tmp_path: Path, value: float) -> None:
    bundle = small_bundle(tmp_path / "small", precision="int8", golden_texts=["zzz"])
    stored = json.loads((bundle / "manifest.json").read_bytes())["graph"]["stored"]
    scales = np.memmap(bundle / stored["file"], np.float32, "r+", stored["scales"], (stored["rows"],))
    scales[2] = value
    scales.flush()
    with_matching_digests(bundle)
    assert_names(refusal(bundle), f"{bundle / stored['file']}", "row 2")


@pytest.mark.parametrize("value", [128, 255])
def test_a_weight_of_four_bits_that_is_too_large_is_refused(tmp_path: Path, value: int) -> None:
    bundle = small_bundle(tmp_path / "small", precision="int4", golden_texts=["zzz"])
    stored = json.loads((bundle / "manifest.json").read_bytes())["graph"]["stored"]
    weights = np.memmap(bundle / stored["file"], np.uint8, "r+", stored["weights"], (stored["rows"],))
    weights[2] = value
    weights.flush()
    with_matching_digests(bundle)
    assert_names(refusal(bundle), f"{bundle / stored['file']}", "weight of row 2", str(value))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "0", "0.0", "-1.0", "1e23", "1e999", '"1"', "null"])
def test_a_step_of_four_bits_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    bundle = small_bundle(tmp_path / "small", precision="int4", golden_texts=["zzz"])
    with_matching_digests(bundle, lambda values: values["graph"]["stored"].update(step="VALUE"))
    file = bundle / "manifest.json"
    file.write_text(file.read_text().replace('"VALUE"', value))
    assert str(file) in refusal(bundle)


@pytest.mark.parametrize("behind", [0, 63])
def test_rows_of_four_bits_that_end_with_their_file_are_refused(tmp_path: Path, behind: int) -> None:
    """The loops in C read beyond the last row."""
    bundle = small_bundle(tmp_path / "small", precision="int4", golden_texts=["zzz"])

    def move(values: dict[str, Any]) -> None:
        stored = values["graph"]["stored"]
        data = (bundle / stored["file"]).read_bytes()
        size = stored["rows"] * 4
        table, weights = data[:size], data[stored["weights"] : stored["weights"] + stored["rows"]]
        (bundle / stored["file"]).write_bytes(weights + bytes(64 - len(weights)) + table + bytes(behind))
        stored.update(table=64, weights=0)

    with_matching_digests(bundle, move)
    assert_names(refusal(bundle), f"{bundle / 'model.onnx.data'}", "table", "cannot be mapped")


@pytest.mark.parametrize("field", ["bias", "columns"])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1e39", '"0"', "null"])
def test_a_number_of_the_manifest_that_is_none_is_refused(tmp_path: Path, field: str, value: str) -> None:
    bundle = small_bundle(tmp_path / "small", golden_texts=["zzz"])

    def change(values: dict[str, Any]) -> None:
        values["graph"]["stored"][field] = [0.0, 0.0, "VALUE", 0.0, 0.0, 0.0, 0.0, 0.0]

    with_matching_digests(bundle, change)
    file = bundle / "manifest.json"
    file.write_text(file.read_text().replace('"VALUE"', value))
    assert str(file) in refusal(bundle)
