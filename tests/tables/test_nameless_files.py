"""Rows of standard input, and of several tables, are kept in files that no folder lists: a kill leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from gramvec.jobs.tables.inputs import nameless_file

SECONDS = 60.0


@contextmanager
def running(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with an input that does not end and an output that nobody reads."""
    temporary = folder / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "gramvec", *arguments],
        cwd=folder, env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def opened(process: subprocess.Popen[bytes], folder: Path) -> list[str]:
    """Return the files without a name that a process has open in a folder."""
    found = []
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):
            found.append(str(link.readlink()))
    return [name for name in found if name.startswith(f"{folder}/") and name.endswith(" (deleted)")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["dedupe", "-", "--input-format", "csv", "--on", "name"],
        ["dedupe", "a.csv", "-", "--input-format", "csv", "--on", "name"],
        ["dedupe", "b.csv", "--on", "name", "--unique", "-"],
        ["pairs", "-", "--input-format", "csv", "--left", "name", "--right", "town", "--columns", "all"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_a_kill_leaves_no_file(arguments: list[str], tmp_path: Path) -> None:
    numbers = Random(0)
    (tmp_path / "a.csv").write_text("name,town\nann,oslo\n")
    # More than a pipe holds.
    rows = (" ".join(f"{numbers.getrandbits(40):x}" for _ in range(600)) for _ in range(16))
    (tmp_path / "b.csv").write_text("name\n" + "".join(f"{row}\n" for row in rows))
    with running(*arguments, folder=tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b"name,town\nbo,rome\n")
        process.stdin.flush()
        until = time.monotonic() + SECONDS
        while not opened(process, tmp_path / "tmp"):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        assert not [*(tmp_path / "tmp").iterdir()]
    assert not [*(tmp_path / "tmp").iterdir()]


def test_a_file_without_a_name_is_read_again_by_its_path_and_by_other_processes() -> None:
    with nameless_file() as (file, path):
        file.write(b"a\nb\n")
        file.flush()
        assert [path.read_bytes(), path.read_bytes()] == [b"a\nb\n"] * 2
        assert path.is_file()
        assert subprocess.run(["cat", str(path)], capture_output=True, check=True).stdout == b"a\nb\n"
    assert not path.exists()
