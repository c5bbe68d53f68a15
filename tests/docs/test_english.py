"""Docstrings begin with what a thing is or does, and messages have one form, in both packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from conftest import ROOT

PACKAGES = (ROOT / "service" / "gramvec", ROOT / "training" / "gramvec_training")
# Whole words only: "Offset" and "One-pass" are allowed.
REFUSED = re.compile(r"(?:What|Whether|Of|The same|Those|One|So many|See)(?![\w-])")


def refused(source: str) -> Iterator[tuple[int, str]]:
    """The line and first line of text of each docstring with a refused opening."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring and REFUSED.match(docstring):
                yield node.body[0].lineno, docstring.splitlines()[0]


def found_by(check: Callable[[str], Iterator[tuple[int, str]]]) -> list[str]:
    files = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    assert len(files) > 100
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in files
        for line, text in check(path.read_text(encoding="utf-8"))
    ]


def test_docstrings_begin_with_what_they_are_or_do() -> None:
    found = found_by(refused)
    assert not found, "begin with a verb (function) or a noun phrase (class, module):\n" + "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        '"""What it holds."""',
        'class Row:\n    """One row."""',
        'def kind():\n    """Whether it is so."""',
        'async def kind():\n    """See Runtime.run."""',
        'class Row:\n    def kind(self):\n        """\n        The same, sorted.\n        """',
        'def kind():\n    """Of n texts: their vectors."""',
        'def kind():\n    """So many bytes."""',
        'def kind():\n    """Those that end in "a"."""',
    ],
)
def test_a_refused_opening_is_found(source: str) -> None:
    assert len(list(refused(source))) == 1


@pytest.mark.parametrize("opening", ["Return one row.", "One-pass reader.", "Offset of a row.", "Seeds of a run.", ""])
def test_other_openings_are_not_found(opening: str) -> None:
    assert not list(refused(f'def row():\n    """{opening}"""\n    return "What"'))


# Words that a reader stops at: who does it is the program, the user, a process; how many is a number or a limit.
ODD = re.compile(r"\b(?:so many|nobody|somebody|whoever|told|said)\b|\bfor one in\b|\b(?:MOST|LEAST)_[A-Z]")
EXEMPT = {"service/gramvec/bundle/bundle.py": "two officials said"}  # a golden text


def odd_words(source: str, exempt: str = "\0") -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each line with such a word, in code, comments, docstrings and messages."""
    for number, line in enumerate(source.splitlines(), 1):
        if ODD.search(line) and exempt not in line:
            yield number, line.strip()


def test_the_service_has_no_odd_words() -> None:
    found = [
        f"{name}:{number}: {line}"
        for path in sorted(PACKAGES[0].rglob("*.py"))
        for name in [str(path.relative_to(ROOT))]
        for number, line in odd_words(path.read_text(encoding="utf-8"), EXEMPT.get(name, "\0"))
    ]
    assert not found, "say who does it, and how many:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line", ["# Nobody reads; nobody writes.", "MOST_ROWS = 3", "for one in rows:", "said = str(1)"]
)
def test_an_odd_word_is_found(line: str) -> None:
    assert list(odd_words(f"a = 1\n{line}\n")) == [(2, line)]
    assert not list(odd_words("class SomeBody: ...\nALMOST_ALL = 1\nfor row in rows: ..."))


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
    found = found_by(odd_messages)
    assert not found, "lower case, no full stop, `name: must be ..., got value; remedy`:\n" + "\n".join(found)


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
