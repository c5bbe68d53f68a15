"""Some seconds of `make fuzz`, the same every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT
from fuzz import build
from fuzz.__main__ import PARTS

pytestmark = pytest.mark.slow

SECONDS, SEED = "8", "20190602"


@pytest.fixture(scope="module")
def sanitized() -> dict[str, str]:
    try:
        return build.built()
    except build.NoSanitizersError as error:
        pytest.skip(str(error))


def fuzzed(parts: list[str]) -> list[str]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "fuzz", "--only", ",".join(parts), "--seconds", SECONDS, "--seed", SEED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def check(lines: list[str], parts: list[str]) -> None:
    for part, line in zip(parts, lines, strict=True):
        said = re.fullmatch(rf"{part}: (\d+) rounds from seed {SEED} in \d+ s, 0 failed", line)
        assert said, lines
        assert int(said[1]) > 0


def test_nothing_is_found_in_some_seconds() -> None:
    parts = [part for part, (_, sanitizers) in PARTS.items() if not sanitizers]
    check(fuzzed(parts), parts)


def test_nothing_is_found_with_sanitizers(sanitized: dict[str, str]) -> None:
    assert sanitized
    parts = [part for part, (_, sanitizers) in PARTS.items() if sanitizers]
    check(fuzzed(parts), parts)


READS = """
from fuzz import build
build.install()
import numpy as np
from gramvec import native
print(native.loops.__file__, flush=True)  # before an end that flushes nothing
floats = np.zeros((8, 4), np.float32)
longer = np.lib.stride_tricks.as_strided(floats, ({rows}, 4), (16, 4))
native.loops.unit(longer, np.zeros(longer.shape, np.float32))
print("after")
"""


@pytest.mark.parametrize("rows", [8, 9])
def test_sanitizers_watch_the_loops(sanitized: dict[str, str], rows: int) -> None:
    """Or all of the above might look at nothing: an array that says that it is longer than it is."""
    environment = os.environ | sanitized | {"PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-c", READS.format(rows=rows)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split()[0] == sanitized[build.LOOPS], done.stderr
    assert ("after" in done.stdout, done.returncode == 0) == (rows == 8, rows == 8)
    assert ("heap-buffer-overflow" in done.stderr and "in unit_rows" in done.stderr) == (rows > 8)


def test_a_round_that_fails_is_kept_with_its_input_and_told_how_to_run_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fuzz import __main__ as command

    kept = build.FOLDER / "test-crashes"
    monkeypatch.setattr(command, "CRASHES", kept)
    monkeypatch.setenv("GRAMVEC_FUZZ_FAULT", "3")
    monkeypatch.setattr(sys, "argv", ["fuzz", "--only", "graphs", "--seconds", "6", "--seed", SEED])
    assert command.main() == 1
    said = capsys.readouterr().out
    assert f"graphs: round 3 failed (exit code 1); its input is in {kept / f'graphs-{SEED}-3'}" in said
    assert f"-m fuzz --only graphs --seed {SEED} --round 3" in said
    assert "a fault, as asked for" in said
    assert (kept / f"graphs-{SEED}-3" / "input" / "model.onnx").exists()
    assert re.search(r"^graphs: \d+ rounds from seed \d+ in \d+ s, 1 failed$", said, re.MULTILINE)
