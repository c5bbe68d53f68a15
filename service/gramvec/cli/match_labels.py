"""What `gramvec match` is asked about labels: to learn from them, to keep that, to name what is labelled next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from gramvec.cli.match_output import OUTPUTS, REVIEWED, records_of, write
from gramvec.errors import InputError
from gramvec.matching.features import Compared
from gramvec.matching.fields import Blocks, Field, Matched, match_fields
from gramvec.matching.labels import read_labels
from gramvec.matching.matcher import Learned, candidates, chosen, learned, uncertain
from gramvec.matching.matcher_file import load_matcher, save_matcher
from gramvec.matching.nearest import Matches
from gramvec.matching.tables import Table
from gramvec.tables.inputs import form_of


class Wish(NamedTuple):
    """Which matches: options of the command; and who watches."""

    top: int
    threshold: float | None
    one_to_one: bool
    threads: int
    watch: Callable[[str, int, int], None]


@dataclass(frozen=True)
class Asked:
    """The options of their names."""

    labels: tuple[Path, ...]
    matcher: Path | None
    saved: Path | None
    review: Path | None
    pairs: int

    def check(self, others: Sequence[Path | None]) -> None:
        """Raise UsageError for options that do not go together, InputError where a file would be lost.

        others: the files of other options.
        """
        if self.labels and self.matcher:
            raise click.UsageError("--labels learns a matcher and --matcher brings one; give one of them")
        if self.saved and not self.labels:
            raise click.UsageError("--save-matcher writes what --labels taught; give --labels")
        if self.review and form_of(self.review) not in OUTPUTS:
            raise click.UsageError(f"--review writes a .csv, .tsv or .jsonl file, not {self.review.name}")
        if self.review and self.review.exists():
            raise InputError(
                f"{self.review}: is there already, with labels perhaps; give it to --labels, and --review another"
            )
        written = [path for path in (self.saved, self.review) if path is not None]
        for path in written:
            if not path.absolute().parent.is_dir():
                raise InputError(f"{path}: there is no folder {path.parent}; make it first")
        read = {path.resolve() for path in (*others, *self.labels) if path is not None}
        if any(path.resolve() in read for path in written) or len({path.resolve() for path in written}) < len(written):
            raise click.UsageError("--save-matcher and --review each want a file of their own")

    def known(self) -> Learned | None:
        """The matcher that --matcher names."""
        return load_matcher(self.matcher) if self.matcher else None

    def matches(
        self,
        known: Learned | None,
        tables: tuple[Table, Table],
        fields: Sequence[Field],
        columns: Sequence[tuple[str, str]],
        keys: Blocks | None,
        wish: Wish,
    ) -> Matched:
        """The matches, after what else was asked for is written."""
        if not (self.labels or self.matcher or self.review):
            return _exact(fields, keys, wish)
        labels = read_labels(self.labels, tables[0].ids, tables[1].ids) if self.labels else None
        ngrams = known.ngrams if known else None
        compared = Compared(fields, keys, ngrams=ngrams, threads=wish.threads, watch=wish.watch)
        if labels is not None:
            known = learned(compared, columns, labels, wish.watch)
            _say(known)
            if self.saved:
                save_matcher(known, self.saved)
        scored = candidates(known, compared, wish.watch)
        least = wish.threshold if wish.threshold is not None or known is None else known.threshold
        if self.review:
            self._review(self.review, uncertain(scored, least if known else None, labels, self.pairs), tables, fields)
        if known is None or least is None:
            return _exact(fields, keys, wish)
        found = chosen(scored, wish.top, least, one_to_one=wish.one_to_one)
        above = int((scored.scores >= np.float32(least)).sum())
        return Matched(found, least, above - len(found.left))

    def _review(self, path: Path, found: Matches, tables: tuple[Table, Table], fields: Sequence[Field]) -> None:
        records = (record | {"match": ""} for record in records_of(found, *tables, fields, explain=False))
        write(path, form_of(path), REVIEWED, ({name: record[name] for name in REVIEWED} for record in records))
        click.echo(f"{len(found.left):,} pairs to label are in {path}: fill its column match, then give it to --labels",
                   err=True)  # fmt: skip


def _exact(fields: Sequence[Field], keys: Blocks | None, wish: Wish) -> Matched:
    return match_fields(
        fields, keys, top=wish.top, threshold=wish.threshold, one_to_one=wish.one_to_one, threads=wish.threads,
        watch=wish.watch,
    )  # fmt: skip


def _say(known: Learned) -> None:
    report = known.report
    click.echo(
        f"learned from {report.pairs:,} labelled pairs, {report.matches:,} of them matches ({report.kind}); on "
        f"{report.held_pairs:,} held out ({report.held_matches:,} matches), at the threshold {known.threshold:.3f}: "
        f"precision {report.precision:.1%}, recall {report.recall:.1%}, F1 {report.f1:.1%}",
        err=True,
    )
