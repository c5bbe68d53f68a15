"""`gramvec match`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.embed import bom_option, on_error_option, overwrite_option, safe_cells_option, threads_option
from gramvec.cli.jobs.job_report import report_option
from gramvec.cli.jobs.match_inputs import (
    TABLE_OR_STDIN,
    block_option,
    id_option,
    label_options,
    on_option,
    table_options,
)
from gramvec.cli.jobs.row_columns import columns_option
from gramvec.cli.jobs.run import in_shell, make_job, show_job
from gramvec.cli.options import POSITIVE, engine_option, gone_options, precision_option
from gramvec.jobs.common.file_job import MAX_NUMBER
from gramvec.jobs.matching.job import MatchJob
from gramvec.jobs.tables.outputs import TABLE_FORMS


class RowLimit(click.IntRange):
    """A number from 1, or all."""

    name = "number, or all"

    def __init__(self) -> None:
        super().__init__(1, MAX_NUMBER)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or "all"."""
        return value if value == "all" else super().convert(value, param, ctx)


@click.command("match", short_help="Match the rows of two tables.")
@click.argument("left", type=TABLE_OR_STDIN)
@click.argument("right", type=TABLE_OR_STDIN)
@on_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default="-",
              help="A .csv, .tsv, .jsonl, .parquet or .xlsx file. [stdout]")  # fmt: skip
@click.option("--format", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or csv]")
@click.option("--top", type=RowLimit(), metavar="N|all",
              help="Rows of RIGHT for a row of LEFT at most, or all.  [default: all, or what labels say]")  # fmt: skip
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="The lowest score.  [default: of the best expected F1, least 0.35; one to one 0.35]")  # fmt: skip
@precision_option
@click.option("--one-to-one", is_flag=True, help="Write each row in one match at most: greedily, best first.")
@block_option
@id_option
@columns_option("compared", "all", help="Write the compared texts, or all columns of both rows.")
@click.option("--unmatched", is_flag=True, help="Write the rows of both tables that are in no match, too.")
@click.option("--explain", is_flag=True,
              help="Add the words of both, those of one, and what counted for and against each pair.")  # fmt: skip
@label_options
@click.option("--keep-labels", is_flag=True,
              help="Write labeled pairs as --labels has them: matches with a score of 1, others not.")  # fmt: skip
@click.option("--save-matcher", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write what --labels taught to this file of JSON.")  # fmt: skip
@click.option("--review", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the pairs to label next to this file: those that gramvec review would ask.")  # fmt: skip
@click.option("--review-pairs", type=POSITIVE, default=100, show_default=True, help="Pairs of --review.")
@report_option
@table_options
@on_error_option
@overwrite_option
@safe_cells_option
@bom_option
@threads_option
@engine_option
@gone_options({}, {"--all": "write --top all"})
def match_command(**options: Any) -> None:
    """Match each row of LEFT with rows of RIGHT, and write ids, score and texts.

    Both are files that `gramvec embed` reads; - for one of them is standard input. A score is the probability that two
    rows are the same thing, by their words, numbers and columns; no label is needed. Needs SciPy: pip install
    'gramvec[match]'. With --labels, scores are the probabilities of a matcher that learns from them, too: pip install
    'gramvec[labels]'. LEFT and RIGHT may be one file: its rows are then compared with each other.

    \b
    Examples:
      gramvec match ours.csv theirs.csv --on name -o matches.csv
      gramvec match ours.csv theirs.parquet --on title=name --on brand --one-to-one --explain
      gramvec match people.jsonl register.tsv --on name --block city --top 3 --threshold 0.5
      gramvec match ours.csv theirs.csv --on name -o joined.parquet --columns all --unmatched
      gramvec match ours.csv theirs.csv --on name -o matches.csv --report matches.html
      gramvec match ours.csv theirs.csv --on name --review pairs.csv
      gramvec match ours.csv theirs.csv --on name --labels pairs.csv --save-matcher names.json -o matches.csv
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(MatchJob, **options)
    with show_job() as watch:
        result = job.run(watch)
    click.echo(in_shell(result.summary), err=True)
