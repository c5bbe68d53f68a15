"""Tools to make bundles with: whatever is wanted, with digests that are right."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.text.array_file import write_arrays

HEADER, ENTRY = struct.Struct("<8sIIQ"), struct.Struct("<16s8sQQ")

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
    """The arrays of vocab.bin or memo.bin, to be changed in any way, or replaced by others."""
    path = folder / name
    data = path.read_bytes()
    magic, version, _, _ = HEADER.unpack_from(data)
    found = read(data)
    yield found
    write_arrays(path, magic, version, found)
    with manifest(folder):
        pass


def read(data: bytes) -> Arrays:
    """The arrays in a vocab.bin or memo.bin of ours, writable."""
    _, _, count, _ = HEADER.unpack_from(data)
    found: Arrays = {}
    for index in range(count):
        name, dtype, offset, length = ENTRY.unpack_from(data, HEADER.size + index * ENTRY.size)
        kind = np.dtype(dtype.rstrip(b"\0").decode())
        found[name.rstrip(b"\0").decode()] = np.frombuffer(data, kind, length, offset).copy()
    return found


@contextmanager
def content(folder: Path, name: str) -> Iterator[bytearray]:
    """The bytes of a file, to be changed."""
    data = bytearray((folder / name).read_bytes())
    yield data
    (folder / name).write_bytes(data)
    with manifest(folder):
        pass


def entry_of(data: bytes, name: str) -> int:
    """Where the directory of a vocab.bin or memo.bin says where this array lies."""
    count = HEADER.unpack_from(data)[2]
    places = [HEADER.size + index * ENTRY.size for index in range(count)]
    return next(at for at in places if data[at : at + 16].rstrip(b"\0").decode() == name)


def inverse_of_hash(slot: int) -> int:
    """The key of this hash, which decides where a search begins: a product, and so it can be undone."""
    return slot * pow(0x9E3779B97F4A7C15, -1, 2**64) % 2**64
