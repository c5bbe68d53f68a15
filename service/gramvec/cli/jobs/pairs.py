"""`gramvec pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.embed import (
    bom_option,
    input_format_options,
    on_error_option,
    overwrite_option,
    safe_cells_option,
    source_argument,
)  # fmt: skip
from gramvec.cli.jobs.job_report import report_option
from gramvec.cli.jobs.row_columns import columns_option
from gramvec.cli.jobs.run import make_job, show_job
from gramvec.cli.options import device_option, gone_options
from gramvec.jobs.matching.job import PairsJob
from gramvec.jobs.tables.outputs import TABLE_FORMS


@click.command("pairs", short_help="Score given pairs of texts.")
@source_argument
@click.option("--left", required=True, metavar="COLUMN", help="Column of one text of each pair.")
@click.option("--right", required=True, metavar="COLUMN", help="Column of the other.")
@click.option("-m", "--model", help="Add the cosine of both texts by this model, such as gramvec-en.")
@device_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default="-",
              help="A .csv, .tsv, .jsonl, .parquet or .xlsx file. [stdout]")  # fmt: skip
@columns_option("compared", "all", help="Write both texts, or all columns of INPUT.")
@click.option("--format", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or csv]")
@report_option
@input_format_options
@on_error_option
@overwrite_option
@safe_cells_option
@bom_option
@gone_options({"--meaning": "the model of the meanings is --model MODEL"})
def pairs_command(**options: Any) -> None:
    """Write how probable it is that both texts of each row of INPUT are the same thing.

    INPUT is what `gramvec embed` reads, with a header. Scores are those of `gramvec match`, 0 to 1; a pair
    with an empty side has 0. A row has the number of its line.

    \b
    Examples:
      gramvec pairs candidates.csv --left ours --right theirs --columns all -o scored.csv
      gramvec pairs candidates.jsonl --left a --right b --model gramvec-en
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(PairsJob, **options)
    with show_job() as watch:
        job.run(watch)
