"""Progress: a bar on a terminal, lines in a log."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import termios
import time

import pytest

from gramvec import progress


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    with progress.progress_bar("indexing", 1000) as bar:
        bar.update(10)
        bar.set_description("indexing")
        assert written.getvalue() == ""
        time.sleep(0.06)
        bar.update(490)
    assert re.fullmatch(r"indexing:  50%\|? ?500/1\.00k \[00:00<00:00, [\d.]+k? rows/s\]\n", written.getvalue())


def test_a_short_job_writes_nothing_into_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.progress_bar("indexing", 10) as bar:
        bar.update(10)
    assert written.getvalue() == ""


def test_a_terminal_has_a_bar() -> None:
    script = (
        "from gramvec.progress import progress_bar\nwith progress_bar('indexing', 10) as bar:\n    bar.update(10)\n"
    )
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    with subprocess.Popen([sys.executable, "-c", script], stderr=follower) as process:
        os.close(follower)
        assert process.wait(60) == 0
    shown = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while piece := os.read(leader, 4096):
            shown += piece
    os.close(leader)
    assert b"indexing: 100%" in shown
