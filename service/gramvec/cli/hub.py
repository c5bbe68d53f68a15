"""The commands `gramvec save`, `gramvec push` and `gramvec pull`."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec.bundle.copy import copy_bundle

overwrite_option = click.option("--overwrite", is_flag=True, help="Replace an existing model.")


@click.command(short_help="Copy a model into a folder.")
@click.argument("model")
@click.argument("folder", type=click.Path(path_type=Path))
@overwrite_option
def save(model: str, folder: Path, overwrite: bool) -> None:
    """Copy the files of MODEL (a name in models/, or the folder of a bundle) to FOLDER and verify them there.

    \b
    Example:
      gramvec save gramvec-en /srv/models/gramvec-en
    """  # noqa: D301 - click takes the character, not its escape
    bundle = copy_bundle(model, folder, overwrite=overwrite)
    click.echo(f"{bundle.manifest.name}\t{bundle.digest}\t{folder}")


@click.command(short_help="Upload a model to a hub.")
@click.argument("model")
@click.argument("repository")
@click.option("--revision", help="Branch to commit to, instead of the main one.")
@click.option("--private", is_flag=True, help="Make a new repository private.")
def push(model: str, repository: str, revision: str | None, private: bool) -> None:
    """Upload MODEL to REPOSITORY, as in ORG/NAME, of the Hugging Face Hub or the one that HF_ENDPOINT names.

    Prints the digest of the model, which `gramvec pull --digest` checks, and the commit. Needs a token with write
    access: HF_TOKEN, or the one stored by hf auth login.

    \b
    Example:
      gramvec push models/mine my-org/my-model
    """  # noqa: D301
    from gramvec.hub.models import push as push_bundle

    pushed = push_bundle(model, repository, revision=revision, private=private)
    click.echo(f"{repository}\t{pushed.digest}\t{pushed.commit}")


@click.command(short_help="Download a model from a hub.")
@click.argument("repository")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--digest", help="Expected digest of the model, or its first 12 or more digits.")
@overwrite_option
def pull(repository: str, folder: Path | None, digest: str | None, overwrite: bool) -> None:
    """Download REPOSITORY, as in ORG/NAME or ORG/NAME@REVISION, into FOLDER (models/NAME if left out).

    Every file and the golden texts are verified before anything appears in FOLDER. A static model of model2vec or
    sentence-transformers is imported (see gramvec import).

    \b
    Example:
      gramvec pull my-org/my-model@v1 models/mine --digest 8fbc77aa4c2d
    """  # noqa: D301
    from gramvec.hub.models import pull as pull_bundle

    pulled = pull_bundle(repository, folder, digest=digest, overwrite=overwrite)
    click.echo(f"{pulled.name}\t{pulled.digest}\t{pulled.folder}")
