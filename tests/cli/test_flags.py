"""Messages of the library name fields; those of a command name its options and arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from conftest import ROOT
from gramvec.cli.flags import with_flags
from gramvec.cli.jobs.classify import fit
from gramvec.cli.jobs.dedupe import dedupe
from gramvec.cli.jobs.match import match_command
from gramvec.cli.jobs.search import search
from gramvec.errors import InputError
from gramvec.jobs import DedupeJob, MatchJob
from support.bulk import gramvec_command
from support.errors import refused

JOBS = ROOT / "service" / "gramvec" / "jobs"


@pytest.mark.parametrize(
    ("command", "field", "message", "shown"),
    [
        (match_command, "top", "top: must be 1, got 0", "--top: must be 1, got 0"),
        (match_command, "save_matcher", "save_matcher: give `labels`", "--save-matcher: give --labels"),
        (match_command, None, 'give `id="none"` and `on="a b=c"`', "give --id none and --on 'a b=c'"),
        (match_command, None, "`left` and `right`, `threshold=0.350`", "LEFT and RIGHT, --threshold 0.350"),
        (match_command, None, "a `b` c `D` ``", "a --b c `D` ``"),
        (dedupe, "threshold", "thresholds: none", "thresholds: none"),
        (dedupe, "source", "source: is gone; `overwrite=True`", "INPUT: is gone; --overwrite"),
        (fit, None, "leave out `several=False`", "leave out --one-label"),
        (search, "k", "k: must be 1", "-k: must be 1"),
        (search, "queries", "queries: none", "QUERY: none"),
        (None, "top", 'top: `input_format="csv"`', "top: --input-format csv"),
    ],
)
def test_fields_become_options(command: click.Command | None, field: str | None, message: str, shown: str) -> None:
    assert with_flags(message, command, field) == shown


def test_an_error_names_the_field_in_python_and_the_flag_in_the_shell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,id\nx,1\nx,1\n")
    with refused(InputError, "`id`", '`id="none"`'):
        MatchJob(left=tmp_path / "a.csv", right=tmp_path / "a.csv", on="name").run()
    done = gramvec_command("match", tmp_path / "a.csv", tmp_path / "a.csv", "--on", "name")
    assert b"--id, or number the rows: --id none" in done.stderr and b"`" not in done.stderr
    with refused(InputError, "`by=", field="model"):
        DedupeJob(source=tmp_path / "a.csv", model="x")
    done = gramvec_command("dedupe", tmp_path / "a.csv", "--model", "x")
    assert done.returncode == 2 and b"--model: lines are" in done.stderr and b"--by meaning" in done.stderr


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are no docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = {id(node.body[0].value) for node in ast.walk(tree)
             if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in first:
            yield node


def test_no_message_of_a_job_names_a_flag() -> None:
    """A field stands in backticks, as `top` or `top="all"`; `with_flags` makes --top of it in a shell."""
    flags = [
        f"{path.relative_to(ROOT)}:{text.lineno}: {text.value}"
        for path in sorted(JOBS.rglob("*.py"))
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if re.search(r"(?<![\w-])--[a-z]", text.value)
    ]
    assert not flags, "\n".join(flags)
