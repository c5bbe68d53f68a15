"""`gramvec match`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramvec.bulk.embed_file import COLUMN
from gramvec.cli.jobs.embed import on_error_option, overwrite_option, threads_option, told_to_stop
from gramvec.cli.jobs.job_report import report_option, show_report, start_clock
from gramvec.cli.jobs.match_inputs import (
    TABLE,
    TABLE_OR_STDIN,
    ComparedColumns,
    TableFormats,
    block_option,
    id_option,
    on_option,
    read_tables,
    split_names,
    table_options,
)
from gramvec.cli.jobs.match_labels import LabelOptions, MatchOptions
from gramvec.cli.jobs.match_output import EXPLAINED, NAMES, RowPairs, add_columns, records_of, with_unmatched
from gramvec.cli.jobs.row_columns import columns_option
from gramvec.cli.options import POSITIVE
from gramvec.errors import InputError
from gramvec.jobs.bad_rows import OnError
from gramvec.jobs.file_job import RowColumns
from gramvec.jobs.watch import TerminalWatch
from gramvec.matching.fields import Field, Matched
from gramvec.matching.inputs import MatchTable
from gramvec.matching.match_tables import check_unweighted
from gramvec.matching.matcher import LearnedMatcher
from gramvec.matching.matcher_file import load_matcher
from gramvec.matching.report import match_report
from gramvec.tables.columns import read_records
from gramvec.tables.inputs import STDIN, UTF_8
from gramvec.tables.outputs import TABLE_FORMS, TableForm, form_to_write, write_table
from gramvec.tables.staging import check_outputs
from gramvec.threads import count_cores


@click.command("match", short_help="Match the rows of two tables.")
@click.argument("left", type=TABLE_OR_STDIN)
@click.argument("right", type=TABLE_OR_STDIN)
@on_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv, .jsonl or .parquet file. [stdout]")  # fmt: skip
@click.option("--format", "form", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or csv]")
@click.option("--top", type=POSITIVE,
              help="Rows of RIGHT for a row of LEFT, at most.  [default: all, or what labels say]")  # fmt: skip
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Write all rows of RIGHT above the threshold; with labels that say otherwise, too.",
)
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="The lowest score.  [default: that of the highest expected F1, at least 0.35]")  # fmt: skip
@click.option("--one-to-one", is_flag=True, help="Write each row in one match at most: greedily, best first.")
@block_option
@id_option
@columns_option("compared", "all", help="Write the compared texts, or all columns of both rows.")
@click.option("--unmatched", is_flag=True, help="Write the rows of both tables that are in no match, too.")
@click.option("--explain", is_flag=True, help="Add the words that both texts share, and those that only one has.")
@click.option("--labels", type=TABLE, multiple=True, metavar="FILE",
              help="Learn from pairs: columns left, right (ids) and match (1 or 0); repeatable.")  # fmt: skip
@click.option("--labels-delimiter", metavar="TEXT", help="As --delimiter, of --labels.  [by the header]")
@click.option("--labels-encoding", default=UTF_8, show_default=True, help="As --encoding, of --labels.")
@click.option("--keep-labels", is_flag=True,
              help="Write labeled pairs as --labels has them: matches with a score of 1, others not.")  # fmt: skip
@click.option("--save-matcher", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write what --labels taught to this file of JSON.")  # fmt: skip
@click.option("--matcher", type=TABLE, metavar="FILE", help="Match by a matcher that --save-matcher wrote.")
@click.option("--review", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the pairs to label next to this file: those nearest the threshold.")  # fmt: skip
@click.option("--review-pairs", type=POSITIVE, default=100, show_default=True, help="Pairs of --review.")
@report_option
@table_options
@on_error_option
@overwrite_option
@threads_option
def match_command(
    left: Path,
    right: Path,
    on: tuple[tuple[str, str, float], ...],
    output: Path | None,
    form: TableForm | None,
    top: int | None,
    every: bool,
    threshold: float | None,
    one_to_one: bool,
    block: str | None,
    id_column: str | None,
    columns: RowColumns,
    unmatched: bool,
    explain: bool,
    labels: tuple[Path, ...],
    labels_delimiter: str | None,
    labels_encoding: str,
    keep_labels: bool,
    save_matcher: Path | None,
    matcher: Path | None,
    review: Path | None,
    review_pairs: int,
    report: Path | None,
    formats: TableFormats,
    on_error: OnError,
    overwrite: bool,
    threads: int | None,
) -> None:
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
    if every and (top or one_to_one):
        raise click.UsageError("--all writes every row above the threshold; give it without --top and --one-to-one")
    asked = LabelOptions(
        labels, labels_delimiter, labels_encoding, matcher, save_matcher, review, review_pairs, keep_labels
    )
    asked.check()
    if left == right == STDIN:
        raise click.UsageError("- is standard input, which can be one of the tables; give a file for the other")
    if columns == "all" and STDIN in (left, right):
        raise click.UsageError("--columns all reads both tables again, and standard input cannot be; give a file")
    form = form_to_write(output, TABLE_FORMS, form)
    inputs = [left, right, *labels, matcher]
    clock = start_clock()
    check_outputs(output, save_matcher, review, report, inputs=inputs, overwrite=overwrite)
    known = load_matcher(matcher) if matcher else None
    on = _columns(on, known)
    if not (labels or matcher):
        check_unweighted(Field((), (), weight) for _, _, weight in on)
    blocks = split_names("--block", block) if block else None
    ids = split_names("--id", id_column) if id_column else (None, None)
    with told_to_stop():
        one, other = read_tables((left, right), formats, on, blocks, ids, on_error)
        fields = [Field(one.columns[a], other.columns[b], weight) for a, b, weight in on]
        keys = (one.columns[blocks[0]], other.columns[blocks[1]]) if blocks else None
        with closing(TerminalWatch()) as bars:
            same = STDIN not in (left, right) and left.samefile(right)
            options = MatchOptions(
                top,
                every,
                threshold,
                one_to_one,
                same,
                on_error,
                threads or count_cores(),
                bars.advance,
            )
            compared = [(a, b) for a, b, _ in on]
            matched = asked.matches(known, (one, other), fields, compared, keys, options)
        found = matched.matches
        rows = with_unmatched(found, (len(one.ids), len(other.ids)), same=same) if unmatched else RowPairs(*found)
        names, records = list(NAMES), records_of(rows, one, other, fields, explain=explain)
        if columns == "all":
            names, records = add_columns(
                records, rows, (one.names, other.names), _all_columns(rows, (one, other), formats)
            )
        write_table(output, form, [*names, *(EXPLAINED if explain else ())], records)
        summary = _summary(matched, len(one.ids), left, one_to_one=one_to_one)
        if report is not None:
            made_by = asked.model_fact(same=same)
            facts = clock.facts(made_by, {left: len(one.ids)} if same else {left: len(one.ids), right: len(other.ids)})
            title = f"Matches of {left.name} and {right.name}"
            page = match_report(
                matched, fields, compared, (one.ids, other.ids), title=title, summary=summary, facts=facts, same=same
            )
            show_report(page, report)
    click.echo(summary, err=True)


def _summary(matched: Matched, rows: int, left: Path, *, one_to_one: bool) -> str:
    found, answered = matched.matches, len(set(matched.matches.left.tolist()))
    if not len(found.left):
        return f"0 of {rows:,} rows of {left} have a match: the tables have nothing in common that is probable enough"
    said = f"{answered:,} of {rows:,} rows of {left} have a match, {len(found.left):,} pairs at the threshold "
    said += f"{matched.threshold:.3f}"
    if matched.precision:
        said += f", of which {matched.precision:.0%} are expected to be right; {matched.below:,} rows have only "
        said += "candidates below it"
    if matched.left_out:
        said += f"; {matched.left_out:,} more pairs above it are left out ({'--one-to-one' if one_to_one else '--top'})"
    return said


def _all_columns(
    rows: RowPairs, tables: tuple[MatchTable, MatchTable], formats: TableFormats
) -> list[dict[int, dict[str, Any]]]:
    """Return all columns of the rows of both tables, by row: the files are read again."""
    found = []
    for side, table in enumerate(tables):
        path = Path(table.name)
        wanted = np.unique(rows[side][rows[side] >= 0]).tolist()
        read = read_records(path, formats.of(side, path), [table.numbers[row] for row in wanted])
        found.append({row: read[table.numbers[row]] for row in wanted})
    return found


def _columns(on: ComparedColumns, known: LearnedMatcher | None) -> ComparedColumns:
    """Return the compared columns: those of --on, or those of the matcher."""
    if len({(a, b) for a, b, _ in on}) < len(on):
        raise click.UsageError("--on names a column twice; give its weight once")
    if known is None:
        return on or ((COLUMN, COLUMN, 1.0),)
    learned = tuple((*names, weight) for names, weight in zip(known.columns, known.weights, strict=True))
    if on and on != learned:
        learned_on = " ".join(f"--on {a if a == b else f'{a}={b}'}:{weight:g}" for a, b, weight in learned)
        raise InputError(
            f"--on names other columns than the matcher was learned from; leave it out, or give {learned_on}"
        )
    return learned
