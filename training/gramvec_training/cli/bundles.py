# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The commands `gramvec-train convert`, `adapt` and `lexical`, which rewrite bundles."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from gramvec_training.api import may_replace
from gramvec_training.cli.support import PATH, one_sentence


@click.command()
@click.argument("bundle")
@click.option("-o", "--out", type=PATH, required=True, help="Bundle folder to write; replaced where it exists.")
@click.option("--precision", type=click.Choice(["float32", "float16", "int8", "int4"]),
              help="Of the stored table.  [default: the bundle's]")  # fmt: skip
@click.option("--texts", type=PATH, multiple=True, help="Texts like those that will be embedded, one a line; .gz too.")
@click.option("--chunks", type=click.IntRange(min=0), default=20_000, show_default=True,
              help="With --texts: number of rows for their frequent words.")  # fmt: skip
@click.option("--edges", type=click.IntRange(min=0), default=10_000, show_default=True,
              help="With --texts: number of rows for frequent transitions from a word to the next.")  # fmt: skip
@click.option("--name", help="Name of the model.  [default: the bundle's]")
@one_sentence
def convert(
    bundle: str, out: Path, precision: str | None, texts: tuple[Path, ...], chunks: int, edges: int, name: str | None
) -> None:
    """Write BUNDLE (a name or a folder) again: in another precision, with a memo for your texts, or, without options,
    with the graphs that are written today: those of an int8 model run on CUDA.

    The memo holds the sums of n-grams of frequent words and of what stands between them: the same vectors from
    a sixth of the look-ups. Without --texts the new bundle has BUNDLE's memo.

    \b
    gramvec-train convert gramvec-en -o models/gramvec-en-f16 --precision float16 --name gramvec-en-f16
    gramvec-train convert gramvec-en -o models/queries --texts queries.txt --chunks 40000
    """
    may_replace(out, bundle)
    from gramvec_training.export.convert import convert as write
    from gramvec_training.readers.lines import read_texts

    lines = (line for path in texts for line in read_texts(path))
    counts = {"chunks": chunks, "edges": edges} if texts else {}
    manifest = write(bundle, out, precision=precision, texts=lines, name=name, **counts)  # type: ignore[arg-type]
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(
        f"{out}: {manifest.rows:,} rows and {manifest.memo:,} of the memo, {manifest.graph.precision}, "
        f"{size / 1e6:.1f} MB"
    )


@click.command()
@click.argument("bundle")
@click.option("--texts", type=PATH, multiple=True, required=True, help="Your texts, one a line; .gz too; repeatable.")
@click.option("-o", "--out", type=PATH, required=True, help="Bundle folder to write; replaced where it exists.")
@click.option("-a", type=click.FloatRange(min=0, min_open=True), default=3e-3, show_default=True,
              help="A feature weighs a / (a + share of your texts that have it).")  # fmt: skip
@click.option("--name", help="Name of the model.  [default: the bundle's, with -adapted]")
@one_sentence
def adapt(bundle: str, texts: tuple[Path, ...], out: Path, a: float, name: str | None) -> None:
    """Weigh BUNDLE (a name or a folder) by your own texts, without labels, in seconds: for records, titles and names,
    where what many of them share means little.

    Every n-gram and word that is common among your texts counts less (SIF's weights). To match two tables, give the
    texts of both.

    \b
    gramvec-train adapt gramvec-en --texts left.txt --texts right.txt -o models/mine
    gramvec serve --model mine
    """
    may_replace(out, bundle)
    from gramvec_training.export.adapt import adapt as write
    from gramvec_training.readers.lines import read_texts

    manifest, count = write(bundle, out, (line for path in texts for line in read_texts(path)), a=a, name=name)
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(
        f"{out}: {manifest.rows:,} rows weighed by {count:,} texts, {manifest.memo:,} of the memo, "
        f"{manifest.graph.precision}, {size / 1e6:.1f} MB"
    )


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
def lexical(
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
    names, codes and unknown words. They are weighed by texts of all kinds; `adapted` weighs them by your own.

    \b
    gramvec-train lexical gramvec-en --texts texts.txt -o models/gramvec-en-both
    gramvec serve --model gramvec-en-both --space both
    """
    if bool(texts) == (config is not None):
        raise click.UsageError("give --texts or --config, one of them")
    if not all(order.isdecimal() for order in orders.split(",")):
        raise click.UsageError(f"--orders {orders!r} are not numbers separated by commas")
    may_replace(out)  # BUNDLE itself, too: it is read before anything is written
    from gramvec_training.export.adapt import add_lexical

    lines, provenance = _texts(texts, config, data)
    numbers = [int(order) for order in orders.split(",")]
    manifest, count = add_lexical(
        bundle, out, lines, orders=numbers, columns=columns, scale=scale, a=a, provenance=provenance
    )
    click.echo(f"{out}: {manifest.dimension} columns of meaning, {columns} of lexical weighed by {count:,} texts")


def _texts(texts: tuple[Path, ...], config: Path | None, data: Path) -> tuple[Iterable[str], dict[str, Any]]:
    """Return the texts and their description."""
    from gramvec_training.config import load_config
    from gramvec_training.data.corpus import collect_texts
    from gramvec_training.readers.lines import read_texts

    if config is None:
        return (line for path in texts for line in read_texts(path)), {"files": [path.name for path in texts]}
    wanted = load_config(config)
    settings = wanted.distillation
    if settings is None:
        raise click.UsageError(f"{config}: not a config of a distillation, which has texts; give --texts")
    collected, _ = collect_texts(wanted.texts, data, seed=settings.seed, spans=settings.spans, limit=settings.max_texts)
    return collected, {"config": config.name}
