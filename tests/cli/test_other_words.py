"""Words of other tools, which are answered with ours."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from gramvec.cli import cli
from gramvec.cli.main import COMMANDS
from gramvec.cli.other_words import COMMANDS as WORDS
from gramvec.cli.other_words import OPTIONS, suggest_command


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and those of its group, by name."""
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from command.commands.items()


def test_each_word_means_a_command_and_an_option_that_are_there() -> None:
    names, options = set(), set()
    for name, command in commands():
        names.add(name)
        options |= {one for option in command.params for one in option.opts if not getattr(option, "hidden", False)}
    assert set(WORDS.values()) <= names and not names & WORDS.keys()
    assert {ours for several in OPTIONS.values() for ours in several} <= options


def test_a_word_is_answered_with_a_command_of_the_same_group() -> None:
    assert suggest_command("train", ["fit", "predict"]) == "fit"
    assert suggest_command("train", ["embed", "match"]) is None
    assert suggest_command("serv", ["embed", "serve"]) == "serve"


@pytest.mark.parametrize("option", ["--spac", "--weight", "--number"])
def test_an_option_without_help_is_never_suggested(option: str) -> None:
    done = CliRunner().invoke(cli, ["dedupe", option])
    assert done.exit_code == 2 and f"No such option '{option}'." in done.stderr
    assert not {"--space", "--weights", "--numbers"} & {*done.stderr.replace("'", " ").split()}
