"""Click options that are made of the fields of a record, and records that are made of what was given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click

from gramvec_training.sections import Strict

PATH = click.Path(path_type=Path)


def record_options(name: str, record: type[Strict]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: the command has an option for each described field, and gets the record as `name`.

    A field without a description is no option and keeps its default.
    """
    fields = {key: field for key, field in record.model_fields.items() if field.description is not None}

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(**given: Any) -> Any:
            values = {key: given.pop(key) for key in fields}
            return command(**given, **{name: record(**values)})

        with_options: Callable[..., Any] = run
        for key in reversed(fields):
            with_options = field_option(record, key)(with_options)
        return with_options

    return add


def field_option(record: type[Strict], name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds the option of one field."""
    field = record.model_fields[name]
    extra: dict[str, Any] = dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}
    flag = extra.get("flag", f"--{name.replace('_', '-')}")
    kind, limits = _unwrap_type(field.annotation, field.metadata)
    rest: dict[str, Any] = {"help": field.description or None, "metavar": extra.get("metavar")}
    if kind is bool:
        return click.option(flag, name, is_flag=True, **rest)
    if get_origin(kind) is tuple:
        return click.option(flag, name, type=_click_type(get_args(kind)[0], {}), multiple=True, **rest)
    if field.is_required():
        rest["required"] = True
    elif field.default is not None:
        rest |= {"default": field.default, "show_default": True}
    return click.option(flag, name, type=_click_type(kind, limits), **rest)


def _unwrap_type(annotation: Any, metadata: list[Any]) -> tuple[Any, dict[str, Any]]:
    """Return the type without None, and its limits by the name of their constraint."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [limit for info in more for limit in info.metadata]
    limits = {
        key: value
        for limit in metadata
        for key in ("ge", "gt", "le")
        if (value := getattr(limit, key, None)) is not None
    }
    return annotation, limits


def _click_type(kind: Any, limits: dict[str, Any]) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind in (int, float) and limits:
        minimum, is_open = (limits["gt"], True) if "gt" in limits else (limits.get("ge"), False)
        numbers = click.IntRange if kind is int else click.FloatRange
        return numbers(min=minimum, max=limits.get("le"), min_open=is_open)
    return PATH if kind is Path else kind
