"""`gramvec classify`: learn labels from texts that have one, and give them to texts that have none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.embed import (
    bom_option,
    column_option,
    input_format_options,
    max_characters_option,
    on_error_option,
    overwrite_option,
    safe_cells_option,
    source_argument,
    truncate_option,
)  # fmt: skip
from gramvec.cli.jobs.job_report import report_option
from gramvec.cli.jobs.run import CommandWatch, in_shell, make_job, show_job
from gramvec.cli.options import device_option, model_option
from gramvec.cli.other_words import CommandGroup
from gramvec.jobs.classify.job import FitJob, PredictJob
from gramvec.jobs.tables.inputs import UTF_8
from gramvec.jobs.tables.outputs import TABLE_FORMS


class ThresholdChoice(click.ParamType):  # type: ignore[type-arg]  # generic in later versions of click only
    """A score from 0 to 1 for all labels, or LABEL=SCORE for one."""

    name = "[LABEL=]SCORE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, float]:
        """Return the label, None for all, and the score."""
        if isinstance(value, tuple):
            return value
        label, equal, score = str(value).rpartition("=")
        try:
            number = float(score)
        except ValueError:
            self.fail(f"{value!r} is not a score from 0 to 1, or LABEL=SCORE", param, ctx)
        if not 0 <= number <= 1:
            self.fail(f"{score} is not from 0 to 1", param, ctx)
        return label if equal else None, number


def threshold_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option --threshold."""
    text = f"Minimum score for a label to count as known; LABEL=SCORE for one label; repeatable.  [{default}]"
    return click.option("--threshold", type=ThresholdChoice(), multiple=True, help=text)


@click.group(cls=CommandGroup, short_help="Learn labels, and give them to texts.")
def classify() -> None:
    """Learn labels from labeled texts, and give labels to other texts."""


@classify.command(short_help="Learn labels from a file.")
@click.argument("labeled", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--delimiter", help="Character between the columns of CSV, such as ';' or tab.  [by the header]")
@click.option("--encoding", default=UTF_8, show_default=True, help="Encoding of LABELED, such as cp1252.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The head's file.")
@model_option
@device_option
@column_option
@click.option("--label", default="label", show_default=True, help="Column or member with the label.")
@click.option("--several/--one-label", default=None,
              help="Whether a text may have several labels, written a|b.  [by what the labels look like]")  # fmt: skip
@threshold_option("the highest score that keeps 99 % of the correct held-out answers")
@report_option
@truncate_option
@max_characters_option
@on_error_option
@overwrite_option
def fit(**options: Any) -> None:
    """Learn a head from LABELED: label<TAB>text lines, or CSV, JSON lines or Parquet with columns of these names.

    A text may have several labels: a|b, a list in JSON lines or Parquet, or fastText's lines, whose words that begin
    with __label__ are labels.

    The head sees the model's vectors, n-grams of characters, and words. Held-out texts decide the weight of each and
    make the report. Needs scikit-learn: pip install 'gramvec[classify]'.

    \b
    Example:
      gramvec classify fit intents.tsv -o intents.head
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(FitJob, **options)
    with closing(CommandWatch()) as watch:
        result = job.run(watch)
    click.echo(in_shell(result.summary))


@classify.command(short_help="Give labels to the texts of a file.")
@click.argument("head", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@source_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default="-",
              help="A .csv, .tsv, .jsonl, .parquet or .xlsx file. [stdout]")  # fmt: skip
@click.option("--format", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or tsv]")
@input_format_options
@column_option
@click.option("--prefix", default="", help="Before the names of the new columns, label, score and known.")
@click.option("-m", "--model", help="A name in models/, or a bundle's folder. [the head's]")
@device_option
@threshold_option("the head's")
@report_option
@truncate_option
@max_characters_option
@on_error_option
@overwrite_option
@safe_cells_option
@bom_option
def predict(**options: Any) -> None:
    """Give each text of INPUT the best label of HEAD, in the columns label, score and known beside INPUT's.

    INPUT is any file that `gramvec embed` reads, or stdin. The third column shows whether the score reaches the
    threshold; where it does not, the text may have no such label.

    \b
    Examples:
      gramvec classify predict intents.head messages.txt
      gramvec classify predict intents.head tickets.csv --column subject -o labeled.csv
      gramvec classify predict intents.head tickets.csv --threshold 0.5 --threshold refund=0.8
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(PredictJob, **options)
    with show_job() as watch:
        job.run(watch)
