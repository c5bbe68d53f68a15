"""`FitJob`: a file of labeled texts into a head. `PredictJob`: a file of texts into a file with their labels."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from gramvec import __version__
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.embedder import MAX_CHARACTERS, Embedder
from gramvec.embed.loading import load
from gramvec.errors import InputError, printable
from gramvec.jobs.bulk.embed_file import COLUMN, Files, Options, embed_file
from gramvec.jobs.classify.fit import PARTS, Report, fit_head
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.labeled import read_labeled
from gramvec.jobs.classify.learning_curve import learning_curve
from gramvec.jobs.classify.report import CountedLabels, fit_report
from gramvec.jobs.classify.writer import LabelColumns
from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.file_job import PositiveNumber, UnitNumber
from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.outcome import Done, report_done
from gramvec.jobs.common.run import ReportedJob, TableOutput
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.report import JobReport
from gramvec.jobs.tables.inputs import STDIN, UTF_8, FileFormat, form_of
from gramvec.jobs.tables.parquet import ParquetForm
from gramvec.jobs.tables.writers import RowsForm, Writes
from gramvec.jobs.tables.xlsx import SheetForm
from gramvec.progress import Progress
from gramvec.runtime.base import Device
from gramvec.text.arrays import Floats
from gramvec.text.vocabulary import Vocabulary

# Texts that are embedded between two steps of a bar.
BLOCK_TEXTS = 1_024
# Below this share of different words that a model knows, texts are likely to be of a language that it does not know:
# English tickets have 1.0, misspelt ones and product titles 0.5 to 0.8, Spanish and German ones 0.4. Of fewer words
# nothing is said. As many texts, and characters of each, are looked at.
KNOWN_WORDS, MIN_WORDS, MAX_READ = 0.5, 20, 10_000
_WORD = re.compile(r"[^\W\d_]{2,}")
MAX_NAMED = 5


def _list_thresholds(given: Any) -> Any:
    if isinstance(given, int | float):
        return [(None, given)]
    return list(given.items()) if isinstance(given, Mapping) else given


# Lowest scores of known labels: pairs of a label, None for all, and a score; or one score, or a mapping of labels.
Thresholds = Annotated[tuple[tuple[str | None, UnitNumber], ...], BeforeValidator(_list_thresholds)]


@dataclass(frozen=True)
class FitResult(ResultTable):
    """Result of a fit; as a table, the answers to the texts that were held out.

    Attributes:
        head: what was learned.
        quality: how right it is on texts that were held out.
        summary: lines that describe both.
        texts: the labeled texts.
    """

    head: Head
    quality: Report
    summary: str
    texts: Sequence[str]

    def columns(self) -> dict[str, FrameColumn]:
        """Return the row of each text held out, from 0, its text, its best label, the score, and if that is right."""
        held = self.quality.answers
        texts = [self.texts[row] for row in held.rows.tolist()]
        return {"row": held.rows, "text": texts, "label": held.labels, "score": held.scores, "right": held.right}

    def facts(self) -> dict[str, float]:
        """Return the threshold of all labels, and the share of texts whose best label is right."""
        return {"threshold": self.head.threshold, "accuracy": self.quality.accuracy}


class FitJob(ReportedJob):
    """Job of `gramvec classify fit`: learn a head from labeled texts.

    Example:
        >>> result = FitJob(labeled="intents.tsv", output="intents.head").run()  # doctest: +SKIP
        >>> result.quality.accuracy  # doctest: +SKIP
        0.89

    Attributes:
        labeled: label<TAB>text lines, fastText's lines, or a table with columns of labels and texts.
        output: the head's file.
        delimiter: character between the columns of CSV; None recognizes it by the header.
        encoding: of the file.
        model: name of a model, or a folder.
        device: that computes the vectors.
        column: of the texts.
        label: column of the labels.
        several: whether a text may have several labels, written a|b; None looks at the labels.
        threshold: the lowest score of a label that is known: a number, a mapping of labels to numbers, or pairs of a
            label (None for all) and a number; none for the highest that keeps 99 % of the
            right answers on held-out texts.
        truncate: cut a text at `max_characters` instead of refusing it.
        max_characters: of a text.
        on_error: "stop" at a bad row, or "skip" it.

    The other attributes are those of `ReportedJob`.
    """

    labeled: Path
    output: Path
    delimiter: str | None = None
    encoding: str = UTF_8
    model: str = DEFAULT_MODEL
    device: Device = "auto"
    column: str = "text"
    label: str = "label"
    several: bool | None = None
    threshold: Thresholds = ()
    truncate: bool = False
    max_characters: PositiveNumber = MAX_CHARACTERS
    on_error: OnError = "stop"

    @model_validator(mode="after")
    def _check(self) -> Self:
        FileFormat("csv", self.delimiter, self.encoding)
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> FitResult:
        """Learn the head, write it and its report, and return both.

        Args:
            watch: receives the progress and the messages.

        Raises:
            InputError: the texts or labels cannot be used, or an output cannot be written.
        """
        run = self.begin_run(watch, self.output, inputs=[self.labeled])
        form = FileFormat(form_of(self.labeled), self.delimiter, self.encoding)
        rows = read_labeled(self.labeled, form, self.column, self.label, several=self.several, on_error=self.on_error)
        if not rows.texts and rows.unlabeled:
            raise InputError(f"{self.labeled}: none of its {rows.unlabeled:,} rows has a label; write some")
        if not rows.texts:
            raise InputError(f"{self.labeled}: has no rows; write a label, a tab and a text on each line")
        if rows.unlabeled:
            are = "row has no label and is" if rows.unlabeled == 1 else "rows have no label and are"
            watch.report(f"{rows.unlabeled:,} {are} left out; gramvec classify predict gives labels")
        with closing(load(self.model, device=self.device, max_characters=self.max_characters)) as embedder:
            try:
                texts = embedder.prepare(rows.texts, truncate=self.truncate)
                vectors = embed_with_bar(embedder, texts, watch)
            except InputError as error:
                place = "" if error.index is None else f"{rows.unit} {rows.numbers[error.index]}: "
                raise InputError(f"{self.labeled}: {place}{error}") from error
            if (known := known_words(embedder.bundle.vocabulary, texts)) < KNOWN_WORDS:
                watch.report(
                    f"{embedder.name} knows {known:.0%} of the words: the texts are of another language, or words of a"
                    " trade; a model of their language may be right more often (gramvec import, `model`)"
                )
            head, quality = fit_head(
                texts, vectors, rows.labels if rows.several else [label for (label,) in rows.labels],
                model=embedder.name, digest=embedder.digest, threshold=threshold_of_all(self.threshold),
                thresholds=thresholds_of_labels(self.threshold), progress=watch,
            )  # fmt: skip
        head.save(self.output)
        for sentence in rows.bad.report(len(rows.numbers) + rows.bad.count, "could not be read"):
            watch.report(sentence)

        def make_page(*, facts: Sequence[tuple[str, str]]) -> JobReport:
            curve = learning_curve(texts, vectors, rows.labels, several=rows.several, progress=watch)
            title = f"Labels of {self.labeled.name}"
            return fit_report(head, quality, texts, rows.labels, learning=curve, title=title, facts=facts)

        model = "model", f"{head.model}, SHA-256 {head.digest}"
        run.write_report(self.report, make_page, lambda: model, {self.labeled: len(texts)})
        size = self.output.stat().st_size / 1e3
        labels = f"{self.output}: {len(head.labels):,} labels of {head.model}, {size:,.0f} kB"
        return FitResult(head, quality, "\n".join([*_describe(head, quality), labels]), texts)


class PredictJob(InputFile, TableOutput):
    """Job of `gramvec classify predict`: give each text of a file the best label of a head.

    Example:
        >>> PredictJob(head="intents.head", source="tickets.csv", output="labeled.csv").run().rows  # doctest: +SKIP
        1200

    Attributes:
        head: a file that `FitJob` wrote.
        column: of the texts.
        prefix: before the names of the new columns, label, score and known.
        model: name of a model, or a folder; None for the head's.
        device: that computes the vectors.
        threshold: the lowest score of a label that is known, as of `FitJob`; none for the head's.
        truncate: cut a text at `max_characters` instead of refusing it.
        max_characters: of a text.

    The other attributes are those of `InputFile` and `TableOutput`; this job always writes its table.
    """

    head: Path
    output: Path
    column: str = COLUMN
    prefix: str = ""
    model: str | None = None
    device: Device = "auto"
    threshold: Thresholds = ()
    truncate: bool = False
    max_characters: PositiveNumber = MAX_CHARACTERS

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.output_form("tsv")
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> Done:
        """Label the texts, and return how many rows there were and which were bad. Raises as `embed_file` does.

        Args:
            watch: receives the progress and the messages.
        """
        run = self.begin_run(watch, self.output, inputs=[self.head, self.source])
        head = self._load_head()
        labels = (LabelColumns if self.report is None else CountedLabels)(
            head, self.prefix, max_characters=self.max_characters
        )
        opened = load(self.model or head.model, device=self.device, max_characters=self.max_characters, threads=1)
        start = time.monotonic()
        with closing(opened) as embedder:
            head.check_bundle(embedder.digest, embedder.dimension)
            done = embed_file(
                embedder, Files(self.source, self.output, self.file_format(), "jsonl", self.column),
                Options(truncate=self.truncate), on_error=self.on_error, progress=watch, task="labeling",
                written=self._writer(head, labels),
            )  # fmt: skip
        report_done(done, self.output, time.monotonic() - start, watch)
        if isinstance(labels, CountedLabels):
            model = "head", f"{self.head.name} of {head.model}, SHA-256 {head.file_digest}"
            title = f"Labels given to {'standard input' if self.source == STDIN else self.source.name}"
            run.write_report(self.report, partial(labels.report, title=title), lambda: model, {self.source: done.rows})
        return done

    def _load_head(self) -> Head:
        """Return the head with the thresholds of this job."""
        head = Head.load(self.head)
        own, of_all = thresholds_of_labels(self.threshold), threshold_of_all(self.threshold)
        if unknown := [label for label in own if label not in head.labels]:
            raise InputError(
                f"{self.head}: has no label {unknown[0]!r}; its first ones are {list(head.labels[:MAX_NAMED])}"
            )
        if of_all is not None:
            return replace(head, threshold=of_all, thresholds=own)
        return replace(head, thresholds={**head.thresholds, **own}) if own else head

    def _writer(self, head: Head, labels: LabelColumns) -> Writes:
        form = self.output_form("tsv")
        if form == "parquet":
            metadata = {"gramvec.head": head.file_digest, "gramvec.version": __version__}
            return ParquetForm(self.column, labels, metadata)
        # On a terminal untrusted text must not move the cursor; a program gets it unchanged.
        shown = printable if self.output == STDIN and sys.stdout.isatty() else str
        if form == "xlsx":
            return SheetForm(self.column, labels)
        return RowsForm(form, self.column, labels, shown, safe_cells=self.safe_cells, bom=self.bom)


def known_words(vocabulary: Any, texts: Sequence[str]) -> float:
    """Return the share of the different words of some texts that a model's vocabulary has; 1 where nobody can say.

    Args:
        vocabulary: of the model; one without words, such as another library's tokens, says nothing.
        texts: of which the first 10,000 are looked at.
    """
    if not isinstance(vocabulary, Vocabulary) or not vocabulary.n_words:
        return 1.0
    words = {word for text in texts[:MAX_READ] for word in _WORD.findall(text[:MAX_READ].casefold())}
    return len(words & {*vocabulary.word_texts}) / len(words) if len(words) >= MIN_WORDS else 1.0


def threshold_of_all(thresholds: Sequence[tuple[str | None, float]]) -> float | None:
    """Return the last threshold of all labels, None without one."""
    return next((score for label, score in reversed(thresholds) if label is None), None)


def thresholds_of_labels(thresholds: Sequence[tuple[str | None, float]]) -> dict[str, float]:
    """Return the thresholds of single labels."""
    return {label: score for label, score in thresholds if label is not None}


def embed_with_bar(embedder: Embedder, texts: Sequence[str], progress: Progress) -> Floats:
    """Return the vectors of prepared texts, float32[n, d], and advance the task "embedding"."""
    blocks = [np.zeros((0, embedder.dimension), np.float32)]
    progress.start("embedding", len(texts), "texts")
    for start in range(0, len(texts), BLOCK_TEXTS):
        block = texts[start : start + BLOCK_TEXTS]
        blocks.append(embedder.embed(block))
        progress.advance(len(block))
    return np.concatenate(blocks)


def _describe(head: Head, quality: Report) -> Iterator[str]:
    """Yield the lines that describe a head."""
    copies = "" if quality.groups == quality.texts else f", {quality.groups:,} without near copies"
    may = "; a text may have several, written a|b (`several=False` takes them as they are)" if quality.several else ""
    yield f"{quality.texts:,} held-out texts of {quality.labels:,} labels{copies}{may}"
    yield f"right label, %                {100 * quality.accuracy:6.1f}"
    if quality.several:
        yield f"right labels, F1 %            {100 * quality.f1:6.1f}"
    yield f"calibration error, %          {100 * quality.calibration:6.1f}"
    yield f"unknown, score below {head.threshold:.2f}, %{100 * quality.unknown:7.1f}"
    yield f"right, but unknown, %         {100 * quality.lost:6.1f}"
    yield f"right label of the others, %  {100 * quality.accuracy_known:6.1f}"
    weights = zip(PARTS, quality.weights, strict=True)
    yield f"weights of what it sees       {', '.join(f'{name} {weight:.2f}' for name, weight in weights if weight)}"
    if head.thresholds:
        own = sorted(head.thresholds.items(), key=lambda threshold: threshold[1])
        named = ", ".join(f"{printable(name)} {score:.2f}" for name, score in own[:MAX_NAMED])
        more = f" and {len(own) - MAX_NAMED} more" if len(own) > MAX_NAMED else ""
        yield f"other thresholds              {named}{more}"
