"""Progress: a bar on a terminal, lines in a log."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import KeptProgress
from gramvec.jobs.common import bars
from gramvec.jobs.common.bars import TerminalWatch
from gramvec.jobs.common.columns import read_columns


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    written, now = io.StringIO(), 1000.0
    monkeypatch.setattr(sys, "stderr", written)
    for clock in ("tqdm.std.time", "gramvec.jobs.common.bars.time.monotonic"):  # of the bar, and of lines
        monkeypatch.setattr(clock, lambda: now)
    with bars.progress_bar("indexing", 1000) as bar:
        bar.update(10)
        bar.set_description("indexing")
        assert written.getvalue() == ""
        now += bars.LINE_SECONDS
        bar.update(490)
    assert written.getvalue() == "indexing:  50% 500/1.00k [00:10<00:10, 50.0 rows/s]\n"


def test_a_pause_of_minutes_promises_no_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with bars.progress_bar("matching", 1000) as bar:
        now = bar.start_t
        monkeypatch.setattr(bar, "_time", lambda: now)
        for _ in range(10):
            now += 1
            bar.update(25)
        now += 180
        bar.update(25)
        # 275 in 190 s, so 725 in 501 s.
        assert "[03:10<08:20," in str(bar)


def test_a_short_job_writes_nothing_into_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with bars.progress_bar("indexing", 10) as bar:
        bar.update(10)
    assert written.getvalue() == ""


def test_a_notebook_has_its_own_bar() -> None:
    """A real kernel, in which tqdm finds widgets; without these it says so itself, and the log has lines."""
    nbclient = pytest.importorskip("nbclient", reason="a notebook needs nbclient, ipykernel and ipywidgets")
    pytest.importorskip("ipykernel", reason="a notebook needs ipykernel")
    pytest.importorskip("ipywidgets", reason="a notebook's bar needs ipywidgets")
    import nbformat

    script = (
        "from gramvec.jobs.common.bars import progress_bar\n"
        "with progress_bar('indexing', 10) as bar:\n    bar.update(10)\n"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(script)])
    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    shown = [output.get("data", {}) for output in notebook.cells[0].outputs]
    assert ["application/vnd.jupyter.widget-view+json" in data for data in shown] == [True], shown
    assert "indexing" in shown[0]["text/plain"]


def test_a_terminal_has_a_bar() -> None:
    script = (
        "from gramvec.jobs.common.bars import progress_bar\n"
        "with progress_bar('indexing', 10) as bar:\n    bar.update(10)\n"
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


def test_a_file_is_read_in_its_bytes_and_a_pipe_in_its_rows(tmp_path: Path) -> None:
    text = "card\n" * 9_000
    (tmp_path / "a.txt").write_text(text)
    progress = KeptProgress()
    read_columns(tmp_path / "a.txt", ["text"], progress=progress)
    assert progress.tasks == [("reading", 45_000)] and sum(progress.steps) == 45_000
    assert progress.details[-1].startswith("9,000 rows, ")
    pipe, progress = tmp_path / "pipe.txt", KeptProgress()
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        other.submit(pipe.write_text, text)
        read_columns(pipe, ["text"], progress=progress)
    assert progress.tasks == [("reading", None)] and sum(progress.steps) == 9_000
    assert set(progress.details) == {""}


def test_a_watcher_shows_one_task_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.0)
    watch = TerminalWatch()
    watch.start("reading", 2_000, "B", 500)
    watch.advance(500, "9 rows, 3/s")
    watch.start("comparing", 4, "pairs")
    watch.advance(4)
    watch.report("done\x1b[2J")
    watch.advance(1)
    watch.close()
    lines = written.getvalue().splitlines()
    assert any(line.startswith("reading:  50%") and "1.00k/2.00k" in line and "9 rows, 3/s" in line for line in lines)
    assert any(line.startswith("comparing: 100%") and "4.00/4.00" in line and "pairs/s" in line for line in lines)
    assert lines[-1] == "done\\x1b[2J"
