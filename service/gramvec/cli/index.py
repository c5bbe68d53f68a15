"""`gramvec index`: build a folder that answers searches, add to it, remove from it, describe it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson

from gramvec.bulk.embed_file import Done, Interrupted, Watcher
from gramvec.cli.embed import (
    STOPPED,
    column_option,
    input_format_option,
    max_characters_option,
    on_error_option,
    progress,
    source_argument,
    threads_option,
    told_to_stop,
    truncate_option,
)  # fmt: skip
from gramvec.cli.options import device_option, json_option, model_option, printable
from gramvec.embed.loading import load
from gramvec.runtime.base import Device
from gramvec.search.build import add_to_index, build_index, remove_from_index
from gramvec.search.index import Index
from gramvec.tables.batches import BLOCK_ROWS
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import FileFormat, Form
from gramvec.tables.text_lines import read_lines


def gone_option(*names: str, said: str, is_flag: bool = False) -> Callable[..., Any]:
    """Return a hidden option of gramvec 0.1 that answers with one sentence."""

    def refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if value not in (None, False, ()):
            raise click.UsageError(f"{names[0]} is gone: {said}")

    return click.option(*names, hidden=True, expose_value=False, is_flag=is_flag, callback=refuse)


index_argument = click.argument("index", type=click.Path(path_type=Path, exists=True))
BOTH = "an index always holds meaning and letters; leave it out"


@click.group(short_help="Build an index for gramvec search, and change it.")
def index() -> None:
    """Build a folder from a file of texts that `gramvec search` looks through, and change it."""


@index.command(short_help="Build an index of the texts of a file.")
@source_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder, such as tickets.index.")
@input_format_option
@column_option
@click.option("--id", "id_column", metavar="NAME", help="Column of ids, all different. [the lines' numbers]")
@click.option("--filter", "filters", multiple=True, metavar="NAME[:KIND]",
              help="Column that searches can be narrowed by; repeatable. KIND: text, number, date.")  # fmt: skip
@model_option
@device_option
@truncate_option
@max_characters_option
@on_error_option
@click.option("--resume", is_flag=True, help="Continue where a run with the same options was stopped.")
@threads_option
@gone_option("--space", said=BOTH)
@gone_option("--weights", said="letters are weighted by the index's texts; leave it out")
@gone_option("--fine", "--coarse", is_flag=True, said="vectors have one precision; leave it out")
def build(
    source: Path,
    output: Path,
    input_format: Form | FileFormat | None,
    column: str,
    id_column: str | None,
    filters: tuple[str, ...],
    model: str,
    device: Device,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    resume: bool,
    threads: int | None,
) -> None:
    """Build an index of the texts of INPUT, which is what `gramvec embed` reads. All columns are kept for the answers.

    An index that is there is replaced when the new one is complete. With --on-error skip, a bad line is left out.

    \b
    Examples:
      gramvec index build titles.txt -o titles.index
      gramvec index build tickets.csv --column subject --id number --filter team -o tickets.index --resume
    """  # noqa: D301 - click takes the character, not its escape
    embedder = load(model, device=device, max_characters=max_characters, threads=1)
    try:
        done = _watched(
            lambda watch: build_index(
                embedder, source, output, form=input_format, column=column, id_column=id_column, filters=filters,
                truncate=truncate, on_error=on_error, resume=resume, threads=threads, watch=watch,
            )
        )  # fmt: skip
    finally:
        embedder.close()
    _report(done, output)


@index.command(short_help="Add the texts of a file to an index.")
@index_argument
@source_argument
@input_format_option
@click.option("--replace", is_flag=True, help="A row whose id is there takes the place of that one.")
@click.option("-m", "--model", help="Name in models/, or folder of a bundle. [the index's]")
@device_option
@truncate_option
@on_error_option
@threads_option
@gone_option("--resume", is_flag=True, said="rows are added all or none; start the same command again")
def add(
    index: Path,
    source: Path,
    input_format: Form | FileFormat | None,
    replace: bool,
    model: str | None,
    device: Device,
    truncate: bool,
    on_error: OnError,
    threads: int | None,
) -> None:
    """Add the texts of INPUT to INDEX, all or none; the columns of texts and ids are those that it was built with.

    An id that is there already stops the run, unless --replace is given.

    \b
    Examples:
      gramvec index add tickets.index new-tickets.csv
      gramvec index add tickets.index changed-tickets.csv --replace
    """  # noqa: D301 - click takes the character, not its escape
    embedder = Index(index, model=model, device=device).embedder
    try:
        done = _watched(
            lambda watch: add_to_index(
                embedder, index, source, form=input_format, replace=replace, truncate=truncate, on_error=on_error,
                threads=threads, watch=watch,
            )
        )  # fmt: skip
    finally:
        embedder.close()
    _report(done, index)


@index.command(short_help="Remove rows from an index.")
@index_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--ids", "file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Ids, one a line.")
def remove(index: Path, ids: tuple[str, ...], file: Path | None) -> None:
    """Remove the rows with these ids from INDEX. An id that is not there stops it, and nothing has changed.

    \b
    Example:
      gramvec index remove tickets.index 17 23
    """  # noqa: D301 - click takes the character, not its escape
    wanted = list(ids)
    if file is not None:
        with file.open("rb") as lines:
            wanted += [one for _, some in read_lines(lines, BLOCK_ROWS) for one in some if one]
    if not wanted:
        raise click.UsageError("Give ids, or a file of them with --ids.")
    with told_to_stop():
        left = remove_from_index(index, wanted)
    click.echo(f"{len(set(wanted)):,} rows removed, {left:,} left in {index}", err=True)


@index.command(short_help="Describe an index.")
@index_argument
@json_option
def info(index: Path, as_json: bool) -> None:
    """Check INDEX and describe it."""
    found = Index(index)
    values = {
        "model": found.manifest.model,
        "model digest": found.manifest.digest,
        "rows": len(found),
        "dimensions": found.manifest.dimensions,
        "text column": found.manifest.column,
        "id column": found.manifest.id,
        "columns": found.columns,
        "filters": [f"{one.column}:{one.kind}" for one in found.manifest.filters],
        "meaning": "exact" if found.is_exact else "of the best by letters",
        "bytes": found.bytes,
        "digest": found.digest,
    }
    if as_json:
        click.echo(orjson.dumps({name.replace(" ", "_"): value for name, value in values.items()}))
        return
    for name, value in values.items():
        shown = ", ".join(value) if isinstance(value, list) else "the lines' numbers" if value is None else str(value)
        click.echo(f"{name:<14}{printable(shown)}")


def _watched(run: Callable[[Watcher], Done]) -> Done:
    try:
        with told_to_stop(), progress("indexing") as watch:
            return run(watch)
    except Interrupted as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(STOPPED)


def _report(done: Done, output: Path) -> None:
    for sentence in done.bad.report(done.rows, done.unit):
        click.echo(sentence, err=True)
    click.echo(f"{done.rows - done.bad.count:,} rows put into {output}", err=True)
