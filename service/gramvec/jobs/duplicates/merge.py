"""Golden records: each column of a row that stays gets the best value of the rows that it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator

from gramvec.errors import InputError, quote
from gramvec.jobs.matching.on import split_names
from gramvec.jobs.pairs.dates import DateOrder, date_order, read_date
from gramvec.jobs.pairs.tokens import fold_text
from gramvec.jobs.tables.columns import text_of, value_or_none
from gramvec.text.arrays import Int64s
from gramvec.text.frames import to_plain

MergeKind = Literal["filled", "longest", "frequent", "newest"]
KINDS: tuple[MergeKind, ...] = get_args(MergeKind)
# A longer text is no date.
MAX_DATE = 64
WANTED = "give filled, longest, frequent or newest:COLUMN (of dates), for all columns, or for one as in name=longest"
# A moment that can be compared with the others of its column; None without one.
Moment = tuple[float, ...] | None


class MergeRule(NamedTuple):
    """Rule by which a column gets its value.

    Attributes:
        column: its name; None for all columns that have no rule of their own.
        kind: "filled" for the own value, else the first one that is there; "longest"; "frequent" for what stands most
            often; "newest" for that of the row with the latest date. The own value goes before others that are equal.
        by: of "newest", the column of the dates.
    """

    column: str | None
    kind: MergeKind
    by: str | None = None


def parse_merge(given: Any) -> list[MergeRule]:
    """Return the rules of texts such as "longest", "name=frequent" and "phone=newest:updated", or of a mapping.

    Args:
        given: a text, texts, rules, or a mapping of columns (None for all others) to "longest" and the like.

    Raises:
        InputError: a rule is none of these, or a column has two.
    """
    if isinstance(given, Mapping):
        rules = [_rule_of(None if column is None else str(column), str(rule)) for column, rule in given.items()]
    else:
        texts = [given] if isinstance(given, str) else given
        rules = [_parse(text) if isinstance(text, str) else MergeRule(*text) for text in texts]
    for column, number in Counter(rule.column for rule in rules).items():
        if number > 1:
            what = "there are rules for all columns" if column is None else f"{quote(column)} has rules"
            raise InputError(f"merge: {what}, {number} of them; leave one", field="merge")
    return rules


MergeRules = Annotated[tuple[MergeRule, ...], BeforeValidator(parse_merge)]


def _parse(text: str) -> MergeRule:
    name, rule = split_names(text)
    return _rule_of(None, name) if rule is None else _rule_of(name, rule)


def _rule_of(column: str | None, rule: str) -> MergeRule:
    name, _, by = rule.partition(":")
    kind = next((kind for kind in KINDS if kind == name), None)
    if kind is None or column == "" or (kind == "newest") != bool(by):
        raise InputError(f"merge: {quote(rule)} is no rule; {WANTED}", field="merge")
    return MergeRule(column, kind, by or None)


def check_merge(rules: Sequence[MergeRule], names: Iterable[str], id_column: str | None) -> None:
    """Raise InputError for a rule of a column that is not there, or of the ids, which stay as they are."""
    known = [*names]
    for column in (name for rule in rules for name in (rule.column, rule.by) if name is not None):
        if column not in known:
            there = quote(", ".join(known))
            raise InputError(f"merge: there is no column {quote(column)}; there are {there}", field="merge")
    if id_column is not None and any(rule.column == id_column for rule in rules):
        raise InputError(
            f"merge: {quote(id_column)} is the column of the ids, which stay as they are; leave its rule out",
            field="merge",
        )


def groups_of(stays: Int64s) -> dict[int, list[int]]:
    """Return the rows that each of several stands for, itself first, by that row; `stays` int64[n]."""
    found: dict[int, list[int]] = {}
    for row, kept in enumerate(stays.tolist()):
        if row != kept:
            found.setdefault(kept, [kept]).append(row)
    return found


def merge_records(
    rules: Sequence[MergeRule],
    groups: Mapping[int, Sequence[int]],
    records: Mapping[int, Mapping[str, Any]],
    names: Sequence[str],
    id_column: str | None,
) -> dict[int, dict[str, Any]]:
    """Return the values of the rows that stay which differ from their own, by row and column.

    Args:
        rules: what decides each column.
        groups: the rows that each stands for, itself first.
        records: the columns of all these rows.
        names: the columns.
        id_column: that has the ids, which stay as they are; None without one.

    Raises:
        InputError: `check_merge` refuses the rules, or no value of a column of dates is one.
    """
    check_merge(rules, names, id_column)
    of_column = {rule.column: rule for rule in rules}
    chosen = {name: of_column.get(name, of_column.get(None)) for name in names if name != id_column}
    moments = {
        by: _moments({row: value_or_none(records[row], by) for rows in groups.values() for row in rows}, by)
        for by in {rule.by for rule in rules if groups}
        if by is not None
    }
    found: dict[int, dict[str, Any]] = {}
    for kept, rows in groups.items():
        for name, rule in chosen.items():
            if rule is None:
                continue
            values = [(row, value_or_none(records[row], name)) for row in rows]
            filled = [(row, value) for row, value in values if text_of(value).strip()]
            if filled:
                row, value = _choose(rule, filled, {} if rule.by is None else moments[rule.by])
                if row != kept and text_of(value) != text_of(values[0][1]):
                    found.setdefault(kept, {})[name] = value
    return found


def _choose(rule: MergeRule, filled: Sequence[tuple[int, Any]], moments: Mapping[int, Moment]) -> tuple[int, Any]:
    """Return the row and the value that a rule chooses: of equal ones the first."""
    texts = [text_of(value).strip() for _, value in filled]
    if rule.kind == "longest":
        best = max(range(len(texts)), key=lambda at: len(texts[at]))
    elif rule.kind == "frequent":
        best = texts.index(Counter(texts).most_common(1)[0][0])
    elif rule.kind == "newest":
        dated = [(moment, at) for at, (row, _) in enumerate(filled) if (moment := moments.get(row)) is not None]
        best = max(dated, key=lambda moment: moment[0])[1] if dated else 0
    else:
        best = 0
    return filled[best]


def _moments(values: Mapping[int, Any], column: str) -> dict[int, Moment]:
    """Return when each row is of: dates and times, or numbers where all values are. Raises InputError for no such."""
    texts = {row: text.strip() for row, value in values.items() if (text := _as_text(value)).strip()}
    numbers = {row: _number(text) for row, text in texts.items()}
    if None not in numbers.values():
        return {row: (number,) for row, number in numbers.items() if number is not None}
    folded = {row: fold_text(text) for row, text in texts.items() if len(text) <= MAX_DATE}
    order = date_order(folded.values())
    found = {row: _moment(texts[row], text, order) for row, text in folded.items()}
    if not any(found.values()):
        raise InputError(f"merge: no value of {quote(column)} is a date; name the column of the dates", field="merge")
    return found


def _as_text(value: Any) -> str:
    return text_of(value if isinstance(value, str | int | float) or value is None else to_plain(value))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _moment(text: str, folded: str, order: DateOrder) -> Moment:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        date = read_date(folded, order)
        return None if date is None else (date.year, date.month, date.day, 0.0)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return (moment.year, moment.month, moment.day, (moment - midnight).total_seconds())
