# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `gramvec-train identity`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from gramvec_training.cli.support import PATH, may_replace, one_sentence


@click.command()
@click.argument("bundle")
@click.option("--texts", type=PATH, multiple=True, help="Texts to weigh by, one a line; .gz too; repeatable.")
@click.option("--config", type=PATH, help="Weigh by the texts of this config of a distillation, instead of --texts.")
@click.option("--data", type=PATH, default=Path(), help="With --config: the folder that its paths are of.")
@click.option("-o", "--out", type=PATH, required=True, help="Bundle folder to write; replaced where it exists.")
@click.option("--columns", type=click.IntRange(8, 1024), default=256, show_default=True, help="A power of 2.")
@click.option("--orders", default="3", show_default=True, help="Of the n-grams, with commas between them.")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True,
              help="How much they count beside what a text means.")  # fmt: skip
@click.option("-a", type=click.FloatRange(min=0, min_open=True), default=3e-3, show_default=True,
              help="An n-gram weighs a / (a + share of the texts that have it).")  # fmt: skip
@one_sentence
def identity(
    bundle: str,
    texts: tuple[Path, ...],
    config: Path | None,
    data: Path,
    out: Path,
    columns: int,
    orders: str,
    scale: float,
    a: float,
) -> None:
    """Give BUNDLE (a name or a folder) columns that say which n-grams stand in a text, beside those of what it means:
    names, codes and words that nobody knows. They are weighed by texts of all kinds; `adapted` weighs them by your own.

    \b
    gramvec-train identity gramvec-en --texts texts.txt -o models/gramvec-en-both
    gramvec serve --model gramvec-en-both --space both
    """
    if bool(texts) == (config is not None):
        raise click.UsageError("Give --texts or --config, one of them.")
    if not all(one.isdecimal() for one in orders.split(",")):
        raise click.UsageError(f"--orders {orders!r} are no numbers with commas between them.")
    may_replace(out)  # BUNDLE itself, too: it is read before anything is written
    from gramvec_training.export import add_lexical

    lines, said = _texts(texts, config, data)
    numbers = [int(one) for one in orders.split(",")]
    manifest, count = add_lexical(
        bundle, out, lines, orders=numbers, columns=columns, scale=scale, a=a, provenance=said
    )
    click.echo(f"{out}: {manifest.dimension} columns of meaning, {columns} of lexical weighed by {count:,} texts")


def _texts(texts: tuple[Path, ...], config: Path | None, data: Path) -> tuple[Iterable[str], dict[str, Any]]:
    """The texts, and what is said of them."""
    from gramvec_training.configuration import load_config
    from gramvec_training.data import collect_texts
    from gramvec_training.readers import read_texts

    if config is None:
        return (line for path in texts for line in read_texts(path)), {"files": [path.name for path in texts]}
    wanted = load_config(config)
    settings = wanted.distillation
    if settings is None:
        raise click.UsageError(f"{config} is no config of a distillation, which has texts; give --texts.")
    found, _ = collect_texts(wanted.texts, data, seed=settings.seed, spans=settings.spans, limit=settings.max_texts)
    return found, {"config": config.name}
