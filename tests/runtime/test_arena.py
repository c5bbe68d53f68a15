"""What graphs take in onnxruntime has a bound, whatever they ask for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import MODELS

pytestmark = pytest.mark.slow

# In a process of its own: the arena is one for all sessions, and stays.
SCRIPT = """
import os, sys
from pathlib import Path
from gramvec.runtime import ort as arena
arena.MEMORY_SHARE = 400e6 / arena._memory()
import numpy as np
import gramvec
from gramvec.errors import BackendError
embedder = gramvec.load(sys.argv[1], device="cpu", runtime="onnx", max_characters=10**8)
def peak_of_process():  # ru_maxrss begins at the parent's
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = embedder.embed(["a fast car"])
peak = peak_of_process()
try:
    embedder.embed(["a fast car " * 1_000_000])
except BackendError as error:
    print(error)
assert peak_of_process() - peak < 900_000
assert (embedder.embed(["a fast car"]) == before).all()
"""


def test_a_graph_that_asks_for_more_fails_with_a_sentence_and_goes_on() -> None:
    command = [sys.executable, "-c", SCRIPT, str(MODELS / "sif")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("onnxruntime failed on cpu: ")
    assert "Available memory of" in line
