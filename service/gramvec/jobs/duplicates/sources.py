"""Several tables as one: the rows of one after those of the other, each with the table that it is of, its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gramvec.errors import InputError, quote
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.duplicates.api import why_not_compared
from gramvec.jobs.duplicates.distinct import SOURCE
from gramvec.jobs.tables.columns import TableRows, text_of, value_or_none
from gramvec.jobs.tables.inputs import STDIN, FileFormat, readable_twice
from gramvec.jobs.tables.writers import json_line


class JoinedTables(NamedTuple):
    """Rows of several files that were joined in one.

    Attributes:
        sources: the source of each row: its file's name, or its path where two files have one name.
        lines: the line of each row in its own file, or its number there.
    """

    sources: list[str]
    lines: list[int]


def join_tables(
    files: Sequence[tuple[Path, FileFormat]], on: Sequence[str], out: BinaryIO, on_error: OnError, watch: JobWatch
) -> JoinedTables:
    """Write the rows of several files as JSON lines, with their columns by name and one of their sources.

    Args:
        files: where they are, and their formats.
        on: the compared columns, whose texts must be ones that are compared; one that a file lacks is told.
        out: the file.
        on_error: "stop" at a bad row, or "skip" it.
        watch: receives what is left out.

    Raises:
        InputError: naming file and line, for a bad row if `on_error` is "stop"; a file has a column of this name.
    """
    joined = JoinedTables([], [])
    for name, (path, form) in zip(name_sources([path for path, _ in files]), files, strict=True):
        with readable_twice(path) as file, TableRows(file, form, name=name) as rows:
            bad, has, good = BadRows(on_error, rows.unit, f"{name}: "), dict.fromkeys(rows.names or ()), 0
            for row in rows:
                texts = (text_of(value_or_none(row.record, column)) for column in on)
                if why := row.why or next(filter(None, map(why_not_compared, texts)), None):
                    bad.add(row.number, why)
                    continue
                has.update(dict.fromkeys(row.record))
                if SOURCE in has:
                    break
                good += 1
                joined.sources.append(name)
                joined.lines.append(row.number)
                out.write(json_line(row.number, {SOURCE: name, **row.record}))
        if SOURCE in has:
            raise InputError(f"{name}: has a column {SOURCE}, which says here of which table a row is; rename it")
        for sentence in bad.report(good + bad.count, "could not be compared"):
            watch.report(f"{name}: {sentence}")
        if good and (without := [column for column in on if column not in has and "." not in column]):
            watch.report(f"{name}: has no column {', '.join(map(quote, without))}; its rows have nothing there")
    return joined


def name_sources(paths: Sequence[Path]) -> list[str]:
    """Return what files are called: their names, or where two have one name the paths as they are given."""
    names = ["standard input" if path == STDIN else path.name for path in paths]
    return [str(path) if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]
