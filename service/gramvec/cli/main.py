"""The command line: results on stdout, all else on stderr; exit code 2 for a bad call, 1 for a failure."""

from __future__ import annotations

import logging
import os
import sys
from difflib import get_close_matches
from typing import Any

import click

from gramvec.cli.lazy import imported
from gramvec.errors import GramvecError
from gramvec.tables.text_lines import why_not_written

# Imported when they are wanted: FastAPI takes longer to import than most commands take to run.
LATER = {
    "classify": ("gramvec.cli.classify", "classify"),
    "dedupe": ("gramvec.cli.dedupe", "dedupe"),
    "embed": ("gramvec.cli.embed", "embed"),
    "explain": ("gramvec.cli.explain", "explain_command"),
    "index": ("gramvec.cli.index", "index"),
    "inspect": ("gramvec.cli.model", "inspect"),
    "match": ("gramvec.cli.match", "match_command"),
    "neighbors": ("gramvec.cli.explain", "neighbors_command"),
    "pull": ("gramvec.cli.hub", "pull"),
    "push": ("gramvec.cli.hub", "push"),
    "save": ("gramvec.cli.hub", "save"),
    "search": ("gramvec.cli.search", "search"),
    "serve": ("gramvec.cli.serve", "serve"),
    "similarity": ("gramvec.cli.model", "similarity"),
    "verify": ("gramvec.cli.model", "verify"),
}


class _Commands(click.Group):
    """A group that imports its commands late, and turns our exceptions into one line and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(LATER)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATER:
            return None
        if cmd_name == "serve":
            # Before numpy is imported: OpenBLAS's threads spin for 40 ms after their start and after each product. If
            # they sleep at once, a start costs 0.07 s of CPU less and an explanation a third, in no more time.
            os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
        command: click.Command = imported(*LATER[cmd_name])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if near := get_close_matches(args[0], LATER, 1):
                raise click.UsageError(f"{error.message} Did you mean {near[0]}?", ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GramvecError as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:
            raise  # click ends quietly: whoever read has had enough
        except OSError as error:
            raise click.ClickException(why_not_written(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gramvec")
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr, such as why a device was chosen.")
def cli(verbose: bool) -> None:
    """Sentence embeddings from character n-grams and words."""
    logging.basicConfig(
        stream=sys.stderr, format="gramvec: %(message)s", level=logging.INFO if verbose else logging.WARNING
    )


def main() -> None:
    """The entry point of `gramvec`."""
    cli(prog_name="gramvec")
