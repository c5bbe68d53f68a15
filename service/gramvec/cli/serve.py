"""The command `gramvec serve`. Its options, environment variables and TOML file follow the fields of Settings."""

from __future__ import annotations

import logging
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TextIO, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from gramvec.cli.main import import_quickly
from gramvec.errors import GramvecError, InputError
from gramvec.server.settings import Settings, check_service_link, environment_variable, option, settings_from

log = logging.getLogger("gramvec.server")


def _read_config(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path}: cannot be read as TOML: {error}", context, parameter) from error
    unknown = [name for name in values if name not in Settings.model_fields]
    if unknown:
        known = ", ".join(Settings.model_fields)
        raise click.BadParameter(f"{path}: no setting is named {unknown[0]!r}; there are {known}", context, parameter)
    # Values become text, so that click checks a value of the file as it checks one of the command line.
    texts = {name: _as_text(value, Settings.model_fields[name]) for name, value in values.items()}
    context.default_map = {**(context.default_map or {}), **texts}


def _check_service_links(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Report that Kubernetes has set our variables, before click reports that tcp://... is no number."""
    for name in Settings.model_fields:
        variable = environment_variable(name)
        try:
            check_service_link(variable, os.environ.get(variable, ""))
        except InputError as error:
            raise click.UsageError(str(error)) from error
    _read_config(context, parameter, path)


def _takes_several(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


def _as_text(value: Any, field: FieldInfo) -> str | list[str]:
    if not _takes_several(field):
        return str(value)
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else str(value)


def _option(name: str, field: FieldInfo) -> click.Option:
    kind = field.annotation
    several = _takes_several(field)
    type_of_value: click.ParamType[Any] = click.STRING
    if get_origin(kind) is Literal:
        type_of_value = click.Choice(get_args(kind))
    elif kind is int:
        type_of_value = click.INT
    elif kind is float:
        type_of_value = click.FLOAT
    return click.Option(
        [option(name)],
        type=type_of_value,
        multiple=several,
        default=field.default,
        envvar=environment_variable(name),
        show_envvar=True,
        show_default=not several or bool(field.default),
        help=field.description,
    )


def _serve(config: None = None, **values: Any) -> None:
    try:
        settings = settings_from(values)
    except InputError as error:
        raise click.UsageError(str(error)) from error
    # FastAPI and uvicorn are imported here, so that --help need not wait for them.
    run: Callable[[Settings], None] = import_quickly("gramvec.server.edge.run", "serve")
    try:
        run(settings)
    except GramvecError as error:
        if settings.log_format == "json":  # every line of a JSON log is JSON, the last one too
            log.error("%s", error)
            raise SystemExit(1) from error
        raise click.ClickException(str(error)) from error
    finally:
        _discard_unwritable(sys.stderr)


def _discard_unwritable(stream: TextIO) -> None:
    """Discard log lines that a full disk did not take; Python would otherwise exit with code 120."""
    try:
        stream.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


serve = click.Command(
    "serve",
    callback=_serve,
    help="Serve models over HTTP.\n\nA flag wins over its environment variable, which wins over the --config file.",
    params=[
        click.Option(
            ["--config"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_check_service_links,
            envvar="GRAMVEC_CONFIG",
            show_envvar=True,
            help="TOML file with any of the settings below, as in: port = 8080",
        ),
        *(_option(name, field) for name, field in Settings.model_fields.items()),
    ],
)
