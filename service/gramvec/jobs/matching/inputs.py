"""Files of `gramvec match`: tables with an id for each row, and labeled pairs of their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gramvec.errors import InputError, quote
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.common.columns import MAX_ROWS, Columns, read_columns
from gramvec.jobs.matching.matcher import PairLabels
from gramvec.jobs.tables.columns import TableRows, text_of
from gramvec.jobs.tables.inputs import SPREADSHEETS, UTF_8, FileFormat, Form, form_of
from gramvec.progress import NO_PROGRESS, Progress

# Forms whose columns are named where there is no row.
HEADED = ("csv", "tsv", *SPREADSHEETS)
MAX_LABELS = 1_000_000
MAX_NAMED = 20
# The value of `id` where no column has the ids.
NO_ID = "none"
WANTED = "labels have columns left and right (ids of both tables; or left_id and right_id) and match (1 or 0)"
# In a file that `gramvec match` wrote, left and right are texts.
# Column of the digest of the texts that a pair had when it was labeled.
DIGEST = "texts_digest"
_is_digest = re.compile("[0-9a-f]{16}").fullmatch
DigestOfRows = Callable[[int, int], str]
ID_COLUMNS = (("left_id", "right_id"), ("left", "right"))
ANSWERS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass
class MatchTable:
    """A table that is matched.

    Attributes:
        name: the file's name.
        ids: the id of each row, as text.
        columns: the text of each row by column, "" where it has none.
        numbers: the line of each row, see TableRow.
        names: all columns of the file but that of the ids, in its order.
        bad: the rows that were left out, and what a person should know of the header.
        numbered: whether the ids are the rows' numbers.
    """

    name: str
    ids: list[str]
    columns: dict[str, list[str]]
    numbers: list[int]
    names: list[str]
    bad: BadRows
    numbered: bool = False


class LabelFiles(NamedTuple):
    """Labeled pairs of files, and the bad lines that were skipped."""

    labels: PairLabels
    skipped: int


def read_table(
    path: Path,
    form: Form | FileFormat,
    columns: Sequence[str],
    id_column: str | None,
    block: str | None = None,
    *,
    on_error: OnError = "stop",
    progress: Progress = NO_PROGRESS,
) -> MatchTable:
    """Read the rows of a table.

    Args:
        path: a file that `gramvec embed` reads.
        form: its form, or its whole format.
        columns: the columns to be compared.
        id_column: whose values name the rows; None for "id" if there is one, else the lines' numbers; "none" for the
            numbers whatever there is.
        block: another column to be read, whose values say which rows are compared.
        on_error: "stop" at a bad row, or "skip" it.
        progress: shows the reading.

    Raises:
        InputError: naming file and line, for a bad line, a column that is not there, an id that is missing or occurs
            twice, a file without a header, and too many rows. A table of no rows is none of these.
    """
    options = dict.fromkeys([block] if block else [], "block") | dict.fromkeys(columns, "on")
    names = list(options)
    without = id_column == NO_ID
    if without:
        id_column = None
    wanted = [*names, id_column] if id_column else names
    options |= {id_column: "id"} if id_column else {}
    optional = [] if id_column or without else ["id"]
    table = read_columns(
        path, wanted, format=form, options=options, optional=optional, on_error=on_error,
        progress=progress, task=f"reading {path.name}",
    )  # fmt: skip
    if not table.numbers and not table.found and (form.form if isinstance(form, FileFormat) else form) in HEADED:
        raise InputError(f"{path}: is empty; its first line must name the columns")
    numbered = without or (id_column is None and "id" not in table.found)
    if numbered:
        ids = [str(number) for number in table.numbers]
        other_columns = [*table.found]
    else:
        ids = table.values[id_column or "id"]
        other_columns = [name for name in table.found if name != (id_column or "id")]
        check_ids(table, ids)
    values = {name: table.values[name] for name in names}
    return MatchTable(str(path), ids, values, table.numbers, other_columns, table.bad, numbered)


def check_ids(table: Columns, ids: Sequence[str]) -> None:
    """Raise InputError, naming the line, for a row without an id, and for an id of two rows."""
    first: dict[str, int] = {}
    for number, given_id in zip(table.numbers, ids, strict=True):
        if not given_id:
            raise InputError(
                f"{table.name}: {table.unit} {number}: has no id; name another column with `id`, or number the rows: "
                '`id="none"`'
            )
        if given_id in first:
            raise InputError(
                f"{table.name}: {table.unit}s {first[given_id]} and {number} have the same id {given_id[:100]!r}; "
                'make them different, name another column with `id`, or number the rows: `id="none"`'
            )
        first[given_id] = number


def read_labels(
    paths: Sequence[Path],
    left: Sequence[str],
    right: Sequence[str],
    *,
    delimiter: str | None = None,
    encoding: str = UTF_8,
    on_error: OnError = "stop",
    digest_of: DigestOfRows | None = None,
    numbered: bool = False,
) -> LabelFiles:
    """Read the labeled pairs of files that `gramvec embed` reads. A pair may be given twice.

    A label is 1, true or yes, or 0, false or no, in any case. Rows without one are ignored.

    Args:
        paths: the files.
        left: the ids of the left table's rows.
        right: the ids of the right table's rows.
        delimiter: of CSV; None recognizes it by each file's header.
        encoding: of the files.
        on_error: "stop" at a bad line, and after the last file at pairs with both labels; or "skip" them.
        digest_of: returns `digest_texts` of a left and a right row. A label with the digest of other texts is bad.
        numbered: whether ids are numbers of rows. A label without a digest of the compared columns is bad then, too: it
            may be of a table that was sorted since.

    Raises:
        InputError: naming file and line, for other columns and values, ids of no table, labels of other texts, more
            than 1,000,000 pairs, and all pairs with both labels at once.
    """
    rows = [{given_id: row for row, given_id in enumerate(ids)} for ids in (left, right)]
    found: dict[tuple[int, int], tuple[bool, str]] = {}
    both: dict[tuple[int, int], str] = {}
    skipped = 0

    def why_other(digest: str, left_id: str, right_id: str) -> str | None:
        if digest_of is None:
            return None
        return why_changed(digest, digest_of(rows[0][left_id], rows[1][right_id]), numbered=numbered)

    for path in paths:
        bad = BadRows(on_error, where=f"{path}: ", remedy="")
        for place, label in _labeled_rows(path, FileFormat(form_of(path), delimiter, encoding), rows, bad, why_other):
            left_id, right_id, match = label
            pair = rows[0][left_id], rows[1][right_id]
            first = found.setdefault(pair, (match, place))
            if first[0] != match:
                both.setdefault(pair, f"{quote(left_id)} and {quote(right_id)} ({first[1]} and {place})")
            if len(found) > MAX_LABELS:
                raise InputError(f"{place}: more than {MAX_LABELS:,} labeled pairs; give fewer")
        skipped += bad.count
    if both and on_error == "stop":
        raise InputError(
            f'{_contradictions(both.values())}; keep one of each, or leave them out with `on_error="skip"`'
        )
    kept = _sort_triples((*pair, match) for pair, (match, _) in found.items() if pair not in both)
    return LabelFiles(kept, skipped + len(both))


def labels_of(triples: Iterable[Sequence[Any]]) -> PairLabels:
    """Check (left row, right row, match) triples. Raises InputError for anything else, and for contradictions."""
    found: dict[tuple[int, int], bool] = {}
    both: dict[tuple[int, int], str] = {}
    for number, triple in enumerate(triples):
        try:
            left, right, match = (int(value) for value in triple)
            good = (
                min(left, right) >= 0
                and max(left, right) < MAX_ROWS
                and match in (0, 1)
                and [left, right, match] == list(triple)
            )
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise InputError(f"label {number} is not (left row, right row, 1 or 0), rows from 0", field="labels")
        if found.setdefault((left, right), bool(match)) != bool(match):
            both.setdefault((left, right), f"rows {left} and {right}")
        if len(found) > MAX_LABELS:
            raise InputError(f"more than {MAX_LABELS:,} labeled pairs; give fewer", field="labels")
    if both:
        raise InputError(f"{_contradictions(both.values())}; keep one label of each", field="labels")
    return _sort_triples((*pair, match) for pair, match in found.items())


def _contradictions(pairs: Iterable[str]) -> str:
    named = list(pairs)
    more = f" and {len(named) - MAX_NAMED:,} more" if len(named) > MAX_NAMED else ""
    pairs_are = "pair is" if len(named) == 1 else "pairs are"
    return f"{len(named):,} {pairs_are} labeled both ways: {', '.join(named[:MAX_NAMED])}{more}"


def _sort_triples(triples: Iterable[tuple[int, int, bool]]) -> PairLabels:
    # What is learned does not depend on the order of labels and files.
    columns = np.array(sorted(triples), np.int64).reshape(-1, 3)
    return PairLabels(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(np.bool_))


def _labeled_rows(
    path: Path,
    form: FileFormat,
    ids: Sequence[Mapping[str, int]],
    bad: BadRows,
    why_other: Callable[[str, str, str], str | None],
) -> Iterator[tuple[str, tuple[str, str, bool]]]:
    """Yield (file and line, (left id, right id, match)) of each row that has a label, and add the others that are bad.

    Ids are of any type in a file, because they are often numbers.
    """
    if form.form == "txt":
        raise InputError(f"{path}: {WANTED}; give a .csv, .tsv, .jsonl or .parquet file")
    names: tuple[str, str] | None = None
    try:
        with TableRows(path, form) as rows:
            bad.unit = rows.unit
            if rows.names is not None and "match" not in rows.names:
                has = ", ".join(quote(name) for name in rows.names[:MAX_NAMED])
                separated = ", or say what separates them with `delimiter`" if len(rows.names) == 1 else ""
                raise InputError(f"{path}: {WANTED}; it has {has or 'none'}{separated}")
            for number, record, why in rows:
                place = f"{path}: {rows.unit} {number}"
                if why is not None:
                    bad.add(number, why)
                    continue
                names = names or next((pair for pair in ID_COLUMNS if record.keys() >= set(pair)), None)
                if names is None or not record.keys() >= {*names, "match"}:
                    has = ", ".join(quote(name) for name in list(record)[:MAX_NAMED])
                    raise InputError(f"{place}: {WANTED}; it has {has or 'none'}")
                answer = text_of(record["match"]).strip().casefold()
                if not answer:
                    continue
                left, right = (text_of(record[name]) for name in names)
                wrong = _find_wrong(answer, (left, right), ids) or why_other(text_of(record.get(DIGEST)), left, right)
                if wrong is None:
                    yield place, (left, right, ANSWERS[answer])
                else:
                    bad.add(number, wrong)
    except InputError as error:
        raise InputError(_of_labels(str(error))) from error


def _find_wrong(answer: str, pair: tuple[str, str], ids: Sequence[Container[str]]) -> str | None:
    """Return what is wrong with an answer or the ids of a pair, None if they are good."""
    if answer not in ANSWERS:
        return f"match is {quote(answer)}; write 1 or 0 (true, false, yes, no), or nothing"
    for side, name, known in zip(("left", "right"), pair, ids, strict=True):
        if name not in known:
            return f"no row of the {side} table has the id {quote(name)}; correct it or remove the line"
    return None


def digest_texts(columns: Sequence[tuple[str, str]], left: Sequence[str], right: Sequence[str], *, same: bool) -> str:
    """Return 16 hexadecimal digits of a pair's compared texts: 4 of the columns' names, 12 of the texts.

    The order of the columns makes no difference.

    Args:
        columns: the names of each compared column in both tables.
        left: the texts of the left row.
        right: the texts of the right row.
        same: whether both rows are of one table, where either may be the left one.
    """
    order = sorted(range(len(columns)), key=columns.__getitem__)
    names = _digest(tuple(columns[at]) for at in order)
    rows = [_digest(texts[at] for at in order) for texts in (left, right)]
    return names[:4] + sha256(" ".join(sorted(rows) if same else rows).encode()).hexdigest()[:12]


def _digest(values: Iterable[Any]) -> str:
    return sha256(repr([*values]).encode("utf-8", "surrogatepass")).hexdigest()


def why_changed(digest: str, now: str, *, numbered: bool) -> str | None:
    """Return what is wrong with a label of other texts, or of texts that nobody can tell; None if nothing is.

    Args:
        digest: what the label has of `digest_texts`.
        now: that of its rows.
        numbered: whether its ids are numbers, which name other rows in a table that was sorted; others name their rows
            whatever columns are compared.
    """
    has_digest = _is_digest(digest) is not None
    if has_digest and digest[:4] == now[:4]:
        other = "its rows had other texts when it was labeled; give the table as it was, or remove the line"
        return None if digest == now else other
    if not numbered:
        return None
    if has_digest:
        return (
            "names rows by number, and was labeled by other columns, so they may be other rows; compare those columns,"
            " or name rows by a column of ids (`id`)"
        )
    return (
        f"names rows by number, and has no {DIGEST}, so they may be other rows; name rows by a column of ids (`id`), or"
        " label what gramvec review pairs or `review` writes"
    )


def _of_labels(message: str) -> str:
    """Return a message with the options of labels in the place of those of tables."""
    return re.sub("`(encoding|delimiter)", r"`labels_\1", message)
