"""What is printed: unchanged into a pipe, escaped on a terminal and in messages, and any path."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from support.bulk import MODEL
from support.bulk import gramvec_command as run

pytestmark = pytest.mark.slow

RAW = "red \x1b[31m, title \x1b]0;x\x07, eight bits \x9b1m, right to left \u202e"
ESCAPED = r"red \x1b[31m, title \x1b]0;x\x07, eight bits \x9b1m, right to left \u202e"


def on_a_terminal(*arguments: str) -> str:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "gramvec.cli", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower) as process:
        os.close(follower)
        parts = []
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # Linux says so at the end
                break
            if not part:
                break
            parts.append(part)
    os.close(leader)
    assert process.returncode == 0, parts
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_program_gets_texts_unchanged_and_a_terminal_gets_them_escaped(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'text\n"{RAW}"\n"{RAW}."\n')
    for command in (
        ["similarity", "--model", MODEL, "red", RAW],
        ["match", str(tmp_path / "a.csv"), str(tmp_path / "a.csv"), "--threshold", "0"],
    ):
        assert RAW in run(*command).stdout.decode(), command
        shown = on_a_terminal(*command)
        assert ESCAPED in shown, command
        assert "\x1b" not in shown.replace("\x1b[A", "")


def test_messages_are_escaped_and_name_any_path(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/bad\xff\x1b[31m.csv"
    Path(os.fsdecode(odd)).write_text("id\n1\n")
    done = run("embed", os.fsdecode(odd), "--model", MODEL)
    assert done.returncode == 1
    assert b"bad\\udcff\\x1b[31m.csv" in done.stderr
    output = os.fsdecode(os.fsencode(tmp_path) + b"/out\xff.npy")
    (tmp_path / "a.txt").write_text("a\n")
    done = run("embed", tmp_path / "a.txt", "-o", output, "--model", MODEL)
    assert (done.returncode, Path(output).exists()) == (0, True)
    assert rb"out\udcff.npy" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_results_are_utf_8_in_any_locale(encoding: str) -> None:
    command = [sys.executable, "-m", "gramvec.cli", "similarity", "--model", MODEL, "über", "日本 ü"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    assert done.stdout.decode().endswith("\t日本 ü\n")


def test_a_search_that_finds_nothing_says_so_and_blank_lines_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")
    (tmp_path / "a.csv").write_text("text,team,team\nlost parcel,post,x\n\n")
    index = tmp_path / "a.index"
    done = run("index", "build", tmp_path / "a.csv", "-o", index, "--model", MODEL, "--filter", "team_2")
    assert b"the header names team 2 times, columns 2, 3; called here the later team_2\n1 blank line was" in done.stderr
    done = run("search", index, "parcel", "zzz", "--where", "team_2=y")
    assert (done.returncode, done.stdout) == (0, b"")
    said = "nothing found for {}, with these conditions\n"
    assert done.stderr.decode() == said.format("'parcel'") + said.format("'zzz'")
    assert run("search", index, "parcel").stderr == b""
