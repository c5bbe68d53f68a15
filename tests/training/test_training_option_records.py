from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gramvec_training.cli.main import main
from gramvec_training.cli.records import record_options
from gramvec_training.options import LabelOptions, PairOptions, RunOptions, SifOptions, TextOptions, WeightOptions
from gramvec_training.sections import Strict


def read(record: type[Strict], *arguments: str) -> Any:
    """The record that a command with its options is given; what the command printed where it is refused."""
    given: list[Any] = []

    @click.command()
    @record_options("options", record)
    def command(options: Any) -> None:
        given.append(options)

    result = CliRunner().invoke(command, arguments)
    return given[0] if given else result.output


@pytest.mark.parametrize("record", [PairOptions, LabelOptions, RunOptions, TextOptions])
def test_without_arguments_a_command_has_the_record_of_its_defaults(record: type[Strict]) -> None:
    assert read(record) == record()


def test_each_argument_is_a_field() -> None:
    found = read(LabelOptions, "--from", "sif", "--held-out", "0.3", "--bad-rows", "refuse")
    assert found == LabelOptions(start="sif", held_out=0.3, bad_rows="refuse")
    assert read(RunOptions, "--resume", "--threads", "2").model_dump() == {
        "resume": True, "overwrite": False, "save_every": 60, "device": "auto", "threads": 2,
        "cache": Path("runs/teachers"),
    }  # fmt: skip
    sif = read(SifOptions, "--vectors", "v", "--freq", "f", "-a", "0.01", "--texts", "a", "--texts", "b")
    assert (sif.a, sif.texts, sif.max_words) == (0.01, (Path("a"), Path("b")), None)


@pytest.mark.parametrize(
    ("record", "arguments", "refused"),
    [
        (PairOptions, ["--held-out", "0.6"], "'--held-out': 0.6 is not in the range 0<=x<=0.5"),
        (PairOptions, ["--rate", "0"], "'--rate': 0.0 is not in the range x>0"),
        (PairOptions, ["--layout", "rows"], "'--layout': 'rows' is not one of"),
        (RunOptions, ["--threads", "0"], "'--threads': 0 is not in the range x>=1"),
        (RunOptions, ["--cache", "x"], "No such option"),
        (SifOptions, ["--freq", "f"], "Missing option '--vectors'"),
    ],
)
def test_a_limit_of_a_field_is_one_of_its_option(record: type[Strict], arguments: list[str], refused: str) -> None:
    assert refused in read(record, *arguments)


@pytest.mark.parametrize(
    ("command", "record"),
    [
        ("fit", RunOptions),
        ("fit-pairs", PairOptions),
        ("fit-labels", LabelOptions),
        ("fit-weights", WeightOptions),
        ("distill", TextOptions),
        ("sif", SifOptions),
    ],
)
def test_the_commands_have_every_option_of_their_record(command: str, record: type[Strict]) -> None:
    assert {name for name, field in record.model_fields.items() if field.description is not None} <= {
        parameter.name for parameter in main.commands[command].params
    }
