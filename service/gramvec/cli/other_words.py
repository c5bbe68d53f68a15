"""Words that other tools have for commands and options of gramvec, so that a mistake is answered with ours."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import click
from click.exceptions import NoSuchOption

from gramvec.cli.flags import explain_error
from gramvec.errors import GramvecError

COMMANDS = {
    "apply": "predict", "compare": "similarity", "create": "build", "deduplicate": "dedupe", "delete": "remove",
    "describe": "info", "distinct": "dedupe", "download": "pull", "encode": "embed", "fetch": "pull",
    "find": "search", "join": "match", "label": "predict", "learn": "fit", "link": "match", "make": "build",
    "publish": "push", "query": "search", "run": "serve", "server": "serve", "start": "serve", "stats": "info",
    "test": "predict", "train": "fit", "update": "add", "upload": "push", "upsert": "add", "vectorize": "embed",
}  # fmt: skip
# Of several options the first that the command has.
OPTIONS = {
    "--block-on": ("--block",), "--chunk-size": ("--batch-size",), "--cores": ("--threads",),
    "--cutoff": ("--threshold", "--min-score"), "--field": ("--column", "--on"), "--fields": ("--on", "--column"),
    "--file-format": ("--format", "--input-format"), "--force": ("--overwrite",), "--in-place": ("--unique",),
    "--index-column": ("--id",), "--index": ("--id",), "--inplace": ("--unique",), "--jobs": ("--threads",),
    "--key": ("--id",), "--left-on": ("--on",), "--limit": ("-k", "--top"), "--n-jobs": ("--threads",),
    "--num-workers": ("--threads", "--workers"), "--out": ("--output",), "--outfile": ("--output",),
    "--processes": ("--threads", "--workers"), "--right-on": ("--on",), "--sep": ("--delimiter",),
    "--separator": ("--delimiter",), "--sheet-name": ("--sheet",), "--similarity": ("--threshold",),
    "--text-column": ("--column", "--on"), "--top-k": ("-k", "--top"), "--top-n": ("-k", "--top"),
    "--yes": ("--overwrite",),
}  # fmt: skip


def suggest_command(word: str, commands: Iterable[str]) -> str | None:
    """Return the command that another tool's word, or a misspelt one, may mean; None if there is none."""
    known = [*commands]
    if COMMANDS.get(word) in known:
        return COMMANDS[word]
    return next(iter(get_close_matches(word, known, 1)), None)


def with_our_option(error: NoSuchOption) -> click.UsageError:
    """Return the error of an unknown option with the option of this command that is meant, never one without help."""
    command = error.ctx.command if error.ctx is not None else None
    options = [option for option in command.params if isinstance(option, click.Option)] if command else []
    shown = {name for option in options if not option.hidden for name in (*option.opts, *option.secondary_opts)}
    ours = [name for name in OPTIONS.get(error.option_name, ()) if name in shown][:1]
    message = error.message
    if not error.option_name.startswith("--") and command is not None and command.name == "search":
        message += " Write -- before a query that begins with a hyphen."
    answer = NoSuchOption(error.option_name, message, shown if not ours else None, error.ctx)
    if not ours:
        return answer
    return click.UsageError(f"{message} Did you mean {ours[0]!r}?", error.ctx)


class CommandGroup(click.Group):
    """Group that answers an unknown command with the one that may be meant."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. A GramvecError ends it with one line, which names its options."""
        try:
            return super().invoke(ctx)
        except GramvecError as error:
            command = self.get_command(ctx, str(ctx.invoked_subcommand))
            raise click.ClickException(explain_error(error, command)) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return what click does. Raises UsageError, with a suggestion, for an unknown command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = suggest_command(args[0], self.list_commands(ctx))
            message = f"{error.message} Did you mean {near}?" if near else error.message
            raise click.UsageError(message, ctx) from None
