"""`gramvec index`: make a file that answers searches, add to it, take out of it, say what it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

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
from gramvec.cli.options import device_option, json_option, model_option, printable, space_option, weights_option
from gramvec.embed.loading import load
from gramvec.embed.spaces import Space
from gramvec.runtime.base import Device
from gramvec.search.building import add_to_index, build_index, remove_from_index
from gramvec.search.index import Index
from gramvec.search.weighing import Weights
from gramvec.tables.batches import BLOCK_ROWS
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import Form
from gramvec.tables.text_lines import read_lines

index_argument = click.argument("index", type=click.Path(path_type=Path, dir_okay=False, exists=True))
resume_option = click.option("--resume", is_flag=True, help="Go on where a run with the same options was stopped.")


@click.group(short_help="Make an index for gramvec search, and change it.")
def index() -> None:
    """Make one file from a file of texts that `gramvec search` looks through, and change it."""


@index.command(short_help="Make an index of the texts of a file.")
@source_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Such as x.gvi.")
@input_format_option
@column_option
@click.option("--id", "id_column", metavar="NAME", help="The column of ids, all different. [the lines' numbers]")
@click.option("--filter", "filters", multiple=True, metavar="NAME",
              help="A column that searches can be narrowed by, with --where; repeatable.")  # fmt: skip
@model_option
@device_option
@space_option
@weights_option
@click.option("--fine/--coarse", default=True, show_default=True,
              help="Keep what vectors are rounded by as well, a byte a component: scores are exact.")  # fmt: skip
@truncate_option
@max_characters_option
@on_error_option
@resume_option
@threads_option
def build(
    source: Path,
    output: Path,
    input_format: Form | None,
    column: str,
    id_column: str | None,
    filters: tuple[str, ...],
    model: str,
    device: Device,
    space: Space,
    weights: Weights,
    fine: bool,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    resume: bool,
    threads: int | None,
) -> None:
    """Make an index of the texts of INPUT, which is what `gramvec embed` reads. All columns are kept for the answers.

    An index that is there is replaced when the new one is whole. With --on-error skip, a bad line is left out.

    \b
    Examples:
      gramvec index build titles.txt -o titles.gvi
      gramvec index build tickets.csv --column subject --id number --filter team -o tickets.gvi --resume
    """  # noqa: D301 - click takes the character, not its escape
    embedder = load(model, device=device, max_characters=max_characters, threads=1, space=space)
    try:
        done = _watched(
            lambda watch: build_index(
                embedder, source, output, form=input_format, column=column, id_column=id_column, filters=filters,
                fine=fine, weights=weights, truncate=truncate, on_error=on_error, resume=resume, threads=threads,
                watch=watch,
            )
        )  # fmt: skip
    finally:
        embedder.close()
    _report(done, output)


@index.command(short_help="Add the texts of a file to an index.")
@index_argument
@source_argument
@input_format_option
@click.option("-m", "--model", help="A name in models/, or a bundle's folder. [the index's]")
@device_option
@truncate_option
@on_error_option
@resume_option
@threads_option
def add(
    index: Path,
    source: Path,
    input_format: Form | None,
    model: str | None,
    device: Device,
    truncate: bool,
    on_error: OnError,
    resume: bool,
    threads: int | None,
) -> None:
    """Add the texts of INPUT to INDEX; the columns of texts and ids have the names that they had when it was built.

    An id that is there already stops the run, and nothing has changed.

    \b
    Example:
      gramvec index add tickets.gvi new-tickets.csv
    """  # noqa: D301 - click takes the character, not its escape
    embedder = Index(index, model=model, device=device, verify=False).embedder
    try:
        done = _watched(
            lambda watch: add_to_index(
                embedder, index, source, form=input_format, truncate=truncate, on_error=on_error, resume=resume,
                threads=threads, watch=watch,
            )
        )  # fmt: skip
    finally:
        embedder.close()
    _report(done, index)


@index.command(short_help="Take rows out of an index.")
@index_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--ids", "file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Ids, one a line.")
def remove(index: Path, ids: tuple[str, ...], file: Path | None) -> None:
    """Take the rows with these ids out of INDEX. An id that is not there stops it, and nothing has changed.

    \b
    Example:
      gramvec index remove tickets.gvi 17 23
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


@index.command(short_help="Say what an index is.")
@index_argument
@json_option
def info(index: Path, as_json: bool) -> None:
    """Check INDEX and print what it is."""
    found = Index(index)
    values = {
        "model": found.header.model,
        "model digest": found.header.digest,
        "space": found.header.space,
        "weights": "model" if found.lexical is None else "texts",
        "rows": len(found),
        "dimensions": found.header.dimensions,
        "text column": found.header.column,
        "id column": found.header.id,
        "columns": found.columns,
        "filters": found.filters,
        "fine": found.header.fine,
        "bytes": index.stat().st_size,
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
