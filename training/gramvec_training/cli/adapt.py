# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `gramvec-train adapt`."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec_training.cli.support import PATH, may_replace, one_sentence


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
    where what many of them share says little.

    Every n-gram and word that is common among your texts counts less (SIF's weights). To match two tables, give the
    texts of both.

    \b
    gramvec-train adapt gramvec-en --texts left.txt --texts right.txt -o models/ours
    gramvec serve --model ours
    """
    may_replace(out, bundle)
    from gramvec_training.export import adapt as write
    from gramvec_training.readers import read_texts

    manifest, count = write(bundle, out, (line for path in texts for line in read_texts(path)), a=a, name=name)
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(
        f"{out}: {manifest.rows:,} rows weighed by {count:,} texts, {manifest.memo:,} of the memo, "
        f"{manifest.graph.precision}, {size / 1e6:.1f} MB"
    )
