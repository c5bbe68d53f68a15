"""ONNX Runtime in a process of its own, for the one batch that the native loops are checked with.

Its library and what it allocates, 25 MB, would stay with a process that never calls it again. The other process takes
0.1 s of CPU; since it starts while this one verifies the bundle, a load takes 0.03 s longer, a small model's 0.09 s.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.bundle import Bundle
from gramvec.features import FeatureBatch
from gramvec.runtime import Device
from gramvec.runtime.onnx import is_installed

log = logging.getLogger("gramvec.runtime")

# It takes 0.1 s; a machine that is so slow makes the check here.
PATIENCE_SECONDS = 30.0
# Without `site`, whose work is in sys.path already, and without looking for garbage in a life so short.
CODE = "import gc, sys; gc.disable(); sys.path[:] = sys.argv[1:]; from gramvec.runtime.answering import main; main()"


class Apart:
    """The other process. It answers once, and is gone after `close`."""

    def __init__(self, interpreter: str) -> None:
        """Raises OSError if the process cannot be started."""
        package = str(Path(__file__).parents[2])
        flags = ["-B"] if sys.dont_write_bytecode else []  # -I passes over the variables that would say so
        flags += ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and the code above
            [interpreter, "-I", "-S", *flags, "-c", CODE, *(one for one in sys.path if isinstance(one, str)), package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def vectors(self, bundle: Bundle, batch: FeatureBatch) -> NDArray[np.float32] | None:
        """float32[n, d]: what ONNX Runtime makes of the batch on a CPU.

        None where it gave no vectors, for whatever reason, or has a CUDA provider: then ask it in this process.
        """
        d = bundle.manifest.dimension
        question = pickle.dumps((bundle.graph_path, d, bundle.cpu_graph_path, batch.ids, batch.offsets))
        try:
            answer, _ = self._process.communicate(question, PATIENCE_SECONDS)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            log.info("ONNX Runtime in a process of its own: %s", error)
            return None
        if self._process.returncode or len(answer) != 4 * d * len(batch):
            log.info("ONNX Runtime in a process of its own: no vectors, exit code %s", self._process.returncode)
            return None
        return np.frombuffer(answer, np.float32).reshape(len(batch), d)

    def close(self) -> None:
        """End it, if it has not ended."""
        with self._process:  # closes its pipes and waits for it
            self._process.kill()


@contextmanager
def apart(device: Device, name: str) -> Iterator[Apart | None]:
    """The other process while the block lasts, if one is wanted for this device and runtime, and can be had."""
    interpreter = _interpreter() if _is_wanted(device, name) else None
    process = None
    try:
        process = Apart(interpreter) if interpreter else None
    except (OSError, ValueError) as error:
        log.info("ONNX Runtime in a process of its own: %s", error)
    try:
        yield process
    finally:
        if process is not None:
            process.close()


def _is_wanted(device: Device, name: str) -> bool:
    """Whether the check may be made there, and whether there is anything to save."""
    return (
        device in ("auto", "cpu")
        and name in ("auto", "native")
        and native.loops is not None
        and "onnxruntime" not in sys.modules
        and is_installed("onnxruntime")
        and not is_installed("onnxruntime-gpu")  # it is to say whether it has CUDA here, in the process that serves
    )


def _interpreter() -> str | None:
    """The program that runs this code, unless it is another that has Python inside, which would start itself again."""
    named = Path(sys.executable or "").name.startswith("python")
    return sys.executable if named and not getattr(sys, "frozen", False) else None
