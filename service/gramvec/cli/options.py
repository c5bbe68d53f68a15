"""Options and output that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.vectors import SPACES
from gramvec.jobs.common.engines import ENGINES
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
engine_option = click.option("--engine", type=click.Choice(ENGINES),
                             help="Compare on the machines of a cluster, with the same answers.")  # fmt: skip
precision_option = click.option(
    "--precision", type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="The lowest threshold from which on, in nine of ten tables, at least this share of the pairs is right.",
)  # fmt: skip
POSITIVE = click.IntRange(1, MAX_NUMBER)
THREADS = click.IntRange(1, MAX_THREADS)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead.")


def gone_options(
    values: Mapping[str, str], flags: Mapping[str, str] | None = None
) -> Callable[..., Callable[..., None]]:
    """Return a decorator that adds hidden options that are gone, each of which answers with one sentence.

    Args:
        values: options that took a value, and what to do instead.
        flags: options that took none, likewise.
    """

    def refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if value not in (None, False):
            name = parameter.opts[0]
            raise click.UsageError(f"{name}: gone since 0.2.0; {({**values, **(flags or {})})[name]}")

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for name in (*values, *(flags or {})):
            dest = f"gone_{name[2:].replace('-', '_')}"  # a field may have the name that the option had
            option = click.option(
                name, dest, hidden=True, expose_value=False, is_flag=name not in values, callback=refuse
            )
            command = option(command)
        return command

    return add
