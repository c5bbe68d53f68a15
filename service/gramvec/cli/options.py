"""Options and output that several commands share."""

from __future__ import annotations

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.vectors import SPACES
from gramvec.jobs.common.file_job import MAX_NUMBER, MAX_THREADS

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
POSITIVE = click.IntRange(1, MAX_NUMBER)
THREADS = click.IntRange(1, MAX_THREADS)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead.")
