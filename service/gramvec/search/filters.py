"""Conditions on columns: what `where` may say, and the query of tantivy that it becomes.

Queries are built from values, never parsed from text, so no condition needs escaping and none can nest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field

from gramvec.errors import InputError, quoted
from gramvec.text.inputs import has_surrogate

MOST_COLUMNS = 16
MOST_NAME = 200
MOST_WANTED = 1_000
MOST_VALUE_BYTES = 1024
# Whole numbers up to here are exact as float64, which numbers are compared as.
MOST_EXACT = 1 << 53

FieldKind = Literal["text", "number", "date"]
Scalar = str | int | float | bool
# A column -> a value, a list of values one of which a row has, or bounds as in {"gte": 10, "lt": 20}.
Where = Mapping[str, Scalar | Sequence[Scalar] | Mapping[str, Scalar]]
FilterValue = str | float | datetime
Label = Annotated[str, Field(min_length=1, max_length=MOST_NAME)]

BOUNDS = {"gt": False, "gte": True, "lt": False, "lte": True}
_OPERATORS = {">=": "gte", "<=": "lte", ">": "gt", "<": "lt"}
_CONDITION = re.compile(r"(.+?)(>=|<=|>|<|=|:)(.*)", re.DOTALL)
_RANGE = re.compile(r"([\[{])\s*(\S.*?)\s+TO\s+(.*?\S)\s*([\]}])", re.DOTALL)


class FilterColumn(BaseModel):
    """A column that searches can be narrowed by, and the kind of its values."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    column: Label
    kind: FieldKind


class Range(NamedTuple):
    """Bounds of a column's values; None where there is none."""

    lower: FilterValue | None
    upper: FilterValue | None
    with_lower: bool
    with_upper: bool


# A column, with its values, sorted and each once, or its bounds: equal for conditions of one meaning.
Conditions = tuple[tuple[FilterColumn, tuple[FilterValue, ...] | Range], ...]


def text_of(value: Any) -> str:
    """Return a value of a record as a cell of a table: text unchanged, nothing for null, JSON for the rest."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def columns_of(named: Iterable[str], records: Sequence[Mapping[str, Any]]) -> tuple[FilterColumn, ...]:
    """Return the columns of `NAME` or `NAME:KIND`; a kind that is not given follows from the first records.

    Raises:
        InputError: a column is named twice, there are too many, or no record has a value in one.
    """
    found: list[FilterColumn] = []
    for one in named:
        name, colon, kind = one.rpartition(":")
        if not colon or kind not in get_args(FieldKind):
            name, kind = one, ""
        check_name(name)
        values = [record[name] for record in records if record.get(name) not in (None, "")]
        if records and not values:
            raise InputError(f"no row has a value in {quoted(name)}; name a column of the input with --filter")
        found.append(FilterColumn(column=name, kind=kind or _guessed(values)))  # type: ignore[arg-type]
    if len({one.column for one in found}) < len(found):
        raise InputError("a column to filter by is named twice; leave one out")
    if len(found) > MOST_COLUMNS:
        raise InputError(f"{len(found)} columns to filter by; an index takes {MOST_COLUMNS}: leave some out")
    return tuple(found)


def check_name(name: str) -> None:
    """Raise InputError for a column's name that the manifest of an index cannot hold."""
    if len(name) > MOST_NAME:
        raise InputError(f"a column's name of over {MOST_NAME} characters cannot be kept; give it a shorter one")
    if not name or has_surrogate(name):
        raise InputError(f"a column's name: must be text that is not empty, got {name!r}; rename the column")


def _guessed(values: Sequence[Any]) -> FieldKind:
    kinds: tuple[FieldKind, ...] = ("number", "date")
    for kind in kinds:
        try:
            if values and [value_of(kind, value) for value in values]:
                return kind
        except ValueError:
            continue
    return "text"


def value_of(kind: FieldKind, value: Any) -> FilterValue:
    """Return a record's value as its column's kind. Raises ValueError where it is not one."""
    if isinstance(value, bool) and kind != "text":
        raise ValueError
    if kind == "number":
        if isinstance(value, str) and len(value) > 100:
            raise ValueError
        number = float(value if isinstance(value, str | int | float) else "")
        if not isfinite(number) or (abs(number) > MOST_EXACT and number.is_integer()):
            raise ValueError
        return number + 0.0  # -0.0 is 0.0
    if kind == "date":
        if not isinstance(value, str) or not 8 <= len(value) <= 40:
            raise ValueError
        moment = datetime.fromisoformat(value)
        # tantivy counts nanoseconds in 64 bits.
        if not 1700 < moment.year < 2200:
            raise ValueError
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    text = str(value) if type(value) is int else text_of(value)
    if len(text.encode("utf-8", "replace")) > MOST_VALUE_BYTES:
        raise ValueError
    return text


def parsed(conditions: Iterable[str]) -> dict[str, Any]:
    """Return `where` from a command's conditions: COLUMN=VALUE, COLUMN>=VALUE, COLUMN:[A TO B], {A TO B} without ends.

    Several values of one column are alternatives; several bounds all hold. Raises InputError for anything else.
    """
    where: dict[str, Any] = {}
    for one in conditions:
        match = _CONDITION.fullmatch(one)
        if match is None:
            raise InputError(
                f"--where {one!r} is not a condition; write COLUMN=VALUE, COLUMN>=VALUE or COLUMN:[A TO B]"
            )
        name, operator, value = match.groups()
        bounds: dict[str, str] = {}
        if operator in _OPERATORS:
            bounds = {_OPERATORS[operator]: value}
        elif match := _RANGE.fullmatch(value):
            opening, lower, upper, closing = match.groups()
            bounds = {"gte" if opening == "[" else "gt": lower, "lte" if closing == "]" else "lt": upper}
            bounds = {name: bound for name, bound in bounds.items() if bound != "*"}
        if bounds:
            held = where.setdefault(name, {})
            if not isinstance(held, dict) or held.keys() & bounds.keys():
                raise InputError(f"--where {one!r} does not go with another condition on {quoted(name)}; leave one out")
            held.update(bounds)
        elif isinstance(where.setdefault(name, []), dict):
            raise InputError(f"--where {one!r} does not go with another condition on {quoted(name)}; leave one out")
        else:
            where[name].append(value)
    return where


def conditions_of(columns: Collection[FilterColumn], where: Where | None) -> Conditions:
    """Return the checked conditions of `where`, equal for what means the same: 9 and "9" do.

    Raises:
        InputError: the index cannot be narrowed by a column, or a value is not one of its kind.
    """
    if not where:
        return ()
    if not isinstance(where, Mapping):
        raise InputError('where: must be columns with their values, as in {"team": "post"}', field="where")
    known = {one.column: one for one in columns}
    found = []
    for name, given in where.items():
        if name not in known:
            said = f"it can by {', '.join(map(quoted, known))}" if known else "it can by none"
            raise InputError(
                f"the index cannot be narrowed by {quoted(str(name))}; {said}: name columns with --filter when it is"
                " built",
                field="where",
            )
        column = known[name]
        found.append((column, _bounds(column, given) if isinstance(given, Mapping) else _values(column, given)))
    return tuple(sorted(found, key=lambda one: one[0].column))


def _values(by: FilterColumn, given: Any) -> tuple[FilterValue, ...]:
    values = [given] if isinstance(given, Scalar) else given
    if not isinstance(values, list | tuple) or not all(isinstance(one, Scalar) for one in values):
        raise InputError(
            f"{quoted(by.column)} is to be equal to a text, a number, true or false, one of a list of them, or within"
            ' bounds as in {"gte": 10}',
            field="where",
        )
    if len(values) > MOST_WANTED:
        raise InputError(f"{len(values)} values of {quoted(by.column)}; give at most {MOST_WANTED}", field="where")
    return tuple(sorted({_wanted(by, one) for one in values}))


def _bounds(by: FilterColumn, given: Mapping[Any, Any]) -> Range:
    if not given or not given.keys() <= BOUNDS.keys():
        raise InputError(f'bounds of {quoted(by.column)} are gt, gte, lt and lte, as in {{"gte": 10}}', field="where")
    if by.kind == "text":
        raise InputError(f"{quoted(by.column)} holds text, which has no bounds; give values", field="where")
    if {"gt", "gte"} <= given.keys() or {"lt", "lte"} <= given.keys():
        raise InputError(f"two bounds of {quoted(by.column)} on one side; give one", field="where")
    ends: list[tuple[FilterValue | None, bool]] = []
    for names in (("gt", "gte"), ("lt", "lte")):
        name = next((one for one in names if one in given), None)
        ends.append((None, True) if name is None else (_wanted(by, given[name]), BOUNDS[name]))
    return Range(ends[0][0], ends[1][0], ends[0][1], ends[1][1])


def _wanted(by: FilterColumn, value: Any) -> FilterValue:
    try:
        return value_of(by.kind, value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            f"{quoted(by.column)} holds {by.kind}s, and {quoted(text_of(value)[:100])} is not one", field="where"
        ) from None


def query_of(tantivy: Any, schema: Any, fields: Mapping[FilterColumn, str], conditions: Conditions) -> Any:
    """Return the query of tantivy that the rows within all conditions match."""
    kinds = {"number": tantivy.FieldType.Float, "date": tantivy.FieldType.Date}
    every = []
    for column, wanted in conditions:
        field = fields[column]
        if isinstance(wanted, Range):
            one = tantivy.Query.range_query(schema, field, kinds[column.kind], *wanted)
        else:
            one = tantivy.Query.term_set_query(schema, field, list(wanted))
        every.append((tantivy.Occur.Must, one))
    return tantivy.Query.const_score_query(tantivy.Query.boolean_query(every), 0.0)
