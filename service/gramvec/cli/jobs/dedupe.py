"""`gramvec dedupe`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson

from gramvec.bulk.embed_file import cores
from gramvec.cli.jobs.embed import (
    column_option,
    input_format_option,
    on_error_option,
    overwrite_option,
    progress,
    source_argument,
    threads_option,
    told_to_stop,
)  # fmt: skip
from gramvec.cli.jobs.job_report import JobClock, report_option, write_report
from gramvec.cli.jobs.search import gone_option
from gramvec.cli.options import Bars, bar, printable
from gramvec.duplicates.likely import STAYS, LikelyPairs, Stays, likely_pairs
from gramvec.duplicates.report import dedupe_report
from gramvec.duplicates.rows import DedupeResult, DedupeTexts, KnownRow, known_rows, read_texts, spooled, write_kept
from gramvec.matching.report import pair_model_fact
from gramvec.search.index import Index
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import STDIN, FileFormat
from gramvec.tables.outputs import TABLE_FORMS, form_to_write, write_table
from gramvec.tables.staging import check_outputs, output_file
from gramvec.tables.writers import tsv_line
from gramvec.text.arrays import Int64s

# Of a line and a document of an index.
KNOWN_THRESHOLD = 0.5
MOST_PAIRS = 10_000_000
# A group of more rows is warned of before it is deleted; lines of a sample of what goes.
LARGE_GROUP, SHOWN = 50, 5
RULES = "what lines are one is the pair model's to say, which knows numbers and words; leave it out, or set --threshold"
NO_MODEL = "lines are compared by letters and words, without a model; leave it out"


@click.command("dedupe", short_help="Find near-duplicates in a file.")
@source_argument
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="The least score.  [default: that of the highest expected F1, at least 0.35]")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File of the list. [stdout]")
@click.option("--groups", "by_group", is_flag=True, help="List groups instead: lines that a chain of pairs joins.")
@click.option("--keep", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), metavar="FILE",
              help="Write INPUT there without lines that repeat one that stays; no list but to --output.")  # fmt: skip
@click.option("--stays", type=click.Choice(STAYS), default="first", show_default=True,
              help="Which line stays: the first, the longest, or the one that stands most often.")  # fmt: skip
@click.option("--against", type=click.Path(path_type=Path, exists=True), metavar="INDEX",
              help="Compare with the documents of an index instead, not with each other.")  # fmt: skip
@click.option("--texts/--no-texts", default=True, show_default=True, help="List the texts beside the lines' numbers.")
@click.option("--json", "as_json", is_flag=True, help="JSON, an object a line, instead of tabs.")
@report_option
@input_format_option
@column_option
@on_error_option
@overwrite_option
@click.option("--max-pairs", type=click.IntRange(min=1), default=MOST_PAIRS, show_default=True,
              help="Refuse to list more pairs.")  # fmt: skip
@threads_option
@gone_option("--model", "-m", said=NO_MODEL)
@gone_option("--device", said=NO_MODEL)
@gone_option("--space", said=NO_MODEL)
@gone_option("--weights", said="letters and words are weighted by the lines of INPUT; leave it out")
@gone_option("--max-characters", said="a line has at most 65,536 characters; leave it out")
@gone_option("--truncate", is_flag=True, said="a line has at most 65,536 characters; leave longer ones out")
@gone_option("--numbers", is_flag=True, said=RULES)
@gone_option("--ignore-numbers", is_flag=True, said=RULES)
@gone_option("--words", is_flag=True, said=RULES)
@gone_option("--ignore-words", is_flag=True, said=RULES)
@gone_option("--max-texts", said="files of any size are compared in one way; leave it out")
def dedupe(
    source: Path,
    threshold: float | None,
    output: Path | None,
    by_group: bool,
    keep: Path | None,
    stays: Stays,
    against: Path | None,
    texts: bool,
    as_json: bool,
    report: Path | None,
    input_format: FileFormat,
    column: str,
    on_error: OnError,
    overwrite: bool,
    max_pairs: int,
    threads: int | None,
) -> None:
    """List the pairs of lines of INPUT that are nearly the same: line, line, score, texts, between tabs.

    INPUT is what `gramvec embed` reads. The score is the probability that two lines are the same thing, by their words,
    numbers and letters, as of `gramvec match`; equal lines have 1, and empty ones are no duplicates. Of up to 100,000
    different lines the nearest of each are compared; of more, likely ones, and the share that was found is measured and
    reported. Tabs and line feeds in listed texts are spaces; --json has them unchanged.

    \b
    Examples:
      gramvec dedupe titles.txt
      gramvec dedupe titles.txt --keep unique.txt --report duplicates.html
      gramvec dedupe tickets.csv --column subject --threshold 0.9 --groups --json
      sort titles.txt | gramvec dedupe --keep - > unique.txt
      gramvec dedupe new.csv --against tickets.index --column subject --keep fresh.csv
    """  # noqa: D301 - click takes the character, not its escape
    _check_against(against, by_group=by_group, report=report)
    clock = JobClock()
    form = form_to_write(output, TABLE_FORMS, "jsonl" if as_json else None, "tsv", "--json")
    check_outputs(output, keep, report, inputs=[source, against], overwrite=overwrite)
    with told_to_stop(), tempfile.TemporaryDirectory(prefix="gramvec-") as name:
        folder = Path(name)
        index = Index(against, threads=threads) if against is not None else None
        file = spooled(sys.stdin.buffer, folder) if source == STDIN else source
        with progress("reading") as watch:
            found = read_texts(file, input_format, column, on_error=on_error, watch=watch)
        if index is not None:
            with bar("comparing", len(found.different), " texts") as shown:
                least = KNOWN_THRESHOLD if threshold is None else threshold
                known = known_rows(found, index, least, watch=shown.update)
            records: Iterator[dict[str, Any]] = (one.line(found) for one in known)
            dropped = np.array([one.row for one in known], np.int64)
        else:
            most = None if by_group or (keep and not output) else max_pairs
            likely = _compared(found, threshold, threads or cores(), most)
            result = DedupeResult(found, likely.pairs)
            records = result.groups() if by_group else result.lines(max_pairs)
            if keep is not None:
                roots = result.staying(stays)
                dropped = np.flatnonzero(roots != np.arange(len(roots)))
                _warn(found, roots)
        if keep is None or output is not None:
            if form == "jsonl" or output is None or output == STDIN:
                with output_file(output) as out:
                    out.writelines(_lines(records, with_texts=texts, as_json=form == "jsonl"))
            else:
                names = _names(by_group=by_group, against=index is not None, with_texts=texts)
                write_table(output, form, names, _rows(records, names))
        if keep is not None:
            target = folder / "kept" if keep == STDIN else keep
            write_kept(file, input_format, column, np.asarray(found.numbers, np.int64)[dropped], target)
            if keep == STDIN:
                sys.stdout.buffer.write(target.read_bytes())
            rows = len(found.numbers)
            click.echo(f"{rows - len(dropped):,} of {rows:,} {found.unit}s kept", err=True)
            if index is not None:
                _show(found, known)
        if report is not None:
            title = f"Duplicates in {'standard input' if source == STDIN else source.name}"
            facts = clock.facts(pair_model_fact(same=True), {source: len(found.numbers)})
            write_report(dedupe_report(result, likely, stays, title=title, column=column, facts=facts), report)
    for sentence in found.told():
        click.echo(sentence, err=True)


def _check_against(against: Path | None, *, by_group: bool, report: Path | None) -> None:
    """Raise UsageError for options that --against does not have."""
    if against is not None and by_group:
        raise click.UsageError(
            "--against: lists lines beside documents of the index, which are not groups; leave out --groups"
        )
    if against is not None and report is not None:
        raise click.UsageError("--report: shows the duplicates that a list has itself; leave out --against")


def _compared(found: DedupeTexts, threshold: float | None, threads: int, most: int | None) -> LikelyPairs:
    with Bars() as bars:
        made = likely_pairs(found.different, threshold, threads=threads, most=most, watch=bars.watch)
    if len(made.pairs.left):
        click.echo(
            f"{len(made.pairs.left):,} pairs of different {found.unit}s at the threshold {made.threshold:.3f}, of "
            f"which {made.precision:.0%} are expected to be right",
            err=True,
        )
    if made.sampled:
        share = 100 * made.sampled_found / made.sampled
        click.echo(
            f"about {share:.1f} % of the pairs were found ({made.sampled_found:,} of the {made.sampled:,} that a sample"
            " has)",
            err=True,
        )
    return made


def _warn(found: DedupeTexts, roots: Int64s) -> None:
    """Report large groups and a sample of the lines that --keep leaves out, each beside the one that stays."""
    sizes = np.bincount(roots, minlength=1)
    for root in np.flatnonzero(sizes > LARGE_GROUP)[:SHOWN].tolist():
        text = found.different[found.of_row[root]]
        click.echo(
            f"{sizes[root]:,} {found.unit}s become one, {found.unit} {found.numbers[root]}: {_short(text)}; raise"
            " --threshold if they are not the same",
            err=True,
        )
    of_row = np.asarray(found.of_row)
    unequal = np.flatnonzero(of_row != of_row[roots])
    for row in unequal[:: max(1, len(unequal) // SHOWN)][:SHOWN].tolist():
        root = int(roots[row])
        click.echo(
            f"left out, {found.unit} {found.numbers[row]}: {_short(found.different[found.of_row[row]])}; kept,"
            f" {found.unit} {found.numbers[root]}: {_short(found.different[found.of_row[root]])}",
            err=True,
        )


def _show(found: DedupeTexts, known: list[KnownRow]) -> None:
    for record in (row.line(found) for row in known[:SHOWN]):
        one, other = record["texts"]
        click.echo(f"left out, {found.unit} {record['line']}: {_short(one)}; known as {_short(other)}", err=True)


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _names(*, by_group: bool, against: bool, with_texts: bool) -> list[str]:
    """Return the columns of a list in a file."""
    if by_group:
        return ["group", "line", *(["text"] if with_texts else [])]
    names = ["line", "id" if against else "other_line", "score"]
    return names + (["text", "known_text" if against else "other_text"] if with_texts else [])


def _rows(records: Iterator[dict[str, Any]], names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list in a file: a pair each, or with groups a line each."""
    for group, record in enumerate(records, start=1):
        if names[0] == "group":
            for line, text in zip(record["lines"], record["texts"], strict=True):
                yield {"group": group, "line": line, "text": text}
        else:
            both = record["lines"] if "lines" in record else [record["line"], record["id"]]
            # The texts go where the columns have no place for them.
            yield dict(zip(names, [*both, round(record["score"], 4), *record["texts"]], strict=False))


def _lines(records: Iterator[dict[str, Any]], *, with_texts: bool, as_json: bool) -> Iterator[bytes]:
    for group, record in enumerate(records, start=1):
        texts = record["texts"] if with_texts else record.pop("texts")[:0]
        if as_json:
            yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        elif "score" in record:
            both = record["lines"] if "lines" in record else [record["line"], record["id"]]
            yield tsv_line([*both, f"{record['score']:.4f}", *texts]).encode()
        else:
            for line, text in zip_longest(record["lines"], texts):
                yield tsv_line([group, line, *([text] if with_texts else [])]).encode()
