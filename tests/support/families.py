"""Small sets of the families that evaluate scores beside similarity."""

from __future__ import annotations

import gzip
from pathlib import Path

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def put(path: Path, rows: str | bytes) -> Path:
    """Write a file, packed where its name ends in .gz; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = rows if isinstance(rows, bytes) else rows.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


LEFT = "id,name,price\n7,abc,1\n8,def,2\n9,ghi,3\n"
RIGHT = "id,name,price\n1,ghi,9\n2,bca,9\n3,fed,9\n4,abc,9\n5,xyz,9\n"
PAIRS = "left,right,match\n7,2,1\n7,5,0\n"


def matching(folder: Path, **other: str) -> Path:
    files = {"left": LEFT, "right": RIGHT, "train": PAIRS, "valid": "left,right,match\n", "test": PAIRS, **other}
    for name, rows in files.items():
        put(folder / f"{name}.csv", rows)
    return folder


def retrieval(folder: Path, **other: str) -> Path:
    files = {
        "corpus": "d1\tabc\tdef\nd2\tghi\nd3\txyz\n",
        "queries": "q1\thig\nq2\tzz\nq3\tnobody answers\n",
        "qrels": "q1\td2\t1\nq2\td1\t2\nq3\td1\t0\n",
        **other,
    }
    for name, rows in files.items():
        put(folder / f"{name}.tsv", rows)
    return folder
