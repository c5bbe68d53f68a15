"""Messages of errors have one form in both packages: `name: what, got value; remedy`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from conftest import ROOT

PACKAGES = (ROOT / "service" / "gramvec", ROOT / "training" / "gramvec_training")
# Names that begin with a capital letter; a word with a second capital, a digit or _ is a name, too.
NAMES = ("Content-Type", "FeatureSpec", "Parquet", "Input should be")  # the last is pydantic's
ERRORS = re.compile(r"\w*Error|Overloaded|TooLarge|UsageError|BadParameter|ClickException|fail|_demand")


def message(node: ast.expr) -> str:
    """Return a string as it is written, with {} for what is put in; "" for any other expression."""
    if isinstance(node, ast.JoinedStr):
        return "".join(message(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def odd_messages(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each message of an error that has not the form `name: what, got value; remedy`."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if not ERRORS.fullmatch(name):
            continue
        for text in filter(None, map(message, node.args)):
            first = text.split()[0] if text.split() else ""
            is_name = text.startswith(NAMES) or re.search(r".[A-Z0-9_+]", first)
            if (
                text.endswith(".")
                or (first[:1].isupper() and not is_name)
                or re.search(r"^\S*[^:\s] must |must (?:be|have|hold|ascend)\b.*, not \{", text)
            ):
                yield node.lineno, text


def test_messages_have_one_form() -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        for line, text in odd_messages(path.read_text(encoding="utf-8"))
    ]
    assert not odd, "lower case, no full stop, `name: must be ..., got value; remedy`:\n" + "\n".join(odd)


@pytest.mark.parametrize(
    "text",
    [
        "The file is damaged",
        "k: must be above 0.",
        "k must be above 0",
        "k: must be above 0, not {k}",
        "the first: must be 1, not {k}",
    ],
)
def test_an_odd_message_is_found(text: str) -> None:
    for source in (f'raise InputError(f"{text}")', f'raise click.UsageError(f"{text}", context)'):
        assert list(odd_messages(source)) == [(1, re.sub(r"\{\w+\}", "{}", text))]


@pytest.mark.parametrize("text", ["{path}: is a folder; give a file", "SIF weighs words", "HF_HUB_OFFLINE is set", ""])
def test_other_messages_are_not_found(text: str) -> None:
    assert not list(odd_messages(f'raise InputError(f"{text}")\nlog("The end.")'))
