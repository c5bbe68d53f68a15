"""A command is thin: each of its options is a field of the record that the library runs, with the same default."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import ValidationError

import gramvec
import gramvec.jobs
from gramvec.cli.jobs.classify import fit, predict
from gramvec.cli.jobs.dedupe import dedupe
from gramvec.cli.jobs.embed import embed
from gramvec.cli.jobs.match import match_command
from gramvec.cli.jobs.pairs import pairs_command
from gramvec.cli.jobs.review import review, review_labels, review_pairs
from gramvec.cli.jobs.run import write_command
from gramvec.cli.jobs.search import add, build, rebuild, remove, search
from gramvec.errors import InputError
from gramvec.jobs.bulk.job import EmbedJob
from gramvec.jobs.classify.job import FitJob, PredictJob
from gramvec.jobs.common.file_job import FileJob, OptionError, PositiveNumber
from gramvec.jobs.duplicates.job import DedupeJob
from gramvec.jobs.matching.api import Matcher
from gramvec.jobs.matching.job import MatchJob, PairsJob
from gramvec.jobs.review.job import LabelReviewJob, PairReviewJob
from gramvec.jobs.search.job import AddJob, BuildJob, RebuildJob, RemoveJob, SearchJob
from support.errors import refused

COMMANDS: list[tuple[click.Command, type[FileJob]]] = [
    (match_command, MatchJob),
    (dedupe, DedupeJob),
    (pairs_command, PairsJob),
    (build, BuildJob),
    (add, AddJob),
    (remove, RemoveJob),
    (rebuild, RebuildJob),
    (search, SearchJob),
    (embed, EmbedJob),
    (fit, FitJob),
    (predict, PredictJob),
    (review_pairs, PairReviewJob),
    (review_labels, LabelReviewJob),
]


@pytest.mark.parametrize(("command", "job"), COMMANDS, ids=[job.__name__ for _, job in COMMANDS])
def test_each_option_is_a_field_of_the_record(command: click.Command, job: type[FileJob]) -> None:
    options = {option.name: option for option in command.params if option.expose_value}
    assert options.keys() == job.model_fields.keys()
    for name, field in job.model_fields.items():
        if not field.is_required() and name != "output":
            made = command.make_context("a", [], resilient_parsing=True).params[name]
            assert made == field.default, name


# Functions that do a record's work, whose parameters by name are fields of it.
FUNCTIONS: list[tuple[Callable[..., Any], type[FileJob]]] = [
    (gramvec.match, MatchJob),
    (gramvec.Index.build, BuildJob),
    (gramvec.Index.search, SearchJob),
    (gramvec.dedupe, DedupeJob),
    (gramvec.pair_scores, MatchJob),
    (Matcher.fit, MatchJob),
    (Matcher.match, MatchJob),
]
# What pandas calls on="left=right".
PANDAS = {"left_on", "right_on"}


def test_every_record_has_a_command() -> None:
    records = {getattr(gramvec.jobs, name) for name in gramvec.jobs.__all__}
    jobs = {record for record in records if issubclass(record, FileJob)}
    assert jobs == {job for _, job in COMMANDS}


@pytest.mark.parametrize(("command", "job"), COMMANDS, ids=[job.__name__ for _, job in COMMANDS])
def test_an_option_has_the_name_of_its_field(command: click.Command, job: type[FileJob]) -> None:
    for option in command.params:
        if isinstance(option, click.Option) and option.expose_value:
            longest = max(option.opts, key=len)
            assert longest in (f"--{str(option.name).replace('_', '-')}", f"-{option.name}"), (command.name, longest)


@pytest.mark.parametrize(("function", "job"), FUNCTIONS, ids=[function.__qualname__ for function, _ in FUNCTIONS])
def test_a_parameter_has_the_name_of_its_field(function: Callable[..., Any], job: type[FileJob]) -> None:
    parameters = inspect.signature(function).parameters.values()
    named = {parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
    assert named - PANDAS <= job.model_fields.keys()


@pytest.mark.parametrize(
    ("command", "words", "now"),
    [
        (dedupe, ["--json"], "--format jsonl"), (dedupe, ["--stays", "first"], "--keep"),
        (dedupe, ["--keep", "a.txt"], "--unique FILE"), (match_command, ["--all"], "--top all"),
        (remove, ["--ids", "a.txt"], "--file"), (pairs_command, ["--meaning", "m"], "--model"),
    ],
)  # fmt: skip
def test_a_name_that_is_gone_is_answered_with_the_new_one(command: click.Command, words: list[str], now: str) -> None:
    with pytest.raises(click.UsageError, match=now):
        command.make_context("a", words)


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["ours.csv", "theirs.csv"], "gramvec review pairs ours.csv"),
        (["tickets.csv", "--head", "topics.head"], "gramvec review labels tickets.csv"),
    ],
)
def test_a_review_says_of_what_it_is(words: list[str], now: str) -> None:
    with pytest.raises(click.UsageError, match=now):
        review.resolve_command(review.make_context("review", words), words)


class CountJob(FileJob):
    """A job of one number."""

    number: PositiveNumber
    source: Path = Path("-")


def test_a_record_is_checked_when_it_is_made() -> None:
    assert CountJob(number=3, source="a.txt").source == Path("a.txt")
    with refused(InputError, "number", "1", "0") as error:
        CountJob(number=0)
    assert error.value.field == "number"
    with refused(InputError, "number", "missing"):
        CountJob()
    with refused(InputError, "nummer", "number, source"):
        CountJob(number=1, nummer=2)
    with pytest.raises(ValidationError, match="frozen"):
        CountJob(number=1).number = 2  # type: ignore[misc]


def test_options_that_contradict_each_other_name_one() -> None:
    with pytest.raises(OptionError, match="^top: .*`one_to_one`") as error:
        MatchJob(left="a.csv", right="b.csv", top="all", one_to_one=True)
    assert error.value.field == "top"


def test_the_command_line_of_a_job_makes_the_same_job(tmp_path: Path) -> None:
    for name in ("a b.csv", "c.csv"):
        (tmp_path / name).touch()
    left, right = str(tmp_path / "a b.csv"), str(tmp_path / "c.csv")
    job = MatchJob(
        left=left, right=right, on=["a=b:2", "c:d:1"], id="none", top="all", threshold=0.5, threads=2,
        labels=[left, right], columns="all", output="found.csv", encoding="cp1252",
    )  # fmt: skip
    line = write_command("match", match_command, job)
    assert line.startswith(
        f"gramvec match '{left}' {right} --on a=b:2 --on c:d:1 -o found.csv --top all --threshold 0.5"
    )
    with match_command.make_context("match", shlex.split(line)[2:]) as context:
        assert MatchJob(**context.params) == job
    head = FitJob(labeled=left, output="a.head", several=False, on_error="skip")
    assert write_command("classify fit", fit, head) == (
        f"gramvec classify fit '{left}' -o a.head --one-label --on-error skip"
    )
