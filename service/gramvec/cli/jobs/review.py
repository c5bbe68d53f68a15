"""`gramvec review pairs` and `gramvec review labels`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.classify import fit
from gramvec.cli.jobs.embed import (
    column_option,
    input_format_options,
    on_error_option,
    overwrite_option,
    safe_cells_option,
    source_argument,
    threads_option,
)
from gramvec.cli.jobs.match import match_command
from gramvec.cli.jobs.match_inputs import TABLE, block_option, id_option, on_option, table_options
from gramvec.cli.jobs.run import STOPPED, CommandWatch, in_shell, make_job, write_command
from gramvec.cli.other_words import CommandGroup
from gramvec.errors import printable
from gramvec.jobs.review.job import LabelReviewJob, PairReviewJob

PATH = click.Path(path_type=Path, dir_okay=False)
port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of the page's address.  [a free one]"
)


class ReviewGroup(CommandGroup):
    """Group that says what a review is of, where a file stands in the place of that."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return what click does. Raises UsageError for a file or an option in the place of a command."""
        word = args[0]
        if word not in self.commands and (Path(word).exists() or Path(word).suffix):
            kind = "labels" if "--head" in args else "pairs"
            raise click.UsageError(f"say what to review: gramvec review {kind} {printable(word)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=ReviewGroup, short_help="Answer questions in a browser; it learns.")
def review() -> None:
    """Ask whether pairs of rows are the same thing, or which label a text has, on a page in the browser.

    Each answer is on disk before the next question is shown. After five answers of each kind what was learned asks
    better. The page is for this machine only: it is at 127.0.0.1, and its address has a secret. Needs scikit-learn: pip
    install 'gramvec[labels]'.
    """


@review.command("pairs", short_help="Are two rows the same thing?")
@click.argument("left", type=TABLE)
@click.argument("right", type=TABLE, required=False)
@on_option
@click.option("--labels", type=PATH, default="labels.csv", show_default=True,
              help="The answers, as match --labels reads them; earlier ones count.")  # fmt: skip
@click.option("-o", "--output", type=PATH, default="matches.csv", show_default=True, help="What finish writes.")
@click.option("--save-matcher", type=PATH, default="matcher.json", show_default=True, help="What the answers taught.")
@block_option
@id_option
@port_option
@table_options
@on_error_option
@overwrite_option
@safe_cells_option
@threads_option
def review_pairs(**options: Any) -> None:
    """Ask whether pairs of rows are the same thing, those first that teach most.

    y, n or u (not sure) answers, z takes an answer back, f finishes: it writes matches, answers and matcher, and shows
    the command that repeats it. Without RIGHT, rows of LEFT are compared with each other.

    \b
    Examples:
      gramvec review pairs ours.csv theirs.csv --on name
      gramvec review pairs customers.csv --on name --on city --labels answers.csv -o duplicates.csv
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(PairReviewJob, **options | {"right": options["right"] or options["left"]})
    _run(job.run, "match", match_command)


@review.command("labels", short_help="Which label does a text have?")
@source_argument
@click.option("--head", type=TABLE, required=True, metavar="HEAD", help="The head that classify fit wrote.")
@click.option("--labels", type=PATH, default="labels.csv", show_default=True,
              help="The answers, as classify fit reads them; earlier ones count.")  # fmt: skip
@click.option("-o", "--output", type=PATH, default="reviewed.head", show_default=True, help="What finish writes.")
@input_format_options
@column_option
@port_option
@on_error_option
@overwrite_option
def review_labels(**options: Any) -> None:
    """Ask which label of a head the texts of a file have, those first that teach most.

    A digit chooses one of the best labels, t types one, s is not sure, u takes an answer back, f finishes: it writes a
    head. The labels of other texts that --labels has are learned from, too.

    \b
    Example:
      gramvec review labels tickets.csv --head topics.head --column subject --labels topics.csv
    """  # noqa: D301 - click takes the character, not its escape
    _run(make_job(LabelReviewJob, **options).run, "classify fit", fit)


def _run(run: Callable[..., list[str] | None], name: str, command: click.Command) -> None:
    """Run a review, and print what it wrote. `name` and `command` repeat that."""
    with closing(CommandWatch()) as watch:
        sentences = run(watch, lambda job: write_command(name, command, job))
    if sentences is None:
        sys.exit(STOPPED)
    for sentence in sentences:
        click.echo(printable(in_shell(sentence)))
