"""Messages of the library as a shell has them: fields become the options of a command.

A message of the library names a field as `top`, or with a value as `top="all"`, and may begin with the field that is
wrong, "top: must be ...". A command has the option --top for it, or the argument LEFT.
"""

from __future__ import annotations

import re
import shlex

import click

from gramvec.errors import GramvecError

_FIELD = re.compile(r"`(?P<name>[a-z][a-z_]*)(?:=(?P<value>[^`]*))?`")


def explain_error(error: GramvecError, command: click.Command | None) -> str:
    """Return the message of an error with the options of the command that it ends."""
    return with_flags(str(error), command, getattr(error, "field", None))


def with_flags(message: str, command: click.Command | None, field: str | None = None) -> str:
    """Return a message with a command's options in the place of the fields that it names.

    Args:
        message: of the library.
        command: whose options are fields of a record; None has each field's name as an option.
        field: that is wrong; a message that begins with it begins with its option.
    """
    parameters = {str(parameter.name): parameter for parameter in command.params} if command is not None else {}
    if field in parameters and message.startswith(f"{field}: "):
        message = _flag(str(field), parameters) + message.removeprefix(str(field))

    def option(named: re.Match[str]) -> str:
        name, value = named["name"], named["value"]
        parameter = parameters.get(name)
        if value == "False" and parameter is not None and parameter.secondary_opts:
            return parameter.secondary_opts[-1]
        flag = _flag(name, parameters)
        if value in (None, "True"):
            return flag
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = shlex.quote(value[1:-1])
        return f"{flag} {value}"

    return _FIELD.sub(option, message)


def _flag(field: str, parameters: dict[str, click.Parameter]) -> str:
    """Return the option of a field, its longest name, or the argument in capitals."""
    parameter = parameters.get(field)
    if isinstance(parameter, click.Argument):
        return (parameter.metavar or field.upper()).strip("[].")
    if parameter is None or not parameter.expose_value:
        return f"--{field.replace('_', '-')}"
    return max(parameter.opts, key=len)
