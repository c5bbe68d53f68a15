"""Folders of an index with changed bytes: each can be opened and searched, or ends in one sentence."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import gramvec
from fuzz import mutate
from gramvec.errors import InputError
from gramvec.jobs.search import snapshot

ROWS = [{"text": f"parcel {row} is late", "n": row, "team": "ab"[row % 2]} for row in range(40)]
WHERE = [None, {"n": {"gte": 5}}, {"team": "a"}]


def prepare(bases: Path) -> None:
    """Build an index to start from, in two commits, one row removed."""
    mutate.write_bases(bases)
    if not (bases / "x.index").exists():
        model = gramvec.load(bases / min(mutate.SPECS), device="cpu")
        index = gramvec.Index.build(bases / "x.index", ROWS[:30], model=model, filter=["n", "team"])
        index.add(ROWS[30:])
        index.remove(["3"])
        model.close()


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """Change one or two files of an index, open it, search it and add to it."""
    path = Path(shutil.copytree(bases / "x.index", folder / "x.index"))
    for _ in range(numbers.choice([1, 1, 2])):
        _change(numbers, path)
    model = gramvec.load(bases / min(mutate.SPECS), device="cpu")
    snapshot.COMPARED_ROWS = numbers.choice([8, 1 << 15])  # above it signs propose candidates
    try:
        index = gramvec.Index(path, model=model, threads=1)
        for only in (None, "letters", "meaning"):
            for hits in index.search(["parcel 7", "", "late"], 5, only=only, where=numbers.choice(WHERE)):  # type: ignore[arg-type]
                assert all(isinstance(hit.record, dict) for hit in hits)
        index.add([ROWS[0]])
        index.remove(["5"])
    except InputError as error:
        mutate.check_sentence(error)
    finally:
        model.close()


def _change(numbers: random.Random, path: Path) -> None:
    files = [one for one in sorted(path.rglob("*")) if one.is_file() and not one.is_symlink()]
    file = numbers.choice(files)
    kind = numbers.random()
    if kind < 0.8:
        file.write_bytes(mutate.content(numbers, file.read_bytes()))
    elif kind < 0.85:
        file.unlink()
    elif kind < 0.9:
        file.unlink()
        file.symlink_to("/etc/passwd")
    elif kind < 0.95:
        file.unlink()
        os.mkfifo(file)
    else:
        file.unlink()
        file.mkdir()
