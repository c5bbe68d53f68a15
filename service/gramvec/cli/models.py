"""Commands about models: `gramvec similarity`, `inspect`, `verify`, `save`, `push`, `pull` and `import`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson

from gramvec.bundle.bundle import DEFAULT_MODEL, copy_bundle
from gramvec.bundle.manifest import Precision
from gramvec.cli.options import device_option, model_option, space_option
from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.embed.vectors import Space
from gramvec.embed.verify import compare, sample_texts
from gramvec.errors import BackendError, GramvecError, InputError, import_extra, printable
from gramvec.jobs.tables.inputs import read_lines
from gramvec.runtime.base import Device


@click.command(short_help="Score one text against others.")
@click.argument("source")
@click.argument("sentences", nargs=-1, required=True)
@model_option
@device_option
@space_option
def similarity(source: str, sentences: tuple[str, ...], model: str, device: Device, space: Space) -> None:
    """Print the cosine of SOURCE with each of SENTENCES, one line each: score, tab, sentence.

    \b
    Example:
      gramvec similarity vehicals vehicles cars bananas
    """  # noqa: D301 - click takes the character, not its escape
    embedder = load(model, device=device, space=space)
    for sentence, score in zip(sentences, embedder.similarity([source], sentences)[0], strict=True):
        click.echo(f"{score:.4f}\t{sentence}")
    embedder.close()


@click.command(short_help="Describe a model.")
@click.argument("model", default=DEFAULT_MODEL)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest without its golden texts as JSON.")
@click.option("--vocabulary", is_flag=True, help="Print each row instead: kind, text as a Python literal, count.")
def inspect(model: str, as_json: bool, vocabulary: bool) -> None:
    """Print what MODEL (a name in models/, or the folder of a bundle) is and what it was trained on."""
    if as_json and vocabulary:
        raise click.UsageError("--json, --vocabulary: both are given; give one")
    embedder = load(model, device="cpu")
    if vocabulary:
        entries = embedder.bundle.vocabulary.entries()
        click.echo("".join(f"{entry.kind}\t{entry.text!r}\t{entry.count}\n" for entry in entries), nl=False)
    elif as_json:
        values = embedder.manifest.model_dump(exclude={"golden"}) | {"digest": embedder.digest}
        click.echo(orjson.dumps(values, option=orjson.OPT_INDENT_2))
    else:
        for key, value in _summary(embedder).items():
            click.echo(f"{key:<12}{printable(value)}")
    embedder.close()


def _summary(embedder: Embedder) -> dict[str, str]:
    manifest = embedder.manifest
    spec = embedder.bundle.spec
    provenance = manifest.provenance
    rows = [f"{manifest.ngrams:,} n-grams of {', '.join(map(str, spec.orders))} characters"] if spec.orders else []
    rows += [f"{manifest.words:,} words"] if spec.words else []
    lexical = "none"
    if record := manifest.lexical:
        orders = ", ".join(map(str, record.orders))
        lexical = f"{record.columns} columns beside, of n-grams of {orders} characters"
    size = sum(record.bytes for record in manifest.files.values())
    return {
        "name": f"{embedder.name} ({embedder.kind})",
        "digest": embedder.digest,
        "folder": str(embedder.bundle.path),
        "dimension": str(embedder.dimension),
        "lexical": lexical,
        "features": " and ".join(rows),
        "graph": f"{manifest.graph.pooling}, {manifest.graph.activation}, table in {manifest.graph.precision}",
        "size": f"{size / 1e6:.1f} MB",
        "license": str(provenance.get("license", "not stated")),
        "trained on": ", ".join(str(dataset.get("name", dataset)) for dataset in _datasets(provenance)) or "not stated",
    }


def _datasets(provenance: dict[str, Any]) -> list[dict[str, Any]]:
    found = provenance.get("data", [])
    return [dataset for dataset in found if isinstance(dataset, dict)] if isinstance(found, list) else []


@click.command(short_help="Verify models and compare the runtimes.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare the runtimes on the lines of this file.",
)
@device_option
def verify(models: tuple[str, ...], texts: Path | None, device: Device) -> None:
    """Verify the checksum of every file of each MODEL and its golden texts on the device. Then compare the
    native runtime with ONNX Runtime on 2,000 texts made of the model's own words, or on the lines of a file.

    The largest difference is relative to the length of a vector. A model with a difference over 1e-5 fails.

    \b
    Examples:
      gramvec verify gramvec-en sif
      gramvec verify gramvec-en --texts tickets.txt
    """  # noqa: D301 - click takes the character, not its escape
    failed = 0
    for model in models:
        try:
            click.echo(_verify_model(model, texts, device))
        except GramvecError as error:
            failed += 1
            click.echo(f"Error: {error}", err=True)
    if failed:
        raise click.ClickException(f"{failed} of {len(models)} models failed")


def _verify_model(model: str, texts: Path | None, device: Device) -> str:
    embedder = load(model, device=device)
    try:
        found = compare(embedder, sample_texts(embedder.bundle) if texts is None else _lines(texts))
        golden = f"{len(embedder.manifest.golden)} golden texts on {embedder.device}"
        if not found.agrees:
            raise BackendError(
                f"{embedder.bundle.path}: {found.runtime} and {found.other_runtime} differ by {found.largest:.1e}, on "
                f"{found.text[:60]!r}; take --device cpu, or runtime onnx where it is served, and please report it"
            )
        compared = (
            f"{found.runtime} and {found.other_runtime} differ by at most {found.largest:.1e} on {found.texts:,} texts"
        )
        if found.why_not:
            compared = f"{found.runtime} compared with nothing: {found.why_not}"
        return f"{embedder.name}\t{embedder.digest[:12]}\t{golden}\t{compared}\tok"
    except InputError as error:
        if texts is None or error.index is None:
            raise
        reason = str(error).removeprefix(f"text {error.index} ").replace(" or pass truncate=true", "")
        raise InputError(f"{texts}: line {error.index + 1} {reason}") from error
    finally:
        embedder.close()


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        yield from read_lines(file)


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


@click.command(name="import", short_help="Import a static embedding model.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder of the new model.")
@click.option("--name", help="Name of the model.  [default: the name of that folder]")
@click.option(
    "--precision",
    type=click.Choice(["int4", "int8", "float16", "float32"]),
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
    static_models = import_extra("gramvec.hub.static_models", "static", "this")
    manifest, _ = static_models.import_static(folder, out, name=name, precision=precision, overwrite=overwrite)
    click.echo(
        f"{out}: {manifest.rows:,} tokens of {manifest.dimension} columns in {manifest.graph.precision}, "
        f"which costs a golden text at most {manifest.provenance['parity']['stored_vs_float32']:.1e} of cosine"
    )
