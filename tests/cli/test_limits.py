"""Limits of the system: memory, threads and open files. A command ends with one sentence that says which."""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gramvec.errors import InputError, import_extra
from gramvec.jobs.tables.inputs import why_not_written
from support.errors import refused

main = importlib.import_module("gramvec.cli.main")  # of which the package has a function of the same name
GRAMVEC = str(Path(sys.executable).with_name("gramvec"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "Error: not enough memory"),
        (
            RuntimeError("can't start new thread"),
            "Error: no more threads",
        ),
        (ImportError("x.so: failed to map segment from shared object"), "Error: not enough memory"),
        (OSError(24, "Too many open files"), "Error: Too many open files"),
    ],
    ids=repr,
)
def test_a_limit_is_one_sentence(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr(main, "import_quickly", lambda *_: fails)
    done = CliRunner().invoke(main.cli, ["embed"])
    assert (done.exit_code, done.output.startswith(said), done.output.count("\n")) == (1, True, 1)


def test_another_error_is_still_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fails() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(main, "import_quickly", lambda *_: fails)
    done = CliRunner().invoke(main.cli, ["embed"])
    assert isinstance(done.exception, RuntimeError)


def test_a_full_disk_and_too_many_open_files_are_told_apart() -> None:
    assert "make room" in why_not_written(OSError(28, "No space left on device"))
    assert "make room" not in why_not_written(OSError(23, "Too many open files in system"))


def test_a_library_that_does_not_load_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("raise ImportError('libx.so: cannot be mapped')")
    monkeypatch.syspath_prepend(tmp_path)
    with refused(InputError, "broken_library", "does not load", "libx.so: cannot be mapped"):
        import_extra("broken_library", "x", "a test")
    with refused(InputError, "no_such_library", "gramvec[x]"):
        import_extra("no_such_library", "x", "a test")


def test_an_index_is_not_built_with_a_dozen_descriptors(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": f"parcel {number}"}) + "\n" for number in range(300)))
    done = subprocess.run(
        [GRAMVEC, "index", "build", str(rows), "-o", str(tmp_path / "x.index"), "-m", "paragram-phrase"],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)),
    )  # fmt: skip
    # Which open file is one too many is chance: the engine's, or one of Python's.
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("Error: ") and "too many open files; " in done.stderr.lower()


def list_options(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Yield the options of a command and of those below it, with the command's name."""
    if isinstance(command, click.Group):
        for part in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), part)
            assert below is not None
            yield from list_options(below, f"{name} {part}".strip())
    else:
        yield from ((name, option) for option in command.params)


def test_every_whole_number_has_a_largest_value() -> None:
    ranges = [(name, option) for name, option in list_options(main.cli) if isinstance(option.type, click.IntRange)]
    assert ("match", "top") in {(name, option.name) for name, option in ranges}
    assert [(name, option.name) for name, option in ranges if option.type.max is None] == []
