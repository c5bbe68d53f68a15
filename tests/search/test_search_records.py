"""What an index is built from and asked in a program: lists, arrays, columns and frames."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gramvec
from conftest import MODELS
from gramvec import Embedder
from gramvec.errors import InputError

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

TEXTS = ["cheap flights", "ripe bananas", "low-cost air fares"]


@pytest.mark.parametrize("made", [tuple, iter, np.array, pa.array, lambda texts: pa.chunked_array([texts])])
def test_any_column_of_texts_is_built_and_asked(
    made: Callable[[list[str]], Any], embedder: Embedder, tmp_path: Path
) -> None:
    index = gramvec.Index.build(tmp_path / "a.index", made(TEXTS), model=embedder)
    assert [one[0].record["text"] for one in index.search(made(TEXTS), k=1)] == TEXTS
    assert index.add(made(["a yellow fruit"])) == 4
    for again in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert again.search(TEXTS, k=2) == index.search(TEXTS, k=2)


def test_a_kill_leaves_none_of_the_records(tmp_path: Path) -> None:
    ours, spooled = tmp_path / "ours", tmp_path / "spooled"
    spooled.mkdir()
    code = f"""
import os, signal
import gramvec

def records():
    yield from ("a",) * 100_000
    os.kill(os.getpid(), signal.SIGKILL)

gramvec.Index.build({str(ours)!r}, records(), model={str(MODELS / "paragram-phrase")!r})
"""
    environment = {**os.environ, "TMPDIR": str(spooled)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, [*spooled.iterdir()], ours.exists()) == (-signal.SIGKILL, [], False), done.stderr


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_a_frame_is_its_rows(library: str, embedder: Embedder, tmp_path: Path) -> None:
    module: Any = pytest.importorskip(library, reason=f"{library} is not installed: make test-integrations")
    columns = {"title": TEXTS, "price": [9, 1, 7]}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    index = gramvec.Index.build(tmp_path / "a.index", frame, column="title", id="price", model=embedder)
    hit = index.search("chep flihgts", k=1)[0][0]
    assert (hit.id, hit.record) == ("9", {"title": "cheap flights", "price": 9})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a", float("nan")], r"record 1 .*missing \(nan\)"),
        (["a", None], r"record 1 .*missing \(None\)"),
        (["a", 3], r"record 1 .*int"),
        ([{"text": object()}], r"record 0 .*JSON"),
        (["a", {"title": "b"}], r"record 1 .*'text'.*title"),
        ([{"text": None}], r"record 0.*'text'.*missing \(None\)"),
        ({"a", "b"}, r"\bset\b"),
        (3, r"iterable.*int"),
    ],
)
def test_what_is_no_record_is_named_and_nothing_is_written(
    given: Any, said: str, embedder: Embedder, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        gramvec.Index.build(tmp_path / "a.index", given, model=embedder)
    assert not list(tmp_path.iterdir())
