"""`gramvec dedupe`."""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from pathlib import Path

import click
import numpy as np

from gramvec.bulk.embed_file import COLUMN
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.cli.jobs.dedupe_output import RowList
from gramvec.cli.jobs.embed import (
    input_format_option,
    on_error_option,
    overwrite_option,
    progress,
    source_argument,
    threads_option,
)  # fmt: skip
from gramvec.cli.jobs.job_report import report_option, show_report, start_clock
from gramvec.cli.jobs.row_columns import columns_option
from gramvec.cli.jobs.run import show_job
from gramvec.cli.jobs.search import gone_option
from gramvec.cli.options import POSITIVE, device_option
from gramvec.duplicates.api import BYS, By
from gramvec.duplicates.distinct import MOST_PAIRS, DistinctRows, DuplicateRows, distinct_rows, staying_rows
from gramvec.duplicates.likely import STAYS, LikelyPairs, Stays, likely_pairs
from gramvec.duplicates.meaning import check_cosine, meaning_pairs
from gramvec.duplicates.report import dedupe_report, known_report
from gramvec.duplicates.rows import DedupeTable, KnownRow, form_to_keep, known_rows, read_rows, write_kept
from gramvec.embed.loading import load
from gramvec.errors import printable
from gramvec.jobs.bad_rows import OnError
from gramvec.jobs.file_job import RowColumns
from gramvec.jobs.watch import TerminalWatch
from gramvec.matching.report import pair_model_fact
from gramvec.progress import progress_bar
from gramvec.runtime.base import Device
from gramvec.search.index import Index
from gramvec.tables.columns import count_cells
from gramvec.tables.inputs import STDIN, FileFormat, spooled
from gramvec.tables.outputs import TABLE_FORMS, form_to_write
from gramvec.tables.staging import check_outputs
from gramvec.text.arrays import Int64s
from gramvec.threads import count_cores

# Of a line and a document of an index.
KNOWN_THRESHOLD = 0.5
# A group of more rows is warned of before it is deleted; lines of a sample of what goes.
LARGE_GROUP, SHOWN = 50, 5
RULES = "what lines are one is the pair model's to say, which knows numbers and words; leave it out, or set --threshold"
ONE_WAY = "files of any size are compared in one way; leave it out"


@click.command("dedupe", short_help="Find near-duplicates in a file.")
@source_argument
@click.option("--on", multiple=True, metavar="COLUMN", help=f"Compare this column; repeatable.  [default: {COLUMN}]")
@click.option("--id", "id_column", metavar="COLUMN",
              help='Column of the ids; none: the lines\' numbers. ["id" if there is one, else the number]')  # fmt: skip
@click.option("--by", type=click.Choice(BYS), default="letters", show_default=True,
              help="Compare words, numbers and letters, or what a model says that texts mean.")  # fmt: skip
@click.option("-m", "--model", help=f"Model of --by meaning.  [{DEFAULT_MODEL}]")
@device_option
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="The least score.  [default: that of the highest expected F1, at least 0.35]")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv, .jsonl or .parquet file of the list. [stdout]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="JSON, an object a line, instead of tabs.")
@columns_option("none", "compared", "all", help="Which columns of INPUT the list has beside ids, lines and scores.")
@click.option("--groups", "by_group", is_flag=True, help="List groups instead: lines that a chain of pairs joins.")
@click.option("--keep", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), metavar="FILE",
              help="Write INPUT there without lines that repeat one that stays; no list but to --output.")  # fmt: skip
@click.option("--stays", type=click.Choice(STAYS), default="first", show_default=True,
              help="Which line stays: the first, the longest, that with the most filled cells (complete), or the one "
              "whose compared text stands most often (frequent).")  # fmt: skip
@click.option("--against", type=click.Path(path_type=Path, exists=True), metavar="INDEX",
              help="Compare with the documents of an index instead, not with each other.")  # fmt: skip
@report_option
@input_format_option
@on_error_option
@overwrite_option
@click.option("--max-pairs", type=POSITIVE, default=MOST_PAIRS, show_default=True,
              help="Refuse to list more pairs.")  # fmt: skip
@threads_option
@gone_option("--column", said="columns are named with --on, which is repeatable")
@gone_option("--no-texts", is_flag=True, said="--columns none lists no texts")
@gone_option("--space", said="--by meaning compares the columns for what a text means; leave it out")
@gone_option("--weights", said="letters and words are weighted by the lines of INPUT; leave it out")
@gone_option("--max-characters", said="a line has at most 65,536 characters; leave it out")
@gone_option("--truncate", is_flag=True, said="a line has at most 65,536 characters; leave longer ones out")
@gone_option("--numbers", is_flag=True, said=RULES)
@gone_option("--ignore-numbers", is_flag=True, said=RULES)
@gone_option("--words", is_flag=True, said=RULES)
@gone_option("--ignore-words", is_flag=True, said=RULES)
@gone_option("--max-texts", said=ONE_WAY)
def dedupe(
    source: Path,
    on: tuple[str, ...],
    id_column: str | None,
    by: By,
    model: str | None,
    device: Device,
    threshold: float | None,
    output: Path | None,
    as_json: bool,
    columns: RowColumns,
    by_group: bool,
    keep: Path | None,
    stays: Stays,
    against: Path | None,
    report: Path | None,
    input_format: FileFormat,
    on_error: OnError,
    overwrite: bool,
    max_pairs: int,
    threads: int | None,
) -> None:
    """List the pairs of lines of INPUT that are nearly the same: ids, lines, score and texts, a table with a header.

    INPUT is what `gramvec embed` reads. The score is the probability that two lines are the same thing, by their words,
    numbers and letters, as of `gramvec match`; equal lines have 1, and empty ones are no duplicates. Of up to 100,000
    different lines the nearest of each are compared; of more, likely ones, and the share that was found is measured and
    reported. With --by meaning the score is a cosine. Tabs and line feeds in listed texts are spaces; --json and .csv
    have them unchanged.

    \b
    Examples:
      gramvec dedupe titles.txt
      gramvec dedupe people.csv --on name --on street --on city -o pairs.csv --columns all
      gramvec dedupe people.csv --on name --keep unique.csv --stays complete --report duplicates.html
      gramvec dedupe tickets.csv --on subject --threshold 0.9 --groups --json
      gramvec dedupe questions.txt --by meaning --threshold 0.8
      sort titles.txt | gramvec dedupe --keep - > unique.txt
      gramvec dedupe new.csv --against tickets.index --on subject --keep fresh.csv --report known.html
    """  # noqa: D301 - click takes the character, not its escape
    _check_options(by, model, threshold, against=against, by_group=by_group, report=report)
    _check_stays(stays, keep, against, report)
    clock = start_clock()
    form = form_to_write(output, TABLE_FORMS, "jsonl" if as_json else None, "tsv", "--json")
    kept_form = form_to_keep(source, input_format, keep)
    check_outputs(output, keep, report, inputs=[source, against], overwrite=overwrite)
    on = tuple(dict.fromkeys(on or (COLUMN,)))
    with show_job(), tempfile.TemporaryDirectory(prefix="gramvec-") as name:
        folder = Path(name)
        index = Index(against, threads=threads) if against is not None else None
        file = spooled(sys.stdin.buffer, folder) if source == STDIN else source
        with progress("reading") as watch:
            called = "standard input" if source == STDIN else None
            table = read_rows(file, input_format, on, id_column, on_error=on_error, watch=watch, name=called)
        distinct = distinct_rows(table.columns)
        shown = RowList(table, on, columns, file, input_format)
        listed = keep is None or output is not None
        if index is not None:
            least = KNOWN_THRESHOLD if threshold is None else threshold
            # A report also shows what is below the threshold.
            best = _known(distinct, index, least if report is None else 0.0)
            known = [one for one in best if one.score >= least]
            dropped = np.array([one.row for one in known], np.int64)
            if listed:
                shown.write_known(output, form, known)
        else:
            most = max_pairs if listed and not by_group else None
            likely = _compared(distinct, by, model, device, threshold, threads or count_cores(), most)
            _tell(likely, table.table.unit, by)
            cells = _cells(table, file, input_format) if stays == "complete" else None
            found = DuplicateRows(distinct, likely, staying_rows(distinct, likely.pairs, stays, cells))
            dropped = found.dropped
            if keep is not None:
                _warn(table, found)
            if listed and by_group:
                shown.write_groups(output, form, found.groups)
            elif listed:
                shown.write_pairs(output, form, found.pairs_up_to(max_pairs))
        if keep is not None:
            target = folder / "kept" if keep == STDIN else keep
            numbers = np.asarray(table.table.numbers, np.int64)[dropped]
            write_kept(file, input_format, kept_form, table.table.found, numbers, target)
            if keep == STDIN:
                sys.stdout.buffer.write(target.read_bytes())
            rows = len(table.ids) + table.table.bad.count
            click.echo(f"{rows - len(dropped):,} of {rows:,} {table.table.unit}s kept", err=True)
            if index is not None:
                _show(table, known)
        if report is not None:
            name = called or source.name
            facts = clock.facts(pair_model_fact(same=index is None), {source: len(table.ids)})
            show_report(
                dedupe_report(found, table, title=f"Duplicates in {name}", columns=on, facts=facts)
                if index is None
                else known_report(best, least, table, title=f"Lines of {name} in {against}", facts=facts),
                report,
            )
    _tell_uncompared(table, distinct)


def _check_options(
    by: By, model: str | None, threshold: float | None, *, against: Path | None, by_group: bool, report: Path | None
) -> None:
    """Raise UsageError for options that --against, --by letters or --by meaning does not have."""
    if against is not None and by_group:
        raise click.UsageError(
            "--against: lists lines beside documents of the index, which are not groups; leave out --groups"
        )
    if by == "letters" and model is not None:
        raise click.UsageError("--model: lines are compared by letters and words; give --by meaning, or leave it out")
    if by == "meaning" and against is not None:
        raise click.UsageError("--against: compares by letters and words; leave out --by meaning")
    if by == "meaning" and report is not None:
        raise click.UsageError("--report: shows probabilities, and meanings have cosines; leave out one of both")
    if by == "meaning":
        check_cosine(threshold)


def _check_stays(stays: Stays, keep: Path | None, against: Path | None, report: Path | None) -> None:
    """Raise UsageError where no line goes, or none for another line of INPUT."""
    if stays != "first" and (against is not None or (keep is None and report is None)):
        raise click.UsageError("--stays: chooses among lines of INPUT for --keep or --report; leave it out")


def _compared(
    distinct: DistinctRows,
    by: By,
    model: str | None,
    device: Device,
    threshold: float | None,
    threads: int,
    most: int | None,
) -> LikelyPairs:
    with closing(TerminalWatch()) as bars:
        if by == "letters":
            return likely_pairs(distinct.columns, threshold, threads=threads, most=most, watch=bars.advance)
        embedder = load(model or DEFAULT_MODEL, device=device)
        return meaning_pairs(distinct.joined(), embedder, threshold, most=most or MOST_PAIRS, watch=bars.advance)


def _known(distinct: DistinctRows, index: Index, threshold: float) -> list[KnownRow]:
    with progress_bar("comparing", len(distinct.columns[0]), " texts") as counted:
        return known_rows(distinct, index, threshold, watch=counted.update)


def _cells(table: DedupeTable, source: Path, form: FileFormat) -> Int64s:
    """Return the filled cells of each row."""
    counts = count_cells(source, form)
    return np.array([counts[number] for number in table.table.numbers], np.int64)


def _tell(likely: LikelyPairs, unit: str, by: By) -> None:
    """Report how many pairs there are, how many are expected to be right, and the share that was found."""
    if number := len(likely.pairs.left):
        right = f", of which {likely.precision:.0%} are expected to be right" if by == "letters" else ""
        click.echo(
            f"{number:,} pair{'s' * (number != 1)} of different {unit}s at the threshold {likely.threshold:.3f}{right}",
            err=True,
        )
    if likely.sampled:
        share = 100 * likely.sampled_found / likely.sampled
        click.echo(
            f"about {share:.1f} % of the pairs were found ({likely.sampled_found:,} of the {likely.sampled:,} that a "
            "sample has)",
            err=True,
        )


def _tell_uncompared(table: DedupeTable, distinct: DistinctRows) -> None:
    """Report the rows that are compared with none."""
    unit, bad, empty = table.table.unit, table.table.bad, int((distinct.of_row < 0).sum())
    if empty:
        have = f"{unit} has no text and repeats" if empty == 1 else f"{unit}s have no text and repeat"
        click.echo(f"{empty:,} {have} nothing", err=True)
    for sentence in bad.report(len(table.ids) + bad.count, unit, "could not be compared"):
        click.echo(sentence, err=True)


def _warn(table: DedupeTable, found: DuplicateRows) -> None:
    """Report large groups and a sample of the lines that --keep leaves out, each beside the one that stays."""
    roots, unit = found.stays, table.table.unit
    sizes = np.bincount(roots, minlength=1)
    for root in np.flatnonzero(sizes > LARGE_GROUP)[:SHOWN].tolist():
        click.echo(
            f"{sizes[root]:,} {unit}s become one, {table.name(root)}: {_short(table.text(root))}; raise"
            " --threshold if they are not the same",
            err=True,
        )
    of_row = found.distinct.of_row
    unequal = np.flatnonzero(of_row != of_row[roots])
    for row in unequal[:: max(1, len(unequal) // SHOWN)][:SHOWN].tolist():
        root = int(roots[row])
        click.echo(
            f"left out, {table.name(row)}: {_short(table.text(row))}; kept, {table.name(root)}:"
            f" {_short(table.text(root))}",
            err=True,
        )


def _show(table: DedupeTable, known: list[KnownRow]) -> None:
    for one in known[:SHOWN]:
        click.echo(
            f"left out, {table.name(one.row)}: {_short(table.text(one.row))}; known as {_short(one.text)}", err=True
        )


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return repr(text if len(text) <= 80 else text[:77] + "...")
