"""The command line: results on stdout, all else on stderr; exit code 2 for a bad call, 1 for a failure."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Any

import click
import orjson

from gramvec.bundle import DEFAULT_MODEL
from gramvec.cli_explain import Device, device_option, explain_command, model_option, neighbors_command
from gramvec.embedder import Embedder, load
from gramvec.errors import GramvecError
from gramvec.files import why_not_written

# Imported when they are wanted: FastAPI takes longer to import than most commands take to run.
LATER = {
    "serve": ("gramvec.http.command", "serve"),
    "embed": ("gramvec.bulk.command", "embed"),
    "dedupe": ("gramvec.bulk.dedupe_command", "dedupe"),
}


class _Commands(click.Group):
    """A group that imports some commands late, and turns our exceptions into one line and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *LATER])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATER:
            module, name = LATER[cmd_name]
            command: click.Command = getattr(import_module(module), name)
            return command
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GramvecError as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:
            raise  # click ends quietly: whoever read has had enough
        except OSError as error:
            raise click.ClickException(why_not_written(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gramvec")
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr, such as why a device was chosen.")
def cli(verbose: bool) -> None:
    """Sentence embeddings from character n-grams and words."""
    logging.basicConfig(
        stream=sys.stderr, format="gramvec: %(message)s", level=logging.INFO if verbose else logging.WARNING
    )


def main() -> None:
    """The entry point of `gramvec`."""
    cli(prog_name="gramvec")


cli.add_command(explain_command)
cli.add_command(neighbors_command)


@cli.command(short_help="Score one text against others.")
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


@cli.command(short_help="Say what a model is.")
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
            click.echo(f"{key:<12}{value}")
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


@cli.command(short_help="Check the files of models.")
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


if __name__ == "__main__":
    main()
