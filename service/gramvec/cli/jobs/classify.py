"""`gramvec classify`: learn labels from texts that have one, and give them to texts that have none."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from gramvec.bulk.embed_file import Files, Options, embed_file
from gramvec.classify.fit import PARTS, fit_head
from gramvec.classify.head import Head
from gramvec.classify.writer import LabelForm, LabelFormat
from gramvec.cli.jobs.embed import (
    column_option,
    input_format_option,
    max_characters_option,
    on_error_option,
    overwrite_option,
    progress,
    report,
    source_argument,
    told_to_stop,
    truncate_option,
)  # fmt: skip
from gramvec.cli.options import device_option, model_option, printable
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.runtime.base import Device
from gramvec.tables.columns import OnError, read_columns
from gramvec.tables.inputs import STDIN, UTF_8, FileFormat, form_of
from gramvec.tables.outputs import form_to_write
from gramvec.tables.staging import check_outputs

OUTPUTS: tuple[LabelFormat, ...] = ("tsv", "jsonl")


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
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="The least score of a label.  [what 95 % of the right answers on held-out texts reach]")  # fmt: skip
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
    threshold: float | None,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    overwrite: bool,
) -> None:
    """Learn a head from LABELED: label<TAB>text lines, or CSV, JSON lines or Parquet with columns of these names.

    The head sees the model's vectors, n-grams of characters, and words. Held-out texts decide the weight of each and
    make the report. Needs scikit-learn: pip install 'gramvec[classify]'.

    \b
    Example:
      gramvec classify fit intents.tsv -o intents.head
    """  # noqa: D301 - click takes the character, not its escape
    check_outputs(output, inputs=[labeled, Path(model)], overwrite=overwrite)
    found = read_columns(
        labeled,
        [label, column],
        format=FileFormat(form_of(labeled), delimiter, encoding),
        options={label: "--label"},
        positional=True,
        filled=True,
        on_error=on_error,
    )
    texts, labels = ([one.strip() for one in found.values[name]] for name in (column, label))
    if not texts:
        raise InputError(f"{labeled}: has no rows; write a label, a tab and a text on each line")
    with closing(load(model, device=device, max_characters=max_characters)) as embedder:
        try:
            texts = embedder.prepare(texts, truncate=truncate)
            vectors = embedder.embed(texts)
        except InputError as error:
            at = "" if error.index is None else f"{found.unit} {found.numbers[error.index]}: "
            raise InputError(f"{labeled}: {at}{error}") from error
        head, report = fit_head(
            texts, vectors, labels, model=embedder.name, digest=embedder.digest, threshold=threshold
        )  # fmt: skip
    head.save(output)
    for sentence in found.bad.report(len(found.numbers) + found.bad.count, found.unit, "were left out"):
        click.echo(sentence, err=True)
    seen = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(PARTS, report.weights, strict=True) if weight)
    click.echo(f"{report.texts:,} held-out texts of {report.labels:,} labels")
    click.echo(f"right label, %                {100 * report.accuracy:6.1f}")
    click.echo(f"calibration error, %          {100 * report.calibration:6.1f}")
    click.echo(f"unknown, score below {head.threshold:.2f}, %{100 * report.unknown:7.1f}")
    click.echo(f"right label of the others, %  {100 * report.accuracy_known:6.1f}")
    click.echo(f"weights of what it sees       {seen}")
    click.echo(f"{output}: {len(head.labels):,} labels of {head.model}, {output.stat().st_size / 1e3:,.0f} kB")


@classify.command(short_help="Give labels to the texts of a file.")
@click.argument("head", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@source_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A .tsv or .jsonl file. [stdout]")
@click.option("--format", "form", type=click.Choice(OUTPUTS), help="[by OUTPUT's ending, or tsv]")
@input_format_option
@column_option
@click.option("-m", "--model", help="A name in models/, or a bundle's folder. [the head's]")
@device_option
@click.option("--threshold", type=click.FloatRange(0, 1), help="The least score of a label. [the head's]")
@truncate_option
@max_characters_option
@on_error_option
@overwrite_option
def predict(
    head: Path,
    source: Path,
    output: Path | None,
    form: LabelFormat | None,
    input_format: FileFormat,
    column: str,
    model: str | None,
    device: Device,
    threshold: float | None,
    truncate: bool,
    max_characters: int,
    on_error: OnError,
    overwrite: bool,
) -> None:
    """Give each text of INPUT a label of HEAD, in lines of label, score and text.

    INPUT is any file that `gramvec embed` reads, or stdin. The label is "unknown" if the best score is below the
    threshold; JSON lines name the best label, too.

    \b
    Examples:
      gramvec classify predict intents.head messages.txt
      gramvec classify predict intents.head tickets.csv --column subject -o labeled.jsonl
    """  # noqa: D301 - click takes the character, not its escape
    output = output or STDIN
    form = form_to_write(output, OUTPUTS, form)
    check_outputs(output, inputs=[head, source], overwrite=overwrite)
    learned = Head.load(head)
    if threshold is not None:
        learned = replace(learned, threshold=threshold)
    # On a terminal untrusted text must not move the cursor; a program gets it unchanged.
    shown = printable if output == STDIN and sys.stdout.isatty() else str
    opened = load(model or learned.model, device=device, max_characters=max_characters, threads=1)
    began = time.monotonic()
    with closing(opened) as embedder, told_to_stop(), progress("labeling") as watch:
        learned.check_bundle(embedder.digest, embedder.dimension)
        done = embed_file(
            embedder, Files(source, output, input_format, "jsonl", column), Options(truncate=truncate),
            on_error=on_error, watch=watch, written=LabelForm(learned, form, column, shown, most=max_characters),
        )  # fmt: skip
    report(done, output, began)
