"""`gramvec index build` beside `gramvec embed`, and a search of one text and of many beside numpy and other libraries.

24 lines for each sentence, each line different, and the last 100 of them are the queries; BENCH_INDEX_TEXTS names a
file of other lines. Recall at 10 is of the cosines with the stored int8 vectors, by numpy in float32. All searches have
one thread, and its CPU time is told. usearch and faiss (pip install usearch faiss-cpu) are measured where they are
installed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gramvec
from benchmarks.bulk import Cost, command_cost, numbered
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.embedding import quantize, unit
from gramvec.search import nearest

LINES_A_SENTENCE = 24
QUERIES = 100
SINGLE = 20
K = 10
CENTROIDS, PROBES = 1024, 64

Search = Callable[[NDArray[np.float32]], NDArray[np.int64]]
Build = Callable[[NDArray[np.int8]], Search]


def run(setting: Setting) -> Part:
    part = Part()
    named = os.environ.get("BENCH_INDEX_TEXTS")
    lines = Path(named).read_text("utf-8").split("\n") if named else numbered(setting, LINES_A_SENTENCE)
    lines = [line for line in lines if line]
    queries, lines = lines[-QUERIES:], lines[:-QUERIES]
    with TemporaryDirectory(prefix="gramvec-bench-") as name:
        source, folder = Path(name, "in.txt"), Path(name)
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        embedded = command_cost(setting, "embed", str(source), "-o", str(folder / "out.npy"))
        built = command_cost(setting, "index", "build", str(source), "-o", str(folder / "out.gvi"))
        rows = [_cost("gramvec embed to .npy", embedded, embedded), _cost("gramvec index build", built, embedded)]
        rows = [row | _rates(cost, len(lines)) for row, cost in zip(rows, (embedded, built), strict=True)]
        part.add("index", Group(f"index: {len(lines):,} lines of a file", "lines", rows, rows[0]["name"]))
        units = np.load(folder / "out.npy", mmap_mode="r")
        table = np.concatenate([quantize(np.array(units[at : at + 8192]), "int8") for at in range(0, len(units), 8192)])
    embedder = gramvec.load(setting.model, device="cpu")
    asked = embedder.embed(queries)
    embedder.close()
    title = f"index: the nearest {K} of {len(table):,} vectors, CPU time of one thread"
    rows = _searches(part, table.astype(np.int8), asked)
    part.add("index_search", Group(title, "milliseconds a query", rows, rows[0]["name"]))
    return part


def _cost(name: str, cost: Cost, against: Cost) -> Row:
    return {"name": name, "peak_mb": round(cost.peak_mb, 1), "ratio": round(against.seconds / cost.seconds, 3)}


def _rates(cost: Cost, lines: int) -> Row:
    return {
        "per_second": round(lines / cost.seconds, 1),
        "per_cpu_second": round(lines / cost.cpu_seconds, 1),
    }


def _searches(part: Part, table: NDArray[np.int8], asked: NDArray[np.float32]) -> list[Row]:
    builds: dict[str, Build] = {"numpy, float32": _numpy, "gramvec": _gramvec, "numkong alone": _numkong}
    for name, module, build in (("usearch, HNSW", "usearch.index", _usearch), ("faiss, IVF", "faiss", _faiss)):
        try:
            import_module(module)
            builds[name] = build
        except ImportError:
            part.note(f"{name} is left out: not installed")
    rows: list[Row] = []
    truth: list[set[int]] = []
    for name, build in builds.items():
        began = time.process_time()
        search = build(table)
        built = time.process_time()
        for one in asked[:SINGLE]:
            search(one[None])
        single = time.process_time()
        found = [set(one) for one in search(asked).tolist()]
        many = time.process_time()
        truth = truth or found
        ms = (single - built) / min(SINGLE, len(asked)) * 1e3
        recall = [len(a & b) / len(b) for a, b in zip(found, truth, strict=True)]
        rows.append(
            {
                "name": name,
                "build_seconds": round(built - began, 3),
                "ms": round(ms, 3),
                "ms_of_many": round((many - single) / len(asked) * 1e3, 3),
                "recall": round(float(np.mean(recall)), 4),
                "ratio": round(rows[0]["ms"] / ms, 3) if rows else 1,
            }
        )
        del search
    return rows


def _top(scores: NDArray[Any]) -> NDArray[np.int64]:
    return np.argpartition(-scores, K, axis=1)[:, :K]


def _numpy(table: NDArray[np.int8]) -> Search:
    wide = np.concatenate([unit(table[at : at + 8192].astype(np.float32)) for at in range(0, len(table), 8192)])
    return lambda queries: np.concatenate([_top(one[None] @ wide.T) for one in queries])


def _gramvec(table: NDArray[np.int8]) -> Search:
    return lambda queries: nearest(queries, table, K)[0]


def _numkong(table: NDArray[np.int8]) -> Search:
    cdist = import_module("numkong").cdist
    return lambda queries: np.concatenate(
        [_top(np.asarray(cdist(quantize(one[None], "int8"), table, "dot"))) for one in queries]
    )


def _usearch(table: NDArray[np.int8]) -> Search:
    made = import_module("usearch.index").Index(
        ndim=table.shape[1], metric="ip", dtype="i8", connectivity=16, expansion_add=64, expansion_search=128
    )
    made.add(np.arange(len(table)), table, threads=1)

    def search(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        found = [made.search(one, K, threads=1).keys for one in quantize(queries, "int8")]
        return np.array([np.resize(np.asarray(keys, np.int64), K) for keys in found])

    return search


def _faiss(table: NDArray[np.int8]) -> Search:
    faiss = import_module("faiss")
    faiss.omp_set_num_threads(1)
    d, kind = table.shape[1], faiss.ScalarQuantizer.QT_8bit_direct_signed
    lists = min(CENTROIDS, len(table) // 40)
    flat = faiss.IndexFlatIP(d)
    made = faiss.IndexIVFScalarQuantizer(flat, d, max(1, lists), kind, faiss.METRIC_INNER_PRODUCT)
    made.by_residual = False
    made.train(table[:: max(1, len(table) // (64 * max(1, lists)))].astype(np.float32))
    for at in range(0, len(table), 50_000):
        made.add(table[at : at + 50_000].astype(np.float32))
    made.nprobe = PROBES
    return lambda queries: np.concatenate([made.search(one[None] * 127, K)[1] for one in queries])
