"""The command `gramvec`: results go to stdout, everything else to stderr.

The exit code is 2 for a bad call and 1 for a failure.
"""

from __future__ import annotations

import gc
import logging
import os
import shlex
import sys
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoSuchOption

from gramvec import __version__
from gramvec.cli.flags import with_flags
from gramvec.cli.other_words import CommandGroup, with_our_option
from gramvec.cli.terminal import COMMAND_LINE, set_up_streams
from gramvec.jobs.tables.inputs import why_not_written

# Modules are imported when a command is called: FastAPI takes longer to import than most commands take to run.
COMMANDS = {
    "classify": ("gramvec.cli.jobs.classify", "classify"),
    "dedupe": ("gramvec.cli.jobs.dedupe", "dedupe"),
    "embed": ("gramvec.cli.jobs.embed", "embed"),
    "explain": ("gramvec.cli.explain", "explain_command"),
    "import": ("gramvec.cli.models", "import_model"),
    "index": ("gramvec.cli.jobs.search", "index"),
    "inspect": ("gramvec.cli.models", "inspect"),
    "match": ("gramvec.cli.jobs.match", "match_command"),
    "neighbors": ("gramvec.cli.explain", "neighbors_command"),
    "pairs": ("gramvec.cli.jobs.pairs", "pairs_command"),
    "pull": ("gramvec.cli.models", "pull"),
    "push": ("gramvec.cli.models", "push"),
    "review": ("gramvec.cli.jobs.review", "review"),
    "save": ("gramvec.cli.models", "save"),
    "search": ("gramvec.cli.jobs.search", "search"),
    "serve": ("gramvec.cli.serve", "serve"),
    "similarity": ("gramvec.cli.models", "similarity"),
    "verify": ("gramvec.cli.models", "verify"),
}


def import_quickly(module: str, name: str) -> Any:
    """Import an attribute of a module with the garbage collector paused, and freeze what exists by then.

    The collector would take 0.03 s of the 0.3 s that FastAPI takes to import. Only a process that keeps all it
    imports should call this.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        found = getattr(import_module(module), name)
    finally:
        if was_enabled:
            gc.enable()
    gc.freeze()
    return found


NO_MEMORY = "not enough memory; raise the limit (ulimit -v, the container's), or give less at a time"
# What Python and the loader say where the system refuses a thread, a descriptor or memory.
_LIMITS = {
    "can't start new thread": "no more threads can be started; raise the limits of processes and of memory (ulimit -u, "
    "ulimit -v, or the container's)",
    "Too many open files": "too many open files; raise the limit (ulimit -n)",
    "failed to map segment": NO_MEMORY,
    "annot allocate memory": NO_MEMORY,
}


def _limit(error: Exception) -> str | None:
    """Return the sentence for an error that a limit of the system caused, or None."""
    message = str(error)
    return next((sentence for cause, sentence in _LIMITS.items() if cause in message), None)


class _Commands(CommandGroup):
    """Group that imports its commands when they are called and prints what the system refuses as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name == "serve":
            # OpenBLAS reads this when numpy is imported. Its threads spin for 40 ms after each product by default.
            # Threads that sleep at once save 0.07 s of CPU at the start and two thirds of the CPU of an explanation.
            os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
        command: click.Command = import_quickly(*COMMANDS[cmd_name])
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[COMMAND_LINE] = shlex.join(["gramvec", *args])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NoSuchOption as error:
            raise with_our_option(error) from None
        except BrokenPipeError:
            raise  # click exits quietly when the reader has closed the pipe
        except OSError as error:
            raise click.ClickException(why_not_written(error)) from error
        except MemoryError as error:
            raise click.ClickException(NO_MEMORY) from error
        except (ImportError, RuntimeError) as error:
            if (sentence := _limit(error)) is None:
                raise
            raise click.ClickException(sentence) from error


class _ShellFormatter(logging.Formatter):
    """Formatter that gives fields the names of options."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return with_flags(super().format(record), None)


# Without `color` click removes some escapes from what goes into a pipe, and half of others.
@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "color": True})
@click.version_option(__version__, prog_name="gramvec")
@click.option("-v", "--verbose", is_flag=True, help="Log more to stderr, such as why a device was chosen.")
def cli(verbose: bool) -> None:
    """Sentence embeddings from character n-grams and words."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_ShellFormatter("gramvec: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING)


def main() -> None:
    """Run the command `gramvec`."""
    set_up_streams()
    cli(prog_name="gramvec")
