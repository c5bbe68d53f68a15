"""`gramvec dedupe`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import orjson

from gramvec.bulk.dedupe import near_pairs, one_blas_thread
from gramvec.bulk.dedupe_io import Texts, TooManyTexts, read_texts, spooled, units_of, write_kept
from gramvec.bulk.embed_file import cores
from gramvec.cli.dedupe_against import AgainstIndex, open_known
from gramvec.cli.dedupe_results import AllCompared, Compared, through_an_index
from gramvec.cli.embed import (
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
from gramvec.cli.options import bar, device_option, model_option, space_option, weights_option
from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.embed.spaces import Space
from gramvec.errors import InputError
from gramvec.runtime.base import Device
from gramvec.search.weighing import Weights, weighed_by
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import STDIN, Form, form_of
from gramvec.tables.staging import whole

THRESHOLD = 0.9
MOST_TEXTS = 1_000_000
MOST_PAIRS = 10_000_000


@click.command("dedupe", short_help="Find near-duplicates in a file.")
@source_argument
@click.option("--threshold", type=click.FloatRange(0, 1, min_open=True), default=THRESHOLD, show_default=True,
              help="The least cosine of a pair.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where the list goes. [stdout]")
@click.option("--groups", "by_group", is_flag=True, help="List groups instead: lines that a chain of pairs joins.")
@click.option("--keep", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), metavar="FILE",
              help="Write INPUT there with only the first line of each group; no list but to --output.")  # fmt: skip
@click.option("--against", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="INDEX",
              help="Compare with the rows of an index instead, not with each other.")  # fmt: skip
@click.option("--texts/--no-texts", default=True, show_default=True, help="List the texts beside the lines' numbers.")
@click.option("--json", "as_json", is_flag=True, help="JSON, an object a line, instead of tabs.")
@input_format_option
@column_option
@model_option
@device_option
@space_option
@weights_option
@truncate_option
@max_characters_option
@on_error_option
@click.option("--max-texts", type=click.IntRange(min=1), default=MOST_TEXTS, show_default=True,
              help="Compare all pairs of so many different texts; of more, those that are likely.")  # fmt: skip
@click.option("--max-pairs", type=click.IntRange(min=1), default=MOST_PAIRS, show_default=True,
              help="Refuse to list more pairs.")  # fmt: skip
@threads_option
def dedupe(
    source: Path,
    threshold: float,
    output: Path | None,
    by_group: bool,
    keep: Path | None,
    against: Path | None,
    texts: bool,
    as_json: bool,
    input_format: Form | None,
    column: str,
    model: str,
    device: Device,
    space: Space,
    weights: Weights,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    max_texts: int,
    max_pairs: int,
    threads: int | None,
) -> None:
    """List the pairs of lines of INPUT whose cosine is at least --threshold: line, line, score, texts, between tabs.

    INPUT is what `gramvec embed` reads. Every two texts are compared, exactly; equal ones are a pair of score 1. Of
    more than --max-texts, an index is made in the folder for temporary files, those that are likely are compared, and
    it is said which share of the pairs that finds. Tabs and line feeds in listed texts are spaces; --json has them as
    they are.

    \b
    Examples:
      gramvec dedupe titles.txt
      gramvec dedupe tickets.csv --column subject --threshold 0.95 --groups --json
      sort titles.txt | gramvec dedupe --keep - > unique.txt
      gramvec dedupe new.csv --against tickets.gvi --column subject --keep fresh.csv
    """  # noqa: D301 - click takes the character, not its escape
    form = input_format or form_of(source)
    if against is not None and by_group:
        raise click.UsageError("--against lists lines beside rows of the index, which are no groups.")
    with one_blas_thread():
        pass  # whether it can be had is known before minutes of work, not after them
    with told_to_stop(), tempfile.TemporaryDirectory(prefix="gramvec-") as name:
        folder = Path(name)
        file = spooled(sys.stdin.buffer, folder) if source == STDIN else source
        embedder = load(model, device=device, max_characters=max_characters, threads=threads, space=space)
        result: Compared
        known = open_known(against, embedder, threads or cores()) if against is not None else None
        # Not within `except`, which would hold all that was read so far.
        found, too_many = None, ""
        try:
            with progress("reading") as watch:
                found = read_texts(
                    file, form, column, embedder, truncate=truncate, on_error=on_error, most=max_texts, watch=watch
                )
        except TooManyTexts as error:
            too_many = str(error)
        if found is None and known is not None:
            raise InputError(f"{too_many}; compare it with the index in parts, or raise --max-texts")
        if found is None:
            click.echo(f"{too_many}: those pairs are compared that are likely", err=True)
            one_by_one = load(model, device=device, max_characters=max_characters, threads=1, space=space)
            result = through_an_index(
                file, folder, form, column, one_by_one, threshold, truncate=truncate, on_error=on_error,
                threads=threads or cores(), weights=weights,
                most=None if by_group or (keep and not output) else max_pairs,
            )  # fmt: skip
        elif known is not None:
            result = AgainstIndex(found, known, known.embedder, threshold, truncate=truncate)
        else:
            result = _all_compared(found, embedder, threshold, truncate, threads or cores(), max_pairs, weights)
        embedder.close()
        if keep is None or output is not None:
            records = result.groups() if by_group else result.pairs()
            _write(output, _lines(records, with_texts=texts, as_json=as_json))
        if keep is not None:
            dropped = result.dropped()
            target = folder / "kept" if keep == STDIN else keep
            write_kept(file, form, column, dropped, target)
            if keep == STDIN:
                sys.stdout.buffer.write(target.read_bytes())
            click.echo(f"{result.rows - len(dropped):,} of {result.rows:,} {result.unit}s kept", err=True)
    for sentence in (*result.bad.report(result.rows, result.unit), *result.remarks):
        click.echo(sentence, err=True)


def _all_compared(
    found: Texts, embedder: Embedder, threshold: float, truncate: bool, threads: int, most: int, weights: Weights
) -> Compared:
    if embedder.space != "semantic" and weights == "texts":
        embedder = weighed_by(embedder, found.different)
    with bar("embedding", len(found.different), " texts") as shown:
        units = units_of(embedder, found.different, truncate=truncate, watch=shown.update)
    number = len(units)
    with bar("comparing", number * (number - 1) // 2, " pairs") as shown:
        pairs = near_pairs(units, threshold, threads=threads, most=most, watch=shown.update)
    return AllCompared(found, pairs, most)


def _lines(records: Iterator[dict[str, Any]], *, with_texts: bool, as_json: bool) -> Iterator[bytes]:
    for group, record in enumerate(records, start=1):
        texts = record["texts"] if with_texts else record.pop("texts")[:0]
        if as_json:
            yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        elif "score" in record:
            both = record["lines"] if "lines" in record else [record["line"], record["id"]]
            yield _tabbed([*both, f"{record['score']:.4f}", *texts])
        else:
            for line, text in zip_longest(record["lines"], texts):
                yield _tabbed([group, line, *([text] if with_texts else [])])


def _tabbed(fields: list[Any]) -> bytes:
    return ("\t".join(" ".join(str(field).split()) for field in fields) + "\n").encode()


def _write(output: Path | None, lines: Iterator[bytes]) -> None:
    if output is None:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    elif output.exists() and not output.is_file():
        with output.open("wb") as file:
            file.writelines(lines)
    else:
        with whole(output) as file:
            file.writelines(lines)
