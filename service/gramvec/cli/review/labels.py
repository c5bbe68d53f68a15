"""`gramvec review TEXTS --head HEAD`: a person answers which label a text has, and a head learns from the answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from gramvec.classify.fit import PURPOSE
from gramvec.classify.fit_job import embed_with_bar
from gramvec.classify.head import Head
from gramvec.cli.review.run import run_command, serve_review
from gramvec.embed.loading import load
from gramvec.errors import InputError, import_extra
from gramvec.jobs.bad_rows import OnError
from gramvec.jobs.bars import TerminalWatch
from gramvec.jobs.columns import read_columns
from gramvec.review.answers_file import AnswersFile
from gramvec.review.label_questions import LabelQuestions
from gramvec.review.session import ReviewSession
from gramvec.tables.inputs import FileFormat


def review_labels(
    source: Path,
    head: Path,
    labels: Path,
    output: Path,
    *,
    column: str,
    form: FileFormat,
    on_error: OnError,
    overwrite: bool,
    port: int,
) -> None:
    """Show texts and the labels that a head gives them, until the review is finished.

    Args:
        source: the texts.
        head: the head that the review begins with.
        labels: the file of answers.
        output: the head that finishing writes.
        column: of the texts.
        form: of the texts.
        on_error: "stop" at a bad row or "skip" it.
        overwrite: replace an output that gramvec did not write.
        port: of the page; 0 takes a free one.

    Raises:
        InputError: the texts, the head or the file of answers cannot be used.
    """
    import_extra("scipy.sparse", "classify", PURPOSE)
    learned = Head.load(head)
    with closing(AnswersFile(labels, LabelQuestions.columns)) as answers, closing(load(learned.model)) as embedder:
        learned.check_bundle(embedder.digest, embedder.dimension)
        texts = _read_texts(source, column, form, on_error)
        here = {*texts}
        given = [(" ".join(text.split()), label) for text, label in answers.answers]
        others = [(text, label) for text, label in given if label and text not in here]
        with closing(TerminalWatch()) as bars:
            every = embedder.prepare([*texts, *(text for text, _ in others)])
            vectors = embed_with_bar(embedder, every, bars)

        def write(written: Sequence[str]) -> list[str]:
            return _write_head(learned, labels, output, written, overwrite=overwrite)

        subject = LabelQuestions(
            f"Labels of {source.name}", texts, vectors[: len(texts)], learned, write,
            others=(others, vectors[len(texts) :]), before=[text for text, _ in given],
        )  # fmt: skip
        serve_review(ReviewSession(subject, answers), port, labels)


def _read_texts(source: Path, column: str, form: FileFormat, on_error: OnError) -> list[str]:
    """Return the different texts, white space as single spaces, so that each answer is a line of its file."""
    with closing(TerminalWatch()) as watch:
        found = read_columns(source, [column], format=form, options={column: "--column"}, on_error=on_error,
                             progress=watch, task=f"reading {source.name}")  # fmt: skip
    return [text for text in dict.fromkeys(" ".join(text.split()) for text in found.values[column]) if text]


def _write_head(head: Head, labels: Path, output: Path, written: Sequence[str], *, overwrite: bool) -> list[str]:
    """Run `gramvec classify fit` on the answers, and return what came out and the command that repeats it."""
    count = sum(label != "" for label in written)
    sentences = [f"{count:,} label{' is' if count == 1 else 's are'} in {labels}."]
    if len({label for label in written if label}) < 2:
        return [*sentences, "No head is written: answer with two labels or more; the same command goes on."]
    arguments = ["classify", "fit", str(labels), "-o", str(output), "--model", head.model]
    arguments += ["--several" if head.several else "--one-label"]
    arguments += ["--on-error", "skip"] if "" in written else []
    arguments += ["--overwrite"] if overwrite else []
    try:
        messages, repeated = run_command(arguments)
    except InputError as error:
        raise InputError(f"no head is written: {error}") from error
    return [*sentences, *messages, f"{output} has the head. The command that repeats this: {repeated}"]
