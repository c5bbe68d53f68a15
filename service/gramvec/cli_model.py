"""The commands that ask a model as a whole: `gramvec similarity`, `gramvec inspect` and `gramvec verify`."""

from __future__ import annotations

from typing import Any

import click
import orjson

from gramvec.bundle import DEFAULT_MODEL
from gramvec.cli_explain import Device, device_option, model_option, printable
from gramvec.embedder import Embedder, load
from gramvec.errors import GramvecError


@click.command(short_help="Score one text against others.")
@click.argument("source")
@click.argument("sentences", nargs=-1, required=True)
@model_option
@device_option
def similarity(source: str, sentences: tuple[str, ...], model: str, device: Device) -> None:
    """Print the cosine of SOURCE with each of SENTENCES, a line each: score, tab, sentence.

    \b
    Example:
      gramvec similarity vehicals vehicles cars bananas
    """  # noqa: D301 - click takes the character, not its escape
    embedder = load(model, device=device)
    for sentence, score in zip(sentences, embedder.similarity([source], sentences)[0], strict=True):
        click.echo(f"{score:.4f}\t{sentence}")
    embedder.close()


@click.command(short_help="Say what a model is.")
@click.argument("model", default=DEFAULT_MODEL)
@click.option("--json", "as_json", is_flag=True, help="The whole manifest but its golden texts, as JSON.")
@click.option("--vocabulary", is_flag=True, help="Each row instead: kind, text as a Python literal, count.")
def inspect(model: str, as_json: bool, vocabulary: bool) -> None:
    """Print what MODEL (a name in models/, or a bundle's folder) is, and what it was made from."""
    if as_json and vocabulary:
        raise click.UsageError("Give --json or --vocabulary, not both.")
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
    size = sum(record.bytes for record in manifest.files.values())
    return {
        "name": f"{embedder.name} ({embedder.kind})",
        "digest": embedder.digest,
        "folder": str(embedder.bundle.path),
        "dimension": str(embedder.dimension),
        "features": " and ".join(rows),
        "graph": f"{manifest.graph.pooling}, {manifest.graph.activation}, table in {manifest.graph.precision}",
        "size": f"{size / 1e6:.1f} MB",
        "licence": str(provenance.get("licence", "not stated")),
        "trained on": ", ".join(str(one.get("name", one)) for one in _datasets(provenance)) or "not stated",
    }


def _datasets(provenance: dict[str, Any]) -> list[dict[str, Any]]:
    found = provenance.get("data", [])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@click.command(short_help="Check the files of models.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@device_option
def verify(models: tuple[str, ...], device: Device) -> None:
    """Check every file of each MODEL against its manifest, and its golden texts on the device."""
    failed = 0
    for model in models:
        try:
            embedder = load(model, device=device)
        except GramvecError as error:
            failed += 1
            click.echo(f"Error: {error}", err=True)
            continue
        texts = len(embedder.manifest.golden)
        click.echo(f"{embedder.name}\t{embedder.digest[:12]}\t{texts} golden texts on {embedder.device}\tok")
        embedder.close()
    if failed:
        raise click.ClickException(f"{failed} of {len(models)} models failed")
