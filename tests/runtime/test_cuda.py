"""The CUDA runtime: on a GPU, or over a stand-in for the CUDA runtime, whose trace then shows what the device does.

Run by `make test-cuda`, in an environment with onnxruntime-gpu.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gramvec
from conftest import ROOT, SHIPPED
from gramvec.bundle.bundle import Bundle, open_bundle
from gramvec.bundle.four_bits import unpack_levels
from gramvec.errors import BackendError, DeviceError
from gramvec.runtime.cuda import MAX_TEXTS, CudaRuntime, rows_a_call
from gramvec.runtime.native import NativeRuntime
from gramvec.runtime.ort import CPU, CUDA, cuda_session, import_onnxruntime, why_no_cuda
from gramvec.runtime.select import golden_difference
from support.batches import batch_of
from support.errors import refused

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(300)]

if (reason := why_no_cuda()) is not None:
    pytest.skip(f"{reason}: make test-cuda", allow_module_level=True)

BUNDLES = Path(os.environ.get("GRAMVEC_CUDA_BUNDLES", "/nowhere"))  # tests/cuda_bundles.py
TRACE = Path(os.environ.get("FAKE_LOG", "/nowhere"))
of_the_stand_in = pytest.mark.skipif(not TRACE.is_file(), reason="a GPU keeps no trace")
of_every_model = pytest.mark.parametrize("name", SHIPPED)
PATIENCE = 120


@pytest.fixture(scope="session")
def bundles() -> dict[str, Bundle]:
    """The shipped models, with the graphs of today."""
    return {name: open_bundle(BUNDLES / name) for name in SHIPPED}


class Both(NamedTuple):
    """A bundle, on the device and on the CPU."""

    bundle: Bundle
    cuda: CudaRuntime
    native: NativeRuntime


@pytest.fixture(scope="session")
def both(bundles: dict[str, Bundle]) -> Callable[[str], Both]:
    opened: dict[str, Both] = {}

    def of(name: str) -> Both:
        if name not in opened:
            bundle = bundles[name]
            opened[name] = Both(bundle, CudaRuntime(bundle), NativeRuntime(bundle))
        return opened[name]

    return of


@contextmanager
def traced() -> Iterator[list[str]]:
    """The lines that the stand-in writes meanwhile."""
    lines: list[str] = []
    before = TRACE.stat().st_size
    yield lines
    with TRACE.open() as file:
        file.seek(before)
        lines += file.read().splitlines()


def heaviest(bundle: Bundle) -> tuple[int, int]:
    """The row with the largest number, in steps, and the number's column."""
    stored = bundle.manifest.graph.stored
    assert stored is not None
    path, dimension = bundle.path / stored.file, bundle.manifest.dimension
    if bundle.manifest.graph.precision == "int4":
        # The largest weight is 127, and of the rows that have it one with the largest level.
        assert stored.weights is not None
        weights = np.fromfile(path, np.uint8, stored.rows, offset=stored.weights)
        packed = np.memmap(path, np.uint8, "r", stored.table, (stored.rows, (dimension + 1) // 2))
        rows = np.flatnonzero(weights == weights.max())
        levels = np.abs(unpack_levels(np.asarray(packed[rows]), dimension).astype(np.int16))
        at, column = np.unravel_index(int(levels.argmax()), levels.shape)
        return int(rows[at]), int(column)
    assert stored.scales is not None
    shape = (stored.rows, dimension)
    table = np.memmap(path, np.int8, "r", stored.table, shape)
    scales = np.fromfile(path, np.float32, stored.rows, offset=stored.scales)
    row = int(scales.argmax())
    return row, int(np.abs(table[row].astype(np.int16)).argmax())


# ---- What is computed ----


@of_every_model
def test_golden_vectors(both: Callable[[str], Both], name: str) -> None:
    bundle, cuda, _ = both(name)
    assert (cuda.name, cuda.device, cuda.provider) == ("onnx", "cuda", CUDA)
    assert golden_difference(bundle, cuda) <= (1e-6 if bundle.manifest.graph.activation == "tanh" else 0)


@of_every_model
def test_vectors_are_those_of_native_to_the_bit_alone_and_in_any_batch(
    both: Callable[[str], Both], name: str, real_texts: list[str]
) -> None:
    bundle, cuda, native = both(name)
    expected = native.embed(bundle.memoized, real_texts)
    found = cuda.embed(bundle.memoized, real_texts)
    assert found.vectors.tobytes() == expected.vectors.tobytes()
    assert np.array_equal(found.counts, expected.counts)
    assert found.unknown == expected.unknown
    for text, vector in list(zip(real_texts, expected.vectors, strict=True))[::9]:
        assert cuda.embed(bundle.memoized, [text]).vectors.tobytes() == vector.tobytes()
    order = np.random.default_rng(1).permutation(len(real_texts))
    shuffled = cuda.embed(bundle.memoized, [real_texts[i] for i in order])
    assert shuffled.vectors.tobytes() == expected.vectors[order].tobytes()


@of_every_model
def test_texts_without_features_alone_and_in_a_batch(both: Callable[[str], Both], name: str) -> None:
    bundle, cuda, native = both(name)
    for texts in ([""], ["\U0001f600"], ["", "\U0001f600"], ["\U0001f600", "", "a fast car", ""], [""] * 5_000):
        cuda.embed(bundle.memoized, ["a fast car"])  # what another text leaves in memory
        expected = native.embed(bundle.memoized, texts).vectors
        assert cuda.embed(bundle.memoized, texts).vectors.tobytes() == expected.tobytes()


@of_every_model
def test_the_order_of_the_additions_does_not_show(
    both: Callable[[str], Both], name: str, real_texts: list[str]
) -> None:
    bundle, cuda, native = both(name)
    batch = bundle.memoized(real_texts)
    expected = native.run(batch).tobytes()
    random = np.random.default_rng(2)
    for _ in range(5):
        rows = [random.permutation(batch.part(i, i + 1).ids) for i in range(len(batch))]
        assert cuda.run(batch_of(*rows)).tobytes() == expected


@of_every_model
def test_long_texts_are_cut_where_sums_would_round(both: Callable[[str], Both], name: str) -> None:
    bundle, cuda, native = both(name)
    row, column = heaviest(bundle)
    most = cuda._exact.max_rows
    if bundle.manifest.graph.precision == "int4":
        assert 4_096 <= most <= 8_192  # 6,290 of 21 x 127
    else:
        assert 1_024 <= most <= 2_048  # 1,032 of 127 x 128
    random = np.random.default_rng(3)
    rows = bundle.manifest.rows
    texts = [
        np.full(most, row), np.full(most + 1, row), np.full(2 * most, row), np.full(2 * most + 1, row),
        [], [row], random.integers(0, rows, 70_000), np.full(70_000, row), random.integers(0, rows, 450_000),
    ]  # fmt: skip
    batch = batch_of(*texts)
    found = cuda.run(batch)
    assert found.tobytes() == native.run(batch).tobytes()
    # Without the cut: one number more than float32 holds exactly.
    assert np.float32(2**24) + np.float32(1) == np.float32(2**24)
    with traced() if TRACE.is_file() else nullcontext([]) as lines:
        cuda.run(batch_of(texts[2]))
    assert [line for line in lines if line.startswith("SCATTER")] in (
        [],
        [f"SCATTER indices {2 * most} x {bundle.manifest.dimension} elements"],
    )
    assert column < bundle.manifest.dimension


def test_the_graphs_own_vectors_are_native_to_the_bit(both: Callable[[str], Both], real_texts: list[str]) -> None:
    """The whole graph on the device, as another program would run it."""
    bundle, _, native = both("gramvec-en")
    batch = bundle.memoized([text for text in real_texts if len(text) < 1_000])
    session = cuda_session(import_onnxruntime(), bundle.graph_path)
    feed = {"ids": batch.ids, "segments": np.repeat(np.arange(len(batch)), batch.counts), "counts": batch.counts}
    vectors, sums = session.run(["vectors", "sums"], feed)
    assert vectors.tobytes() == native.run(batch).tobytes()
    assert np.array_equal(sums, np.rint(sums))
    assert 1_000 < np.abs(sums).max() < 2**24


@pytest.mark.parametrize("name", ["sum-tanh-int8", "mean-linear-int8", "sum-tanh-int4", "mean-linear-int4"])
def test_a_dimension_that_is_no_multiple_of_anything(name: str) -> None:
    bundle = open_bundle(BUNDLES / name)
    texts = ["east north", "", "north " * 3_000, "west", "zzz"]
    cuda, native = CudaRuntime(bundle), NativeRuntime(bundle)
    found = cuda.embed(bundle.memoized, texts).vectors
    assert found.tobytes() == native.embed(bundle.memoized, texts).vectors.tobytes()
    assert cuda.embed(bundle.memoized, []).vectors.shape == (0, bundle.manifest.dimension)
    assert cuda.embed(bundle.memoized, ["", "zzz"]).vectors.tobytes() == found[[1, 1]].tobytes()


# ---- Where, and what is copied ----


@of_every_model
def test_only_shapes_are_computed_on_the_cpu(
    bundles: dict[str, Bundle], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, onnxruntime = bundles[name], import_onnxruntime()
    monkeypatch.chdir(tmp_path)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    session = onnxruntime.InferenceSession(str(bundle.graph_path), options, providers=[CUDA, CPU])
    batch = bundle.memoized(["a fast car", "ripe bananas"])
    session.run(None, {"ids": batch.ids, "segments": np.repeat(np.arange(2), batch.counts), "counts": batch.counts})
    events = json.loads(Path(session.end_profiling()).read_text())
    ran = {
        event["name"].removesuffix("_kernel_time"): event["args"]["provider"]
        for event in events
        if event["name"].endswith("_kernel_time")
    }
    assert {node for node, provider in ran.items() if provider != CUDA} <= {"text_count", "sums_shape"}
    assert {node for node, provider in ran.items() if provider == CUDA} >= {"rows_stored", "sums", "vectors"} - (
        {"vectors"} if bundle.manifest.graph.activation == "linear" else set()  # an Identity is left out
    ) - ({"rows_stored"} if bundle.manifest.graph.precision == "int4" else set())
    assert "weights" not in ran  # computed once, when the graph was opened
    assert not [node for node in ran if "Memcpy" in node]


@of_the_stand_in
@of_every_model
def test_each_array_is_copied_once_from_and_to_memory_that_the_device_reads(
    both: Callable[[str], Both], name: str
) -> None:
    bundle, cuda, _ = both(name)
    batch = bundle.memoized(["a fast car", "ripe bananas", ""] * 50)
    cuda.run(batch)
    with traced() as lines:
        cuda.run(batch)
    copies = [line.split() for line in lines if line.startswith("MEMCPY") and "device->device" not in line]
    rows, texts = len(batch.ids), len(batch)
    found = sorted((copy[1], int(copy[4])) for copy in copies)
    assert found == sorted(
        [("pinned->device", 4 * rows), ("pinned->device", 8 * rows), ("pinned->device", 8 * texts),
         ("device->pinned", 4 * texts * bundle.manifest.dimension)]
    )  # fmt: skip
    if bundle.manifest.graph.precision == "int4":
        return  # levels are taken apart by other kernels
    scattered = next(index for index, line in enumerate(lines) if line.startswith("SCATTER"))
    for kernel in ("FillIi", "GatherKernelIi", "GatherKernelIa", "OP_CastIaf", "RhsPerChannelBatch1Ifff"):
        # With a star, or the stand-in has not computed it.
        assert [line for line in lines[:scattered] if line.startswith("LAUNCH*") and kernel in line], kernel
    assert not [line for line in lines if line.startswith("!!")]


@of_the_stand_in
def test_a_call_has_at_most_200_000_rows_and_4_096_texts(both: Callable[[str], Both]) -> None:
    bundle, cuda, native = both("charagram-phrase")
    random = np.random.default_rng(4)
    batch = batch_of(*(random.integers(0, bundle.manifest.rows, n) for n in random.integers(0, 120, 9_000)))
    with traced() as lines:
        found = cuda.run(batch)
    assert found.tobytes() == native.run(batch).tobytes()
    rows = [int(line.split()[2]) for line in lines if line.startswith("SCATTER")]
    assert sum(rows) == len(batch.ids)
    assert max(rows) <= 200_000
    assert len(rows) == pytest.approx(len(batch.ids) / 200_000, abs=1)
    assert not [line for line in lines if line.startswith("!!")]
    with traced() as lines:
        cuda.run(batch_of(*[[1]] * 10_000))
    assert [line.split()[2] for line in lines if line.startswith("SCATTER")] == ["4096", "4096", "1808"]


@of_the_stand_in
def test_the_limit_of_rows_is_one_of_cudas(bundles: dict[str, Bundle]) -> None:
    """What a call of more would leave out, so that the limit is not taken for caution."""
    session = cuda_session(import_onnxruntime(), bundles["charagram-phrase"].graph_path)

    def left_out(rows: int) -> list[str]:
        with traced() as lines:
            ids = np.ones(rows, np.int32)
            session.run(["sums"], {"ids": ids, "segments": np.zeros(rows, np.int64), "counts": np.array([rows])})
        return [line for line in lines if line.startswith("!! gather")]

    assert not left_out(rows_a_call(300))
    assert not left_out(223_651)
    assert left_out(223_715) == ["!! gather: 4 of 67114500 elements have no thread"]


# ---- What goes wrong ----


@pytest.mark.parametrize("wrong", [-1, 10_000_000])
def test_a_row_that_does_not_exist_is_refused_before_the_call(both: Callable[[str], Both], wrong: int) -> None:
    _, cuda, _ = both("gramvec-en")
    with refused(BackendError, f"row {wrong}", "286000 rows"):
        cuda.run(batch_of([1, wrong, 2]))


def test_closed(bundles: dict[str, Bundle]) -> None:
    cuda = CudaRuntime(bundles["sif"])
    cuda.close()
    with pytest.raises(BackendError, match="closed"):
        cuda.run(batch_of([1]))


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_sums_that_depend_on_their_order_are_refused(precision: str, caplog: pytest.LogCaptureFixture) -> None:
    path = BUNDLES / f"sum-linear-{precision}"
    with refused(DeviceError, "cuda", "small", "convert --precision int8"):
        gramvec.load(path, device="cuda")
    caplog.set_level("INFO", "gramvec.runtime")
    assert gramvec.load(path).device == "cpu"
    assert [record.getMessage().startswith("device auto: cpu, because small") for record in caplog.records] == [True]


def test_several_threads_at_once(both: Callable[[str], Both], real_texts: list[str]) -> None:
    bundle, cuda, native = both("gramvec-en")
    expected = native.embed(bundle.memoized, real_texts).vectors

    def some(seed: int) -> bool:
        chosen = np.random.default_rng(seed).permutation(len(real_texts))[: 1 + seed % 50]
        found = cuda.embed(bundle.memoized, [real_texts[i] for i in chosen]).vectors
        return found.tobytes() == expected[chosen].tobytes()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(some, range(200)))


def test_the_library_takes_calls_as_large_as_the_device_wants(bundles: dict[str, Bundle]) -> None:
    texts = [f"text {number} of several thousand" for number in range(MAX_TEXTS + 500)]
    path = bundles["gramvec-en"].path
    expected = gramvec.load(path, device="cpu").embed(texts)
    with gramvec_on(path, threads=1) as embedder:
        assert embedder.batching.texts == MAX_TEXTS
        with traced() if TRACE.is_file() else nullcontext([]) as lines:
            assert embedder.embed(texts).tobytes() == expected.tobytes()
        assert len([line for line in lines if line.startswith("SCATTER")]) in (0, 2)
        assert [len(block) for block in embedder.stream(texts)] == [MAX_TEXTS, 500]
    with gramvec_on(path, threads=3) as embedder:
        assert embedder.embed(texts).tobytes() == expected.tobytes()


@contextmanager
def gramvec_on(path: Path, **options: Any) -> Iterator[gramvec.Embedder]:
    embedder = gramvec.load(path, device="cuda", **options)
    assert (embedder.device, embedder.runtime) == ("cuda", "onnx")
    yield embedder
    embedder.close()


# ---- From the command line, each in a process of its own ----

TEXTS = b"a fast car\nripe bananas\n\nvehicals\n"
RUN = "import sys; {before}\nfrom gramvec.cli import main; sys.argv = ['gramvec', *sys.argv[1:]]; main()"


def command(*arguments: str, before: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN.format(before=before), *arguments],
        input=TEXTS, capture_output=True, timeout=PATIENCE, cwd=ROOT, check=False, env=os.environ | environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def on_cpu() -> bytes:
    done = command("embed", "--device", "cpu")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) == 4
    return done.stdout


def test_the_command_writes_what_it_writes_on_the_cpu_and_nothing_else(on_cpu: bytes) -> None:
    for device in ("cuda", "auto"):
        done = command("-v", "embed", "--device", device)
        assert (done.returncode, done.stdout) == (0, on_cpu)
        assert f"gramvec: device {device}: cuda\n".encode() in done.stderr
    verified = command("verify", "gramvec-en", "--device", "cuda")
    assert verified.returncode == 0, verified.stderr
    assert b"golden texts on cuda" in verified.stdout


class Fault(NamedTuple):
    """How it is made to fail, and what is said then."""

    said: str
    before: str = ""
    environment: dict[str, str] = {}  # noqa: RUF012 - read only


FAULTS = {
    "no device": Fault("CUDA failure 100: no CUDA-capable device is detected", environment={"FAKE_NODEV": "100"}),
    "old driver": Fault("CUDA failure 35: CUDA driver version is insufficient", environment={"FAKE_NODEV": "35"}),
    "no libraries": Fault(
        "libcublasLt.so.13: cannot open shared object file", environment={"LD_LIBRARY_PATH": "{bare}"}
    ),
    "no driver": Fault("no NVIDIA driver was found", environment={"LD_LIBRARY_PATH": ""}),
    "no memory": Fault(
        "smaller than requested bytes",
        before="from gramvec.runtime import ort as sessions; sessions.CUDA_OPTIONS = {{'gpu_mem_limit': '1000000'}}",
    ),
    "no memory for the golden texts": Fault(
        "smaller than requested bytes",
        before="from gramvec.runtime import ort as sessions; "
        "sessions.CUDA_OPTIONS = {{**sessions.CUDA_OPTIONS, 'gpu_mem_limit': '90000000'}}",
    ),
    "other vectors": Fault(
        "golden texts have other vectors than when the bundle was made",
        before="from gramvec.runtime.cuda import CudaRuntime; run = CudaRuntime.run; "
        "CudaRuntime.run = lambda self, batch: run(self, batch) * 1.001",
    ),
    "an error": Fault(
        "onnxruntime failed on cuda: the device is gone",
        before="from gramvec.runtime import cuda\ndef fail(*_): raise RuntimeError('the device is gone')\n"
        "cuda._Lane.run = fail",
    ),
}
# On a machine with a GPU these cannot be had.
OF_THE_STAND_IN = {"no device", "old driver", "no libraries", "no driver"}


@pytest.mark.parametrize("fault", FAULTS)
def test_auto_goes_on_with_the_cpu_and_cuda_ends_with_the_cause(fault: str, on_cpu: bytes, tmp_path: Path) -> None:
    if fault in OF_THE_STAND_IN and not TRACE.is_file():
        pytest.skip("a GPU is here")
    said, before, environment = FAULTS[fault]
    if "LD_LIBRARY_PATH" in environment:
        for folder in os.environ["LD_LIBRARY_PATH"].split(":"):
            (tmp_path / "libcuda.so.1").symlink_to(Path(folder, "libcuda.so.1"))
        environment = {"LD_LIBRARY_PATH": environment["LD_LIBRARY_PATH"].format(bare=tmp_path)}
    done = command("-v", "embed", "--device", "auto", before=before.format(), **environment)
    assert (done.returncode, done.stdout) == (0, on_cpu)
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("gramvec: device auto: cpu, because ")
    assert said in line
    assert len(line) < 400
    done = command("embed", "--device", "cuda", before=before.format(), **environment)
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("Error: ")
    assert said in line


def test_the_service_answers_from_the_device(on_cpu: bytes) -> None:
    serve = [sys.executable, "-m", "gramvec", "serve", "--device", "cuda", "--port", "0"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        said = ""
        while "is ready on" not in said:
            said += process.stderr.readline()
            assert process.poll() is None, said
        assert "gramvec-en is ready on cuda" in said
        found = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        assert found is not None
        lines = TEXTS.decode().split("\n")[:-1]
        body = json.dumps({"inputs": lines}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{found[1]}/embed", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            answer = json.load(response)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert np.array(answer, np.float32).tobytes() == b"".join(
            np.array(json.loads(line)["embedding"], np.float32).tobytes() for line in on_cpu.splitlines()
        )
