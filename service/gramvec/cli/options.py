"""Options that several commands have, and what a terminal may be shown."""

from __future__ import annotations

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.spaces import SPACES

model_option = click.option(
    "-m", "--model", default=DEFAULT_MODEL, show_default=True, help="A name in models/, or a bundle's folder."
)
device_option = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True, help="Where to run."
)
space_option = click.option(
    "--space", type=click.Choice(SPACES), default="meaning", show_default=True,
    help="Columns of what a text means, of which n-grams stand in it, or of both.",
)  # fmt: skip
weights_option = click.option(
    "--weights", type=click.Choice(["texts", "model"]), default="texts", show_default=True,
    help="What n-grams are weighed by: the texts of INPUT, where they can be read twice, or what the model ships with.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead, on one line.")


def printable(text: str) -> str:
    """Of a stranger's text what prints, and escapes of what does not, which could move a terminal's cursor."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
