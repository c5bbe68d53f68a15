"""`DedupeJob`: a file into a list of its duplicates, and a file without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.loading import load
from gramvec.errors import printable
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.common.engines import Engine, EngineName, open_engine
from gramvec.jobs.common.file_job import OptionError, PositiveNumber, RowColumns, ThreadCount, UnitNumber
from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.run import JobRun, MakesPage, TableOutput
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.duplicates.api import By
from gramvec.jobs.duplicates.dedupe_rows import RowList
from gramvec.jobs.duplicates.distinct import (
    MAX_PAIRS,
    SOURCE,
    DistinctRows,
    DuplicateRows,
    RowNames,
    distinct_rows,
    staying_rows,
)
from gramvec.jobs.duplicates.group_file import GroupFile
from gramvec.jobs.duplicates.labeled import labeled_pairs, labels_of_texts
from gramvec.jobs.duplicates.likely import Keep, LikelyPairs, likely_pairs
from gramvec.jobs.duplicates.meaning import check_cosine, meaning_pairs
from gramvec.jobs.duplicates.merge import MergeRules, check_merge, groups_of, merge_records
from gramvec.jobs.duplicates.report import dedupe_report, known_report
from gramvec.jobs.duplicates.rows import (
    DedupeTable,
    KnownRow,
    form_to_keep,
    known_columns,
    known_rows,
    read_rows,
    write_kept,
)
from gramvec.jobs.duplicates.sources import JoinedTables, join_tables, name_sources
from gramvec.jobs.matching.inputs import check_ids, digest_texts
from gramvec.jobs.matching.label_options import PairLabelOptions, report_learned
from gramvec.jobs.matching.matcher import LearnedMatcher
from gramvec.jobs.matching.matcher_file import load_matcher
from gramvec.jobs.matching.on import split_names
from gramvec.jobs.search.index import Index
from gramvec.jobs.tables.columns import count_cells, read_records
from gramvec.jobs.tables.inputs import SPREADSHEETS, STDIN, UTF_8, FileFormat, form_of, nameless_file, readable_twice
from gramvec.jobs.tables.outputs import TABLE_FORMS, TableForm, form_to_write
from gramvec.jobs.tables.staging import check_no_input
from gramvec.runtime.base import Device
from gramvec.text.arrays import Int64s
from gramvec.threads import count_cores

# Lowest probability of a line and a document of an index.
KNOWN_THRESHOLD = 0.5
# A group of more rows is warned of before it is deleted; lines of a sample of what goes.
LARGE_GROUP, SAMPLE = 50, 5
MAX_SHOWN = 80


@dataclass(frozen=True)
class DedupeResult(ResultTable):
    """Result of a deduplication; as a table, its list: pairs of rows, or rows with documents of the index.

    Attributes:
        ids: the id of each row that was compared.
        numbers: the line of each row, or its number where the file has no lines.
        dropped: the rows, from 0, that repeat one that stays, or a document of the index: int64[d].
        duplicates: the pairs, the groups, and the rows that stay; None beside an index.
        known: the rows that repeat a document of the index, with it.
        threshold: the lowest score.
    """

    ids: list[str]
    numbers: list[int]
    dropped: Int64s
    duplicates: DuplicateRows | None
    known: list[KnownRow]
    threshold: float

    def columns(self) -> dict[str, FrameColumn]:
        """Return the columns of pairs, as `DuplicateRows.columns` does, or of the rows that an index has."""
        if self.duplicates is not None:
            return self.duplicates.columns()
        rows = np.array([known.row for known in self.known], np.int64)
        return RowNames((), self.ids, self.numbers).of(rows) | {
            "known_id": [known.id for known in self.known],
            "score": np.array([known.score for known in self.known], np.float32),
            "known_text": [known.text for known in self.known],
        }

    def facts(self) -> dict[str, float]:
        """Return the threshold, and of pairs the ends of the share that is expected to be right."""
        return {"threshold": self.threshold} if self.duplicates is None else self.duplicates.facts()


class DedupeJob(InputFile, PairLabelOptions, TableOutput):
    """Job of `gramvec dedupe`: find the near-duplicates of a file, list them, and write the file without them.

    Example:
        >>> job = DedupeJob(source="people.csv", on=["name", "city"], unique="unique.csv")  # doctest: +SKIP
        >>> job.run().dropped  # doctest: +SKIP
        array([2])

    Attributes:
        more_sources: tables that are one with `source`: rows have their columns by name, and lists have a column of the
            source.
        on: the compared columns; none for the column "text". Beside an index NAME=OTHER is a column that its documents
            have as OTHER, and none is the index's own column.
        id: column of the ids; None for "id" if there is one, else the lines' numbers; "none" for the numbers.
        by: "letters" compares words, numbers and letters, "meaning" the texts' meanings by a model.
        model: of "meaning": a name or a folder; None for the default one.
        device: that computes the vectors of "meaning".
        threshold: the lowest score; None for that of the highest expected F1, at least 0.4.
        precision: take the lowest threshold from which on, in nine of ten tables, at least this share is right.
        explain: add to each pair what counted for and against it, by column.
        columns: columns of the input that the list has: "none", the "compared" ones, or "all".
        groups: list groups instead of pairs: lines that a chain of pairs joins.
        groups_file: keep the ids of groups in this file, which the next run continues.
        unique: write the input there without lines that repeat one that stays; - is standard output.
        map: write there which line stays for each that goes, with the score of both.
        merge: rules by which a line of `unique` gets the values of those that it stands for: "filled", "longest",
            "frequent" or "newest:COLUMN" for all columns, "name=longest" for one; or a mapping (None for all others).
        keep: which line stays: the "first", the "longest", the most "complete", or the most "frequent".
        against: compare with the documents of this index instead, not with each other.
        max_pairs: refuse to list more pairs.
        threads: of the comparison by letters; None for all cores.
        engine: compare rows and pairs on the machines of "ray" or "spark", with the same pairs.

    The other attributes are those of `InputFile`, `PairLabelOptions` and `TableOutput`; the table is the list. Labeled
    pairs are as the labels have them, up to the file without repeats.
    """

    more_sources: tuple[Path, ...] = ()
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
    groups_file: Path | None = None
    unique: Path | None = None
    map: Path | None = None
    merge: MergeRules = ()
    keep: Keep = "first"
    against: Path | None = None
    max_pairs: PositiveNumber = MAX_PAIRS
    threads: ThreadCount | None = None
    engine: EngineName | None = None

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
        if (self.labels or self.matcher) and (self.by == "meaning" or self.against is not None):
            field = "labels" if self.labels else "matcher"
            raise OptionError(
                f"{field}: scores pairs of lines of `source` by letters and words; leave out `by` and `against`",
                field=field,
            )
        if self.map is not None and self.against is not None:
            raise OptionError(
                "map: names lines of `source`; with `against` the list (`output`) names the document of each line",
                field="map",
            )
        if self.merge and (self.unique is None or self.against is not None):
            raise OptionError(
                "merge: gives the lines of `unique` the values of those that go; name that file, without `against`",
                field="merge",
            )
        if self.keep != "first" and (self.against is not None or not (self.unique or self.map or self.report)):
            raise OptionError(
                "keep: chooses among lines of `source` for `unique`, `map` or `report`; leave it out", field="keep"
            )
        self._list_form()
        self._map_form()
        return self

    @model_validator(mode="after")
    def _check_groups_file(self) -> Self:
        if self.groups_file is not None and self.against is not None:
            raise OptionError(
                "groups_file: keeps groups of lines of INPUT, and `against` compares with documents; leave out one",
                field="groups_file",
            )
        if self.groups_file in [
            path for path in (self.output, self.unique, self.map, self.report, STDIN) if path is not None
        ]:
            raise OptionError("groups_file: give it a file of its own", field="groups_file")
        return self

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        paths = [self.source, *self.more_sources]
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            raise OptionError(f"source: {twice} is given twice; give each table once", field="source")
        if self.labels and self.more_sources:
            raise OptionError(
                "labels: name rows by their ids, which several tables may have; give one table", field="labels"
            )
        if self.more_sources:
            form_to_write(self.unique, TABLE_FORMS, option="")
        else:
            form_to_keep(self.source, self.file_format(), self.unique)
        return self

    @model_validator(mode="after")
    def _check_letters(self) -> Self:
        """Refuse what is only of the probabilities of two rows of the file."""
        if self.engine and (self.labels or self.matcher or self.against is not None or self.by == "meaning"):
            raise OptionError(
                "engine: compares lines of the file by letters, without labels; leave it out, or what else is compared",
                field="engine",
            )
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
        if self.precision is not None and (self.labels or self.matcher):
            raise OptionError(
                "precision: is of the pair model, and a matcher has its own scores; leave it out, or what teaches it",
                field="precision",
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
        tables = [self.source, *self.more_sources]
        engine = open_engine(self.engine)  # a missing library is reported before anything is read
        inputs = [*tables, self.against, self.groups_file, *self.labels, self.matcher]
        run = self.begin_run(watch, self.output, self.unique, self.map, inputs=inputs)
        if self.groups_file is not None:
            check_no_input(self.groups_file, [*tables, *self.labels, self.matcher])
        known = load_matcher(self.matcher) if self.matcher else None
        on = tuple(dict.fromkeys(self.on or ([left for left, _ in known.columns] if known else (COLUMN,))))
        if not self.more_sources:
            name = "standard input" if self.source == STDIN else self.source.name
            return self._run(run, name, on, known, None, watch, engine)
        files = [(path, self._format_of(path)) for path in tables]
        # Which columns an index has is known later.
        compared = on if self.against is None else [split_names(name)[0] for name in self.on]
        with nameless_file() as (out, path):
            joined = join_tables(files, compared, out, self.on_error, watch)
            out.flush()
            one = {"source": path, "input_format": "jsonl", "encoding": UTF_8, "delimiter": None, "sheet": None}
            job = self.model_copy(update=one)
            return job._run(run, ", ".join(name_sources(tables)), on, known, joined, watch, engine)

    def _format_of(self, path: Path) -> FileFormat:
        """Return the format of one of several files."""
        form = self.input_format or form_of(path)
        return FileFormat(form, self.delimiter, self.encoding, self.sheet if form in SPREADSHEETS else None)

    def _run(
        self,
        run: JobRun,
        name: str,
        on: tuple[str, ...],
        known: LearnedMatcher | None,
        joined: JoinedTables | None,
        watch: JobWatch,
        engine: Engine,
    ) -> DedupeResult:
        """Find the duplicates of one file, which may be several that were joined; `name` is what it is called."""
        with readable_twice(self.source) as file:
            index = Index(self.against, threads=self.threads) if self.against is not None else None
            if index is not None:
                others = known_columns(self.on, index, is_text=self.file_format().form == "txt")
                on = tuple(others)
            table = read_rows(
                file, self.file_format(), on, self.id, on_error=self.on_error, progress=watch,
                name=name if self.source == STDIN or joined else None,
            )  # fmt: skip
            if joined is not None:
                ids = table.ids if table.has_ids else [str(line) for line in joined.lines]
                table = table._replace(ids=ids, sources=joined.sources, lines_there=joined.lines)
            check_merge(self.merge, table.table.found, table.id_column)
            kept = (
                None
                if self.groups_file is None
                else GroupFile(
                    self.groups_file, on, table.id_column, has_sources=table.sources is not None and table.has_ids
                )
            )
            distinct = distinct_rows(table.columns)
            rows = RowList(table, on, self.columns, file, self.file_format(), safe_cells=self.safe_cells, bom=self.bom)
            page: MakesPage
            if index is None:
                duplicates = self._find_duplicates(file, table, distinct, known, watch, engine)
                if kept is not None:
                    # Before any list is written: an id in it must never be given to another group.
                    duplicates = _keep_groups(kept, duplicates, table, watch)
                result = self._list_duplicates(duplicates, table, rows, watch)
                page = partial(dedupe_report, duplicates, table, title=f"Duplicates in {name}", columns=on)
            else:
                # A report also shows what is below the threshold.
                threshold = KNOWN_THRESHOLD if self.threshold is None else self.threshold
                lowest = threshold if self.report is None else 0.0
                best = known_rows(distinct, [*others.values()], index, lowest, progress=watch)
                watch.close()
                result = self._list_known([row for row in best if row.score >= threshold], threshold, table, rows)
                watch.report(
                    f"{len(result.known):,} of {len(table.ids):,} {table.table.unit}s are in {self.against} already,"
                    f" at the threshold {threshold:.3f}"
                )
                page = partial(known_report, best, threshold, table, title=f"Lines of {name} in {self.against}")
            if self.unique is not None:
                self._write_kept(self.unique, file, table, result, watch)
            counts = {self.source: len(table.ids)}
            if joined is not None:
                counts = {Path(source): rows for source, rows in Counter(joined.sources).items()}
            run.write_report(self.report, page, partial(self.model_fact, same=index is None), counts)
        _report_uncompared(table, distinct, watch)
        return result

    def _list_duplicates(
        self, duplicates: DuplicateRows, table: DedupeTable, rows: RowList, watch: JobWatch
    ) -> DedupeResult:
        """List the pairs or groups of the file."""
        if self.unique is not None or self.map is not None:
            _warn(table, duplicates, watch)
        if self.map is not None:
            rows.write_map(self.map, self._map_form(), duplicates.map)
            number = len(duplicates.map.rows)
            watch.report(f"{number:,} {table.table.unit}{'s' * (number != 1)} with the one that stays, in {self.map}")
        if self.output is not None and self.groups:
            rows.write_groups(self.output, self._list_form(), duplicates)
        elif self.output is not None:
            pairs = duplicates.pairs_up_to(self.max_pairs)
            reasons = duplicates.reasons(pairs, table.on) if self.explain else None
            rows.write_pairs(self.output, self._list_form(), pairs, reasons)
        return DedupeResult(table.ids, table.lines, duplicates.dropped, duplicates, [], duplicates.threshold)

    def _list_known(self, known: list[KnownRow], threshold: float, table: DedupeTable, rows: RowList) -> DedupeResult:
        """List the rows that an index has already."""
        if self.output is not None:
            rows.write_known(self.output, self._list_form(), known)
        dropped = np.array([row.row for row in known], np.int64)
        return DedupeResult(table.ids, table.lines, dropped, None, known, threshold)

    def _list_form(self) -> TableForm:
        """Return the form of the list. Raises InputError for an ending that no form has."""
        return self.output_form("tsv")

    def _map_form(self) -> TableForm:
        """Return the form of the map. Raises InputError for an ending that no form has."""
        return form_to_write(self.map, TABLE_FORMS, option="")

    def _find_duplicates(
        self,
        file: Path,
        table: DedupeTable,
        distinct: DistinctRows,
        known: LearnedMatcher | None,
        watch: JobWatch,
        engine: Engine,
    ) -> DuplicateRows:
        """Return the duplicates among the rows of the file."""
        limit = self.max_pairs if self.output is not None and not self.groups else None
        if self.labels or known:
            likely = self._find_labeled(table, distinct, known, limit, watch)
        elif self.by == "letters":
            threads = self.threads or count_cores()
            likely = likely_pairs(
                distinct.columns, self.threshold, self.precision, explain=self.explain or self.report is not None,
                threads=threads, engine=engine, max_pairs=limit, progress=watch,
            )  # fmt: skip
        else:
            embedder = load(self.model or DEFAULT_MODEL, device=self.device)
            likely = meaning_pairs(
                distinct.join_columns(), embedder, self.threshold, max_pairs=limit or MAX_PAIRS, progress=watch
            )
        watch.close()
        _report_pairs(likely, table.table.unit, self.by, self.precision, watch)
        cells = None
        if self.keep == "complete":
            counts = count_cells(file, self.file_format())
            cells = np.array([counts[number] for number in table.table.numbers], np.int64)
        ids = table.ids if table.has_ids else None
        names = RowNames(table.on, ids, table.lines, table.id_column, table.sources)
        return DuplicateRows(distinct, likely, staying_rows(distinct, likely.sure_pairs(), self.keep, cells), names)

    def _find_labeled(
        self,
        table: DedupeTable,
        distinct: DistinctRows,
        known: LearnedMatcher | None,
        limit: int | None,
        watch: JobWatch,
    ) -> LikelyPairs:
        """Return the pairs by what labels teach, or by a matcher."""
        labels = None
        if self.labels:
            if table.has_ids:
                check_ids(table.table, table.ids)
            names = [(name, name) for name in table.on]

            def digest_of(left: int, right: int) -> str:
                texts = [[column[row] for column in table.columns] for row in (left, right)]
                return digest_texts(names, texts[0], texts[1], same=True)

            of_texts = labels_of_texts(
                self.read_labels(table.ids, table.ids, digest_of, self.on_error, watch, numbered=not table.has_ids),
                distinct.of_row,
            )
            labels = of_texts.labels
            for sentence in of_texts.sentences():
                watch.report(sentence)
        found = labeled_pairs(
            distinct.columns, table.on, labels, known, self.threshold, explain=self.explain or self.report is not None,
            threads=self.threads or count_cores(), max_pairs=limit, progress=watch,
        )  # fmt: skip
        if found.why_not is not None:
            watch.report(f"{found.why_not}; the labels hold for their pairs, and the pair model scores the others")
        elif found.matcher is not None and labels is not None:
            report_learned(found.matcher, watch, same=True)
        return found.likely

    def _merge(self, file: Path, table: DedupeTable, result: DedupeResult) -> dict[int, dict[str, Any]]:
        """Return the values that rows which stay get from others, by the row's number and the column."""
        if not self.merge or result.duplicates is None:
            return {}
        numbers = table.table.numbers
        names = [name for name in table.table.found if table.sources is None or name != SOURCE]
        groups = {
            numbers[kept]: [numbers[row] for row in rows] for kept, rows in groups_of(result.duplicates.stays).items()
        }
        records = read_records(file, self.file_format(), [number for rows in groups.values() for number in rows])
        return merge_records(self.merge, groups, records, names, table.id_column)

    def _write_kept(self, keep: Path, file: Path, table: DedupeTable, result: DedupeResult, watch: JobWatch) -> None:
        """Write the rows that stay, and report how many they are."""
        numbers = np.asarray(table.table.numbers, np.int64)[result.dropped]
        form = form_to_keep(self.source, self.file_format(), keep)
        if table.sources is not None and keep == STDIN:
            form = "csv"
        merged = self._merge(file, table, result)
        write_kept(file, self.file_format(), form, table.table.found, numbers, merged, keep)
        rows = len(table.ids) + table.table.bad.count
        changed = f", {len(merged):,} of them with values of others" if self.merge else ""
        watch.report(f"{rows - len(result.dropped):,} of {rows:,} {table.table.unit}s kept{changed}")
        for row in result.known[:SAMPLE]:
            watch.report(f"left out, {table.name(row.row)}: {_quote(table.text(row.row))}; known as {_quote(row.text)}")


def _keep_groups(file: GroupFile, found: DuplicateRows, table: DedupeTable, watch: JobWatch) -> DuplicateRows:
    """Return duplicates with the ids of their groups, after the file of groups is written."""
    ids = table.ids if table.has_ids else None
    changes = file.update(found.distinct, found.likely.pairs, ids, table.sources, table.name)
    watch.report(f"{file.path}: {changes}")
    return replace(found, group_ids=changes.ids)


def _report_pairs(likely: LikelyPairs, unit: str, by: By, precision: float | None, watch: JobWatch) -> None:
    """Report how many pairs there are, how many are expected to be right, and the share that was found."""
    if number := len(likely.pairs.left):
        right = f", of which {likely.expected} are expected to be right" if likely.expected else ""
        watch.report(
            f"{number:,} pair{'s' * (number != 1)} of different {unit}s at the threshold {likely.threshold:.3f}{right}"
        )
    elif precision is None:
        alike = "are alike enough in meaning" if by == "meaning" else "are probable enough to be the same"
        watch.report(f"no two different {unit}s {alike}: none reach the threshold {likely.threshold:.3f}")
    else:
        watch.report(
            f"no pairs of different {unit}s are so sure that they have the precision {precision:g} in nine of ten"
            " tables; give a lower `precision`, or a `threshold`"
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
