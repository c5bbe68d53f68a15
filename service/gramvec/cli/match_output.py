"""Pairs of rows into CSV, TSV and JSON."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from gramvec.matching.explained import explained
from gramvec.matching.fields import Field
from gramvec.matching.nearest import Matches
from gramvec.matching.tables import Table
from gramvec.tables.inputs import STDIN
from gramvec.tables.staging import whole

OUTPUTS = ("csv", "tsv", "jsonl")
NAMES = ("left_id", "right_id", "score", "left", "right")
EXPLAINED = ("shared", "only_left", "only_right")
REVIEWED = ("left_id", "right_id", "match", "score", "left", "right")


def records_of(
    found: Matches, left: Table, right: Table, fields: Sequence[Field], *, explain: bool
) -> Iterator[dict[str, Any]]:
    """The ids, score and texts of each match, and with `explain` what the texts share, under the names of columns."""
    for a, b, score in zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True):
        columns = [[field[:2][side][row] for field in fields] for side, row in enumerate((a, b))]
        texts = [" | ".join(values) for values in columns]
        record = {
            "left_id": left.ids[a], "right_id": right.ids[b], "score": round(score, 4),
            "left": texts[0], "right": texts[1],
        }  # fmt: skip
        yield record | (explained(*map(" ".join, columns))._asdict() if explain else {})


def write(output: Path | None, form: str, names: Sequence[str], records: Iterator[dict[str, Any]]) -> None:
    """Write records to a file, in one step at the end, or to stdout. names: of the columns."""
    if output is None or output == STDIN:
        _put(sys.stdout.buffer, form, names, records)
        sys.stdout.buffer.flush()
    else:
        with whole(output) as file:
            _put(file, form, names, records)


def _put(file: BinaryIO, form: str, names: Sequence[str], records: Iterator[dict[str, Any]]) -> None:
    if form == "jsonl":
        file.writelines(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n") if form == "csv" else None
    _row(file, text, writer, {name: name for name in names})
    for record in records:
        _row(file, text, writer, record)


def _row(file: BinaryIO, text: io.StringIO, writer: Any, record: dict[str, Any]) -> None:
    values = [" | ".join(value) if isinstance(value, list) else str(value) for value in record.values()]
    if writer is None:  # TSV has no quotes
        file.write(("\t".join(" ".join(value.split()) for value in values) + "\n").encode())
        return
    writer.writerow(values)
    file.write(text.getvalue().encode())
    text.seek(0)
    text.truncate()
