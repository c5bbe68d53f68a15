"""`gramvec search`."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import click
import orjson

from gramvec.cli.embed import threads_option, truncate_option
from gramvec.cli.index import gone_option, index_argument
from gramvec.cli.options import device_option, printable
from gramvec.errors import InputError
from gramvec.runtime.base import Device
from gramvec.search.filters import parsed, text_of
from gramvec.search.index import MOST_HITS, Hit, Index, Only
from gramvec.tables.batches import BLOCK_ROWS
from gramvec.tables.text_lines import read_lines

Format = Literal["tsv", "json", "csv"]
HitLines = Callable[[str, list[Hit]], Iterator[str]]


@click.command(short_help="Find the best texts of an index.")
@index_argument
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Queries, one a line.")
@click.option("--where", multiple=True, metavar="CONDITION",
              help="COLUMN=VALUE, COLUMN>=VALUE or COLUMN:[A TO B]; repeatable. [all rows]")  # fmt: skip
@click.option("-k", "k", type=click.IntRange(1, MOST_HITS), default=10, show_default=True, help="Hits for each query.")
@click.option("--only", type=click.Choice(get_args(Only)), help="Compare only letters, or only meaning. [both]")
@click.option("--format", "form", type=click.Choice(["tsv", "json", "csv"]), default="tsv", show_default=True)
@click.option("-m", "--model", help="Name in models/, or folder of a bundle. [the index's]")
@device_option
@truncate_option
@threads_option
@gone_option("--hybrid", said="letters and meaning are always added; --only takes one of both")
def search(
    index: Path,
    queries: tuple[str, ...],
    file: Path | None,
    where: tuple[str, ...],
    k: int,
    only: Only | None,
    form: Format,
    model: str | None,
    device: Device,
    truncate: bool,
    threads: int | None,
) -> None:
    """Print the texts of INDEX that are best for each QUERY, the best first: score, id, text and other columns.

    A score is the cosine of the meaning plus the share of the query's letters that the text has. With several queries,
    or --file, the query comes first. CSV has a header; JSON is an object a line. The columns of TSV and CSV are those
    of one row of the index. In TSV, tabs and line feeds are spaces.

    \b
    Examples:
      gramvec search tickets.index 'forgot my pasword'
      gramvec search tickets.index 'parcel lost' --where team=post --where 'day>=2024-01-01'
      gramvec search parts.index '6205-2Z' --only letters
      gramvec search tickets.index --file queries.txt -k 3 --format csv > hits.csv
    """  # noqa: D301 - click takes the character, not its escape
    if bool(queries) == (file is not None):
        raise click.UsageError("Give a query or several, or a file of them with --file.")
    found = Index(index, model=model, device=device, threads=threads)
    if not found.is_exact and only is None:
        click.echo(
            f"{len(found):,} rows: meaning is compared with the best by letters; --only meaning for all", err=True
        )
    several = len(queries) > 1 or file is not None
    lines = {"tsv": _tsv, "json": _json, "csv": _csv}[form](found.columns, several)
    asked: list[str] = []
    texts = _remembered(queries if file is None else _lines_of(file), asked)
    for hits in found.stream(texts, k, where=parsed(where), only=only, truncate=truncate):
        for line in lines(asked.pop(0), hits):
            click.echo(line, nl=False)


def _remembered(queries: Any, asked: list[str]) -> Iterator[str]:
    for query in queries:
        asked.append(query)
        yield query


def _lines_of(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        try:
            for _, lines in read_lines(file, BLOCK_ROWS):
                yield from lines
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def _tsv(columns: list[str], several: bool) -> HitLines:
    # Untrusted text must not move a terminal's cursor; a program gets it unchanged.
    shown = printable if sys.stdout.isatty() else str

    def lines(query: str, hits: list[Hit]) -> Iterator[str]:
        for hit in hits:
            cells = [f"{hit.score:.4f}", hit.id, *_cells(hit, columns)]
            yield "\t".join(shown(" ".join(one.split())) for one in ([query, *cells] if several else cells)) + "\n"

    return lines


def _json(columns: list[str], several: bool) -> HitLines:
    def lines(query: str, hits: list[Hit]) -> Iterator[str]:
        for rank, hit in enumerate(hits, start=1):
            yield orjson.dumps(
                {"query": query, "rank": rank, "score": round(hit.score, 6), "id": hit.id, "record": hit.record},
                option=orjson.OPT_APPEND_NEWLINE,
            ).decode()

    return lines


def _csv(columns: list[str], several: bool) -> HitLines:
    click.echo(_row(["query", "rank", "score", "id", *columns]), nl=False)

    def lines(query: str, hits: list[Hit]) -> Iterator[str]:
        for rank, hit in enumerate(hits, start=1):
            yield _row([query, str(rank), f"{hit.score:.6f}", hit.id, *_cells(hit, columns)])

    return lines


def _row(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _cells(hit: Hit, columns: list[str]) -> list[str]:
    return [text_of(hit.record.get(name)) for name in columns]
