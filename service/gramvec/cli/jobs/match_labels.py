"""Options of `gramvec match` that learn from labels, keep what was learned, and name the pairs to label next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import click

from gramvec.cli.jobs.match_output import REVIEWED, records_of
from gramvec.errors import InputError
from gramvec.jobs.bad_rows import OnError
from gramvec.matching.features import TablePair
from gramvec.matching.fields import Blocks, Field, Matched, choose
from gramvec.matching.fit_matcher import fit_matcher
from gramvec.matching.inputs import MatchTable, read_labels
from gramvec.matching.match_tables import match_fields
from gramvec.matching.matcher import LearnedMatcher, PairLabels, hold_labels, score_candidates, uncertain
from gramvec.matching.matcher_file import save_matcher
from gramvec.matching.nearest import Matches
from gramvec.matching.report import pair_model_fact
from gramvec.tables.outputs import TABLE_FORMS, form_to_write, write_table


class MatchOptions(NamedTuple):
    """Options that choose the matches.

    Attributes:
        top: right rows for a left row; None for the default.
        all: all rows above the threshold.
        threshold: the lowest score; None for the default.
        one_to_one: no row is in two matches.
        same: LEFT and RIGHT are one file, whose rows are not compared with themselves.
        on_error: what a bad or contradictory label does.
        threads: threads of the sparse product.
        watch: receives the progress.
    """

    top: int | None
    all: bool
    threshold: float | None
    one_to_one: bool
    same: bool
    on_error: OnError
    threads: int
    watch: Callable[[str, int, int], None]

    def highest(self, learned: int | None = None) -> int | None:
        """Return the right rows for a left row, None for all; `learned` unless an option says it."""
        return None if self.all else self.top or learned


@dataclass(frozen=True)
class LabelOptions:
    """The options --labels, --labels-..., --keep-labels, --matcher, --save-matcher, --review and --review-pairs."""

    labels: tuple[Path, ...]
    delimiter: str | None
    encoding: str
    matcher: Path | None
    saved: Path | None
    review: Path | None
    pairs: int
    keep: bool

    def check(self) -> None:
        """Raise UsageError for options that exclude each other, InputError where labels would be lost."""
        if self.labels and self.matcher:
            raise click.UsageError("--labels learns a matcher and --matcher brings one; give one of them")
        if self.saved and not self.labels:
            raise click.UsageError("--save-matcher writes what --labels taught; give --labels")
        if self.keep and not self.labels:
            raise click.UsageError("--keep-labels writes pairs as --labels has them; give --labels")
        if self.review:
            form_to_write(self.review, TABLE_FORMS, option="")
        if self.review and self.review.exists():
            raise InputError(
                f"{self.review}: exists already, perhaps with labels; give it to --labels, and --review another file"
            )

    def model_fact(self, *, same: bool) -> tuple[str, str]:
        """Return what scored the pairs, for a report; `same` for rows of one table."""
        if self.matcher:
            return "model", f"matcher {self.matcher}, SHA-256 {sha256(self.matcher.read_bytes()).hexdigest()}"
        if self.labels:
            return "model", f"matcher learned from {', '.join(map(str, self.labels))}"
        return pair_model_fact(same=same)

    def matches(
        self,
        known: LearnedMatcher | None,
        tables: tuple[MatchTable, MatchTable],
        fields: Sequence[Field],
        columns: Sequence[tuple[str, str]],
        keys: Blocks | None,
        options: MatchOptions,
    ) -> Matched:
        """Return the matches, after the matcher and the review were written."""
        if not (self.labels or self.matcher or self.review):
            return _without_labels(fields, keys, options)
        labels = self._read(tables, options.on_error) if self.labels else None
        ngrams = known.ngrams if known else None
        pair = TablePair(fields, keys, ngrams=ngrams, same=options.same, threads=options.threads, watch=options.watch)
        if labels is not None:
            known = fit_matcher(pair, columns, labels, options.watch)
            _report(known, same=options.same)
            if self.saved:
                save_matcher(known, self.saved)
        scored = score_candidates(known, pair, options.watch)
        threshold = options.threshold if options.threshold is not None or known is None else known.threshold
        seen = labels.lower_left() if labels is not None and options.same else labels
        if self.review:
            self._review(self.review, uncertain(scored, threshold if known else None, seen, self.pairs), tables, fields)
        if known is None or threshold is None:
            return _without_labels(fields, keys, options)
        if seen is not None and self.keep:
            scored = hold_labels(scored, seen)
        found = choose(scored, options.highest(known.top), threshold, one_to_one=options.one_to_one, same=options.same)
        if labels is not None:
            _report_written(found.matches, labels)
        return found

    def _read(self, tables: tuple[MatchTable, MatchTable], on_error: OnError) -> PairLabels:
        labels, skipped = read_labels(
            self.labels, tables[0].ids, tables[1].ids, delimiter=self.delimiter, encoding=self.encoding,
            on_error=on_error,
        )  # fmt: skip
        if skipped:
            click.echo(f"skipped {skipped:,} labels that are bad or contradict another", err=True)
        return labels

    def _review(
        self, path: Path, found: Matches, tables: tuple[MatchTable, MatchTable], fields: Sequence[Field]
    ) -> None:
        records = (record | {"match": ""} for record in records_of(found, *tables, fields, explain=False))
        write_table(path, form_to_write(path, TABLE_FORMS), REVIEWED, records)
        click.echo(f"{len(found.left):,} pairs to label are in {path}: fill its column match, then give it to --labels",
                   err=True)  # fmt: skip


def _without_labels(fields: Sequence[Field], keys: Blocks | None, options: MatchOptions) -> Matched:
    return match_fields(
        fields, keys, top=options.highest(), threshold=options.threshold, one_to_one=options.one_to_one,
        same=options.same, threads=options.threads, watch=options.watch,
    )  # fmt: skip


def _report(known: LearnedMatcher, *, same: bool) -> None:
    report = known.report
    click.echo(
        f"learned from {report.pairs:,} labeled pairs, {report.matches:,} of them matches ({report.kind}); on "
        f"{report.held_pairs:,} held out ({report.held_matches:,} matches), at the threshold {known.threshold:.3f}: "
        f"precision {report.precision:.1%}, recall {report.recall:.1%}, F1 {report.f1:.1%}",
        err=True,
    )
    if known.top is None and not same:
        click.echo("many rows have several labeled matches, so all above the threshold are written (--all)", err=True)


def _report_written(found: Matches, labels: PairLabels) -> None:
    """Report how many of the labeled pairs are written, which is less than the classifier finds where --top cuts."""
    width = 1 + max(int(found.right.max(initial=0)), int(labels.right.max(initial=0)))
    written = set((found.left * width + found.right).tolist())
    there = [pair in written for pair in (labels.left * width + labels.right).tolist()]
    right = sum(match for one, match in zip(there, labels.match.tolist(), strict=True) if one)
    click.echo(
        f"of the labeled pairs, {right:,} of {int(labels.match.sum()):,} matches and {sum(there) - right:,} of "
        f"{int((~labels.match).sum()):,} others are written",
        err=True,
    )
