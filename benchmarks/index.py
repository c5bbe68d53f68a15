"""An index of many lines: its build by the command, and its queries beside a product of all vectors by numpy.

BENCH_LINES says how many lines, 200,000 if it is not set; each is the sentences' words, 13 at a time, and a number. The
product is what a user would write: float32 vectors in memory, `vectors @ query`, numpy's argpartition.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import gramvec
from benchmarks.bulk import command_cost
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.embed.embedder import Embedder
from gramvec.jobs.search.snapshot import Only
from gramvec.jobs.search.vectors import unit_vectors

LINES, WORDS, QUERIES, TOGETHER, HITS, HUNDRED = 200_000, 13, 20, 20, 10, 100
LIMIT = "vectors @ query"
WAYS: dict[str, Only | None] = {"letters and meaning": None, "letters": "letters", "meaning": "meaning"}


def run(setting: Setting) -> Part:
    part = Part()
    lines = cut(setting.texts, int(os.environ.get("BENCH_LINES", LINES)))
    embedder = gramvec.load(setting.model, device="cpu")
    with TemporaryDirectory(prefix="gramvec-bench-") as name:
        source, path = Path(name, "in.txt"), Path(name, "lines.index")
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        cost = command_cost("index", "build", str(source), "-o", str(path), "--model", setting.model)
        began = time.perf_counter()
        index = gramvec.Index.open(path, model=embedder)
        opened = time.perf_counter() - began
        row: Row = {
            "name": f"{len(lines):,} lines", "lines_per_second": round(len(lines) / cost.seconds),
            "cpu_us_a_line": round(1e6 * cost.cpu_seconds / len(lines), 1), "peak_mb": round(cost.peak_mb),
            "bytes_a_line": round(index.bytes / len(lines)), "open_s": round(opened, 2),
        }  # fmt: skip
        part.add("index", Group("index: built by the command, opened", "lines", [row]))
        vectors = np.concatenate([_units(embedder, lines[at : at + 8192]) for at in range(0, len(lines), 8192)])
        numbers = np.random.default_rng(1).integers(0, len(lines), 2 * QUERIES)
        queries = [" ".join(lines[number].split()[2:8]) for number in numbers.tolist()]
        rows = [_timed(LIMIT, lambda asked: _product(embedder, vectors, asked), queries, setting.rounds)]
        for way, only in WAYS.items():
            rows.append(_timed(way, lambda asked, o=only: index.search(asked, HITS, only=o), queries, setting.rounds))
        for one in rows:
            one["ratio"] = round(rows[0]["one_ms"] / one["one_ms"], 2)
        part.add("queries", Group(f"index: queries of {len(lines):,} lines", "milliseconds", rows, LIMIT))
        part.note(f"of the hundred nearest, meaning finds {_recall(index, embedder, vectors, queries):.2%}")
    embedder.close()
    return part


def cut(texts: Sequence[str], number: int) -> list[str]:
    """Return lines of 13 words each; a number makes those different that come again."""
    words = " ".join(texts).split()
    pieces = [" ".join(words[at : at + WORDS]) for at in range(0, len(words) - WORDS + 1, WORDS)]
    made: list[str] = []
    for turn in count():
        made += [f"{piece} {turn * 7919 + at}" if turn else piece for at, piece in enumerate(pieces)]
        if len(made) >= number:
            return made[:number]
    return made


def _units(embedder: Embedder, texts: list[str]) -> np.ndarray:
    return unit_vectors(embedder, embedder.prepare(texts))


def _product(embedder: Embedder, vectors: np.ndarray, queries: list[str], k: int = HITS) -> list[np.ndarray]:
    products = vectors @ _units(embedder, queries).T
    return [np.argpartition(-column, k)[:k] for column in products.T]


def _timed(name: str, search: Callable[[list[str]], object], queries: list[str], rounds: int) -> Row:
    search(queries[:1])
    alone = []
    for query in queries[:QUERIES]:
        began = time.perf_counter()
        search([query])
        alone.append(time.perf_counter() - began)
    together = []
    for _ in range(rounds):
        began = time.perf_counter()
        search(queries[-TOGETHER:])
        together.append(time.perf_counter() - began)
    return {
        "name": name, "one_ms": round(1000 * statistics.median(alone), 2), "worst_ms": round(1000 * max(alone), 2),
        "twenty_ms": round(1000 * statistics.median(together), 1),
    }  # fmt: skip


def _recall(index: gramvec.Index, embedder: Embedder, vectors: np.ndarray, queries: list[str]) -> float:
    shares = []
    for query in queries:
        nearest = _product(embedder, vectors, [query], HUNDRED)[0]
        found = [int(hit.id) - 1 for hit in index.search(query, HUNDRED, only="meaning")[0]]
        shares.append(len(np.intersect1d(nearest, found)) / HUNDRED)
    return statistics.mean(shares)
