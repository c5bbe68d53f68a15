"""Columns that searches can be narrowed by, their values, what `where` may say of them, and the query it becomes.

Queries are built from values, never parsed from text, so no condition needs escaping and none can nest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import InputError, quote
from gramvec.jobs.tables.columns import value_or_none
from gramvec.text.inputs import has_surrogate

MAX_COLUMNS = 16
MAX_NAME = 200
MAX_VALUE_BYTES = 1024
# Values that a row may have in one column.
MAX_VALUES = 100
# Whole numbers up to here are exact as float64, which numbers are compared as.
MAX_EXACT = 1 << 53

FieldKind = Literal["text", "number", "date"]
# A text, a number, or a date as microseconds since 1970.
FilterValue = str | float | int
Label = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Digits as a program writes numbers: 02134 and 1e5 are codes, 1e-05 is a number.
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]\d+)?")
_CODE = re.compile(r"[+-]?0\d")


MAX_WANTED = 1_000
# Intervals of dates that a row may be in one of: each is a search of its own.
MAX_INTERVALS = 100
DAY = timedelta(days=1)

Scalar = str | int | float | bool | date | None
Bounds = Mapping[str, Scalar | Sequence[Scalar]]
# A column -> a value or None for none, a list of them one of which a row has, or bounds as in {"gte": 10, "lt": 20}.
Where = Mapping[str, Scalar | Sequence[Scalar] | Bounds]

BOUNDS = {"gt", "gte", "lt", "lte", "ne"}
_OPERATORS = {">=": "gte", "<=": "lte", ">": "gt", "<": "lt"}
_CONDITION = re.compile(r"(.+?)(>=|<=|!=|>|<|=|:)(.*)", re.DOTALL)
_RANGE = re.compile(r"([\[{])\s*(\S.*?)\s+TO\s+(.*?\S)\s*([\]}])", re.DOTALL)


class FilterColumn(BaseModel):
    """A column that searches can be narrowed by, and the kind of its values."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    column: Label
    kind: FieldKind


def text_of(value: Any) -> str:
    """Return a value of a record as a cell of a table: text unchanged, nothing for null, JSON for the rest."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value, str).decode()


def kind_of(named: str) -> tuple[str, FieldKind | None]:
    """Return the column and the kind of `NAME` or `NAME:KIND`; None where the kind is to follow from the values."""
    name, colon, kind = named.rpartition(":")
    return (name, kind) if colon and kind in get_args(FieldKind) else (named, None)  # type: ignore[return-value]


def columns_of(named: Iterable[str], records: Sequence[Mapping[str, Any]]) -> tuple[FilterColumn, ...]:
    """Return the columns of `NAME` or `NAME:KIND`; a kind that is not given follows from the first records.

    Raises:
        InputError: a column is named twice, there are too many, or no record has a value in one.
    """
    found: list[FilterColumn] = []
    for name, kind in map(kind_of, named):
        check_name(name)
        values = [*chain.from_iterable(values_in(value_or_none(record, name)) for record in records)]
        if records and not values:
            raise InputError(f"no row has a value in {quote(name)}; name a column of the input with `filter`")
        found.append(FilterColumn(column=name, kind=kind or _guess_kind(values)))
    if len({column.column for column in found}) < len(found):
        raise InputError("a column to filter by is named twice; leave one out")
    if len(found) > MAX_COLUMNS:
        raise InputError(f"{len(found)} columns to filter by; an index takes {MAX_COLUMNS}: leave some out")
    return tuple(found)


def check_name(name: str) -> None:
    """Raise InputError for a column's name that the manifest of an index cannot hold."""
    if len(name) > MAX_NAME:
        raise InputError(f"a column's name of over {MAX_NAME} characters cannot be kept; give it a shorter one")
    if not name or has_surrogate(name):
        raise InputError(f"a column's name: must be text that is not empty, got {name!r}; rename the column")


def values_in(value: Any) -> list[Any]:
    """Return the values of a record's column: those of a list, or the one; null and "" are none."""
    values = value if isinstance(value, list) else [value]
    return [value for value in values if value is not None and value != ""]


def value_of(kind: FieldKind, value: Any) -> FilterValue:
    """Return a record's value as its column's kind. Raises ValueError where it is not one."""
    if isinstance(value, bool) and kind != "text":
        raise ValueError
    if kind == "number":
        return _number_of(value)
    if kind == "date":
        return microseconds_of(moment_of(value))
    if isinstance(value, date | time):
        value = value.isoformat()
    text = str(value) if type(value) is int else text_of(value)
    if has_surrogate(text) or len(text.encode()) > MAX_VALUE_BYTES:
        raise ValueError
    return text


def is_code(value: Any) -> bool:
    """Return True for a text that float() reads and a person does not: 02134, 1e5, 1_000, nan."""
    return isinstance(value, str) and (
        _NUMBER.fullmatch(value.strip()) is None or _CODE.match(value.strip()) is not None
    )


def day_of(value: Any) -> date | None:
    """Return the day that a value names as a whole: a date, or a text of one without a time; otherwise None."""
    if isinstance(value, datetime):
        return None
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def moment_of(value: Any) -> datetime:
    """Return a datetime, a date's first moment, or that of an ISO text; without a zone in UTC. Raises ValueError."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if isinstance(value, str) and 8 <= len(value) <= 40:
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise ValueError
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def microseconds_of(moment: datetime) -> int:
    """Return the microseconds from 1970 to a moment."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _number_of(value: Any) -> float:
    if isinstance(value, str) and (len(value) > 100 or "_" in value):
        raise ValueError
    if not isinstance(value, str | int | float | Decimal):
        raise ValueError
    number = float(value)
    # A text or a whole number may be rounded to a number that is within.
    if not math.isfinite(number) or abs(number) > MAX_EXACT or abs(Decimal(value)) > MAX_EXACT:
        raise ValueError
    return number + 0.0  # -0.0 is 0.0


def _guess_kind(values: Sequence[Any]) -> FieldKind:
    kinds: tuple[FieldKind, ...] = ("number", "date")
    for kind in kinds:
        try:
            if kind == "number" and any(map(is_code, values)):
                continue
            if values and [value_of(kind, value) for value in values]:
                return kind
        except (ValueError, OverflowError):
            continue
    return "text"


class Interval(NamedTuple):
    """The numbers or microseconds from `lower` to `upper`, both within; None where there is no bound."""

    lower: float | None
    upper: float | None


class ColumnCondition(NamedTuple):
    """A condition on a column.

    Attributes:
        column: the column.
        texts: those that a row may have, sorted.
        intervals: those that a row's number or date may be in, sorted and apart.
        missing: a row without a value is within, too.
        negated: the rows within are all the others.
    """

    column: FilterColumn
    texts: tuple[str, ...] = ()
    intervals: tuple[Interval, ...] = ()
    missing: bool = False
    negated: bool = False


# All of them hold; equal for what means the same.
Conditions = tuple[ColumnCondition, ...]


def parse_conditions(conditions: Iterable[str]) -> dict[str, Any]:
    """Return `where` from a command's conditions: COLUMN=VALUE, COLUMN!=VALUE, COLUMN>=VALUE, COLUMN:[A TO B].

    {A TO B} leaves the ends out. Several values of one column are alternatives; several bounds all hold. No value is
    a row without one. Raises InputError for anything else.
    """
    where: dict[str, Any] = {}
    for condition in conditions:
        name, bounds, values = _parts(condition)
        held = where.setdefault(name, {} if bounds else [])
        if isinstance(held, dict) != bool(bounds) or (bounds and held.keys() & bounds.keys() - {"ne"}):
            raise InputError(
                f"where: {condition!r} does not go with another condition on {quote(name)}; leave one out",
                field="where",
            )
        if "ne" in bounds:
            bounds = {"ne": [*held.get("ne", []), bounds["ne"]]}
        held.update(bounds) if bounds else held.extend(values)
    return where


def _parts(condition: str) -> tuple[str, dict[str, Any], list[str | None]]:
    """Return the column of a command's condition with its bounds, or with its value."""
    match = _CONDITION.fullmatch(condition)
    if match is None:
        raise InputError(
            f"where: {condition!r} is not a condition; write COLUMN=VALUE, COLUMN!=VALUE, COLUMN>=VALUE or"
            " COLUMN:[A TO B]",
            field="where",
        )
    name, operator, value = match.groups()
    if name != name.rstrip():  # spaces before the operator are spaces around it
        name, value = name.strip(), value.strip()
    if operator in _OPERATORS:
        return name, {_OPERATORS[operator]: value}, []
    if operator == "!=":
        return name, {"ne": value or None}, []
    if match := _RANGE.fullmatch(value):
        opening, lower, upper, closing = match.groups()
        ends = {"gte" if opening == "[" else "gt": lower, "lte" if closing == "]" else "lt": upper}
        if bounds := {name: end for name, end in ends.items() if end != "*"}:
            return name, bounds, []
    return name, {}, [value or None]


def conditions_of(columns: Collection[FilterColumn], where: Where | None) -> Conditions:
    """Return the checked conditions of `where`, equal for what means the same: 9 and "9" do.

    Raises:
        InputError: the index cannot be narrowed by a column, or a value is not one of its kind.
    """
    if where is None:
        return ()
    if not isinstance(where, Mapping):
        raise InputError('where: must be columns with their values, as in {"team": "post"}', field="where")
    known = {column.column: column for column in columns}
    found: set[ColumnCondition] = set()
    for name, given in where.items():
        if name not in known:
            choice = f"only by {', '.join(map(quote, known))}: name" if known else "name"
            raise InputError(
                f"the index cannot be narrowed by {quote(str(name))}; {choice} columns with `filter` when it is built",
                field="where",
            )
        found.update(_bounds(known[name], given) if isinstance(given, Mapping) else [_one_of(known[name], given)])
    return tuple(sorted(found, key=lambda condition: (condition.column.column, condition.negated)))


def _one_of(by: FilterColumn, given: Any, *, negated: bool = False) -> ColumnCondition:
    given = _plain(given)
    values = [_plain(value) for value in given] if isinstance(given, list | tuple) else [given]
    if not all(isinstance(value, Scalar) for value in values):
        raise InputError(
            f"{quote(by.column)} is to be equal to a text, a number, a date, true or false, or null for none, one of a"
            ' list of them, or within bounds as in {"gte": 10}',
            field="where",
        )
    if len(values) > MAX_WANTED:
        raise InputError(f"{len(values)} values of {quote(by.column)}; give at most {MAX_WANTED}", field="where")
    wanted = [value for value in values if value is not None]
    missing = len(wanted) < len(values)
    if by.kind == "text":
        texts = tuple(sorted({str(_check_value(by, value)) for value in wanted}))
        return ColumnCondition(by, texts, missing=missing, negated=negated)
    ends = sorted({(_end(by, value, first=True), _end(by, value, first=False)) for value in wanted})
    joined: list[Interval] = []
    for lower, upper in ends:
        if by.kind == "date" and joined and lower <= (joined[-1].upper or 0) + 1:
            joined[-1] = Interval(joined[-1].lower, max(upper, joined[-1].upper or 0))
        else:
            joined.append(Interval(lower, upper))
    if by.kind == "date" and len(joined) > MAX_INTERVALS:
        raise InputError(
            f"{len(joined)} days and times of {quote(by.column)}; give at most {MAX_INTERVALS}, or bounds",
            field="where",
        )
    return ColumnCondition(by, intervals=tuple(joined), missing=missing, negated=negated)


def _bounds(by: FilterColumn, given: Mapping[Any, Any]) -> list[ColumnCondition]:
    if not given or not given.keys() <= BOUNDS:
        raise InputError(
            f'bounds of {quote(by.column)} are gt, gte, lt and lte, and ne for not equal, as in {{"gte": 10}}',
            field="where",
        )
    found = [_one_of(by, given["ne"], negated=True)] if "ne" in given else []
    if given.keys() == {"ne"}:
        return found
    if by.kind == "text":
        raise InputError(f"{quote(by.column)} holds text, which has no bounds; give values", field="where")
    if {"gt", "gte"} <= given.keys() or {"lt", "lte"} <= given.keys():
        raise InputError(f"two bounds of {quote(by.column)} on one side; give one", field="where")
    lower: float | None = None
    upper: float | None = None
    if "gte" in given:
        lower = _end(by, given["gte"], first=True)
    elif "gt" in given:
        lower = _beside(by, _end(by, given["gt"], first=False), 1)
    if "lte" in given:
        upper = _end(by, given["lte"], first=False)
    elif "lt" in given:
        upper = _beside(by, _end(by, given["lt"], first=True), -1)
    within = () if lower is not None and upper is not None and lower > upper else (Interval(lower, upper),)
    return [*found, ColumnCondition(by, intervals=within)]


def _end(by: FilterColumn, value: Any, *, first: bool) -> float:
    """Return a number, or the first or the last microsecond of a date: a day without a time is the whole day."""
    value = _plain(value)
    checked: float = _check_value(by, value)
    if by.kind == "date" and not first and (day := day_of(value)) is not None:
        return microseconds_of(moment_of(day)) + DAY // timedelta(microseconds=1) - 1
    return checked


def _beside(by: FilterColumn, value: float, step: int) -> float:
    """Return the next number or microsecond above or below."""
    return value + step if by.kind == "date" else math.nextafter(value, step * math.inf)


def _plain(value: Any) -> Any:
    """Return the value of a scalar of numpy, pandas or decimal, or the list of an array."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, Decimal):
        return str(value)
    convert = getattr(value, "to_pydatetime", None) or getattr(value, "tolist", None)
    return value if convert is None else convert()


def _check_value(by: FilterColumn, value: Any) -> Any:
    try:
        if isinstance(value, date) and by.kind != "date":
            raise ValueError
        return value_of(by.kind, value)
    except (ValueError, TypeError, OverflowError):
        shown = value.isoformat() if isinstance(value, date) else text_of(value) if value is not None else "null"
        raise InputError(f"{quote(by.column)}: must be a {by.kind}, got {quote(shown[:100])}", field="where") from None


def query_of(tantivy: Any, schema: Any, fields: Mapping[FilterColumn, str], conditions: Conditions) -> Any:
    """Return the query of tantivy that the rows within all conditions match, each with the score 0."""
    query, occur = tantivy.Query, tantivy.Occur
    every = [(occur.Must, query.all_query())]
    for condition in conditions:
        field = fields[condition.column]
        kind = tantivy.FieldType.Float if condition.column.kind == "number" else tantivy.FieldType.Integer
        either = []
        if condition.texts:
            either.append(query.term_set_query(schema, field, list(condition.texts)))
        if condition.column.kind == "number" and (values := [low for low, high in condition.intervals if low == high]):
            either.append(query.term_set_query(schema, field, values))
        for lower, upper in condition.intervals:
            if condition.column.kind == "date" or lower != upper:
                either.append(query.range_query(schema, field, kind, lower, upper))
        if condition.missing:
            either.append(query.term_query(schema, "missing", field, index_option="basic"))
        within = query.boolean_query([(occur.Should, each) for each in either]) if either else query.empty_query()
        every.append((occur.MustNot if condition.negated else occur.Must, within))
    return query.const_score_query(query.boolean_query(every), 0.0)
