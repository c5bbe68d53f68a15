"""`gramvec review`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gramvec.cli.jobs.classify import fit
from gramvec.cli.jobs.embed import on_error_option, overwrite_option, threads_option
from gramvec.cli.jobs.match import match_command
from gramvec.cli.jobs.match_inputs import TABLE, block_option, id_option, on_option, table_options
from gramvec.cli.jobs.run import STOPPED, CommandWatch, in_shell, make_job, write_command
from gramvec.errors import printable
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.review.job import LabelReviewJob, PairReviewJob

# Options that only a review of pairs has, and fields of a review of labels that other options name.
OF_PAIRS = {"right": "RIGHT", "on": "--on", "block": "--block", "id": "--id", "save_matcher": "--save-matcher"}
OF_LABELS = {"left": "source", "left_format": "input_format"}
PATH = click.Path(path_type=Path, dir_okay=False)


@click.command("review", short_help="Answer questions in a browser; it learns.")
@click.argument("left", type=TABLE)
@click.argument("right", type=TABLE, required=False)
@on_option
@click.option("--head", type=TABLE, metavar="HEAD", help="Ask which label of this head the texts of LEFT have.")
@click.option("--column", metavar="COLUMN", help=f"With --head: which column is the text.  [{COLUMN}]")
@click.option("--labels", type=PATH, default="labels.csv", show_default=True,
              help="The answers, as match --labels or classify fit reads them; earlier ones count.")  # fmt: skip
@click.option("-o", "--output", type=PATH, help="What finish writes.  [matches.csv; with --head, reviewed.head]")
@click.option("--save-matcher", type=PATH, default="matcher.json", show_default=True, help="What the answers taught.")
@block_option
@id_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page's address.  [a free one]")
@table_options
@on_error_option
@overwrite_option
@threads_option
def review_command(**options: Any) -> None:
    """Ask whether pairs of rows are the same thing, or which label a text has, on a page in the browser.

    The pairs are those that teach most: y, n or u (not sure) answers, z takes an answer back, f finishes. Each answer
    is on disk before the next pair is shown. After five answers of each kind a matcher learns from them in the
    background, and asks better. Finishing writes matches, answers and matcher, and shows the command that repeats it.
    Without RIGHT, rows of LEFT are compared with each other. The page is for this machine only: it is at 127.0.0.1,
    and its address has a secret. Needs scikit-learn: pip install 'gramvec[labels]'.

    With --head the rows of LEFT are texts: a digit chooses one of the head's best labels, t types one, s is not sure, u
    takes an answer back. The labels of other texts that --labels has are learned from, too. Finishing writes a head.

    \b
    Examples:
      gramvec review ours.csv theirs.csv --on name
      gramvec review customers.csv --on name --on city --labels answers.csv -o duplicates.csv
      gramvec review tickets.csv --head topics.head --column subject --labels topics.csv
    """  # noqa: D301 - click takes the character, not its escape
    if options["output"] is None:
        del options["output"]
    with closing(CommandWatch()) as watch:
        if options["head"] is not None:
            sentences = _make_label_review(options).run(watch, lambda job: write_command("classify fit", fit, job))
        else:
            sentences = _make_pair_review(options).run(watch, lambda job: write_command("match", match_command, job))
    if sentences is None:
        sys.exit(STOPPED)
    for sentence in sentences:
        click.echo(printable(in_shell(sentence)))


def _make_pair_review(options: dict[str, Any]) -> PairReviewJob:
    if options["column"] is not None:
        raise click.UsageError("--column: names the texts of --head; compared columns are named with --on")
    given = {name: value for name, value in options.items() if name in PairReviewJob.model_fields}
    return make_job(PairReviewJob, **given | {"right": options["right"] or options["left"]})


def _make_label_review(options: dict[str, Any]) -> LabelReviewJob:
    context = click.get_current_context()
    for name, option in OF_PAIRS.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]:
            raise click.UsageError(f"{option}: belongs to a review of pairs; leave it out, or leave out --head")
    given = {OF_LABELS.get(name, name): value for name, value in options.items()}
    given |= {"column": options["column"] or COLUMN}
    return make_job(LabelReviewJob, **{name: given[name] for name in LabelReviewJob.model_fields if name in given})
