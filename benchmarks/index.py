"""`gramvec index build` beside `gramvec embed`, and a search of one text and of many beside numpy and other libraries.

24 lines for each sentence, each line different, and the last 100 of them are the queries; BENCH_INDEX_TEXTS names a
file of other lines (`python -m benchmarks.lines`). Recall at 10 is of the cosines of the model's float32 vectors. All
searches have one thread, and its CPU time is told; mb is what an index has, in memory or mapped. usearch, faiss and
hnswlib (pip install usearch faiss-cpu hnswlib) are measured where they are installed, numpy up to two million lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
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
from gramvec.embed.quantization import quantize
from gramvec.search.layout import Layout
from gramvec.search.scan import nearest

LINES_A_SENTENCE = 24
QUERIES = 100
SINGLE = 20
K = 10
CENTROIDS, PROBES = 1024, 64
# float32 in memory: 2.4 GB of 300 columns.
NUMPY_ROWS = 2_000_000
READ_ROWS = 8_192

Search = Callable[[NDArray[np.float32]], NDArray[np.int64]]


@dataclass(frozen=True)
class Table:
    """The same vectors as float32[n, d], int8[n, d] and what that rounds off, int8[n, d]; all in files."""

    units: NDArray[np.float32]
    rows: NDArray[np.int8]
    remainders: NDArray[np.int8]


# A search, and the bytes that it looks through.
Build = Callable[[Table], tuple[Search, int]]


def run(setting: Setting) -> Part:
    part = Part()
    named = os.environ.get("BENCH_INDEX_TEXTS")
    lines = Path(named).read_text("utf-8").split("\n") if named else numbered(setting, LINES_A_SENTENCE)
    lines = [line for line in lines if line]
    queries, lines = lines[-QUERIES:], lines[:-QUERIES]
    number = len(lines)
    with TemporaryDirectory(prefix="gramvec-bench-") as name:
        source, folder = Path(name, "in.txt"), Path(name)
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        del lines
        embedded = command_cost(setting, "embed", str(source), "-o", str(folder / "out.npy"))
        built = command_cost(setting, "index", "build", str(source), "-o", str(folder / "out.gvi"))
        rows = [_cost("gramvec embed to .npy", embedded, embedded), _cost("gramvec index build", built, embedded)]
        rows = [row | _rates(cost, number) for row, cost in zip(rows, (embedded, built), strict=True)]
        part.add("index", Group(f"index: {number:,} lines of a file", "lines", rows, rows[0]["name"]))
        layout = Layout(folder / "out.gvi", verify=False)
        assert layout.remainders is not None
        table = Table(np.load(folder / "out.npy", mmap_mode="r"), layout.vectors, layout.remainders)
        embedder = gramvec.load(setting.model, device="cpu")
        asked = embedder.embed(queries)
        embedder.close()
        title = f"index: the nearest {K} of {number:,} vectors, CPU time of one thread"
        rows = _searches(part, table, asked)
        part.add("index_search", Group(title, "milliseconds a query", rows, rows[0]["name"]))
    return part


def _cost(name: str, cost: Cost, against: Cost) -> Row:
    return {"name": name, "peak_mb": round(cost.peak_mb, 1), "ratio": round(against.seconds / cost.seconds, 3)}


def _rates(cost: Cost, lines: int) -> Row:
    return {
        "per_second": round(lines / cost.seconds, 1),
        "per_cpu_second": round(lines / cost.cpu_seconds, 1),
    }


def _searches(part: Part, table: Table, asked: NDArray[np.float32]) -> list[Row]:
    builds: dict[str, Build] = {"gramvec": _gramvec, "gramvec, coarse": _coarse, "numkong alone": _numkong}
    if len(table.units) <= NUMPY_ROWS:
        builds["numpy, float32"] = _numpy
    for name, module, build in (
        ("usearch, HNSW", "usearch.index", _usearch),
        ("faiss, IVF", "faiss", _faiss),
        ("hnswlib, HNSW", "hnswlib", _hnswlib),
    ):
        try:
            import_module(module)
            builds[name] = build
        except ImportError:
            part.note(f"{name} is left out: not installed")
    rows: list[Row] = []
    truth = [set(one) for one in _truth(table, asked).tolist()]
    for name, build in builds.items():
        began = time.process_time()
        search, size = build(table)
        built = time.process_time()
        for one in asked[:SINGLE]:
            search(one[None])
        single = time.process_time()
        found = [set(one) for one in search(asked).tolist()]
        many = time.process_time()
        ms = (single - built) / min(SINGLE, len(asked)) * 1e3
        recall = [len(a & b) / len(b) for a, b in zip(found, truth, strict=True)]
        rows.append(
            {
                "name": name,
                "build_seconds": round(built - began, 3),
                "ms": round(ms, 3),
                "ms_of_many": round((many - single) / len(asked) * 1e3, 3),
                "mb": round(size / 1e6, 1),
                "recall": round(float(np.mean(recall)), 4),
                "ratio": round(rows[0]["ms"] / ms, 3) if rows else 1,
            }
        )
        del search
    return rows


def _top(scores: NDArray[Any]) -> NDArray[np.int64]:
    return np.argpartition(-scores, K, axis=1)[:, :K]


def _truth(table: Table, asked: NDArray[np.float32]) -> NDArray[np.int64]:
    rows, scores = np.empty((len(asked), 0), np.int64), np.empty((len(asked), 0), np.float32)
    for start in range(0, len(table.units), READ_ROWS):
        some = asked @ table.units[start : start + READ_ROWS].T
        rows = np.hstack([rows, np.broadcast_to(np.arange(start, start + some.shape[1]), some.shape)])
        scores = np.hstack([scores, some])
        best = _top(scores) if scores.shape[1] > K else np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        rows, scores = np.take_along_axis(rows, best, 1), np.take_along_axis(scores, best, 1)
    return rows


def _numpy(table: Table) -> tuple[Search, int]:
    units = np.array(table.units)
    return lambda queries: np.concatenate([_top(one[None] @ units.T) for one in queries]), units.nbytes


def _gramvec(table: Table) -> tuple[Search, int]:
    def search(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        return nearest(queries, table.rows, K, remainders=table.remainders)[0]

    return search, table.rows.nbytes + table.remainders.nbytes


def _coarse(table: Table) -> tuple[Search, int]:
    return lambda queries: nearest(queries, table.rows, K)[0], table.rows.nbytes


def _numkong(table: Table) -> tuple[Search, int]:
    cdist = import_module("numkong").cdist

    def search(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        rounded = (quantize(one[None], "int8") for one in queries)
        return np.concatenate([_top(np.asarray(cdist(one, table.rows, "dot"))) for one in rounded])

    return search, table.rows.nbytes


def _usearch(table: Table) -> tuple[Search, int]:
    made = import_module("usearch.index").Index(
        ndim=table.rows.shape[1], metric="ip", dtype="i8", connectivity=16, expansion_add=64, expansion_search=128
    )
    made.add(np.arange(len(table.rows)), table.rows, threads=1)

    def search(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        found = [made.search(one, K, threads=1).keys for one in quantize(queries, "int8")]
        return np.array([np.resize(np.asarray(keys, np.int64), K) for keys in found])

    return search, made.memory_usage


def _faiss(table: Table) -> tuple[Search, int]:
    faiss = import_module("faiss")
    faiss.omp_set_num_threads(1)
    n, d = table.rows.shape
    lists = max(1, min(CENTROIDS, n // 40))
    flat = faiss.IndexFlatIP(d)
    kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
    made = faiss.IndexIVFScalarQuantizer(flat, d, lists, kind, faiss.METRIC_INNER_PRODUCT)
    made.by_residual = False
    made.train(table.rows[:: max(1, n // (64 * lists))].astype(np.float32))
    for at in range(0, n, 50_000):
        made.add(table.rows[at : at + 50_000].astype(np.float32))
    made.nprobe = PROBES
    size = len(faiss.serialize_index(made))
    return lambda queries: np.concatenate([made.search(one[None] * 127, K)[1] for one in queries]), size


def _hnswlib(table: Table) -> tuple[Search, int]:
    n, d = table.units.shape
    made = import_module("hnswlib").Index(space="ip", dim=d)
    made.init_index(max_elements=n, ef_construction=64, M=16, random_seed=0)
    made.set_num_threads(1)
    made.set_ef(128)
    for at in range(0, n, 50_000):
        made.add_items(table.units[at : at + 50_000])

    def search(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.concatenate([made.knn_query(one[None], k=K)[0] for one in queries]).astype(np.int64)

    return search, made.index_file_size()
