"""Files of every form, the command in a process of its own, and a run that is killed on its way."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conftest import MODELS, ROOT
from gramvec.jobs.tables.staging import journal_of

MODEL = str(MODELS / "paragram-phrase")
PATIENCE = 60


def gramvec_command(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "gramvec.cli", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=ROOT, timeout=PATIENCE, check=False)
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def embed(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return gramvec_command("embed", "--model", MODEL, *arguments, stdin=stdin)


def embedded(*arguments: object, stdin: bytes = b"") -> bytes:
    done = embed(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*arguments: object, stdin: bytes = b"") -> str:
    done = embed(*arguments, stdin=stdin)
    assert done.returncode == 1, done
    assert done.stdout == b""
    return done.stderr.decode()


# The command, which waits to be killed once its journal speaks of rows and more has been written since.
SLOW_EMBED = """
import signal, sys, time
from gramvec.jobs.common.stage import Stage
from gramvec.cli import main
checkpoint, append = Stage._checkpoint, Stage.append
def checkpoint_at_once(stage):
    checkpoint(stage)
    stage._syncing.result()
def append_and_wait(stage, data):
    append(stage, data)
    if stage.journalled:
        time.sleep(60)
Stage._checkpoint, Stage.append = checkpoint_at_once, append_and_wait
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background have it ignored
main()
"""


def killed(
    number: signal.Signals, source: Path, output: Path, *options: str, command: Sequence[str] = ("embed",)
) -> None:
    """Run until the journal speaks of rows, and then end it by this signal."""
    command = [sys.executable, "-c", SLOW_EMBED, *command, "--model", MODEL, str(source), "-o", str(output), *options]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE
        while rows_kept(output) == 0 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(process.pid, number)
    assert process.returncode == (-number if number == signal.SIGKILL else 130), "it had ended before it was told to"
    assert not output.exists()
    assert rows_kept(output) > 0


def rows_kept(output: Path) -> int:
    try:
        return int(json.loads(journal_of(output).read_bytes())["rows"])
    except FileNotFoundError:
        return 0


def as_csv(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(names)
    writer.writerows(rows)
    return file.getvalue().encode()


def as_jsonl(records: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
