"""`PairsJob`: a file of pairs of texts into a file of their scores."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import model_validator

from gramvec.embed.loading import load
from gramvec.jobs.common.columns import Columns, read_columns
from gramvec.jobs.common.file_job import RowColumns
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.watch import NO_WATCH, JobClock, JobWatch
from gramvec.jobs.matching.report import given_report, pair_model_fact
from gramvec.jobs.pairs.given_pairs import score_given
from gramvec.jobs.report import write_report
from gramvec.jobs.tables.columns import read_records, value_or_none
from gramvec.jobs.tables.inputs import STDIN, spool
from gramvec.jobs.tables.outputs import TABLE_FORMS, TableForm, form_to_write, free_names, write_table
from gramvec.jobs.tables.staging import check_outputs
from gramvec.runtime.base import Device
from gramvec.text.arrays import Floats


class PairsResult(NamedTuple):
    """Result of scoring pairs.

    Attributes:
        numbers: the line of each pair, or its number where the file has no lines.
        scores: float32[n], the probability that both texts are the same thing.
        meanings: float32[n], the cosine of both texts; None without a model.
    """

    numbers: list[int]
    scores: Floats
    meanings: Floats | None


class PairsJob(InputFile):
    """Job of `gramvec pairs`: score the pairs of texts of a file.

    Example:
        >>> job = PairsJob(source="pairs.csv", left="ours", right="theirs", output="scored.csv")  # doctest: +SKIP
        >>> job.run().scores  # doctest: +SKIP
        array([0.9312, 0.0021], dtype=float32)

    Attributes:
        left: column of one text of each pair.
        right: column of the other.
        meaning: add the cosine of both texts by this model: a name or a folder.
        device: that computes the vectors of `meaning`.
        output: a .csv, .tsv, .jsonl or .parquet file; - is standard output; None writes no table.
        columns: write both texts ("compared"), or "all" columns of the input.
        form: of the output; None goes by its ending.
        report: write a page of HTML that shows what was done.
        overwrite: replace an output that gramvec did not write.

    The other attributes are those of `InputFile`.
    """

    left: str
    right: str
    meaning: str | None = None
    device: Device = "auto"
    output: Path | None = None
    columns: RowColumns = "compared"
    form: TableForm | None = None
    report: Path | None = None
    overwrite: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._form()
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> PairsResult:
        """Score the pairs, write the outputs that the record names, and return the scores.

        Args:
            watch: receives the progress and the messages.

        Raises:
            InputError: the file cannot be read or used, or an output cannot be written.
        """
        clock = JobClock(watch.command)
        check_outputs(self.output, self.report, inputs=[self.source], overwrite=self.overwrite)
        with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
            again = self.columns == "all" and self.source == STDIN
            file = spool(sys.stdin.buffer, Path(folder)) if again else self.source
            table = read_columns(
                file, [self.left, self.right], format=self.file_format(), on_error=self.on_error, progress=watch,
                options={self.left: "--left", self.right: "--right"}, name="standard input" if again else None,
            )  # fmt: skip
            watch.close()
            left, right = table.values[self.left], table.values[self.right]
            scores, meanings = score_given([left], [right]), None
            if self.meaning:
                meanings = load(self.meaning, device=self.device).pair_similarity(left, right)
            if self.output is not None:
                self._write(self.output, file, table, {"score": scores, "meaning": meanings})
        if self.report is not None:
            page = given_report(
                scores, left, right, (self.left, self.right), [f"{table.unit} {number}" for number in table.numbers],
                facts=clock.facts(pair_model_fact(same=False), {self.source: len(scores)}),
            )  # fmt: skip
            write_report(page, self.report, watch)
        if self.output is not None and self.output != STDIN:
            watch.report(f"{len(table.numbers):,} pairs put into {self.output}")
        for sentence in table.bad.report(len(table.numbers) + table.bad.count, "could not be read"):
            watch.report(sentence)
        return PairsResult(table.numbers, scores, meanings)

    def _form(self) -> TableForm:
        """Return the form of the output. Raises InputError for an ending that no form has."""
        return form_to_write(self.output, TABLE_FORMS, self.form)

    def _write(self, output: Path, file: Path, table: Columns, scores: dict[str, Floats | None]) -> None:
        """Write a row for each pair; `file` is read again for all columns."""
        cells: dict[str, Any] = {"line": table.numbers}
        for name, values in scores.items():
            if values is not None:
                cells[name] = [round(value, 4) for value in values.tolist()]
        if self.columns == "compared":
            cells |= {"left": table.values[self.left], "right": table.values[self.right]}
        rows = (dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True))
        names = free_names(table.found, "input_", cells) if self.columns == "all" else {}
        if names:
            records = read_records(file, self.file_format(), table.numbers)
            rows = (
                row | {free: value_or_none(records[row["line"]], name) for name, free in names.items()} for row in rows
            )
        write_table(output, self._form(), [*cells, *names.values()], rows)
