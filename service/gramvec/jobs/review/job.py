"""Jobs of a review: a person answers questions in a browser, and a matcher or a head learns from the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field as OptionField
from pydantic import model_validator

from gramvec.embed.loading import load
from gramvec.errors import InputError, import_extra
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.classify.fit import PURPOSE
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.job import FitJob, embed_with_bar
from gramvec.jobs.common.columns import read_columns
from gramvec.jobs.common.file_job import FileJob, OptionError, ThreadCount
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.fit_matcher import check_enough, scikit_learn
from gramvec.jobs.matching.inputs import DIGEST, read_labels
from gramvec.jobs.matching.job import MatchJob
from gramvec.jobs.matching.match_tables import check_unweighted
from gramvec.jobs.matching.matcher import PairLabels
from gramvec.jobs.matching.table_files import ReadTables, TableFiles, default_columns
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.jobs.review.label_questions import LabelQuestions
from gramvec.jobs.review.pair_questions import PairQuestions
from gramvec.jobs.review.pair_review import PairReview, PairTables
from gramvec.jobs.review.session import FinishWork, ReviewSession
from gramvec.jobs.tables.inputs import STDIN, why_not_written
from gramvec.jobs.tables.outputs import TABLE_FORMS, form_to_write
from gramvec.jobs.tables.staging import check_no_input, check_outputs, check_place
from gramvec.threads import count_cores

PortNumber = Annotated[int, OptionField(ge=0, le=65535)]
# Returns the command that runs a job.
WriteCommand = Callable[[FileJob], str]


class PairReviewJob(TableFiles):
    """Job of `gramvec review pairs LEFT RIGHT`: ask whether pairs of rows are the same thing, and match by the answers.

    Attributes:
        labels: CSV of the answers, as `MatchJob` reads it; earlier answers count.
        output: the matches, which finishing writes.
        save_matcher: what the answers taught.
        port: of the page's address; 0 takes a free one.
        overwrite: replace an output that gramvec did not write.
        safe_cells: write a cell of CSV or TSV that a spreadsheet would take for a formula as a text, with ' before it.
        threads: of the comparison; None for all cores.

    The other attributes are those of `TableFiles`.
    """

    labels: Path = Path("labels.csv")
    output: Path = Path("matches.csv")
    save_matcher: Path = Path("matcher.json")
    port: PortNumber = 0
    overwrite: bool = False
    safe_cells: bool = False
    threads: ThreadCount | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.output == STDIN:
            raise OptionError("output: must be a file, got - (standard output)", field="output")
        if len({(column.left, column.right) for column in self.on}) < len(self.on):
            raise OptionError("on: names a column twice; leave one out", field="on")
        return self

    def run(self, watch: JobWatch = NO_WATCH, write_command: WriteCommand | None = None) -> list[str] | None:
        """Show the page until the review is finished; return what it wrote, as sentences, or None if it was stopped.

        Args:
            watch: receives the progress and the messages, among them the page's address.
            write_command: names the command that repeats what was written; None for none.

        Raises:
            InputError: the tables or the file of answers cannot be used.
        """
        _check_files(self.labels, [self.left, self.right], [self.output, self.save_matcher], overwrite=self.overwrite)
        form_to_write(self.output, TABLE_FORMS)
        scikit_learn("ensemble")  # a missing library is reported before the work
        columns = default_columns(self.on)
        check_unweighted(Field((), (), column.weight) for column in columns)
        with closing(AnswersFile(self.labels, PairReview.columns, PairReview.older)) as answers:
            read = self.read_tables(columns, watch)
            ids = read.left.ids, read.right.ids
            tables = PairTables(read.fields, read.columns, read.blocks, ids, read.same, read.digest_of, read.numbered)
            if read.numbered and DIGEST not in answers.columns:
                raise InputError(
                    f"{self.labels}: names rows by number, and has no column {DIGEST}, so they may be other rows; name"
                    " rows by a column of ids (`id`), or give `labels` another file"
                )
            self._check_answers(read, len(answers.answers), watch)
            title = f"Review of {self.left.name}"
            title += "" if self.left == self.right else f" and {self.right.name}"
            work = FinishWork()
            write = partial(self._write_matches, write_command=write_command, work=work)
            pairs = PairReview(title, tables, write, threads=self.threads or count_cores(), progress=watch)
            return _serve(ReviewSession(PairQuestions(pairs), answers, work), self.port, self.labels, watch)

    def _check_answers(self, tables: ReadTables, answers: int, watch: JobWatch) -> None:
        """Report answers about rows that are gone or were changed. Raises InputError for one unless it is skipped."""
        if not answers:
            return
        skipped = read_labels(
            [self.labels], tables.left.ids, tables.right.ids, on_error=self.on_error, digest_of=tables.digest_of,
            numbered=tables.numbered,
        ).skipped  # fmt: skip
        if skipped:
            watch.report(f"{self.labels}: {skipped:,} answers about rows that are gone or were changed are left out")

    def _write_matches(self, answers: PairLabels, *, write_command: WriteCommand | None, work: FinishWork) -> list[str]:
        """Match the tables, by the answers if they are enough, and return what came out.

        Raises InputError as `MatchJob.run` does.
        """
        options = {name: getattr(self, name) for name in TableFiles.model_fields}
        options |= {name: getattr(self, name) for name in ("output", "overwrite", "safe_cells", "threads")}
        sentences = [f"{len(answers.match):,} answers are in {self.labels}."]
        try:
            check_enough(answers)
            options |= {"labels": (self.labels,), "keep_labels": True, "save_matcher": self.save_matcher}
        except InputError as error:
            sentences.append(f"Matches are written without them, by the pair model: {error}.")
        job = MatchJob(**options)
        messages = _run_quietly(lambda watch: job.run(watch).summary, work)
        repeats = f" The command that repeats this: {write_command(job)}" if write_command else ""
        return [*sentences, *messages, f"{self.output} has the matches.{repeats}"]


class LabelReviewJob(InputFile):
    """Job of `gramvec review labels TEXTS --head HEAD`: ask which label texts have, and learn a head from the answers.

    Attributes:
        head: the head that the review begins with.
        labels: CSV of the answers, as `FitJob` reads it; earlier answers count.
        output: the head, which finishing writes.
        column: of the texts.
        port: of the page's address; 0 takes a free one.
        overwrite: replace an output that gramvec did not write.

    The other attributes are those of `InputFile`.
    """

    head: Path
    labels: Path = Path("labels.csv")
    output: Path = Path("reviewed.head")
    column: str = COLUMN
    port: PortNumber = 0
    overwrite: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.output == STDIN:
            raise OptionError("output: must be a file, got - (standard output)", field="output")
        return self

    def run(self, watch: JobWatch = NO_WATCH, write_command: WriteCommand | None = None) -> list[str] | None:
        """Show the page until the review is finished. Arguments and results are those of `PairReviewJob.run`.

        Raises:
            InputError: the texts, the head or the file of answers cannot be used.
        """
        _check_files(self.labels, [self.source, self.head], [self.output], overwrite=self.overwrite)
        import_extra("scipy.sparse", "classify", PURPOSE)
        head = Head.load(self.head)
        with closing(AnswersFile(self.labels, LabelQuestions.columns)) as answers, closing(load(head.model)) as model:
            head.check_bundle(model.digest, model.dimension)
            texts = self._read_texts(watch)
            known, work = {*texts}, FinishWork()
            given = [(" ".join(text.split()), label) for text, label in answers.answers]
            others = [(text, label) for text, label in given if label and text not in known]
            vectors = embed_with_bar(model, model.prepare([*texts, *(text for text, _ in others)]), watch)
            watch.close()
            questions = LabelQuestions(
                f"Labels of {self.source.name}", texts, vectors[: len(texts)], head,
                partial(self._write_head, head, write_command=write_command, work=work),
                others=(others, vectors[len(texts) :]), before=[text for text, _ in given],
            )  # fmt: skip
            return _serve(ReviewSession(questions, answers, work), self.port, self.labels, watch)

    def _read_texts(self, watch: JobWatch) -> list[str]:
        """Return the different texts, white space as single spaces, so that each answer is a line of its file."""
        table = read_columns(
            self.source, [self.column], format=self.file_format(), options={self.column: "column"},
            on_error=self.on_error, progress=watch, task=f"reading {self.source.name}",
        )  # fmt: skip
        return [text for text in dict.fromkeys(" ".join(text.split()) for text in table.values[self.column]) if text]

    def _write_head(
        self, head: Head, written: Sequence[str], *, write_command: WriteCommand | None, work: FinishWork
    ) -> list[str]:
        """Learn a head from the answers, and return what came out. Raises InputError as `FitJob.run` does."""
        count = sum(label != "" for label in written)
        sentences = [f"{count:,} label{' is' if count == 1 else 's are'} in {self.labels}."]
        if len({label for label in written if label}) < 2:
            return [*sentences, "No head is written: answer with two labels or more; the same command goes on."]
        job = FitJob(
            labeled=self.labels, output=self.output, model=head.model, several=head.several,
            overwrite=self.overwrite,
        )  # fmt: skip
        try:
            messages = _run_quietly(lambda watch: job.run(watch).summary, work)
        except InputError as error:
            raise InputError(f"no head is written: {error}") from error
        repeats = f" The command that repeats this: {write_command(job)}" if write_command else ""
        return [*sentences, *messages, f"{self.output} has the head.{repeats}"]


def _run_quietly(run: Callable[[JobWatch], str], work: FinishWork) -> list[str]:
    """Run a job, and return its messages and the lines of its summary. Raises InputError for what is not written."""
    work.messages.clear()
    try:
        summary = run(work)
    except OSError as error:
        raise InputError(why_not_written(error)) from error
    return [*work.messages, *summary.splitlines()]


def _check_files(labels: Path, inputs: list[Path], outputs: list[Path], *, overwrite: bool) -> None:
    """Raise InputError where the answers or the outputs cannot be written, or would replace one another."""
    check_place(labels)
    check_no_input(labels, inputs)
    check_outputs(*outputs, inputs=[*inputs, labels], overwrite=overwrite)
    if labels.absolute() in [output.absolute() for output in outputs]:
        raise InputError(f"{labels}: is named as two outputs; give each a file of its own")
    if labels.suffix.lower() != ".csv":
        raise InputError(f"{labels}: answers are CSV; name a file that ends in .csv")


def _serve(session: ReviewSession[Any], port: int, labels: Path, watch: JobWatch) -> list[str] | None:
    """Show the page until the review is finished; return what it wrote, or None if it was stopped."""
    from gramvec.jobs.review.app import ReviewServer  # FastAPI takes half a second to import

    with closing(session):
        server = ReviewServer(session, port)
        with suppress(KeyboardInterrupt):
            watch.report(f"Open {server.address} in a browser of this machine. Control-C stops; answers stay.")
            server.run()
        if session.finished is None:
            watch.report(f"stopped; the answers are in {labels}: the same command goes on with them")
        return session.finished
