"""Histories of an index beside a plain reference in memory: add, replace, remove, kill, reopen, rebuild, search.

After every step the index holds what the reference does, or, after a kill, what it did before or after the step. An
index that was opened in between still answers as it did then. Searches by meaning and letters are compared with all
documents, one by one.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gramvec
from fuzz import mutate
from gramvec.jobs.search import changes, snapshot
from gramvec.jobs.search.filters import conditions_of
from gramvec.jobs.search.signs import signs_of

STEPS = 12
WORDS = ["parcel", "late", "lost", "order", "a", "bb", "caf\u00e9", "東京", "x1", "refund", "late late"]
TEAMS = ["post", "web", None, ["post", "web"], ""]
Rows = dict[str, dict[str, Any]]


def prepare(bases: Path) -> None:
    """Write bundles to start from."""
    mutate.write_bases(bases)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """Carry out one history."""
    model = gramvec.load(bases / min(mutate.SPECS), device="cpu", threads=1)
    snapshot.COMPARED_ROWS = numbers.choice([4, 1 << 15])  # above it signs propose candidates
    changes.MIN_REMOVED = numbers.choice([1, 20, 256])
    path = folder / "x.index"
    held: Rows = {}
    kept: list[tuple[gramvec.Index, list[Any]]] = []
    try:
        for turn in range(STEPS):
            step, after = _step(numbers, path, model, held, turn)
            if numbers.random() < 0.4:
                _killed(numbers, step)
                if not (path / "manifest.json").exists():
                    continue
                held = _is_one_of(gramvec.Index(path, model=model, threads=1), [held, after])
            else:
                step()
                held = after
            index = gramvec.Index(path, model=model, threads=1)
            _compare(numbers, index, held)
            for opened, answers in kept:
                assert _answers(opened) == answers
            if numbers.random() < 0.3:
                kept = [*kept[-1:], (index, _answers(index))]
    finally:
        model.close()


def _row(numbers: random.Random, key: str) -> dict[str, Any]:
    text = " ".join(numbers.choices(WORDS, k=numbers.randint(1, 5))) + f" {key}"
    return {"key": key, "text": text, "n": numbers.choice([None, numbers.randrange(9)]), "team": numbers.choice(TEAMS)}


def _step(
    numbers: random.Random, path: Path, model: gramvec.Embedder, held: Rows, turn: int
) -> tuple[Callable[[], object], Rows]:
    """Return a change and the documents after it."""
    size = numbers.choice([1, 3, 40, 150])
    new = {f"{turn}-{at}": _row(numbers, f"{turn}-{at}") for at in range(size)}
    kind = numbers.choice(["add", "replace", "remove", "remove", "build", "rebuild"]) if held else "build"
    if kind == "build":

        def make() -> object:
            return gramvec.Index.build(path, list(new.values()), model=model, id="key", filter=["n:number", "team"])

        new[f"{turn}-0"] |= {"team": "post", "n": 5}
        return make, new
    if kind == "rebuild":
        return lambda: changes.rebuild_index(model, path, threads=1), held
    if kind == "add":
        return lambda: gramvec.Index(path, model=model).add(list(new.values())), {**held, **new}
    some = numbers.sample(sorted(held), min(size, len(held)))
    if kind == "replace":
        other = {key: _row(numbers, key) for key in some}
        return lambda: gramvec.Index(path, model=model).add(list(other.values()), replace=True), {**held, **other}
    some = some[: len(held) - 1]
    if not some:
        return lambda: None, held
    return lambda: gramvec.Index(path, model=model).remove(some), {k: v for k, v in held.items() if k not in set(some)}


def _killed(numbers: random.Random, step: Callable[[], object]) -> None:
    """Carry out a step in a child, which is killed at some moment."""
    seconds = numbers.random() * 0.2
    child = os.fork()
    if not child:
        try:
            step()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(3)
        os._exit(0)
    end, status = time.monotonic() + seconds, None
    while status is None and time.monotonic() < end:
        done, found = os.waitpid(child, os.WNOHANG)
        status = found if done else None
        time.sleep(0.0005)
    if status is None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0


def _is_one_of(index: gramvec.Index, states: list[Rows]) -> Rows:
    found = {one.id: one.record for some, _ in index.snapshot().stored.by_row() for one in some}
    return next(state for state in states if found == state)


def _compare(numbers: random.Random, index: gramvec.Index, held: Rows) -> None:
    opened = index.snapshot()
    rows_of: dict[str, int] = {}
    for some, rows in opened.stored.by_row():
        rows_of.update(zip((one.id for one in some), rows.tolist(), strict=True))
        assert all(one.record == held[one.id] for one in some)
    assert len(rows_of) == len(index) == len(held)
    rows = np.array(list(rows_of.values()), np.int64)
    assert np.array_equal(opened._signs.signs(rows), signs_of(opened.vectors.rows(rows)))
    for where, is_in in (
        (None, lambda row: True),
        ({"n": {"gte": 4}}, lambda row: row["n"] is not None and row["n"] >= 4),
        ({"team": {"ne": "post"}}, lambda row: row["team"] != "post" and row["team"] != ["post", "web"]),
        ({"team": None}, lambda row: not row["team"]),
    ):
        within = {key for key, row in held.items() if is_in(row)}
        allowed = opened._rows_within(conditions_of(index.manifest.filters, where))  # type: ignore[arg-type]
        expected = sorted(rows_of[key] for key in within)
        assert expected == (list(range(len(opened.vectors))) if allowed is None else allowed.rows().tolist())
        key = numbers.choice(sorted(held))
        query = held[key]["text"]
        meaning = index.embedder.similarity([query], [held[one]["text"] for one in sorted(within)])[0] if within else []
        near = dict(zip(sorted(within), [float(one) for one in meaning], strict=True))
        hits = index.search(query, 3, where=where, only="meaning")[0]  # type: ignore[arg-type]
        assert {hit.id for hit in hits} <= within
        assert len(hits) >= min(3, sum(one > 0.02 for one in near.values()))
        if len(held) < snapshot.COMPARED_ROWS:
            best = sorted(near.values(), reverse=True)[: len(hits)]
            assert np.allclose([hit.score for hit in hits], best, atol=0.02)
        for only in ("letters", None):
            hits = index.search(query, 5, where=where, only=only)[0]  # type: ignore[arg-type]
            assert {hit.id for hit in hits} <= within
            assert all(0 < hit.score < 4 for hit in hits)
            if key in within and only == "letters":
                assert held[hits[0].id]["text"].split()[-1] == key or hits[0].score >= 0.9


def _answers(index: gramvec.Index) -> list[Any]:
    return [index.search(["parcel lost", "東京", "a bb x1"], 9, only=only) for only in (None, "letters", "meaning")]  # type: ignore[arg-type]
