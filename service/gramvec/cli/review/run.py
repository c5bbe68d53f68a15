"""Steps of both kinds of review: serving the page until it is finished, and the command that writes the result."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.run import STOPPED
from gramvec.errors import InputError, printable
from gramvec.review.session import ReviewSession


def run_command(arguments: list[str]) -> tuple[list[str], str]:
    """Run `gramvec` with these arguments; return the lines that it printed and the command that repeats it.

    Raises InputError with the command's own sentence if it fails.
    """
    # In a process of its own, so that the same command writes the same files when it is run again.
    command = [sys.executable, "-m", "gramvec", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")  # noqa: S603 - ours
    messages = done.stderr.strip().splitlines()
    if done.returncode:
        why = messages[-1].removeprefix("Error: ") if messages else f"gramvec {arguments[0]} was stopped"
        raise InputError(why)
    return [*messages, *done.stdout.strip().splitlines()], shlex.join(["gramvec", *arguments])


def serve_review(session: ReviewSession[Any], port: int, labels: Path) -> None:
    """Show the page until the review is finished, then print what it wrote."""
    from gramvec.review.app import ReviewServer  # FastAPI takes half a second to import

    with closing(session):
        server = ReviewServer(session, port)
        with suppress(KeyboardInterrupt):
            click.echo(f"Open {server.address} in a browser of this machine. Control-C stops; answers stay.", err=True)
            server.run()
        if session.finished is None:
            click.echo(f"stopped; the answers are in {labels}: the same command goes on with them", err=True)
            sys.exit(STOPPED)
        for sentence in session.finished:
            click.echo(printable(sentence))
