"""`MatchJob`: two files of tables into a file of matches. `PairsJob`: a file of pairs of texts into their scores."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.jobs.common.columns import Columns, read_columns
from gramvec.jobs.common.engines import HERE, Engine, EngineName, open_engine
from gramvec.jobs.common.file_job import OptionError, PositiveNumber, RowColumns, ThreadCount, UnitNumber
from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.run import TableOutput
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fields import ChosenMatches, Field, choose
from gramvec.jobs.matching.fit_matcher import fit_matcher
from gramvec.jobs.matching.inputs import DIGEST
from gramvec.jobs.matching.label_options import PairLabelOptions, report_learned
from gramvec.jobs.matching.learned_reasons import HeldReasons, LearnedReasons
from gramvec.jobs.matching.match_rows import (
    COUNTED,
    EXPLAINED,
    NAMES,
    REVIEWED,
    add_columns,
    records_of,
    with_unmatched,
    words_of_one,
)
from gramvec.jobs.matching.match_tables import MIN_SCORE, check_unweighted, match_fields
from gramvec.jobs.matching.matcher import LearnedMatcher, PairLabels, hold_labels, score_candidates
from gramvec.jobs.matching.matcher_file import load_matcher, save_matcher
from gramvec.jobs.matching.nearest import Matches, select_pairs
from gramvec.jobs.matching.on import ComparedColumn
from gramvec.jobs.matching.proposals import propose_matches
from gramvec.jobs.matching.report import given_report, match_report, name_columns, pair_model_fact
from gramvec.jobs.matching.result import MatchResult
from gramvec.jobs.matching.table_files import ReadTables, TableFiles, default_columns
from gramvec.jobs.pairs.given_pairs import score_given
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.jobs.tables.columns import read_records, value_or_none
from gramvec.jobs.tables.inputs import STDIN, readable_twice
from gramvec.jobs.tables.outputs import TABLE_FORMS, form_to_write, free_names, write_table
from gramvec.runtime.base import Device
from gramvec.text.arrays import Floats
from gramvec.threads import count_cores


class MatchJob(TableFiles, PairLabelOptions, TableOutput):
    """Job of `gramvec match`: match the rows of two files, and write ids, scores and texts.

    Example:
        >>> job = MatchJob(left="ours.csv", right="theirs.csv", on="name", output="matches.csv")  # doctest: +SKIP
        >>> job.run().summary  # doctest: +SKIP
        '2 of 3 rows of ours.csv have a match, 2 pairs at the threshold 0.350, of which 97% are expected to be right'

    Attributes:
        top: right rows for a left row at most; "all" for all above the threshold, as None is without labels. With
            labels None is what they say.
        threshold: the lowest score; None for that of the highest expected F1, at least 0.35; one to one for 0.35.
        precision: take the lowest threshold from which on, in nine of ten tables, at least this share is right.
        one_to_one: write each row in one match at most.
        columns: write the "compared" texts, or "all" columns of both rows.
        unmatched: write the rows of both tables that are in no match, too.
        explain: add the words that both texts share, those that only one has, and what counted for and against the
            pair, by column.
        keep_labels: write labeled pairs as the labels have them.
        save_matcher: write what the labels taught to this file.
        review: write the pairs to label next to this file.
        review_pairs: how many of them.
        threads: of the sparse product; None for all cores.
        engine: compare rows and pairs on the machines of "ray" or "spark", with the same matches.

    The other attributes are those of `TableFiles`, `PairLabelOptions` and `TableOutput`.
    """

    top: PositiveNumber | Literal["all"] | None = None
    threshold: UnitNumber | None = None
    precision: UnitNumber | None = None
    one_to_one: bool = False
    columns: RowColumns = "compared"
    unmatched: bool = False
    explain: bool = False
    keep_labels: bool = False
    save_matcher: Path | None = None
    review: Path | None = None
    review_pairs: PositiveNumber = 100
    threads: ThreadCount | None = None
    engine: EngineName | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.engine and (self.labels or self.matcher or self.review):
            raise OptionError(
                "engine: compares without labels; what learns from them, and `review`, work in one process, so leave it"
                " out",
                field="engine",
            )
        if self.top == "all" and self.one_to_one:
            raise OptionError(
                'top: "all" writes every row above the threshold; leave it out, or `one_to_one`', field="top"
            )
        if self.precision is not None and self.threshold is not None:
            raise OptionError("precision: chooses the threshold; give it, or `threshold`", field="precision")
        if self.precision is not None and (self.labels or self.matcher):
            raise OptionError(
                "precision: is promised by the pair model, and a matcher has its own scores; give `threshold`",
                field="precision",
            )
        if self.save_matcher and not self.labels:
            raise OptionError("save_matcher: writes what `labels` taught; give `labels`", field="save_matcher")
        if self.keep_labels and not self.labels:
            raise OptionError("keep_labels: writes pairs as `labels` has them; give `labels`", field="keep_labels")
        if self.columns == "all" and STDIN in (self.left, self.right):
            raise OptionError(
                'columns: "all" reads both tables again, and standard input cannot be; give a file', field="columns"
            )
        if len({(column.left, column.right) for column in self.on}) < len(self.on):
            raise OptionError("on: names a column twice; give its weight once", field="on")
        self.output_form()
        if self.review:
            form_to_write(self.review, TABLE_FORMS, option="")
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> MatchResult:
        """Match the tables, write the outputs that the record names, and return the matches.

        Args:
            watch: receives the progress and the messages.

        Raises:
            InputError: a file cannot be read or used, or an output cannot be written.
        """
        if self.review and self.review.exists():
            raise InputError(
                f"{self.review}: exists already, perhaps with labels; give it to `labels`, and `review` another file"
            )
        if not (self.labels or self.matcher):
            check_unweighted(Field((), (), column.weight) for column in self.on)
        engine = open_engine(self.engine)
        inputs = [self.left, self.right, *self.labels, self.matcher]
        run = self.begin_run(watch, self.output, self.save_matcher, self.review, inputs=inputs)
        known = load_matcher(self.matcher) if self.matcher else None
        tables = self.read_tables(self._columns(known), watch)
        if self.labels or known:
            matched, known = self._match_by_labels(tables, known, watch)
        else:
            matched = self._match_by_pairs(tables, watch, engine)
            if self.review is not None:
                likely = select_pairs(matched.candidates, matched.candidates.scores >= np.float32(MIN_SCORE))
                self._write_review(likely, matched.threshold, None, tables, watch)
        watch.close()
        if self.output is not None:
            self._write(matched, tables, self.output)
        summary = self._summarize(matched, tables, (self.left, self.right))
        page = partial(
            match_report, matched, tables.fields, tables.columns, (tables.left.ids, tables.right.ids),
            title=f"Matches of {self.left.name} and {self.right.name}", same=tables.same,
            summary=self._summarize(matched, tables, (self.left.name, self.right.name)),
        )  # fmt: skip
        rows = {self.left: len(tables.left.ids)} | ({} if tables.same else {self.right: len(tables.right.ids)})
        run.write_report(self.report, page, partial(self.model_fact, same=tables.same), rows)
        return MatchResult(
            matched.matches, matched.threshold, matched.expected, tables.fields,
            tables.left.ids, tables.right.ids, known, summary, [tables.columns[place][0] for place in matched.ignored],
        )  # fmt: skip

    def _columns(self, known: LearnedMatcher | None) -> tuple[ComparedColumn, ...]:
        """Return the compared columns: those of `on`, or those of the matcher."""
        if known is None:
            return default_columns(self.on)
        learned = tuple(
            ComparedColumn(left, right, weight)
            for (left, right), weight in zip(known.columns, known.weights, strict=True)
        )
        if self.on and self.on != learned:
            learned_on = " and ".join(f'`on="{column}"`' for column in learned)
            raise InputError(
                f"on: names other columns than the matcher was learned from; leave it out, or give {learned_on}",
                field="on",
            )
        return learned

    def _limit(self, learned: int | None = None) -> int | None:
        """Return the right rows for a left row, None for all; `learned` unless an option names them."""
        return None if self.top == "all" else self.top or learned

    def _match_by_pairs(self, tables: ReadTables, watch: JobWatch, engine: Engine = HERE) -> ChosenMatches:
        """Return the matches by the pair model."""
        explain = self.explain or self.report is not None
        return match_fields(
            tables.fields, tables.blocks, top=self._limit(), threshold=self.threshold, precision=self.precision,
            one_to_one=self.one_to_one, same=tables.same, explain=explain, threads=self.threads or count_cores(),
            engine=engine, progress=watch,
        )  # fmt: skip

    def _match_by_labels(
        self, tables: ReadTables, known: LearnedMatcher | None, watch: JobWatch
    ) -> tuple[ChosenMatches, LearnedMatcher]:
        """Return the matches and the matcher, after the files of the matcher and the review are written."""
        labels = None
        if self.labels:
            ids = tables.left.ids, tables.right.ids
            labels = self.read_labels(*ids, tables.digest_of, self.on_error, watch, numbered=tables.numbered)
        explain = self.explain or self.report is not None
        pair = TablePair(
            tables.fields, tables.blocks, ngrams=known.ngrams if known else None, same=tables.same, explain=explain,
            threads=self.threads or count_cores(), progress=watch,
        )  # fmt: skip
        if labels is not None:
            known = fit_matcher(pair, tables.columns, labels, watch)
            report_learned(known, watch, same=tables.same)
            if self.save_matcher:
                save_matcher(known, self.save_matcher)
        assert known is not None
        scored = score_candidates(known, pair, watch)
        threshold = known.threshold if self.threshold is None else self.threshold
        ordered = labels.lower_left() if labels is not None and tables.same else labels
        self._write_review(scored, threshold, ordered, tables, watch)
        if ordered is not None and self.keep_labels:
            scored = hold_labels(scored, ordered)
        matched = choose(
            scored, pair.ranks, self._limit(known.top), threshold, one_to_one=self.one_to_one, same=tables.same
        )
        if labels is not None:
            _report_written(matched.matches, labels, watch)
        if explain:
            held = HeldReasons(LearnedReasons(known, pair), ordered if self.keep_labels else None, tables.same)
            matched = matched._replace(reasons=held)
        return matched, known

    def _write_review(
        self, scored: Matches, threshold: float, labels: PairLabels | None, tables: ReadTables, watch: JobWatch
    ) -> None:
        """Write the pairs to label next, if a file is named for them; `labels` are those that are known."""
        if self.review is None:
            return
        pairs = propose_matches(scored, threshold, labels, self.review_pairs)
        records = records_of(pairs, tables.left, tables.right, tables.fields, explain=False)
        rows = (
            record | {"match": "", DIGEST: tables.digest_of(left, right)}
            for record, left, right in zip(records, pairs.left.tolist(), pairs.right.tolist(), strict=True)
        )
        write_table(self.review, form_to_write(self.review, TABLE_FORMS), REVIEWED, rows)
        watch.report(
            f"{len(pairs.left):,} pairs to label are in {self.review}: fill its column match, then give it to `labels`"
        )

    def _write(self, matched: ChosenMatches, tables: ReadTables, output: Path) -> None:
        """Write the table of matches."""
        matches = matched.matches
        sizes = len(tables.left.ids), len(tables.right.ids)
        rows = with_unmatched(matches, sizes, same=tables.same) if self.unmatched else matches
        names = list(NAMES)
        reasons: Iterable[PairReasons] = ()
        if self.explain and matched.reasons is not None:
            words = partial(words_of_one, tables.fields)
            reasons = matched.reasons.of(rows.left, rows.right, name_columns(tables.columns), words)
        records = records_of(rows, tables.left, tables.right, tables.fields, explain=self.explain, reasons=reasons)
        if self.columns == "all":
            both = tables.left.names, tables.right.names
            names, records = add_columns(records, rows, both, self._read_all_columns(rows, tables))
        explained = EXPLAINED if matched.reasons is None else (*EXPLAINED, *COUNTED)
        write_table(output, self.output_form(), [*names, *(explained if self.explain else ())], records,
                    safe_cells=self.safe_cells, bom=self.bom)  # fmt: skip

    def _read_all_columns(self, rows: Matches, tables: ReadTables) -> list[dict[int, dict[str, Any]]]:
        """Return all columns of the rows of both tables, by row: the files are read again."""
        sides = []
        for path, form, table, side in zip(
            (self.left, self.right), self.formats(), (tables.left, tables.right), rows[:2], strict=True
        ):
            wanted = np.unique(side[side >= 0]).tolist()
            records = read_records(path, form, [table.numbers[row] for row in wanted])
            sides.append({row: records[table.numbers[row]] for row in wanted})
        return sides

    def _summarize(self, matched: ChosenMatches, tables: ReadTables, names: tuple[object, object]) -> str:
        """Return what came out of tables of these names, in a sentence."""
        left, sizes = names[0], (len(tables.left.ids), len(tables.right.ids))
        rows, pairs, answered = sizes[0], len(matched.matches.left), len(set(matched.matches.left.tolist()))
        if empty := [str(path) for path, count in zip(names, sizes, strict=True) if not count]:
            return f"0 of {sizes[0]:,} rows of {left} have a match: {' and '.join(dict.fromkeys(empty))} has no rows"
        if not pairs and self.precision is not None:
            return (
                f"0 of {rows:,} rows of {left} have a match: no pairs are so sure that they have the"
                f" precision {self.precision:g} in nine of ten tables; give a lower `precision`, or a `threshold`"
            )
        if not pairs:
            return (
                f"0 of {rows:,} rows of {left} have a match: the tables have nothing in common that is probable enough"
            )
        summary = f"{answered:,} of {rows:,} rows of {left} have a match, {pairs:,} pairs at the threshold "
        summary += f"{matched.threshold:.3f}"
        if self.precision is not None:
            summary += f" of the precision {self.precision:g}"
        if matched.expected is not None:
            summary += f", of which {matched.expected} are expected to be right"
        if matched.below and not (self.labels or self.matcher):
            have = "row has" if matched.below == 1 else "rows have"
            summary += f"; {matched.below:,} {have} only candidates below it"
        if matched.ignored:
            ignored = " and ".join(f'"{tables.columns[place][0]}"' for place in matched.ignored)
            summary += f"; without {ignored}: rows that are otherwise one thing differ there"
        if matched.left_out:
            option = "one_to_one" if self.one_to_one else "top"
            summary += f"; {matched.left_out:,} more pairs above it are left out (`{option}`)"
        return summary


@dataclass(frozen=True)
class PairsResult(ResultTable):
    """Result of scoring pairs.

    Attributes:
        numbers: the line of each pair, or its number where the file has no lines.
        scores: float32[n], the probability that both texts are the same thing.
        meanings: float32[n], the cosine of both texts; None without a model.
        left: one text of each pair.
        right: the other.
    """

    numbers: list[int]
    scores: Floats
    meanings: Floats | None
    left: list[str]
    right: list[str]

    def columns(self) -> dict[str, FrameColumn]:
        """Return what `gramvec pairs` writes of each pair."""
        meaning: dict[str, FrameColumn] = {} if self.meanings is None else {"meaning": self.meanings}
        return {"line": self.numbers, "score": self.scores, **meaning, "left": self.left, "right": self.right}

    def facts(self) -> dict[str, float]:
        """Return nothing: each pair is as it was given."""
        return {}


class PairsJob(InputFile, TableOutput):
    """Job of `gramvec pairs`: score the pairs of texts of a file.

    Example:
        >>> job = PairsJob(source="pairs.csv", left="ours", right="theirs", output="scored.csv")  # doctest: +SKIP
        >>> job.run().scores  # doctest: +SKIP
        array([0.9312, 0.0021], dtype=float32)

    Attributes:
        left: column of one text of each pair.
        right: column of the other.
        model: add the cosine of both texts by this model, in a column "meaning": a name or a folder.
        device: that computes the vectors of `model`.
        columns: write both texts ("compared"), or "all" columns of the input.

    The other attributes are those of `InputFile` and `TableOutput`.
    """

    left: str
    right: str
    model: str | None = None
    device: Device = "auto"
    columns: RowColumns = "compared"

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.output_form()
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> PairsResult:
        """Score the pairs, write the outputs that the record names, and return the scores.

        Args:
            watch: receives the progress and the messages.

        Raises:
            InputError: the file cannot be read or used, or an output cannot be written.
        """
        run = self.begin_run(watch, self.output, inputs=[self.source])
        again = self.columns == "all" and self.source == STDIN
        with readable_twice(self.source) if again else nullcontext(self.source) as file:
            table = read_columns(
                file, [self.left, self.right], format=self.file_format(), on_error=self.on_error, progress=watch,
                options={self.left: "left", self.right: "right"}, name="standard input" if again else None,
            )  # fmt: skip
            watch.close()
            left, right = table.values[self.left], table.values[self.right]
            scores, meanings = score_given([left], [right]), None
            if self.model:
                meanings = load(self.model, device=self.device).pair_similarity(left, right)
            if self.output is not None:
                self._write(self.output, file, table, {"score": scores, "meaning": meanings})
        names = [f"{table.unit} {number}" for number in table.numbers]
        page = partial(given_report, scores, left, right, (self.left, self.right), names)
        run.write_report(self.report, page, partial(pair_model_fact, same=False), {self.source: len(scores)})
        if self.output is not None and self.output != STDIN:
            watch.report(f"{len(table.numbers):,} pairs put into {self.output}")
        for sentence in table.bad.report(len(table.numbers) + table.bad.count, "could not be read"):
            watch.report(sentence)
        return PairsResult(table.numbers, scores, meanings, left, right)

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
        write_table(
            output, self.output_form(), [*cells, *names.values()], rows, safe_cells=self.safe_cells, bom=self.bom
        )


def _report_written(matches: Matches, labels: PairLabels, watch: JobWatch) -> None:
    """Report how many of the labeled pairs are written: fewer than the matcher finds where `top` cuts."""
    width = 1 + max(int(matches.right.max(initial=0)), int(labels.right.max(initial=0)))
    written = np.isin(labels.left * width + labels.right, matches.left * width + matches.right)
    right = int((written & labels.match).sum())
    watch.report(
        f"of the labeled pairs, {right:,} of {int(labels.match.sum()):,} matches and {int(written.sum()) - right:,} of "
        f"{int((~labels.match).sum()):,} others are written"
    )
