"""`gramvec index` builds, changes and describes a folder that answers searches; `gramvec search` searches it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import click
import orjson

from gramvec.cli.jobs.embed import (
    bom_option,
    input_format_options,
    max_characters_option,
    on_error_option,
    overwrite_option,
    safe_cells_option,
    source_argument,
    threads_option,
    truncate_option,
)  # fmt: skip
from gramvec.cli.jobs.run import CommandWatch, make_job, show_job
from gramvec.cli.options import device_option, gone_options, json_option, model_option
from gramvec.cli.other_words import CommandGroup
from gramvec.errors import InputError, printable, quote
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.search.filters import text_of
from gramvec.jobs.search.hits import HIT_COLUMNS
from gramvec.jobs.search.index import MAX_HITS, Index
from gramvec.jobs.search.job import AddJob, BuildJob, RebuildJob, RemoveJob, SearchJob
from gramvec.jobs.search.snapshot import Hit, Only
from gramvec.jobs.tables.columns import value_or_none
from gramvec.jobs.tables.outputs import TABLE_FORMS, check_mark, free_names
from gramvec.jobs.tables.writers import csv_line, safe_cell, tsv_line

index_argument = click.argument("index", type=click.Path(path_type=Path, exists=True))


@click.group(cls=CommandGroup, short_help="Build an index for gramvec search, and change it.")
def index() -> None:
    """Build a folder from a file of texts that `gramvec search` looks through, and change it."""


@index.command(short_help="Build an index of the texts of a file.")
@source_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder, such as tickets.index.")
@input_format_options
@click.option("--column", multiple=True, default=[COLUMN], show_default=True,
              callback=lambda context, parameter, names: names[0] if len(names) == 1 else names,
              help="Which column or member is the text; repeatable, for a text of several.")  # fmt: skip
@click.option("--id", metavar="NAME", help="Column of ids, all different. [the lines' numbers]")
@click.option("--filter", multiple=True, metavar="NAME[:KIND]",
              help="Column that searches can be narrowed by; repeatable. KIND: text, number, date.")  # fmt: skip
@model_option
@device_option
@truncate_option
@max_characters_option
@on_error_option
@click.option("--resume", is_flag=True, help="Continue where a run with the same options was stopped.")
@threads_option
def build(**options: Any) -> None:
    """Build an index of the texts of INPUT, which is what `gramvec embed` reads. All columns are kept for the answers.

    An index that is there is replaced when the new one is complete. With --on-error skip, a bad line is left out.

    \b
    Examples:
      gramvec index build titles.txt -o titles.index
      gramvec index build tickets.csv --column subject --id number --filter team -o tickets.index --resume
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(BuildJob, **options)
    with show_job() as watch:
        job.run(watch)


@index.command(short_help="Add the texts of a file to an index.")
@index_argument
@source_argument
@input_format_options
@click.option("--replace", is_flag=True, help="A row whose id is there takes the place of that one.")
@click.option("-m", "--model", help="Name in models/, or folder of a bundle. [the index's]")
@device_option
@truncate_option
@on_error_option
@threads_option
def add(**options: Any) -> None:
    """Add the texts of INPUT to INDEX, all or none; the columns of texts and ids are those that it was built with.

    An id that is there already stops the run, unless --replace is given.

    \b
    Examples:
      gramvec index add tickets.index new-tickets.csv
      gramvec index add tickets.index changed-tickets.csv --replace
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(AddJob, **options)
    with show_job() as watch:
        job.run(watch)


@index.command(short_help="Remove rows from an index.")
@index_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Ids, one a line.")
@gone_options({"--ids": "a file of ids is --file FILE"})
def remove(**options: Any) -> None:
    """Remove the rows with these ids from INDEX. An id that is not there stops it, and nothing has changed.

    \b
    Example:
      gramvec index remove tickets.index 17 23
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(RemoveJob, **options)
    with show_job() as watch:
        job.run(watch)


@index.command(short_help="Build an index anew from its records.")
@index_argument
@click.option("-m", "--model", help="Name in models/, or folder of a bundle. [the index's]")
@device_option
@threads_option
def rebuild(**options: Any) -> None:
    """Build INDEX anew from the records that it holds: for this version of gramvec, or with another model.

    Columns, filters and ids stay. INDEX is replaced when the new one is complete.

    \b
    Examples:
      gramvec index rebuild tickets.index
      gramvec index rebuild tickets.index -m ./my-model
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(RebuildJob, **options)
    with show_job() as watch:
        job.run(watch)


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
        "text columns": [*found.manifest.columns],
        "id column": found.manifest.id,
        "columns": found.columns,
        "filters": [f"{column.column}:{column.kind}" for column in found.manifest.filters],
        "bytes": found.bytes,
        "digest": found.digest,
    }
    if as_json:
        click.echo(orjson.dumps({name.replace(" ", "_"): value for name, value in values.items()}))
        return
    for name, value in values.items():
        shown = ", ".join(value) if isinstance(value, list) else "the lines' numbers" if value is None else str(value)
        click.echo(f"{name:<14}{printable(shown)}")


@index.command(short_help="Print rows of an index.")
@index_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
def get(index: Path, ids: tuple[str, ...]) -> None:
    """Print the rows of INDEX with these ids, or without any all rows, as JSON lines: the id and the record.

    \b
    Examples:
      gramvec index get tickets.index 17 23
      gramvec index get tickets.index > tickets.jsonl
    """  # noqa: D301 - click takes the character, not its escape
    opened = Index(index)
    found = zip(ids, opened.get(ids), strict=True) if ids else opened.items()
    rows = [(given_id, record) for given_id, record in found] if ids else found
    if ids and (absent := [given_id for given_id, record in rows if record is None]):
        raise InputError(f"{index}: has no row with the id {quote(absent[0])} ({len(absent):,} of {len(ids):,} ids)")
    for given_id, record in rows:
        click.echo(orjson.dumps({"id": given_id, "record": record}, option=orjson.OPT_APPEND_NEWLINE), nl=False)


HitLines = Callable[[str, list[Hit]], Iterator[str]]


@click.command(short_help="Find the best texts of an index.")
@index_argument
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Queries, one a line.")
@click.option("--where", multiple=True, metavar="CONDITION",
              help="COLUMN=VALUE, COLUMN!=VALUE, COLUMN>=VALUE or COLUMN:[A TO B]; repeatable. [all rows]")  # fmt: skip
@click.option("-k", "k", type=click.IntRange(1, MAX_HITS), default=10, show_default=True, help="Hits for each query.")
@click.option("--offset", type=click.IntRange(0, MAX_HITS), default=0, show_default=True,
              help="Leave out so many of the best: the next page.")  # fmt: skip
@click.option("--only", type=click.Choice(get_args(Only)), help="Compare only letters, or only meaning. [both]")
@click.option("--min-score", type=click.FloatRange(0), default=0.0, help="Leave out hits with a lower score. [above 0]")
@click.option("--literal", is_flag=True, help='Take -word and "a phrase" in a query as they are.')
@click.option("--format", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or tsv]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv, .jsonl, .parquet or .xlsx file. [stdout]")  # fmt: skip
@overwrite_option
@safe_cells_option
@bom_option
@click.option("-m", "--model", help="Name in models/, or folder of a bundle. [the index's]")
@device_option
@truncate_option
@threads_option
def search(**options: Any) -> None:
    """Print the texts of INDEX that are best for each QUERY, the best first: score, id, text and other columns.

    A score is the cosine of the meaning plus the share of the query's letters that the text has. With several queries,
    or --file, the query comes first. CSV has a header; JSONL is an object a line. The columns of TSV and CSV are those
    of one row of the index. In TSV, tabs and line feeds are spaces.

    In a query -word leaves out the texts that have the word, and "a phrase" those that do not have it as it is.

    \b
    Examples:
      gramvec search tickets.index 'forgot my pasword'
      gramvec search tickets.index 'parcel lost' --where team=post --where 'day>=2024-01-01'
      gramvec search parts.index '6205-2Z' --only letters
      gramvec search tickets.index '"track a parcel" -late' --min-score 0.5
      gramvec search tickets.index --file queries.txt -k 3 -o hits.parquet
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(SearchJob, **options)
    with closing(CommandWatch()) as watch:
        if job.output is not None:
            job.run(watch)
            return
        columns, answers = job.open_answers(watch)
        check_mark(job.format or "tsv", bom=job.bom)
        if job.bom:
            click.echo("\ufeff", nl=False)
        safe = safe_cell if job.safe_cells else str
        lines = {"tsv": _tsv, "jsonl": _json, "csv": _csv}[job.format or "tsv"](
            columns, len(job.queries) > 1 or job.file is not None, safe
        )
        for query, hits in answers:
            for line in lines(query, hits):
                click.echo(line, nl=False)


def _tsv(columns: list[str], several: bool, safe: Callable[[str], str]) -> HitLines:
    # Untrusted text must not move a terminal's cursor; a program gets it unchanged.
    escaped = printable if sys.stdout.isatty() else str

    def shown(text: str) -> str:
        return escaped(safe(text))

    def lines(query: str, hits: list[Hit]) -> Iterator[str]:
        for hit in hits:
            cells = [f"{hit.score:.4f}", hit.id, *_cells(hit, columns)]
            yield tsv_line([query, *cells] if several else cells, shown)

    return lines


def _json(columns: list[str], several: bool, safe: Callable[[str], str]) -> HitLines:
    def lines(query: str, hits: list[Hit]) -> Iterator[str]:
        for rank, hit in enumerate(hits, start=1):
            yield orjson.dumps(
                {"query": query, "rank": rank, "score": round(hit.score, 6), "id": hit.id, "record": hit.record},
                option=orjson.OPT_APPEND_NEWLINE,
            ).decode()

    return lines


def _csv(columns: list[str], several: bool, safe: Callable[[str], str]) -> HitLines:
    click.echo(csv_line(map(safe, [*HIT_COLUMNS, *free_names(columns, "record_", HIT_COLUMNS).values()])), nl=False)

    def lines(query: str, hits: list[Hit]) -> Iterator[str]:
        for rank, hit in enumerate(hits, start=1):
            yield csv_line(map(safe, [query, str(rank), f"{hit.score:.6f}", hit.id, *_cells(hit, columns)]))

    return lines


def _cells(hit: Hit, columns: list[str]) -> list[str]:
    return [text_of(value_or_none(hit.record, name)) for name in columns]
