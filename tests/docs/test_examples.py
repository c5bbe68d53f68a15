"""examples/: each program prints what its last lines say (make test-integrations installs all their libraries)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import MODELS, ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))
# A library's telemetry is off, and nothing is asked of a network.
QUIET = {"ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_its_last_lines_say(name: str, tmp_path: Path) -> None:
    program, _, shown = (FOLDER / name).read_text(encoding="utf-8").partition("\n# Prints:\n")
    for module in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: make test-integrations")
    if "duckdb" in name:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    environment = {**os.environ, **QUIET, "GRAMVEC_MODELS": str(MODELS)}
    done = subprocess.run(
        [sys.executable, str(FOLDER / name)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == re.findall(r"^# ?(.*)$", shown, re.MULTILINE)


def test_every_example_is_in_the_index() -> None:
    assert len(EXAMPLES) >= 8
    listed = re.findall(r"\]\(([\w-]+\.py)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == EXAMPLES
