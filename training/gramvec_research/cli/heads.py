# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The commands `python -m gramvec_research head` and `python -m gramvec_research label`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gramvec.errors import InputError
from gramvec_training.cli.support import PATH, one_sentence

if TYPE_CHECKING:
    from gramvec_research.answers import LabelAnswers, ScoreAnswers
    from gramvec_training.sections import OnBad


@click.command()
@click.argument("model")
@click.option("--labeled", type=PATH,
              help="label<TAB>text a line, or label<TAB>text<TAB>text of pairs; or CSV; .gz too.")  # fmt: skip
@click.option("--scored", type=PATH, help="In place of --labeled: score<TAB>text<TAB>text a line; or CSV; .gz too.")
@click.option("--out", type=PATH, required=True, help="Folder of the head.")
@click.option("--learn-model", is_flag=True, help="Learn the model with the head, drawn back to what it is.")
@click.option("--held-out", type=click.FloatRange(min=0, max=0.9, min_open=True), default=0.2, show_default=True,
              help="Share of the rows that is scored and not learned from.")  # fmt: skip
@click.option("--epochs", type=click.IntRange(min=1), help="[default: 30, with --learn-model 10]")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="[default: 0.005, with --learn-model 0.002]")
@click.option("--batch", type=click.IntRange(min=2), default=25, show_default=True)
@click.option("--hidden", type=click.IntRange(min=1, max=4096), default=50, show_default=True,
              help="Width of the head's layer.")  # fmt: skip
@click.option("--pair", type=click.Choice(["compared", "joined"]), default="compared", show_default=True,
              help="joined: of pairs whose order counts, both vectors side by side below three layers.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0, max=2**31 - 1), default=1, show_default=True)
@click.option("--bad-rows", type=click.Choice(["skip", "refuse"]), default="skip", show_default=True)
@click.option("--overwrite", is_flag=True, help="Start anew where --out holds a head already.")
@one_sentence
def head(
    model: str, labeled: Path | None, scored: Path | None, out: Path, learn_model: bool, held_out: float,
    bad_rows: OnBad, overwrite: bool, **settings: float | str | None,
) -> None:  # fmt: skip
    """Learn to label texts or pairs of texts, or to score pairs, over MODEL: a bundle of n-grams or words, or a run
    folder of any kind.

    The head is that of the papers: a layer over the text's vector, or over products and distances of a pair's, or
    with --pair joined over both side by side. A score is the mean of five classes from the file's least to its
    greatest score. By default MODEL stays as it is.

    \b
    python -m gramvec_research head gramvec-en --labeled intents.tsv --out runs/intents
    python -m gramvec_research head gramvec-en --scored similar.tsv --out runs/similar
    python -m gramvec_research label runs/intents --texts new.txt
    """
    from gramvec_research.answers import LabelAnswers, ScoreAnswers, Scored, read_scored
    from gramvec_research.heads import head_settings, learn_head, make_way_for_head
    from gramvec_training.readers.labels import Labeled, read_labeled
    from gramvec_training.readers.lines import SkippedRows

    answers: LabelAnswers | ScoreAnswers
    rows: list[Labeled] | list[Scored]
    bad: SkippedRows
    if labeled is not None and scored is None:
        rows, bad = read_labeled(labeled, on_bad=bad_rows)
        answers = LabelAnswers.of(rows)
    elif scored is not None and labeled is None:
        rows, bad = read_scored(scored, on_bad=bad_rows)
        answers = ScoreAnswers.of(rows)
    else:
        raise click.UsageError("give a file to learn from, as --labeled or as --scored")
    for note in bad.sentences():
        click.echo(note, err=True)
    make_way_for_head(out, overwrite=overwrite)
    values = head_settings(frozen=not learn_model, **settings)

    from gramvec_training.fitting.loop import TrainingInterrupted

    command = f"python -m gramvec_research head, {len(rows)} rows"
    try:
        record = learn_head(model, answers, rows, out, values, share=held_out, command=command)
    except TrainingInterrupted as stop:
        click.echo(f"{stop}; the same command continues", err=True)
        raise SystemExit(128 + stop.signal_number) from None
    parts = record["rows"]
    click.echo(
        f"{_figures(record)}, {parts['learned']:,} rows learned from, {parts['chosen_by']:,} to choose the epoch by"
    )
    what = "--texts FILE" if record["sides"] == 1 else "--texts FILE of text<TAB>text lines"
    verb = "label" if "labels" in record else "score"
    click.echo(f"{out}: {verb} others with: python -m gramvec_research label {out} {what}", err=True)


def _figures(record: Mapping[str, Any]) -> str:
    number = f"{record['rows']['scored']:,}"
    if "labels" in record:
        return (
            f"accuracy {record['accuracy']:.1f} on {number} held-out rows (the commonest label "
            f"{record['commonest']:.1f}); {len(record['labels']):,} labels"
        )
    learned, cosine = (
        "-" if value is None else f"{value:.1f}" for value in (record["pearson"], record["pearson of the cosine"])
    )
    lowest, highest = record["scores"]
    return (
        f"Pearson's r {learned} on {number} held-out pairs (the model's cosine {cosine}); mean error "
        f"{record['error']:.2f} (the mean score {record['error of the mean']:.2f}); scores {lowest:g} to {highest:g}"
    )


@click.command()
@click.argument("folder", type=PATH)
@click.option("--texts", type=PATH, required=True, help="A text a line, or text<TAB>text where the head is of pairs.")
@one_sentence
def label(folder: Path, texts: Path) -> None:
    """Label or score texts by the head in FOLDER, which the command head wrote: a label and its probability, or a
    score, and the text a line.

    \b
    python -m gramvec_research label runs/intents --texts new.txt > labels.tsv
    """
    from gramvec_research.heads import LearnedHead
    from gramvec_training.readers.lines import number_lines

    lines = list(number_lines(texts))
    learned_head = LearnedHead.open(folder)
    rows = [_texts_of(line, f"{texts} line {number}", learned_head.sides) for number, line in lines if line.strip()]
    for row, answer in zip(rows, learned_head.list_answers(rows), strict=True):
        click.echo("\t".join((*answer, *row)))


def _texts_of(line: str, where: str, sides: int) -> tuple[str, ...]:
    row = tuple(line.split("\t")) if sides > 1 else (line.strip(),)
    if len(row) != sides:
        raise InputError(f"{where}: not a pair; write two texts with a tab between")
    return row
