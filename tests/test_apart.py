"""The check of the native loops against ONNX Runtime in a process of its own, and what happens where it cannot be had.

Each in a fresh process: this one has imported onnxruntime, so nothing would be asked elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnxruntime
import orjson
import pytest

import gramvec
from conftest import MODELS, ROOT
from gramvec import native
from gramvec.runtime.onnx import is_installed

MODEL = MODELS / "charagram-phrase"
PATIENCE = 60

pytestmark = pytest.mark.skipif(
    native.loops is None or is_installed("onnxruntime-gpu"), reason="only the loops are checked, and on the CPU's wheel"
)

LOAD = """
import json, logging, os, sys, threading, time
logging.basicConfig(level="INFO", format="%(message)s")
model, runtime, before = sys.argv[1:]
exec(before)
import gramvec
began = time.monotonic()
try:
    embedder = gramvec.load(model, runtime=runtime)
    name, failure = embedder.runtime, None
    vectors = embedder.embed(["a fast car"]).tobytes().hex()
except gramvec.GramvecError as error:
    name, failure, vectors = None, f"{type(error).__name__}: {error}", None
seconds = time.monotonic() - began
try:
    left = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    left = None
print(json.dumps({"runtime": name, "failure": failure, "vectors": vectors, "left": left, "seconds": seconds,
                  "here": sys.modules.get("onnxruntime") is not None}))
"""


def load(runtime: str, before: str = "", model: Path = MODEL) -> dict[str, Any]:
    """What came of a load in a fresh process: runtime or failure, what it logged, whether it had onnxruntime itself."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOAD, str(model), runtime, before],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    assert said["left"] is None  # neither running nor a zombie
    return {**said, "log": done.stderr}


def program(path: Path, lines: str) -> str:
    """Python that makes a script of the shell the interpreter."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return f"sys.executable = {str(path)!r}"


def checked_here(said: dict[str, Any]) -> bool:
    """Whether native serves after a check in the process itself, with the right vectors."""
    expected = gramvec.load(MODEL, device="cpu", runtime="native").embed(["a fast car"]).tobytes().hex()
    return (said["runtime"], said["here"], said["vectors"]) == ("native", True, expected)


@pytest.mark.parametrize("runtime", ["auto", "native"])
def test_a_process_that_serves_native_never_has_onnxruntime(runtime: str) -> None:
    said = load(runtime)
    expected = gramvec.load(MODEL, device="cpu", runtime="native").embed(["a fast car"]).tobytes().hex()
    assert (said["runtime"], said["here"], said["vectors"]) == ("native", False, expected)
    # As it says it where onnxruntime is asked in the process.
    assert ("device auto: cpu, because" in said["log"]) == (runtime == "auto")


def test_a_script_without_a_main_guard_runs_once_and_a_thread_may_load(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, threading, gramvec\n"
        "print('once')\n"
        f"thread = threading.Thread(target=lambda: print(gramvec.load({str(MODEL)!r}).runtime))\n"
        "thread.start(); thread.join()\n"
        "print('onnxruntime' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["once", "native", "False"]


def damaged(copy: Path, **stored: object) -> Path:
    path = copy / "manifest.json"
    values = orjson.loads(path.read_bytes())
    if stored:
        values["graph"]["stored"] |= stored
    else:
        (copy / "model.cpu.onnx").write_bytes(b"no graph")
        values["files"]["model.cpu.onnx"] = {"bytes": 8, "sha256": hashlib.sha256(b"no graph").hexdigest()}
    path.write_bytes(orjson.dumps(values))
    return copy


def test_loops_that_disagree_do_not_serve(bundle_copy: Path) -> None:
    path = damaged(bundle_copy, bias=[0.5] * 300)
    said = load("native", model=path)
    assert said["failure"].startswith("BundleError: ")
    assert "runtime native differs from ONNX Runtime by" in said["failure"]
    said = load("auto", model=path)
    assert (said["runtime"], said["here"]) == ("onnx", True)
    assert said["log"].count("runtime auto: onnx, because native differs from it by") == 1


@pytest.mark.parametrize("runtime", ["auto", "native"])
def test_a_graph_that_cannot_be_loaded_is_named(runtime: str, bundle_copy: Path) -> None:
    said = load(runtime, model=damaged(bundle_copy))
    assert said["failure"].startswith(f"BundleError: {bundle_copy / 'model.cpu.onnx'}: no graph that a bundle may have")


def test_an_onnxruntime_that_cannot_be_imported(tmp_path: Path) -> None:
    # The other process looks for modules where this one does.
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('no such library')")
    before = f"sys.path.insert(0, {str(tmp_path)!r})"
    said = load("native", before)
    assert said["runtime"] == "native"
    assert "not checked against ONNX Runtime: onnxruntime cannot be imported (no such library)" in said["log"]
    assert "DeviceError: onnxruntime cannot be imported (no such library); install" in load("auto", before)["failure"]


def test_no_onnxruntime() -> None:
    before = """
import importlib.metadata as metadata
def none(name): raise metadata.PackageNotFoundError(name)
metadata.distribution = none
sys.meta_path.insert(0, type("No", (), {"find_spec": staticmethod(lambda name, *_: exec("raise ImportError(name)")
    if name == "onnxruntime" else None)}))"""
    said = load("native", before)
    assert said["runtime"] == "native"
    assert "not checked against ONNX Runtime: onnxruntime is not installed" in said["log"]
    assert "DeviceError: onnxruntime is not installed" in load("auto", before)["failure"]


@pytest.mark.parametrize("runtime", ["auto", "native"])
def test_an_interpreter_that_does_not_answer(runtime: str, tmp_path: Path) -> None:
    hanging = program(tmp_path / "python3", f"echo $$ > {tmp_path}/pid; exec sleep 100")
    hanging += "; from gramvec.runtime import apart; apart.PATIENCE_SECONDS = 0.5"
    said = load(runtime, hanging)
    assert checked_here(said)
    assert said["seconds"] < 20
    assert "timed out" in said["log"]
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@pytest.mark.parametrize(
    "lines",
    ["exit 1", "echo no vectors", "kill -9 $$", "head -c 1000 /dev/zero", "cat"],
    ids=["fails", "prints", "dies", "cut off", "echoes"],
)
def test_an_interpreter_that_gives_no_vectors(lines: str, tmp_path: Path) -> None:
    assert checked_here(load("auto", program(tmp_path / "python3", lines)))


def test_wrong_vectors_are_looked_at_again(tmp_path: Path) -> None:
    golden = orjson.loads((MODEL / "manifest.json").read_bytes())["golden"]
    zeros = f"head -c {len(golden) * 300 * 4} /dev/zero"
    assert checked_here(load("native", program(tmp_path / "python3", zeros)))


@pytest.mark.parametrize("executable", ["''", "None", "'/nowhere/python3'", f"{str(ROOT)!r}"])
def test_no_interpreter(executable: str) -> None:
    assert checked_here(load("auto", f"sys.executable = {executable}"))


def test_a_program_that_is_no_interpreter_is_not_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    frozen = program(tmp_path / "python-app", f"touch {started}") + "; sys.frozen = True"
    assert checked_here(load("auto", frozen))
    assert checked_here(load("auto", program(tmp_path / "uwsgi", f"touch {started}")))
    assert not started.exists()


def test_an_onnxruntime_with_cuda_is_asked_where_it_would_serve(tmp_path: Path) -> None:
    """As one that somebody has built with CUDA, under the name of the CPU's."""
    real = Path(onnxruntime.__file__)
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "__init__.py").write_text(
        f"__path__ = [{str(real.parent)!r}]\n"
        f"exec(compile(open({str(real)!r}).read(), {str(real)!r}, 'exec'))\n"
        "get_available_providers = lambda: ['CUDAExecutionProvider', 'CPUExecutionProvider']\n"
    )
    said = load("auto", f"sys.path.insert(0, {str(tmp_path)!r})")
    assert checked_here(said)
    assert "no vectors, exit code 1" in said["log"]
    # Which in this process is found not to work.
    assert "CPU build" not in said["log"]


def test_an_onnxruntime_that_is_there_already_is_asked() -> None:
    assert checked_here(load("auto", "import onnxruntime; sys.executable = '/nowhere/python3'"))
