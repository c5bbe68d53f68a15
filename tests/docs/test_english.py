"""Docstrings begin with what a thing is or does, in both packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

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


def test_docstrings_begin_with_what_they_are_or_do() -> None:
    files = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in files
        for line, text in refused(path.read_text(encoding="utf-8"))
    ]
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
