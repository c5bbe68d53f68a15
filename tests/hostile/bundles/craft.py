"""Tools to make bundles with: whatever is wanted, with digests that are right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.text.array_file import pack_arrays

Arrays = dict[str, NDArray[Any]]


class Attack(NamedTuple):
    """What is done to a sound bundle, and what is said of it: the file at fault and a part of the sentence."""

    make: Callable[[Path], None]
    file: str
    sentence: str


ATTACKS: dict[str, Attack] = {}


def attack(file: str, sentence: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Name an attack by its function, which is given the folder of a sound bundle to spoil."""

    def register(make: Callable[[Path], None]) -> Callable[[Path], None]:
        name = make.__name__.replace("_", " ")
        assert name not in ATTACKS
        ATTACKS[name] = Attack(make, file, sentence)
        return make

    return register


def family(name: str, file: str, sentence: str, make: Callable[[Path], None]) -> None:
    """The same for one of several that differ in a value."""
    assert name not in ATTACKS
    ATTACKS[name] = Attack(make, file, sentence)


@contextmanager
def manifest(folder: Path) -> Iterator[dict[str, Any]]:
    """The manifest, to be changed; sizes and digests of the files that it lists are made right at the end."""
    path = folder / "manifest.json"
    values = json.loads(path.read_bytes())
    yield values
    for name, record in values["files"].items() if isinstance(values.get("files"), dict) else ():
        file = folder / name
        if isinstance(record, dict) and file.is_file() and not file.is_symlink():
            record["bytes"] = file.stat().st_size
            record["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(values), encoding="utf-8")


@contextmanager
def arrays(folder: Path, name: str) -> Iterator[Arrays]:
    """Arrays of a file, to be changed in any way, or replaced by others."""
    path = folder / name
    data = path.read_bytes()
    found = read(data)
    yield found
    path.write_bytes(packed(data, found))
    with manifest(folder):
        pass


def read(data: bytes) -> Arrays:
    """Return writable copies of the arrays in a file of arrays, trusting it."""
    header, begin = split(data)
    types = {"U8": "u1", "U16": "<u2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8"}
    found: Arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            found[name] = np.frombuffer(data[begin + first : begin + last], types[entry["dtype"]]).copy()
    return found


def split(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header of a file of arrays, and where its data begin."""
    begin = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:begin]), begin


def packed(like: bytes, found: Arrays) -> bytes:
    """Return a file of these arrays, of the kind and version of the file `like`."""
    metadata = split(like)[0]["__metadata__"]
    return pack_arrays(metadata["format"].removeprefix("gramvec "), int(metadata["version"]), found)


def headed(header: object, rest: bytes) -> bytes:
    """Return a file with this header, an object or its bytes, before the rest."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest


@contextmanager
def content(folder: Path, name: str) -> Iterator[bytearray]:
    """The bytes of a file, to be changed."""
    data = bytearray((folder / name).read_bytes())
    yield data
    (folder / name).write_bytes(data)
    with manifest(folder):
        pass


@contextmanager
def header_of(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Header of a file of arrays, to be changed."""
    with content(folder, name) as data:
        header, begin = split(bytes(data))
        yield header
        data[:] = headed(header, bytes(data[begin:]))


def inverse_of_hash(slot: int) -> int:
    """The key of this hash, which decides where a search begins: a product, and so it can be undone."""
    return slot * pow(0x9E3779B97F4A7C15, -1, 2**64) % 2**64
