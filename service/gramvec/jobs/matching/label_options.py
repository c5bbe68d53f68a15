"""Options of jobs that score pairs by what labels teach, or by a matcher that learned before."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Self

from pydantic import model_validator

from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.file_job import FileJob, OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.matching.inputs import DigestOfRows, read_labels
from gramvec.jobs.matching.matcher import LearnedMatcher, PairLabels
from gramvec.jobs.matching.report import pair_model_fact
from gramvec.jobs.tables.inputs import UTF_8


class PairLabelOptions(FileJob):
    """Labels and matchers of a job.

    Attributes:
        labels: files of pairs to learn from, with columns left, right (ids) and match (1 or 0).
        labels_delimiter: of the files of labels; None recognizes it.
        labels_encoding: of the files of labels.
        matcher: score pairs by the matcher of this file, which `MatchJob` or a review wrote.
    """

    labels: tuple[Path, ...] = ()
    labels_delimiter: str | None = None
    labels_encoding: str = UTF_8
    matcher: Path | None = None

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        if self.labels and self.matcher:
            raise OptionError(
                "matcher: was learned before, and `labels` teach another; give one of them", field="matcher"
            )
        return self

    def read_labels(
        self,
        left: Sequence[str],
        right: Sequence[str],
        digest_of: DigestOfRows,
        on_error: OnError,
        watch: JobWatch,
        *,
        numbered: bool,
    ) -> PairLabels:
        """Read the labels of pairs of rows with these ids, which may be numbers, and report those that are skipped.

        `numbered` if these ids are numbers of rows.
        Raises InputError as `gramvec.jobs.matching.inputs.read_labels` does.
        """
        labels, skipped = read_labels(
            self.labels, left, right, delimiter=self.labels_delimiter, encoding=self.labels_encoding,
            on_error=on_error, digest_of=digest_of, numbered=numbered,
        )  # fmt: skip
        if skipped:
            watch.report(f"skipped {skipped:,} labels that are bad or contradict another")
        return labels

    def model_fact(self, *, same: bool) -> tuple[str, str]:
        """Return what scored the pairs, for a report; `same` for rows of one table."""
        if self.matcher:
            return "model", f"matcher {self.matcher.name}, SHA-256 {sha256(self.matcher.read_bytes()).hexdigest()}"
        if self.labels:
            return "model", f"matcher learned from {', '.join(labels.name for labels in self.labels)}"
        return pair_model_fact(same=same)


def report_learned(known: LearnedMatcher, watch: JobWatch, *, same: bool) -> None:
    """Report how good a matcher is on labels that were held out; `same` for rows of one table."""
    report = known.report
    watch.report(
        f"learned from {report.pairs:,} labeled pairs, {report.matches:,} of them matches ({report.kind}); on "
        f"{report.held_pairs:,} held out ({report.held_matches:,} matches), at the threshold {known.threshold:.3f}: "
        f"precision {report.precision:.1%}, recall {report.recall:.1%}, F1 {report.f1:.1%}"
    )
    if known.top is None and not same:
        watch.report('many rows have several labeled matches, so all above the threshold are written (`top="all"`)')
