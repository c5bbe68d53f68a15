"""The command `gramvec import`."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec.bundle.manifest import Precision
from gramvec.cli.hub import overwrite_option
from gramvec.errors import InputError


@click.command(name="import", short_help="Import a static embedding model.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder of the new model.")
@click.option("--name", help="Name of the model.  [default: the name of that folder]")
@click.option(
    "--precision",
    type=click.Choice(["int8", "float16", "float32"]),
    help="Type of the stored table.  [default: int8, or float16 where int8 costs over 0.001 of cosine]",
)
@overwrite_option
def import_model(folder: Path, out: Path, name: str | None, precision: Precision | None, overwrite: bool) -> None:
    """Write the static model in FOLDER, of model2vec or sentence-transformers' StaticEmbedding, as a gramvec model.

    Needs the extra static; serving the model does, too.

    \b
    Example:
      gramvec import potion-base-8M -o models/potion
    """  # noqa: D301 - click takes the character, not its escape
    try:
        from gramvec.hub.static_models import import_static
    except ImportError as error:
        raise InputError(f"this needs {error.name}; install it with: pip install 'gramvec[static]'") from error
    manifest, loss = import_static(folder, out, name=name, precision=precision, overwrite=overwrite)
    click.echo(
        f"{out}: {manifest.rows:,} tokens of {manifest.dimension} columns in {manifest.graph.precision}, "
        f"which costs a golden text at most {loss:.1e} of cosine"
    )
