"""`gramvec pairs`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.embed import (
    input_format_option,
    on_error_option,
    overwrite_option,
    progress,
    source_argument,
)  # fmt: skip
from gramvec.cli.jobs.job_report import report_option, show_report, start_clock
from gramvec.cli.jobs.row_columns import columns_option
from gramvec.cli.jobs.run import show_job
from gramvec.cli.options import device_option
from gramvec.embed.loading import load
from gramvec.jobs.bad_rows import OnError
from gramvec.jobs.columns import read_columns
from gramvec.jobs.file_job import RowColumns
from gramvec.matching.report import given_report, pair_model_fact
from gramvec.pairs.given_pairs import score_given
from gramvec.runtime.base import Device
from gramvec.tables.columns import read_records, value_or_none
from gramvec.tables.inputs import STDIN, FileFormat, spooled
from gramvec.tables.outputs import TABLE_FORMS, TableForm, form_to_write, free_names, write_table
from gramvec.tables.staging import check_outputs


@click.command("pairs", short_help="Score given pairs of texts.")
@source_argument
@click.option("--left", required=True, metavar="COLUMN", help="Column of one text of each pair.")
@click.option("--right", required=True, metavar="COLUMN", help="Column of the other.")
@click.option("--meaning", metavar="MODEL", help="Add the cosine of both texts by this model, such as gramvec-en.")
@device_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv, .jsonl or .parquet file. [stdout]")  # fmt: skip
@columns_option("compared", "all", help="Write both texts, or all columns of INPUT.")
@click.option("--format", "form", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or csv]")
@report_option
@input_format_option
@on_error_option
@overwrite_option
def pairs_command(
    source: Path,
    left: str,
    right: str,
    meaning: str | None,
    device: Device,
    output: Path | None,
    columns: RowColumns,
    form: TableForm | None,
    report: Path | None,
    input_format: FileFormat,
    on_error: OnError,
    overwrite: bool,
) -> None:
    """Write how probable it is that both texts of each row of INPUT are the same thing.

    INPUT is what `gramvec embed` reads, with a header. The score is of the model of `gramvec match`, 0 to 1; a pair
    with an empty side has 0. A row has the number of its line.

    \b
    Examples:
      gramvec pairs candidates.csv --left ours --right theirs --columns all -o scored.csv
      gramvec pairs candidates.jsonl --left a --right b --meaning gramvec-en
    """  # noqa: D301 - click takes the character, not its escape
    written = form_to_write(output, TABLE_FORMS, form)
    clock = start_clock()
    check_outputs(output, report, inputs=[source], overwrite=overwrite)
    options = {left: "--left", right: "--right"}
    with show_job(), tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        again = columns == "all" and source == STDIN
        file = spooled(sys.stdin.buffer, Path(folder)) if again else source
        with progress("reading") as watch:
            found = read_columns(
                file, [left, right], format=input_format, options=options, on_error=on_error, watch=watch,
                name="standard input" if again else None,
            )  # fmt: skip
        one, other = found.values[left], found.values[right]
        scores = {"score": score_given([one], [other])}
        if meaning:
            scores["meaning"] = load(meaning, device=device).pair_similarity(one, other)
        cells: dict[str, Any] = {"line": found.numbers}
        cells |= {name: [round(score, 4) for score in values.tolist()] for name, values in scores.items()}
        cells |= {"left": one, "right": other} if columns == "compared" else {}
        shown = (dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True))
        names = free_names(found.found, "input_", cells) if columns == "all" else {}
        if names:
            read = read_records(file, input_format, found.numbers)
            shown = (
                row | {free: value_or_none(read[row["line"]], name) for name, free in names.items()} for row in shown
            )
        write_table(output, written, [*cells, *names.values()], shown)
        if report is not None:
            rows = [f"{found.unit} {number}" for number in found.numbers]
            facts = clock.facts(pair_model_fact(same=False), {source: len(rows)})
            page = given_report(scores["score"], one, other, (left, right), rows, facts=facts)
            show_report(page, report)
    if output is not None and output != STDIN:
        click.echo(f"{len(found.numbers):,} pairs put into {output}", err=True)
    for sentence in found.bad.report(len(found.numbers) + found.bad.count, "could not be read"):
        click.echo(sentence, err=True)
