"""Options and output that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.vectors import SPACES
from gramvec.jobs.watch import JobWatch

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


# Texts that are embedded between two steps of a bar.
BLOCK_TEXTS = 1_024


def embed_with_bar(embedder: Embedder, texts: Sequence[str], watch: JobWatch) -> Floats:
    """Return the vectors of prepared texts, float32[n, d], with a bar."""
    import numpy as np

    found = [np.zeros((0, embedder.dimension), np.float32)]
    for start in range(0, len(texts), BLOCK_TEXTS):
        some = texts[start : start + BLOCK_TEXTS]
        found.append(embedder.embed(some))
        watch.advance("embedding", len(some), len(texts))
    return np.concatenate(found)
