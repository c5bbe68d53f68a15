"""`gramvec dedupe`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.cli.jobs.embed import (
    bom_option,
    input_format_options,
    on_error_option,
    overwrite_option,
    safe_cells_option,
    source_argument,
    threads_option,
)
from gramvec.cli.jobs.job_report import report_option
from gramvec.cli.jobs.match_inputs import label_options
from gramvec.cli.jobs.row_columns import columns_option
from gramvec.cli.jobs.run import make_job, show_job
from gramvec.cli.options import POSITIVE, device_option, engine_option, gone_options, precision_option
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.duplicates.api import BYS
from gramvec.jobs.duplicates.distinct import MAX_PAIRS
from gramvec.jobs.duplicates.job import DedupeJob
from gramvec.jobs.duplicates.likely import KEEPS
from gramvec.jobs.tables.inputs import STDIN
from gramvec.jobs.tables.outputs import TABLE_FORMS

_RULES = (
    "what lines are one is the pair model's to say, which knows numbers and words; leave it out, or set --threshold"
)
# Options that are gone, and the sentence that each answers with.
_GONE = {
    "--stays": "--keep says which line stays, and --unique FILE is the file without repeats",
    "--column": "columns are named with --on, which is repeatable",
    "--space": "--by meaning compares the columns for what a text means; leave it out",
    "--weights": "letters and words are weighted by the lines of INPUT; leave it out",
    "--max-characters": "a line has at most 65,536 characters; leave it out",
    "--max-texts": "files of any size are compared in one way; leave it out",
}
_GONE_FLAGS = {
    "--json": "--format jsonl writes an object a line",
    "--no-texts": "--columns none lists no texts",
    "--truncate": "a line has at most 65,536 characters; leave longer ones out",
    "--numbers": _RULES,
    "--ignore-numbers": _RULES,
    "--words": _RULES,
    "--ignore-words": _RULES,
}


class KeepChoice(click.Choice):  # type: ignore[type-arg]  # generic in later versions of click only
    """Which of several lines stays; a file's name is answered with --unique, which --keep was called before."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            sentence = f"{error.message.rstrip('.')}; the file without repeats is --unique FILE"
            raise click.BadParameter(sentence, ctx, param) from None


@click.command("dedupe", short_help="Find near-duplicates in a file.")
@source_argument
@click.argument("more_sources", metavar="[INPUT]...", nargs=-1,
                type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True))  # fmt: skip
@click.option("--on", multiple=True, metavar="COLUMN",
              help="Compare this column; repeatable. With --against NAME=OTHER where documents have it as OTHER.  "
              f"[default: {COLUMN}, or the index's column]")  # fmt: skip
@click.option("--id", metavar="COLUMN",
              help='Column of the ids; none: the lines\' numbers. ["id" if there is one, else the number]')  # fmt: skip
@click.option("--by", type=click.Choice(BYS), default="letters", show_default=True,
              help="Compare words, numbers and letters, or meanings by a model.")  # fmt: skip
@click.option("-m", "--model", help=f"Model of --by meaning.  [{DEFAULT_MODEL}]")
@device_option
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="The least score.  [default: that of the highest expected F1, at least 0.4]")  # fmt: skip
@precision_option
@click.option("--explain", is_flag=True, help="Add what counted for and against each pair, by column.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv, .jsonl, .parquet or .xlsx file of the list. [stdout]")  # fmt: skip
@click.option("--format", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or tsv]")
@columns_option("none", "compared", "all", help="Which columns of INPUT the list has beside ids, lines and scores.")
@click.option("--groups", is_flag=True, help="List groups instead: lines that a chain of pairs joins.")
@click.option("--groups-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Keep the ids of groups in FILE, which the next run with new lines continues.")  # fmt: skip
@click.option("--unique", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), metavar="FILE",
              help="Write INPUT there without lines that repeat one that stays; no list but to --output.")  # fmt: skip
@click.option("--map", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write which line stays for each that goes, with the score; no list but to --output.")  # fmt: skip
@click.option("--merge", multiple=True, metavar="[COLUMN=]RULE",
              help="Give lines of --unique the best of those that go: filled, longest, frequent, newest:COLUMN; "
              "repeatable.")  # fmt: skip
@click.option("--keep", type=KeepChoice(KEEPS), default="first", show_default=True,
              help="Which line stays: the first, the longest, that with the most filled cells (complete), or the one "
              "whose compared text stands most often (frequent).")  # fmt: skip
@click.option("--against", type=click.Path(path_type=Path, exists=True), metavar="INDEX",
              help="Compare with the documents of an index instead, not with each other.")  # fmt: skip
@label_options
@report_option
@input_format_options
@on_error_option
@overwrite_option
@safe_cells_option
@bom_option
@click.option("--max-pairs", type=POSITIVE, default=MAX_PAIRS, show_default=True,
              help="Refuse to list more pairs.")  # fmt: skip
@threads_option
@engine_option
@gone_options(_GONE, _GONE_FLAGS)
def dedupe(**options: Any) -> None:
    """List the pairs of lines of INPUT that are nearly the same: ids, lines, score and texts, a table with a header.

    INPUT is what `gramvec embed` reads; several are one table, with a column of the source. The score is the
    probability that two lines are the same thing, by their words, numbers and letters, as of `gramvec match`; equal
    lines have 1, and empty ones are no duplicates. The nearest lines of each are compared; of over
    100,000 different ones the share of the alike pairs that this finds is measured and reported. With --by meaning
    the score is a cosine. Tabs and line feeds in listed texts are spaces; --format jsonl and csv have them unchanged.

    \b
    Examples:
      gramvec dedupe titles.txt
      gramvec dedupe people.csv --on name --on street --on city -o pairs.csv --columns all
      gramvec dedupe people.csv --on name --unique unique.csv --keep complete --report duplicates.html
      gramvec dedupe tickets.csv --on subject --threshold 0.9 --groups --format jsonl
      gramvec dedupe crm.csv shop.csv --on name --groups --groups-file groups.jsonl
      gramvec dedupe people.csv --on name --labels answers.csv --unique unique.csv --map map.csv
      gramvec dedupe questions.txt --by meaning --threshold 0.8
      sort titles.txt | gramvec dedupe --unique - > unique.txt
      gramvec dedupe new.csv --against tickets.index --on subject --unique fresh.csv --report known.html
    """  # noqa: D301 - click takes the character, not its escape
    if options["unique"] is None and options["map"] is None and options["output"] is None:
        options["output"] = STDIN
    job = make_job(DedupeJob, **options)
    with show_job() as watch:
        job.run(watch)
