"""Steps of every command that runs a job: its record is made of the options, and it runs until it is stopped."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any, TypeVar

import click

from gramvec.cli.flags import explain_error, with_flags
from gramvec.cli.terminal import COMMAND_LINE
from gramvec.jobs.common.bars import TerminalWatch
from gramvec.jobs.common.file_job import FileJob, OptionError
from gramvec.jobs.common.outcome import Interrupted

# Exit code of a command that was stopped and reports what it kept, as a shell has it for Control-C.
STOPPED = 130

AnyJob = TypeVar("AnyJob", bound=FileJob)


def make_job(kind: type[AnyJob], **options: Any) -> AnyJob:
    """Return the job of a command's options. Raises UsageError for options that contradict each other."""
    try:
        return kind(**options)
    except OptionError as error:
        raise _usage_error(error) from error


def _usage_error(error: OptionError) -> click.UsageError:
    context = click.get_current_context()
    return click.UsageError(explain_error(error, context.command), context)


def in_shell(message: str) -> str:
    """Return a message with the options of the running command in the place of the fields that it names."""
    return with_flags(message, click.get_current_context().command)


class CommandWatch(TerminalWatch):
    """Watcher that shows what happens in the running command, with the names of its options."""

    def __init__(self) -> None:
        super().__init__(command_line())
        self._context = click.get_current_context()

    def report(self, message: str) -> None:
        """Print a message."""
        super().report(with_flags(message, self._context.command))


@contextmanager
def show_job() -> Iterator[TerminalWatch]:
    """Let SIGTERM stop the block as Control-C does, and give a watcher that shows what happens in it.

    A stopped job that reports what it kept ends the command with STOPPED.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with closing(CommandWatch()) as watch:
            yield watch
    except OptionError as error:
        raise _usage_error(error) from error
    except Interrupted as error:
        click.echo(f"Error: {explain_error(error, click.get_current_context().command)}", err=True)
        sys.exit(STOPPED)
    finally:
        signal.signal(signal.SIGTERM, before)


def write_command(name: str, command: click.Command, job: FileJob) -> str:
    """Return the command line that runs a job: the options that differ from the command's defaults.

    Args:
        name: of the command, as it stands behind `gramvec`.
        command: whose options are fields of the job.
        job: the job.
    """
    words = ["gramvec", *name.split()]
    for option in command.params:
        field = str(option.name)
        if not option.expose_value:
            continue
        value = getattr(job, field, None)
        if isinstance(option, click.Argument):
            words.append(str(value))
        elif value not in (None, (), type(job).model_fields[field].default):
            # Files are written as -o, all other options by their long names.
            flag = "-o" if field == "output" else option.opts[-1]
            if isinstance(value, bool):
                words.append(flag if value else option.secondary_opts[-1])
            else:
                for word in value if option.multiple else [value]:
                    words += [flag, str(word)]
    return shlex.join(words)


def command_line() -> str:
    """Return the command line of the running command."""
    context = click.get_current_context()
    line: str = context.meta.get(COMMAND_LINE, context.command_path)
    return line
