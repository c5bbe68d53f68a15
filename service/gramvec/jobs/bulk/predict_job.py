"""`PredictJob`: a file of texts into a file with their labels, by a head."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import model_validator

from gramvec import __version__
from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.embed.loading import load
from gramvec.errors import InputError, printable
from gramvec.jobs.bulk.embed_file import COLUMN, Files, Options, embed_file
from gramvec.jobs.classify.fit_job import MAX_NAMED, Thresholds, threshold_of_all, thresholds_of_labels
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.report import CountedLabels
from gramvec.jobs.classify.writer import LabelColumns
from gramvec.jobs.common.file_job import PositiveNumber
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.outcome import Done, report_done
from gramvec.jobs.common.watch import NO_WATCH, JobClock, JobWatch
from gramvec.jobs.report import write_report
from gramvec.jobs.tables.inputs import STDIN
from gramvec.jobs.tables.outputs import TABLE_FORMS, TableForm, form_to_write
from gramvec.jobs.tables.parquet import ParquetForm
from gramvec.jobs.tables.staging import check_outputs
from gramvec.jobs.tables.writers import RowsForm, Writes
from gramvec.runtime.base import Device


class PredictJob(InputFile):
    """Job of `gramvec classify predict`: give each text of a file the best label of a head.

    Example:
        >>> PredictJob(head="intents.head", source="tickets.csv", output="labeled.csv").run().rows  # doctest: +SKIP
        1200

    Attributes:
        head: a file that `FitJob` wrote.
        output: a .csv, .tsv, .jsonl or .parquet file; - is standard output.
        form: of the output; None goes by its ending.
        column: of the texts.
        prefix: before the names of the new columns, label, score and known.
        model: name of a model, or a folder; None for the head's.
        device: that computes the vectors.
        thresholds: the lowest score of a label that is known, as of `FitJob`; none for the head's.
        report: write a page of HTML that shows what was done.
        truncate: cut a text at `max_characters` instead of refusing it.
        max_characters: of a text.
        overwrite: replace an output that gramvec did not write.

    The other attributes are those of `InputFile`.
    """

    head: Path
    output: Path
    form: TableForm | None = None
    column: str = COLUMN
    prefix: str = ""
    model: str | None = None
    device: Device = "auto"
    thresholds: Thresholds = ()
    report: Path | None = None
    truncate: bool = False
    max_characters: PositiveNumber = MAX_CHARACTERS
    overwrite: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._form()
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> Done:
        """Label the texts, and return how many rows there were and which were bad. Raises as `embed_file` does.

        Args:
            watch: receives the progress and the messages.
        """
        clock = JobClock(watch.command)
        check_outputs(self.output, self.report, inputs=[self.head, self.source], overwrite=self.overwrite)
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
        if self.report is not None and isinstance(labels, CountedLabels):
            model = "head", f"{self.head} of {head.model}, SHA-256 {head.file_digest}"
            title = f"Labels given to {'standard input' if self.source == STDIN else self.source.name}"
            page = labels.report(title=title, facts=clock.facts(model, {self.source: done.rows}))
            write_report(page, self.report, watch)
        return done

    def _form(self) -> TableForm:
        """Return the form of the output. Raises InputError for an ending that no form has."""
        return form_to_write(self.output, TABLE_FORMS, self.form, "tsv")

    def _load_head(self) -> Head:
        """Return the head with the thresholds of this job."""
        head = Head.load(self.head)
        own, of_all = thresholds_of_labels(self.thresholds), threshold_of_all(self.thresholds)
        if unknown := [label for label in own if label not in head.labels]:
            raise InputError(
                f"{self.head}: has no label {unknown[0]!r}; its first ones are {list(head.labels[:MAX_NAMED])}"
            )
        if of_all is not None:
            return replace(head, threshold=of_all, thresholds=own)
        return replace(head, thresholds={**head.thresholds, **own}) if own else head

    def _writer(self, head: Head, labels: LabelColumns) -> Writes:
        form = self._form()
        if form == "parquet":
            metadata = {"gramvec.head": head.file_digest, "gramvec.version": __version__}
            return ParquetForm(self.column, labels, metadata)
        # On a terminal untrusted text must not move the cursor; a program gets it unchanged.
        shown = printable if self.output == STDIN and sys.stdout.isatty() else str
        return RowsForm(form, self.column, labels, shown)
