"""`gramvec review`: a person answers questions in a browser, and a matcher or a head learns from the answers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gramvec.bulk.embed_file import COLUMN
from gramvec.cli.jobs.embed import on_error_option, overwrite_option, threads_option
from gramvec.cli.jobs.match_inputs import TABLE, block_option, id_option, on_option, table_options
from gramvec.cli.jobs.run import make_job
from gramvec.cli.review.labels import review_labels
from gramvec.cli.review.run import run_command, serve_review
from gramvec.errors import InputError
from gramvec.jobs.bars import TerminalWatch
from gramvec.matching.fields import Field
from gramvec.matching.fit_matcher import check_enough, scikit_learn
from gramvec.matching.jobs.table_files import ComparedColumn, TableFiles, default_columns
from gramvec.matching.match_tables import check_unweighted
from gramvec.matching.matcher import PairLabels
from gramvec.review.answers_file import AnswersFile
from gramvec.review.pair_questions import PairQuestions
from gramvec.review.pairs_job import PairReview, PairTables
from gramvec.review.session import ReviewSession
from gramvec.tables.inputs import STDIN
from gramvec.tables.outputs import TABLE_FORMS, form_to_write
from gramvec.tables.staging import check_no_input, check_outputs, check_place
from gramvec.threads import count_cores

# Options that are not those of `gramvec match`, or are given to it by what the answers allow.
OWN = {"left", "right", "labels", "output", "save_matcher", "port"}
OF_PAIRS = {"right": "RIGHT", "on": "--on", "block": "--block", "id_column": "--id", "save_matcher": "--save-matcher"}
MATCHES, REVIEWED = Path("matches.csv"), Path("reviewed.head")
PATH = click.Path(path_type=Path, dir_okay=False)


@click.command("review", short_help="Answer questions in a browser; it learns.")
@click.argument("left", type=TABLE)
@click.argument("right", type=TABLE, required=False)
@on_option
@click.option("--head", type=TABLE, metavar="HEAD", help="Ask which label of this head the texts of LEFT have.")
@click.option("--column", metavar="COLUMN", help=f"With --head: which column is the text.  [{COLUMN}]")
@click.option("--labels", type=PATH, default="labels.csv", show_default=True,
              help="The answers, as match --labels or classify fit reads them; earlier ones count.")  # fmt: skip
@click.option("-o", "--output", type=PATH, help=f"What finish writes.  [{MATCHES}; with --head, {REVIEWED}]")
@click.option("--save-matcher", type=PATH, default="matcher.json", show_default=True, help="What the answers taught.")
@block_option
@id_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page's address.  [a free one]")
@table_options
@on_error_option
@overwrite_option
@threads_option
def review_command(
    left: Path,
    right: Path | None,
    head: Path | None,
    column: str | None,
    labels: Path,
    output: Path | None,
    save_matcher: Path,
    port: int,
    overwrite: bool,
    threads: int | None,
    **tables: Any,
) -> None:
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
    if head is not None:
        _check_head_options()
        output = output or REVIEWED
        _check_files(labels, [left, head], [output], overwrite=overwrite)
        texts = make_job(TableFiles, left=left, right=left, **tables)
        review_labels(left, head, labels, output, column=column or COLUMN, form=texts.formats()[0],
                      on_error=texts.on_error, overwrite=overwrite, port=port)  # fmt: skip
        return
    if column is not None:
        raise click.UsageError("--column: names the texts of --head; compared columns are named with --on")
    other, output = right or left, output or MATCHES
    _check_files(labels, [left, other], [output, save_matcher], overwrite=overwrite)
    form_to_write(output, TABLE_FORMS)
    scikit_learn("ensemble")  # a missing library is reported before the work
    files = make_job(TableFiles, left=left, right=other, **tables)
    columns = _check_columns(files.on)
    given = _match_arguments(left, other)
    with closing(AnswersFile(labels, PairReview.columns)) as answers, closing(TerminalWatch()) as watch:
        read = files.read_tables(columns, watch)
        pair_tables = PairTables(read.fields, read.columns, read.blocks, (read.left.ids, read.right.ids), read.same)

        def write(learned_from: PairLabels) -> list[str]:
            return _write_matches(given, learned_from, labels, output, save_matcher)

        title = f"Review of {left.name}" if right is None else f"Review of {left.name} and {right.name}"
        job = PairReview(title, pair_tables, write, threads=threads or count_cores(), progress=watch)
        serve_review(ReviewSession(PairQuestions(job), answers), port, labels)


def _check_head_options() -> None:
    """Raise UsageError for an option that only pairs have."""
    context = click.get_current_context()
    for name, option in OF_PAIRS.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]:
            raise click.UsageError(f"{option}: belongs to a review of pairs; leave it out, or leave out --head")


def _check_files(labels: Path, inputs: list[Path], outputs: list[Path], *, overwrite: bool) -> None:
    """Raise InputError where the answers or the outputs cannot be written, or would replace one another."""
    if STDIN in outputs:
        raise click.UsageError("-o - is standard output; a review writes its matches to a file")
    check_place(labels)
    check_no_input(labels, inputs)
    check_outputs(*outputs, inputs=[*inputs, labels], overwrite=overwrite)
    if labels.absolute() in [output.absolute() for output in outputs]:
        raise InputError(f"{labels}: is named as two outputs; give each a file of its own")
    if labels.suffix.lower() != ".csv":
        raise InputError(f"{labels}: answers are CSV; name a file that ends in .csv")


def _check_columns(on: tuple[ComparedColumn, ...]) -> tuple[ComparedColumn, ...]:
    """Return the compared columns. Raises UsageError for a column that is named twice, InputError for weights."""
    if len({(column.left, column.right) for column in on}) < len(on):
        raise click.UsageError("--on names a column twice; leave one out")
    columns = default_columns(on)
    check_unweighted(Field((), (), column.weight) for column in columns)
    return columns


def _match_arguments(left: Path, right: Path) -> list[str]:
    """Return the arguments of `gramvec match` for this call: the tables, and the options that both commands have."""
    context = click.get_current_context()
    arguments = [str(left), str(right)]
    for option in context.command.params:
        name = option.name or ""
        if name in OWN or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        for argument in [_write_column(*columns) for columns in value] if name == "on" else [value]:
            arguments += [option.opts[0]] if isinstance(argument, bool) else [option.opts[0], str(argument)]
    return arguments


def _write_column(left: str, right: str, weight: float) -> str:
    name = left if left == right else f"{left}={right}"
    return f"{name}:{weight:g}" if ":" in name or weight != 1 else name


def _write_matches(
    arguments: list[str], answers: PairLabels, labels: Path, output: Path, save_matcher: Path
) -> list[str]:
    """Run `gramvec match`, by the answers if they are enough, and return what came out and the command that repeats it.

    Raises InputError with the command's own sentence if it fails.
    """
    arguments = ["match", *arguments, "-o", str(output)]
    sentences = [f"{len(answers.match):,} answers are in {labels}."]
    try:
        check_enough(answers)
        arguments += ["--labels", str(labels), "--keep-labels", "--save-matcher", str(save_matcher)]
    except InputError as error:
        sentences.append(f"Matches are written without them, by the pair model: {error}.")
    messages, repeated = run_command(arguments)
    return [*sentences, *messages, f"{output} has the matches. The command that repeats this: {repeated}"]
