"""`DedupeJob`: a file into a list of its duplicates, and a file without them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from pydantic import model_validator

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.loading import load
from gramvec.errors import printable
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.common.file_job import OptionError, PositiveNumber, RowColumns, ThreadCount, UnitNumber
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.run import MakesPage, TableOutput
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.duplicates.api import By
from gramvec.jobs.duplicates.dedupe_rows import RowList
from gramvec.jobs.duplicates.distinct import MAX_PAIRS, DistinctRows, DuplicateRows, distinct_rows, staying_rows
from gramvec.jobs.duplicates.likely import Keep, LikelyPairs, likely_pairs
from gramvec.jobs.duplicates.meaning import check_cosine, meaning_pairs
from gramvec.jobs.duplicates.report import dedupe_report, known_report
from gramvec.jobs.duplicates.rows import DedupeTable, KnownRow, form_to_keep, known_rows, read_rows, write_kept
from gramvec.jobs.matching.report import pair_model_fact
from gramvec.jobs.search.index import Index
from gramvec.jobs.tables.columns import count_cells
from gramvec.jobs.tables.inputs import STDIN, spool
from gramvec.jobs.tables.outputs import TableForm
from gramvec.runtime.base import Device
from gramvec.text.arrays import Int64s
from gramvec.threads import count_cores

# Lowest probability of a line and a document of an index.
KNOWN_THRESHOLD = 0.5
# A group of more rows is warned of before it is deleted; lines of a sample of what goes.
LARGE_GROUP, SAMPLE = 50, 5
MAX_SHOWN = 80


class DedupeResult(NamedTuple):
    """Result of a deduplication.

    Attributes:
        ids: the id of each row that was compared.
        numbers: the line of each row, or its number where the file has no lines.
        dropped: the rows, from 0, that repeat one that stays, or a document of the index: int64[d].
        duplicates: the pairs, the groups, and the rows that stay; None beside an index.
        known: the rows that repeat a document of the index, with it.
    """

    ids: list[str]
    numbers: list[int]
    dropped: Int64s
    duplicates: DuplicateRows | None
    known: list[KnownRow]


class DedupeJob(InputFile, TableOutput):
    """Job of `gramvec dedupe`: find the near-duplicates of a file, list them, and write the file without them.

    Example:
        >>> job = DedupeJob(source="people.csv", on=["name", "city"], unique="unique.csv")  # doctest: +SKIP
        >>> job.run().dropped  # doctest: +SKIP
        array([2])

    Attributes:
        on: the compared columns; none for the column "text".
        id: column of the ids; None for "id" if there is one, else the lines' numbers; "none" for the numbers.
        by: "letters" compares words, numbers and letters, "meaning" the texts' meanings by a model.
        model: of "meaning": a name or a folder; None for the default one.
        device: that computes the vectors of "meaning".
        threshold: the lowest score; None for that of the highest expected F1, at least 0.4.
        precision: take the lowest threshold from which on, in nine of ten tables, at least this share is right.
        explain: add to each pair what counted for and against it, by column.
        columns: columns of the input that the list has: "none", the "compared" ones, or "all".
        groups: list groups instead of pairs: lines that a chain of pairs joins.
        unique: write the input there without lines that repeat one that stays; - is standard output.
        keep: which line stays: the "first", the "longest", the most "complete", or the most "frequent".
        against: compare with the documents of this index instead, not with each other.
        max_pairs: refuse to list more pairs.
        threads: of the comparison by letters; None for all cores.

    The other attributes are those of `InputFile` and `TableOutput`; the table is the list.
    """

    on: tuple[str, ...] = ()
    id: str | None = None
    by: By = "letters"
    model: str | None = None
    device: Device = "auto"
    threshold: UnitNumber | None = None
    precision: UnitNumber | None = None
    explain: bool = False
    columns: RowColumns = "compared"
    groups: bool = False
    unique: Path | None = None
    keep: Keep = "first"
    against: Path | None = None
    max_pairs: PositiveNumber = MAX_PAIRS
    threads: ThreadCount | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.against is not None and self.groups:
            raise OptionError(
                "against: lists lines beside documents of the index, which are not groups; leave out `groups`",
                field="groups",
            )
        if self.by == "letters" and self.model is not None:
            raise OptionError(
                'model: lines are compared by letters and words; give `by="meaning"`, or leave it out', field="model"
            )
        if self.by == "meaning" and self.against is not None:
            raise OptionError('against: compares by letters and words; leave out `by="meaning"`', field="against")
        if self.by == "meaning" and self.report is not None:
            raise OptionError(
                "report: shows probabilities, and meanings have cosines; leave out one of both", field="report"
            )
        if self.by == "meaning":
            check_cosine(self.threshold)
        if self.keep != "first" and (self.against is not None or (self.unique is None and self.report is None)):
            raise OptionError(
                "keep: chooses among lines of `source` for `unique` or `report`; leave it out", field="keep"
            )
        self._list_form()
        form_to_keep(self.source, self.file_format(), self.unique)
        return self

    @model_validator(mode="after")
    def _check_letters(self) -> Self:
        """Refuse what is only of the probabilities of two rows of the file."""
        if self.precision is not None and self.threshold is not None:
            raise OptionError("precision: chooses the threshold; give it, or `threshold`", field="precision")
        for name, asked in (("precision", self.precision is not None), ("explain", self.explain)):
            if asked and self.against is not None:
                raise OptionError(f"{name}: is of pairs of lines of the file; leave it out, or `against`", field=name)
            if asked and self.by == "meaning":
                raise OptionError(
                    f'{name}: is of probabilities, and meanings have cosines; leave it out, or `by="meaning"`',
                    field=name,
                )
        if self.explain and (self.groups or self.output is None):
            raise OptionError("explain: is for the list of pairs; name `output`, without `groups`", field="explain")
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> DedupeResult:
        """Find the duplicates, write the outputs that the record names, and return what was found.

        Args:
            watch: receives the progress and the messages.

        Raises:
            InputError: a file cannot be read or used, or an output cannot be written.
        """
        run = self.begin_run(watch, self.output, self.unique, inputs=[self.source, self.against])
        name = "standard input" if self.source == STDIN else self.source.name
        on = tuple(dict.fromkeys(self.on or (COLUMN,)))
        with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
            index = Index(self.against, threads=self.threads) if self.against is not None else None
            file = spool(sys.stdin.buffer, Path(folder)) if self.source == STDIN else self.source
            table = read_rows(
                file, self.file_format(), on, self.id, on_error=self.on_error, progress=watch,
                name=name if self.source == STDIN else None,
            )  # fmt: skip
            distinct = distinct_rows(table.columns)
            rows = RowList(table, on, self.columns, file, self.file_format(), safe_cells=self.safe_cells)
            page: MakesPage
            if index is None:
                duplicates = self._find_duplicates(file, table, distinct, watch)
                result = self._list_duplicates(duplicates, table, rows, watch)
                page = partial(dedupe_report, duplicates, table, title=f"Duplicates in {name}", columns=on)
            else:
                # A report also shows what is below the threshold.
                threshold = KNOWN_THRESHOLD if self.threshold is None else self.threshold
                best = _find_known(distinct, index, threshold if self.report is None else 0.0, watch)
                result = self._list_known([row for row in best if row.score >= threshold], table, rows)
                page = partial(known_report, best, threshold, table, title=f"Lines of {name} in {self.against}")
            if self.unique is not None:
                self._write_kept(self.unique, file, table, result, watch)
            run.write_report(
                self.report, page, partial(pair_model_fact, same=index is None), {self.source: len(table.ids)}
            )
        _report_uncompared(table, distinct, watch)
        return result

    def _list_duplicates(
        self, duplicates: DuplicateRows, table: DedupeTable, rows: RowList, watch: JobWatch
    ) -> DedupeResult:
        """List the pairs or groups of the file."""
        if self.unique is not None:
            _warn(table, duplicates, watch)
        if self.output is not None and self.groups:
            rows.write_groups(self.output, self._list_form(), duplicates.groups)
        elif self.output is not None:
            pairs = duplicates.pairs_up_to(self.max_pairs)
            reasons = duplicates.reasons(pairs, self.on or (COLUMN,)) if self.explain else None
            rows.write_pairs(self.output, self._list_form(), pairs, reasons)
        return DedupeResult(table.ids, table.table.numbers, duplicates.dropped, duplicates, [])

    def _list_known(self, known: list[KnownRow], table: DedupeTable, rows: RowList) -> DedupeResult:
        """List the rows that an index has already."""
        if self.output is not None:
            rows.write_known(self.output, self._list_form(), known)
        dropped = np.array([row.row for row in known], np.int64)
        return DedupeResult(table.ids, table.table.numbers, dropped, None, known)

    def _list_form(self) -> TableForm:
        """Return the form of the list. Raises InputError for an ending that no form has."""
        return self.output_form("tsv")

    def _find_duplicates(
        self, file: Path, table: DedupeTable, distinct: DistinctRows, watch: JobWatch
    ) -> DuplicateRows:
        """Return the duplicates among the rows of the file."""
        limit = self.max_pairs if self.output is not None and not self.groups else None
        if self.by == "letters":
            threads = self.threads or count_cores()
            likely = likely_pairs(
                distinct.columns, self.threshold, self.precision, explain=self.explain or self.report is not None,
                threads=threads, max_pairs=limit, progress=watch,
            )  # fmt: skip
        else:
            embedder = load(self.model or DEFAULT_MODEL, device=self.device)
            likely = meaning_pairs(
                distinct.join_columns(), embedder, self.threshold, max_pairs=limit or MAX_PAIRS, progress=watch
            )
        watch.close()
        _report_pairs(likely, table.table.unit, self.by, watch)
        if self.precision is not None and not len(likely.pairs.left):
            watch.report(
                f"no pairs of different {table.table.unit}s are so sure that they have the precision"
                f" {self.precision:g} in nine of ten tables; give a lower `precision`, or a `threshold`"
            )
        cells = None
        if self.keep == "complete":
            counts = count_cells(file, self.file_format())
            cells = np.array([counts[number] for number in table.table.numbers], np.int64)
        return DuplicateRows(distinct, likely, staying_rows(distinct, likely.sure_pairs(), self.keep, cells))

    def _write_kept(self, keep: Path, file: Path, table: DedupeTable, result: DedupeResult, watch: JobWatch) -> None:
        """Write the rows that stay, and report how many they are."""
        numbers = np.asarray(table.table.numbers, np.int64)[result.dropped]
        form = form_to_keep(self.source, self.file_format(), keep)
        with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
            target = Path(folder) / "kept" if keep == STDIN else keep
            write_kept(file, self.file_format(), form, table.table.found, numbers, target)
            if keep == STDIN:
                sys.stdout.buffer.write(target.read_bytes())
        rows = len(table.ids) + table.table.bad.count
        watch.report(f"{rows - len(result.dropped):,} of {rows:,} {table.table.unit}s kept")
        for row in result.known[:SAMPLE]:
            watch.report(f"left out, {table.name(row.row)}: {_quote(table.text(row.row))}; known as {_quote(row.text)}")


def _find_known(distinct: DistinctRows, index: Index, threshold: float, watch: JobWatch) -> list[KnownRow]:
    known = known_rows(distinct, index, threshold, progress=watch)
    watch.close()
    return known


def _report_pairs(likely: LikelyPairs, unit: str, by: By, watch: JobWatch) -> None:
    """Report how many pairs there are, how many are expected to be right, and the share that was found."""
    if number := len(likely.pairs.left):
        right = f", of which {likely.expected} are expected to be right" if likely.expected else ""
        watch.report(
            f"{number:,} pair{'s' * (number != 1)} of different {unit}s at the threshold {likely.threshold:.3f}{right}"
        )
    if likely.sampled:
        share = 100 * likely.sampled_found / likely.sampled
        watch.report(
            f"about {share:.1f} % of the pairs were found ({likely.sampled_found:,} of the {likely.sampled:,} that a "
            "sample has)"
        )


def _report_uncompared(table: DedupeTable, distinct: DistinctRows, watch: JobWatch) -> None:
    """Report the rows that were not compared."""
    unit, bad, empty = table.table.unit, table.table.bad, int((distinct.of_row < 0).sum())
    if empty:
        have = f"{unit} has no text and repeats" if empty == 1 else f"{unit}s have no text and repeat"
        watch.report(f"{empty:,} {have} nothing")
    for sentence in bad.report(len(table.ids) + bad.count, "could not be compared"):
        watch.report(sentence)


def _warn(table: DedupeTable, duplicates: DuplicateRows, watch: JobWatch) -> None:
    """Report what is not sure, large groups, and a sample of the lines that are left out beside those that stay."""
    roots, unit, likely = duplicates.stays, table.table.unit, duplicates.likely
    if doubtful := int((likely.pairs.scores < np.float32(likely.sure)).sum()):
        watch.report(
            f"{doubtful:,} of the {len(likely.pairs.left):,} pairs, those below {likely.sure:.3f}, are not sure enough"
            f" to leave out a {unit}: look at them in the list, or give `threshold={likely.threshold:.3f}` to take them"
            " all"
        )
    sizes = np.bincount(roots, minlength=1)
    for root in np.flatnonzero(sizes > LARGE_GROUP)[:SAMPLE].tolist():
        watch.report(
            f"{sizes[root]:,} {unit}s become one, {table.name(root)}: {_quote(table.text(root))}; raise"
            " `threshold` if they are not the same"
        )
    of_row = duplicates.distinct.of_row
    unequal: Sequence[int] = np.flatnonzero(of_row != of_row[roots]).tolist()
    for row in unequal[:: max(1, len(unequal) // SAMPLE)][:SAMPLE]:
        root = int(roots[row])
        watch.report(
            f"left out, {table.name(row)}: {_quote(table.text(row))}; kept, {table.name(root)}:"
            f" {_quote(table.text(root))}"
        )


def _quote(text: str) -> str:
    text = printable(" ".join(text.split()))
    return repr(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "...")
