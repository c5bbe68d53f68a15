"""`gramvec match`."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson
from tqdm import tqdm

from gramvec.bulk import COLUMN, cores
from gramvec.cli.embed import progress, threads_option, told_to_stop
from gramvec.files import FORMS, STDIN, Form, form_of, whole
from gramvec.matching import THRESHOLD, Field, Matches, Table, explained, match_fields, read_table

OUTPUTS = ("csv", "tsv", "jsonl")
TABLE = click.Path(path_type=Path, exists=True, dir_okay=False)


class _On(click.ParamType):  # type: ignore[type-arg] # click 8.1 takes no argument here
    """LEFT[=RIGHT][:WEIGHT] as (left column, right column, weight)."""

    name = "COLUMN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str, float]:
        if isinstance(value, tuple):
            return value
        names, colon, weight = value.rpartition(":")
        try:
            number = float(weight) if colon else 1.0
        except ValueError:  # a column's name may have a colon
            names, colon, number = value, "", 1.0
        left, equals, right = (names if colon else value).partition("=")
        if not left or (equals and not right) or not 0 < number < float("inf"):
            self.fail(f"{value!r} is not COLUMN, COLUMN=OTHER or COLUMN:WEIGHT with a weight above 0", param, ctx)
        return left, right or left, number


@click.command("match", short_help="Match the rows of two tables.")
@click.argument("left", type=TABLE)
@click.argument("right", type=TABLE)
@click.option("--on", type=_On(), multiple=True, metavar="COLUMN[=OTHER][:WEIGHT]",
              help="Compare this column, called OTHER in RIGHT; weight 1 if none is given; repeatable.  "
              f"[default: {COLUMN}]")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="A .csv, .tsv or .jsonl file. [stdout]")  # fmt: skip
@click.option("--format", "form", type=click.Choice(OUTPUTS), help="[by OUTPUT's ending, or csv]")
@click.option("--top", type=click.IntRange(min=1), default=1, show_default=True,
              help="So many rows of RIGHT for a row of LEFT, at most.")  # fmt: skip
@click.option("--threshold", type=click.FloatRange(0, 1), default=THRESHOLD, show_default=True,
              help="The least score of a match.")  # fmt: skip
@click.option("--one-to-one", is_flag=True,
              help="No row is in two matches: greedily, best first, of each row's 10 nearest.")  # fmt: skip
@click.option("--block", metavar="COLUMN[=OTHER]",
              help="Compare only rows with the same value here, but for case and spaces; none with none.")  # fmt: skip
@click.option("--id", "id_column", metavar="COLUMN[=OTHER]",
              help='What names a row. ["id" if there is one, or its number]')  # fmt: skip
@click.option("--explain", is_flag=True, help="Add what two texts share, and what each has alone.")
@click.option("--left-format", type=click.Choice(FORMS), help="[by LEFT's ending, or txt]")
@click.option("--right-format", type=click.Choice(FORMS), help="[by RIGHT's ending, or txt]")
@threads_option
def match_command(
    left: Path,
    right: Path,
    on: tuple[tuple[str, str, float], ...],
    output: Path | None,
    form: str | None,
    top: int,
    threshold: float,
    one_to_one: bool,
    block: str | None,
    id_column: str | None,
    explain: bool,
    left_format: Form | None,
    right_format: Form | None,
    threads: int | None,
) -> None:
    """For each row of LEFT, the rows of RIGHT that are most alike: ids, score, texts.

    Both are files that `gramvec embed` reads. Rows are compared by n-grams, those that few rows of the two tables have
    count most; no model and no label is needed. Every two rows are considered, exactly. SciPy is: pip install
    'gramvec[match]'.

    \b
    Examples:
      gramvec match ours.csv theirs.csv --on name -o matches.csv
      gramvec match ours.csv theirs.parquet --on title=name --on brand:0.5 --one-to-one --explain
      gramvec match people.jsonl register.tsv --on name --block city --top 3 --threshold 0.5
    """  # noqa: D301 - click takes the character, not its escape
    columns = on or ((COLUMN, COLUMN, 1.0),)
    if len({(a, b) for a, b, _ in columns}) < len(columns):
        raise click.UsageError("--on names a column twice; give its weight once")
    form = form or (form_of(output) if output is not None and form_of(output) in OUTPUTS else "csv")
    blocks = _names("--block", block) if block else None
    ids = _names("--id", id_column) if id_column else (None, None)
    with told_to_stop():
        tables = []
        for side, (path, form_in) in enumerate([(left, left_format), (right, right_format)]):
            wanted = [one[:2][side] for one in columns] + ([blocks[side]] if blocks else [])
            with progress(f"reading {path.name}") as watch:
                tables.append(read_table(path, form_in or form_of(path), wanted, ids[side], watch=watch))
        one, other = tables
        fields = [Field(one.columns[a], other.columns[b], weight) for a, b, weight in columns]
        keys = (one.columns[blocks[0]], other.columns[blocks[1]]) if blocks else None
        with _Bar() as bar:
            found = match_fields(
                fields, keys, top=top, threshold=threshold, one_to_one=one_to_one, threads=threads or cores(),
                watch=bar.watch,
            )  # fmt: skip
        records = _records(found, one, other, fields, explain=explain)
        _write(output, form, records, explain=explain)
    matched = len(set(found.left.tolist()))
    click.echo(f"{matched:,} of {len(one.ids):,} rows of {left} have a match, {len(found.left):,} pairs", err=True)


def _names(option: str, value: str) -> tuple[str, str]:
    left, equals, right = value.partition("=")
    if not left or (equals and not right):
        raise click.UsageError(f"{option} {value!r} is not COLUMN or COLUMN=OTHER")
    return left, right or left


class _Bar:
    """A bar on a terminal's stderr for each thing that is done."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def watch(self, what: str, done: int, total: int) -> None:
        if self._bar is None or self._bar.desc != what:
            self.__exit__()
            self._bar = tqdm(desc=what, total=total, unit=" rows", unit_scale=True, disable=None, file=sys.stderr)
            self._bar.desc = what
        self._bar.update(done)


def _records(
    found: Matches, left: Table, right: Table, fields: Sequence[Field], *, explain: bool
) -> Iterator[dict[str, Any]]:
    for a, b, score in zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True):
        columns = [[field[:2][side][row] for field in fields] for side, row in enumerate((a, b))]
        texts = [" | ".join(values) for values in columns]
        record = {
            "left_id": left.ids[a], "right_id": right.ids[b], "score": round(score, 4),
            "left": texts[0], "right": texts[1],
        }  # fmt: skip
        yield record | (explained(*map(" ".join, columns))._asdict() if explain else {})


def _write(output: Path | None, form: str, records: Iterator[dict[str, Any]], *, explain: bool) -> None:
    names = [
        "left_id",
        "right_id",
        "score",
        "left",
        "right",
        *(("shared", "only_left", "only_right") if explain else ()),
    ]
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
