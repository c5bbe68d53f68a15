"""gramvec-train, called as its user would, in this process."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from gramvec_training.cli import main


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def sentence(result: Result) -> str:
    """The one line that a failure leaves on stderr."""
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.strip().split("\n")
    return line
