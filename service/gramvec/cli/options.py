"""Options and output that several commands share."""

from __future__ import annotations

from typing import Any

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.cli.terminal import escaped
from gramvec.embed.vectors import SPACES
from gramvec.progress import progress_bar

model_option = click.option(
    "-m", "--model", default=DEFAULT_MODEL, show_default=True, help="Name in models/, or folder of a bundle."
)
device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Device that computes the vectors.",
)
space_option = click.option(
    "--space", type=click.Choice(SPACES), default="semantic", show_default=True,
    help="Columns for what a text means (semantic), for the n-grams in it (lexical), or both.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead.")


def printable(text: str) -> str:
    """Return `text` with every unprintable character escaped, so that untrusted text cannot move the cursor."""
    return escaped(text, kept="")


class Bars:
    """Progress bars of consecutive phases, one at a time."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._phase: str | None = None

    def __enter__(self) -> Bars:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def watch(self, phase: str, done: int, total: int) -> None:
        """Advance the bar of `phase` by `done` of `total` rows, or of pairs in the phase "comparing"."""
        if phase != self._phase:
            self.__exit__()
            self._phase, self._bar = phase, progress_bar(phase, total, " pairs" if phase == "comparing" else " rows")
        self._bar.update(done)
