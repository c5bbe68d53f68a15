"""Options and output that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.cli.terminal import escaped
from gramvec.embed.vectors import SPACES
from gramvec.progress import progress_bar

if TYPE_CHECKING:
    from gramvec.embed.embedder import Embedder
    from gramvec.text.arrays import Floats

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
# Numbers that C libraries take as 32 bits, and threads, each of which is started.
POSITIVE = click.IntRange(1, 10**9)
THREADS = click.IntRange(1, 1024)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead.")


def printable(text: str) -> str:
    """Return `text` with every unprintable character escaped, so that untrusted text cannot move the cursor."""
    return escaped(text, kept="")


# Texts that are embedded between two steps of a bar.
BLOCK_TEXTS = 1_024
# What the bars of phases count, where it is not rows.
UNITS = {"comparing": " pairs", "embedding": " texts", "learning": " steps"}


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
        """Advance the bar of `phase` by `done` of `total` rows, or of what UNITS has for the phase."""
        if phase != self._phase:
            self.__exit__()
            self._phase, self._bar = phase, progress_bar(phase, total, UNITS.get(phase, " rows"))
        self._bar.update(done)


def embed_watched(embedder: Embedder, texts: Sequence[str], bars: Bars) -> Floats:
    """Return the vectors of prepared texts, float32[n, d], with a bar."""
    import numpy as np

    found = [np.zeros((0, embedder.dimension), np.float32)]
    for start in range(0, len(texts), BLOCK_TEXTS):
        some = texts[start : start + BLOCK_TEXTS]
        found.append(embedder.embed(some))
        bars.watch("embedding", len(some), len(texts))
    return np.concatenate(found)
