"""Files of arrays: written, read without a copy, and refused in one sentence, whatever they hold."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramvec.errors import BundleError, InputError
from gramvec.text.array_file import file_bytes, pack_arrays, read_arrays, read_tensors
from support.errors import refused

ARRAYS = {
    "small": np.array([1, 2, 3], np.uint8),
    "large": np.array([[1.5, -2.5], [0, 1e-3]], np.float64),
    "empty": np.zeros(0, np.int32),
}
SPECS: dict[str, Any] = {"small": "|u1", "large": ("<f8", 2), "empty": "<i4"}
PATH = Path("folder/a.safetensors")


def read(data: bytes, **options: Any) -> Any:
    return read_arrays(PATH, data, "test", 1, SPECS, **options)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    begin = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:begin]), data[begin:]


def headed(header: Any, rest: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text + rest


def test_arrays_are_views_of_the_bytes_and_read_only() -> None:
    data = pack_arrays("test", 1, ARRAYS, values={"model": "sif"})
    found = read(data)
    assert found.values == {"model": "sif"}
    start = np.frombuffer(data, np.uint8).ctypes.data
    for name, array in ARRAYS.items():
        again = found.arrays[name]
        assert again.dtype == array.dtype and np.array_equal(again, array) and not again.flags.writeable
        assert not len(array) or start <= again.ctypes.data < start + len(data)
        assert again.flags.aligned


def test_the_data_begin_at_a_multiple_of_64_bytes() -> None:
    for length in range(70):
        data = pack_arrays("test", 1, ARRAYS, values={"x": "y" * length})
        assert (8 + int.from_bytes(data[:8], "little")) % 64 == 0
        assert read(data).values == {"x": "y" * length}


def test_the_library_reads_our_files_and_we_read_the_librarys(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    (tmp_path / "ours").write_bytes(pack_arrays("test", 1, ARRAYS))
    for name, array in library.load_file(tmp_path / "ours").items():
        assert np.array_equal(array, ARRAYS[name])
    library.save_file(ARRAYS, tmp_path / "theirs", {"format": "gramvec test", "version": "1"})
    found = read(file_bytes(tmp_path / "theirs"))
    assert all(np.array_equal(found.arrays[name], array) for name, array in ARRAYS.items())


@pytest.mark.parametrize("checksum", [False, True])
def test_any_byte_changed_or_missing_is_seen_or_harmless(checksum: bool) -> None:
    data = pack_arrays("test", 1, ARRAYS, values={"model": "sif"}, checksum=checksum)
    rng = random.Random(3)
    for _ in range(2_000):
        broken = bytearray(data)
        if rng.random() < 0.3:
            del broken[rng.randrange(len(broken)) :]
        else:
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        try:
            found = read(bytes(broken), checksum=checksum)
        except BundleError as error:
            assert str(error).startswith(f"{PATH}: ") and str(error).endswith("; export the bundle again")
        else:
            assert not checksum or all(np.array_equal(found.arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_a_checksum_covers_the_metadata_and_must_be_there() -> None:
    header, rest = split(pack_arrays("test", 1, ARRAYS, values={"model": "sif"}, checksum=True))
    header["__metadata__"]["model"] = "other"
    with refused(BundleError, "checksum"):
        read(headed(header, rest), checksum=True)
    with refused(BundleError, "checksum"):
        read(pack_arrays("test", 1, ARRAYS), checksum=True)


def test_the_callers_error_and_remedy() -> None:
    with pytest.raises(InputError, match="header; learn it again$"):
        read(b"", error=InputError, remedy="learn it again")
    with refused(BundleError, "test file"):
        read(pack_arrays("other", 1, ARRAYS))
    with refused(BundleError, "version 9", "version 1"):
        read(pack_arrays("test", 9, ARRAYS))
    with refused(BundleError, "cannot be read"):
        file_bytes(Path("nowhere"))


def edited(**changes: Any) -> bytes:
    header, rest = split(pack_arrays("test", 1, ARRAYS))
    for name, change in changes.items():
        header[name] = {**header.get(name, {}), **change} if isinstance(change, dict) else change
    return headed(header, rest)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff" * 8, "1048576 bytes"),
        ((1 << 20).to_bytes(8, "little") + b"{}", "cut off"),
        (headed(b"\xff", b""), "JSON"),
        (headed(b"[" * 900, b""), "JSON"),
        (headed(b"{" * 100_000, b""), "1000 arrays"),
        (headed([], b""), "object"),
        (headed(b'{"a":1,"a":2}', b""), "twice"),
        (headed({"a": {"dtype": "U8", "dtypes": 1}}, b""), "data_offsets"),
        (edited(small={"dtype": "F8_E4M3"}), "F8_E4M3"),
        (edited(small={"dtype": ["U8"]}), "type list"),
        (edited(small={"shape": [True, 3]}), "sizes"),
        (edited(small={"shape": [1] * 5}), "sizes"),
        (edited(small={"shape": [2**41]}), "sizes"),
        (edited(small={"shape": [2]}), "other bytes"),
        (edited(small={"data_offsets": [0, 3, 4]}), "sizes"),
        (edited(small={"data_offsets": [40, 43]}), "inside"),
        (edited(small={"data_offsets": [3, 0]}), "inside"),
        (edited(small={"data_offsets": [0, 3]}), "gap"),
        (edited() + b"x", "follow"),
        (edited(__metadata__={"format": 3}), "strings"),
        (edited(more={"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}), "has not the arrays of its kind"),
        (edited(large={"shape": [4]}), r"large .*float64"),
        (edited(small={"dtype": "I8"}), r"small .*uint8"),
        (pack_arrays("test", 1, ARRAYS | {"small": np.zeros(0, np.uint8), "x\n\x1b": ARRAYS["small"]}), r"x\\n\\x1b"),
    ],
)
def test_a_file_that_lies_is_refused_in_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(BundleError, match=sentence) as caught:
        read(data)
    assert str(caught.value).isprintable()


def test_numbers_that_are_not_aligned_are_refused_in_a_file_of_ours_only() -> None:
    header = {
        "__metadata__": {"format": "gramvec test", "version": "1"},
        "small": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
        "large": {"dtype": "F64", "shape": [1, 1], "data_offsets": [3, 11]},
        "empty": {"dtype": "I32", "shape": [0], "data_offsets": [11, 11]},
    }
    data = headed(header, bytes(3) + np.array([2.5]).tobytes())
    if (np.frombuffer(data, np.uint8)[-8:].ctypes.data) % 8:
        with refused(BundleError, "large", "aligned"):
            read(data)
    assert read_tensors(PATH, data, remedy="take another").arrays["large"][0, 0] == 2.5


def test_a_file_that_says_how_large_it_is_takes_no_memory_for_it(tmp_path: Path) -> None:
    script = (
        "import resource, sys\nfrom pathlib import Path\nfrom gramvec.errors import BundleError\n"
        "from gramvec.text.array_file import read_tensors\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        'header = b\'{"a":{"dtype":"F64","shape":[1099511627776],"data_offsets":[0,8796093022208]}}\'\n'
        "try:\n    read_tensors(Path('x'), len(header).to_bytes(8, 'little') + header, remedy='r')\n"
        "except BundleError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "sizes" in done.stdout
