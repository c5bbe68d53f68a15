"""schemathesis over /openapi.json of a running service: requests that fit it, and requests that do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CONFIG = Path(__file__).with_name("schemathesis.toml")
COMMAND = str(Path(sys.executable).with_name("schemathesis"))


class SchemaRun(NamedTuple):
    """What came of it: the exit code (0: nothing was found), the number of requests, the closing line, all it said."""

    exit_code: int
    requests: str
    closing_line: str
    output: str


def check_schema(port: int, folder: Path, *, examples: int, key: str = "", seed: int | None = None) -> SchemaRun:
    """Run every check with so many requests an operation at least; `folder` is for what it leaves behind."""
    arguments = [f"http://127.0.0.1:{port}/openapi.json", "--checks", "all", "--max-examples", str(examples)]
    arguments += ["--seed", str(seed)] if seed is not None else []
    arguments += ["--header", f"Authorization: Bearer {key}"] if key else []
    done = subprocess.run(
        [COMMAND, "--no-color", "--config-file", str(CONFIG), "run", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.rstrip().splitlines() or [""]
    requests = next((lines[at + 1].strip() for at, line in enumerate(lines[:-1]) if line == "Test cases:"), "none")
    return SchemaRun(done.returncode, requests, lines[-1].strip("= "), done.stdout + done.stderr)
