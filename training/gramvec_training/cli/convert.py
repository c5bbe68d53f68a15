# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `gramvec-train convert`."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec_training.cli.support import PATH, may_replace, one_sentence


@click.command()
@click.argument("bundle")
@click.option("-o", "--out", type=PATH, required=True, help="Bundle folder to write; replaced where it exists.")
@click.option("--precision", type=click.Choice(["float32", "float16", "int8"]),
              help="Of the stored table.  [default: the bundle's]")  # fmt: skip
@click.option("--texts", type=PATH, multiple=True, help="Texts like those that will be embedded, one a line; .gz too.")
@click.option("--chunks", type=click.IntRange(min=0), default=20_000, show_default=True,
              help="With --texts: rows for so many of their frequent words.")  # fmt: skip
@click.option("--edges", type=click.IntRange(min=0), default=10_000, show_default=True,
              help="With --texts: rows for so many frequent transitions from a word to the next.")  # fmt: skip
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
    from gramvec_training.export import convert as write
    from gramvec_training.readers import read_texts

    lines = (line for path in texts for line in read_texts(path))
    counts = {"chunks": chunks, "edges": edges} if texts else {}
    manifest = write(bundle, out, precision=precision, texts=lines, name=name, **counts)  # type: ignore[arg-type]
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(
        f"{out}: {manifest.rows:,} rows and {manifest.memo:,} of the memo, {manifest.graph.precision}, "
        f"{size / 1e6:.1f} MB"
    )
