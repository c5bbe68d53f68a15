"""`gramvec classify`: learn labels from texts that have one, and give them to texts that have none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from gramvec import __version__
from gramvec.bulk.embed_file import Files, Options, embed_file
from gramvec.classify.fit import PARTS, Report, fit_head
from gramvec.classify.head import Head
from gramvec.classify.labeled import read_labeled
from gramvec.classify.learning_curve import SHARES, learning_curve
from gramvec.classify.report import CountedLabels, fit_report
from gramvec.classify.writer import LabelColumns
from gramvec.cli.jobs.embed import (
    column_option,
    input_format_option,
    max_characters_option,
    on_error_option,
    overwrite_option,
    progress,
    report_done,
    source_argument,
    truncate_option,
)  # fmt: skip
from gramvec.cli.jobs.job_report import report_option, show_report, start_clock
from gramvec.cli.jobs.run import show_job
from gramvec.cli.options import device_option, embed_with_bar, model_option
from gramvec.embed.loading import load
from gramvec.errors import InputError, printable
from gramvec.jobs.bad_rows import OnError
from gramvec.jobs.watch import TerminalWatch
from gramvec.progress import progress_bar
from gramvec.runtime.base import Device
from gramvec.tables.inputs import STDIN, UTF_8, FileFormat, form_of
from gramvec.tables.outputs import TABLE_FORMS, TableForm, form_to_write
from gramvec.tables.parquet import ParquetForm
from gramvec.tables.staging import check_outputs
from gramvec.tables.writers import RowsForm, Writes

FEW_NAMED = 5


class Thresholds(click.ParamType):  # type: ignore[type-arg]  # generic in later clicks alone
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
            found = float(score)
        except ValueError:
            self.fail(f"{value!r} is not a score from 0 to 1, or LABEL=SCORE", param, ctx)
        if not 0 <= found <= 1:
            self.fail(f"{score} is not from 0 to 1", param, ctx)
        return label if equal else None, found


def threshold_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option --threshold."""
    text = f"The least score of a label that is known; LABEL=SCORE for one label; repeatable.  [{default}]"
    return click.option("--threshold", "thresholds", type=Thresholds(), multiple=True, help=text)


@click.group(short_help="Learn labels, and give them to texts.")
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
@threshold_option("what loses at most 1 % of the right answers on held-out texts")
@report_option
@truncate_option
@max_characters_option
@on_error_option
@overwrite_option
def fit(
    labeled: Path,
    delimiter: str | None,
    encoding: str,
    output: Path,
    model: str,
    device: Device,
    column: str,
    label: str,
    several: bool | None,
    thresholds: tuple[tuple[str | None, float], ...],
    report: Path | None,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    overwrite: bool,
) -> None:
    """Learn a head from LABELED: label<TAB>text lines, or CSV, JSON lines or Parquet with columns of these names.

    A text may have several labels: a|b, a list in JSON lines or Parquet, or fastText's lines, whose words that begin
    with __label__ are labels.

    The head sees the model's vectors, n-grams of characters, and words. Held-out texts decide the weight of each and
    make the report. Needs scipy: pip install 'gramvec[classify]'.

    \b
    Example:
      gramvec classify fit intents.tsv -o intents.head
    """  # noqa: D301 - click takes the character, not its escape
    clock = start_clock()
    check_outputs(output, report, inputs=[labeled], overwrite=overwrite)
    form = FileFormat(form_of(labeled), delimiter, encoding)
    found = read_labeled(labeled, form, column, label, several=several, on_error=on_error)
    texts = found.texts
    if not texts:
        raise InputError(f"{labeled}: has no rows; write a label, a tab and a text on each line")
    with (
        closing(load(model, device=device, max_characters=max_characters)) as embedder,
        closing(TerminalWatch()) as bars,
    ):
        try:
            texts = embedder.prepare(texts, truncate=truncate)
            vectors = embed_with_bar(embedder, texts, bars)
        except InputError as error:
            at = "" if error.index is None else f"{found.unit} {found.numbers[error.index]}: "
            raise InputError(f"{labeled}: {at}{error}") from error
        head, quality = fit_head(
            texts, vectors, found.labels if found.several else [one for (one,) in found.labels],
            model=embedder.name, digest=embedder.digest,
            threshold=_of_all(thresholds), thresholds=_of_labels(thresholds), watch=partial(bars.advance, "learning"),
        )  # fmt: skip
    head.save(output)
    for sentence in found.bad.report(len(found.numbers) + found.bad.count, "could not be read"):
        click.echo(sentence, err=True)
    for line in _report_lines(head, quality):
        click.echo(line)
    if report is not None:
        with progress_bar("learning curve", len(SHARES), " heads") as bar:
            curve = learning_curve(texts, vectors, found.labels, several=found.several, watch=bar.update)
        facts = clock.facts(("model", f"{head.model}, SHA-256 {head.digest}"), {labeled: len(texts)})
        title = f"Labels of {labeled.name}"
        page = fit_report(head, quality, texts, found.labels, learning=curve, title=title, facts=facts)
        show_report(page, report)
    click.echo(f"{output}: {len(head.labels):,} labels of {head.model}, {output.stat().st_size / 1e3:,.0f} kB")


def _of_all(thresholds: Sequence[tuple[str | None, float]]) -> float | None:
    return next((score for label, score in reversed(thresholds) if label is None), None)


def _of_labels(thresholds: Sequence[tuple[str | None, float]]) -> dict[str, float]:
    return {label: score for label, score in thresholds if label is not None}


def _report_lines(head: Head, report: Report) -> Iterator[str]:
    """Yield the lines of the report of a head."""
    copies = "" if report.groups == report.texts else f", {report.groups:,} without near copies"
    may = "; a text may have several, written a|b (--one-label takes them as they are)" if report.several else ""
    yield f"{report.texts:,} held-out texts of {report.labels:,} labels{copies}{may}"
    yield f"right label, %                {100 * report.accuracy:6.1f}"
    if report.several:
        yield f"right labels, F1 %            {100 * report.f1:6.1f}"
    yield f"calibration error, %          {100 * report.calibration:6.1f}"
    yield f"unknown, score below {head.threshold:.2f}, %{100 * report.unknown:7.1f}"
    yield f"right, but unknown, %         {100 * report.lost:6.1f}"
    yield f"right label of the others, %  {100 * report.accuracy_known:6.1f}"
    seen = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(PARTS, report.weights, strict=True) if weight)
    yield f"weights of what it sees       {seen}"
    if head.thresholds:
        own = sorted(head.thresholds.items(), key=lambda one: one[1])
        some = ", ".join(f"{printable(name)} {score:.2f}" for name, score in own[:FEW_NAMED])
        more = f" and {len(own) - FEW_NAMED} more" if len(own) > FEW_NAMED else ""
        yield f"other thresholds              {some}{more}"


@classify.command(short_help="Give labels to the texts of a file.")
@click.argument("head", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@source_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv, .jsonl or .parquet file. [stdout]")  # fmt: skip
@click.option("--format", "form", type=click.Choice(TABLE_FORMS), help="[by OUTPUT's ending, or tsv]")
@input_format_option
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
def predict(
    head: Path,
    source: Path,
    output: Path | None,
    form: TableForm | None,
    input_format: FileFormat,
    column: str,
    prefix: str,
    model: str | None,
    device: Device,
    thresholds: tuple[tuple[str | None, float], ...],
    report: Path | None,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    overwrite: bool,
) -> None:
    """Give each text of INPUT the best label of HEAD, in the columns label, score and known beside INPUT's.

    INPUT is any file that `gramvec embed` reads, or stdin. The third column says whether the score reaches the
    threshold; where it does not, the text may have none of the labels.

    \b
    Examples:
      gramvec classify predict intents.head messages.txt
      gramvec classify predict intents.head tickets.csv --column subject -o labeled.csv
      gramvec classify predict intents.head tickets.csv --threshold 0.5 --threshold refund=0.8
    """  # noqa: D301 - click takes the character, not its escape
    output = output or STDIN
    form = form_to_write(output, TABLE_FORMS, form, "tsv")
    clock = start_clock()
    check_outputs(output, report, inputs=[head, source], overwrite=overwrite)
    learned = Head.load(head)
    own = _of_labels(thresholds)
    if other := [label for label in own if label not in learned.labels]:
        raise InputError(f"{head}: has no label {other[0]!r}; its first ones are {list(learned.labels[:FEW_NAMED])}")
    everywhere = _of_all(thresholds)
    if everywhere is not None:
        learned = replace(learned, threshold=everywhere, thresholds=own)
    elif own:
        learned = replace(learned, thresholds={**learned.thresholds, **own})
    # On a terminal untrusted text must not move the cursor; a program gets it unchanged.
    shown = printable if output == STDIN and sys.stdout.isatty() else str
    opened = load(model or learned.model, device=device, max_characters=max_characters, threads=1)
    began = time.monotonic()
    with closing(opened) as embedder, show_job(), progress("labeling") as watch:
        learned.check_bundle(embedder.digest, embedder.dimension)
        added = (LabelColumns if report is None else CountedLabels)(learned, prefix, max_characters=max_characters)
        written: Writes
        if form == "parquet":
            written = ParquetForm(column, added, {"gramvec.head": learned.file_digest, "gramvec.version": __version__})
        else:
            written = RowsForm(form, column, added, shown)
        done = embed_file(
            embedder, Files(source, output, input_format, "jsonl", column), Options(truncate=truncate),
            on_error=on_error, watch=watch, written=written,
        )  # fmt: skip
    report_done(done, output, began)
    if report is not None and isinstance(added, CountedLabels):
        made_by = "head", f"{head} of {learned.model}, SHA-256 {learned.file_digest}"
        title = f"Labels given to {'standard input' if source == STDIN else source.name}"
        show_report(added.report(title=title, facts=clock.facts(made_by, {source: done.rows})), report)
