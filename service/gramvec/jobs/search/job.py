"""Jobs of an index: it is built of a file, changed, built anew, and searched for the queries of a file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import tee
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.jobs.bulk.embed_file import COLUMN
from gramvec.jobs.common.file_job import FileJob, OptionError, PositiveNumber, ThreadCount
from gramvec.jobs.common.input_file import InputFile
from gramvec.jobs.common.outcome import Done, report_done
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.jobs.search.build import build_index
from gramvec.jobs.search.changes import add_to_index, rebuild_index, remove_from_index
from gramvec.jobs.search.filters import parse_conditions
from gramvec.jobs.search.folder import OLDEST, read_manifest
from gramvec.jobs.search.hits import HIT_COLUMNS
from gramvec.jobs.search.index import MAX_HITS, Index, find_model
from gramvec.jobs.search.snapshot import Hit, Only
from gramvec.jobs.tables.columns import value_or_none
from gramvec.jobs.tables.inputs import FORMS, read_lines
from gramvec.jobs.tables.outputs import TABLE_FORMS, TableForm, check_mark, form_to_write, free_names, write_table
from gramvec.jobs.tables.staging import check_outputs
from gramvec.runtime.base import Device

# Characters of a query in a message.
MAX_SHOWN = 80


class BuildJob(InputFile):
    """Job of `gramvec index build`: build an index of the texts of a file.

    Example:
        >>> BuildJob(source="tickets.csv", column="subject", output="tickets.index").run().rows  # doctest: +SKIP
        1200

    Attributes:
        output: folder of the index; an index that is there is replaced when the new one is complete.
        column: of the texts; of several columns, each row's texts make one.
        id: column of ids, all different; None for the lines' numbers.
        filter: columns that searches can be narrowed by: NAME, NAME:text, NAME:number or NAME:date.
        model: name of a model, or a folder.
        device: that computes the vectors.
        truncate: cut a text at `max_characters` instead of refusing it.
        max_characters: of a text.
        resume: continue where a run with the same options was stopped.
        threads: None for all cores.

    The other attributes are those of `InputFile`.
    """

    output: Path
    column: str | tuple[str, ...] = COLUMN
    id: str | None = None
    filter: tuple[str, ...] = ()
    model: str = DEFAULT_MODEL
    device: Device = "auto"
    truncate: bool = False
    max_characters: PositiveNumber = MAX_CHARACTERS
    resume: bool = False
    threads: ThreadCount | None = None

    def run(self, watch: JobWatch = NO_WATCH) -> Done:
        """Build the index. Raises as `build_index` does."""
        opened = load(self.model, device=self.device, max_characters=self.max_characters, threads=1)
        start = time.monotonic()
        with closing(opened) as embedder:
            done = build_index(
                embedder, self.source, self.output, form=self.file_format(), column=self.column,
                id_column=self.id, filters=self.filter, truncate=self.truncate, on_error=self.on_error,
                resume=self.resume, threads=self.threads, progress=watch,
            )  # fmt: skip
        report_done(done, self.output, time.monotonic() - start, watch)
        return done


class AddJob(InputFile):
    """Job of `gramvec index add`: add the texts of a file to an index, all or none.

    Attributes:
        index: the index, whose columns of texts and ids the file has.
        replace: a row whose id is there takes the place of that row.
        model: name of a model, or a folder; None for the index's.
        device: that computes the vectors.
        truncate: cut texts that are too long.
        threads: None for all cores.

    The other attributes are those of `InputFile`.
    """

    index: Path
    replace: bool = False
    model: str | None = None
    device: Device = "auto"
    truncate: bool = False
    threads: ThreadCount | None = None

    def run(self, watch: JobWatch = NO_WATCH) -> Done:
        """Add the texts. Raises as `add_to_index` does."""
        opened = Index(self.index, model=self.model, device=self.device).embedder
        start = time.monotonic()
        with closing(opened) as embedder:
            done = add_to_index(
                embedder, self.index, self.source, form=self.file_format(), replace=self.replace,
                truncate=self.truncate, on_error=self.on_error, threads=self.threads, progress=watch,
            )  # fmt: skip
        report_done(done, self.index, time.monotonic() - start, watch)
        return done


class RemoveJob(FileJob):
    """Job of `gramvec index remove`: remove rows from an index, all or none.

    Attributes:
        index: the index.
        ids: of the rows.
        file: more ids, one a line.
    """

    index: Path
    ids: tuple[str, ...] = ()
    file: Path | None = None

    def run(self, watch: JobWatch = NO_WATCH) -> int:
        """Remove the rows, and return how many are left. Raises as `remove_from_index` does."""
        ids = [*self.ids, *filter(None, _read_lines(self.file) if self.file is not None else ())]
        if not ids:
            raise OptionError("ids: there are none to remove; give some, or a `file` of them", field="ids")
        left = remove_from_index(self.index, ids)
        watch.report(f"{len(set(ids)):,} rows removed, {left:,} left in {self.index}")
        return left


class RebuildJob(FileJob):
    """Job of `gramvec index rebuild`: build an index anew from the records that it holds.

    Attributes:
        index: the index, which is replaced when the new one is complete.
        model: name of a model, or a folder; None for the index's.
        device: that computes the vectors.
        threads: None for all cores.
    """

    index: Path
    model: str | None = None
    device: Device = "auto"
    threads: ThreadCount | None = None

    def run(self, watch: JobWatch = NO_WATCH) -> int:
        """Build the index anew, and return how many rows it has. Raises as `rebuild_index` does."""
        model = self.model if self.model is not None else find_model(self.index, read_manifest(self.index, OLDEST))
        start = time.monotonic()
        with closing(load(model, device=self.device, threads=1)) as embedder:
            rows = rebuild_index(embedder, self.index, threads=self.threads, progress=watch)
        watch.report(f"{rows:,} rows in {self.index}, in {time.monotonic() - start:.1f} s")
        return rows


class AnsweredQuery(NamedTuple):
    """Query with its hits, the best first."""

    query: str
    hits: list[Hit]


class SearchJob(FileJob):
    """Job of `gramvec search`: find the best texts of an index for each query.

    Example:
        >>> job = SearchJob(index="tickets.index", file="queries.txt", k=3, output="hits.parquet")  # doctest: +SKIP
        >>> job.run()  # doctest: +SKIP
        3

    Attributes:
        index: the index.
        queries: the queries; or
        file: a file of them, one a line.
        where: conditions that hits meet: COLUMN=VALUE, COLUMN!=VALUE, COLUMN>=VALUE or COLUMN:[A TO B].
        k: hits for each query, at most.
        offset: of the best hits, how many are left out, for the next page.
        only: compare only "letters", or only "meaning".
        min_score: leave out hits with a lower score.
        literal: take -word and "a phrase" in a query as they are.
        output: a .csv, .tsv, .jsonl, .parquet or .xlsx file of the hits; - is standard output; None writes none.
        format: of the output; None goes by its ending.
        overwrite: replace an output that gramvec did not write.
        safe_cells: write a cell of CSV or TSV that a spreadsheet would take for a formula as a text, with ' before it.
        bom: begin CSV and TSV with a byte order mark, by which Excel knows UTF-8.
        model: name of a model, or a folder; None for the index's.
        device: that computes the vectors.
        truncate: cut queries that are too long.
        threads: None for all cores.
    """

    index: Path
    queries: tuple[str, ...] = ()
    file: Path | None = None
    where: tuple[str, ...] = ()
    k: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    offset: Annotated[int, Field(ge=0, le=MAX_HITS)] = 0
    only: Only | None = None
    min_score: Annotated[float, Field(ge=0)] = 0.0
    literal: bool = False
    output: Path | None = None
    format: TableForm | None = None
    overwrite: bool = False
    safe_cells: bool = False
    bom: bool = False
    model: str | None = None
    device: Device = "auto"
    truncate: bool = False
    threads: ThreadCount | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.queries and self.file is not None:
            raise OptionError("queries: are given, and so is `file`; leave one of them out", field="queries")
        if not self.queries and self.file is None:
            raise OptionError("queries: none is given; write one, or name a `file` of queries", field="queries")
        if self.file is not None and self.file.suffix.lower().removeprefix(".") in FORMS[1:]:
            raise InputError(
                f"{self.file}: is a table, and `file` has a query a line; save its column of queries as .txt"
            )
        check_mark(form_to_write(self.output, TABLE_FORMS, self.format, "csv"), bom=self.bom)
        return self

    def run(self, watch: JobWatch = NO_WATCH) -> int:
        """Write the hits of all queries, and return how many queries there were.

        Raises InputError for an index, a query or a condition that cannot be used.
        """
        check_outputs(self.output, inputs=[self.index, self.file], overwrite=self.overwrite)
        columns, answers = self.open_answers(watch)
        names = free_names(columns, "record_", HIT_COLUMNS)
        answered = 0

        def records() -> Iterator[dict[str, Any]]:
            nonlocal answered
            for query, hits in answers:
                answered += 1
                for rank, hit in enumerate(hits, start=1):
                    values = (query, rank, round(hit.score, 6), hit.id)
                    others = {free: value_or_none(hit.record, name) for name, free in names.items()}
                    yield dict(zip(HIT_COLUMNS, values, strict=True)) | others

        if self.output is None:
            return sum(1 for _ in answers)
        form = form_to_write(self.output, TABLE_FORMS, self.format, "csv")
        columns = [*HIT_COLUMNS, *names.values()]
        write_table(self.output, form, columns, records(), safe_cells=self.safe_cells, bom=self.bom)
        return answered

    def open_answers(self, watch: JobWatch = NO_WATCH) -> tuple[list[str], Iterator[AnsweredQuery]]:
        """Return the columns of the index, and each query with its hits, which are found as they are asked for."""
        index = Index(self.index, model=self.model, device=self.device, threads=self.threads)
        queries, texts = tee(self.queries if self.file is None else _read_lines(self.file))
        hits = index.stream(
            texts, self.k, offset=self.offset, where=parse_conditions(self.where), only=self.only,
            min_score=self.min_score, literal=self.literal, truncate=self.truncate,
        )  # fmt: skip
        return index.columns, self._answer(queries, hits, watch)

    def _answer(self, queries: Iterator[str], hits: Iterable[list[Hit]], watch: JobWatch) -> Iterator[AnsweredQuery]:
        """Yield each query with its hits, and report those that have none."""
        conditions = ", with these conditions" if self.where else ""
        for query, found in zip(queries, hits, strict=False):
            yield AnsweredQuery(query, found)
            if not found:
                watch.report(f"nothing found for {_quote(query)}{conditions}")


def _quote(query: str) -> str:
    return repr(query if len(query) <= MAX_SHOWN else f"{query[:MAX_SHOWN]}...")


def _read_lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        try:
            yield from read_lines(file)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
