"""Comments, docstrings and pages name files, names and extras that exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from conftest import ROOT

FOLDERS = ("benchmarks", "deploy", "docker", "docs", "examples", "make", "service", "tests", "training")
SCRIPTS = (".toml", ".yaml", ".yml", ".sh", "Makefile", ".mk")
ENDINGS = r"(?:py|pyi|h|c|md|toml|json|sh|ya?ml|html|js|css|txt)"
# A path of folders, or the name of a source file.
FILE = re.compile(rf"(?<![\w./<{{*-])(?:(?:[\w-]+/)+[\w.-]+\.{ENDINGS}|[a-z]\w+\.(?:py|pyi|h|c))\b(?![\w/{{*])")
NAME = re.compile(r"(?<![\w./-])gramvec(?:_training|_research)?(?:\.[A-Za-z_]\w*)+")
# Files that a user, a bundle, another library or the system has.
OF_OTHERS = re.compile(
    r"(?:build|runs|INDEX|GENERATION|models/NAME|raw|freq|folder|standin|env|wordllama\S*)/\S*|arm_neon\.h|my\.toml"
)
# Keys of Parquet files, names of loggers, and attributes of spans.
KEYS = {"access", "characters", "digest", "inference_seconds", "model", "options", "queue_seconds", "reason",
        "request_id", "texts", "version"}  # fmt: skip


def files(*endings: str) -> list[Path]:
    """Return the files of the repository with these endings or names, apart from generated ones."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + list(ROOT.iterdir())
    return sorted(
        path
        for path in found
        if (path.suffix in endings or path.name in endings) and not {"node_modules", "results"} & {*path.parts}
    )


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each docstring of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield node.body[0].lineno, docstring


def prose(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each docstring, comment or paragraph of a file."""
    if path.suffix in (".py", ".pyi"):
        yield from docstrings(source)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        return
    if path.suffix in (".c", ".h"):
        pattern = r"/\*.*?\*/|//[^\n]*"
    elif path.suffix == ".md":
        source = re.sub(
            r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), source, flags=re.DOTALL | re.MULTILINE
        )
        pattern = r"[^\n]+"
    else:
        pattern = r"(?m)(?:^|\s)##?\s[^\n]*"
    for found in re.finditer(pattern, source, re.DOTALL if path.suffix in (".c", ".h") else 0):
        yield source.count("\n", 0, found.start()) + 1, found[0]


def resolves(name: str) -> bool:
    """Return whether a dotted name is that of a module, or of an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                return True  # a library of another extra
            continue
        for part in parts[length:]:
            if part in getattr(found, "__annotations__", {}):
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def missing(text: str, known: set[str]) -> Iterator[str]:
    """Yield the files and dotted names in a text that do not exist."""
    for found in FILE.findall(text):
        if not OF_OTHERS.fullmatch(found) and f"/{found}" not in known:
            yield found
    for found in NAME.findall(text):
        last = found.rpartition(".")[2]
        if not re.fullmatch(ENDINGS, last) and found.partition(".")[2] not in KEYS and not resolves(found):
            yield found


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Each file's path in the repository and all that are ends of it, each behind a slash."""
    paths = [str(path.relative_to(ROOT)) for path in ROOT.iterdir()]
    for folder in (*FOLDERS, ".ci", ".github", "models", "requirements"):
        paths += [str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*")]
    return {path[at:] for path in map("/{}".format, paths) for at, letter in enumerate(path) if letter == "/"}


@pytest.mark.parametrize("endings", [(".py", ".pyi"), (".c", ".h"), (".md",), SCRIPTS], ids=lambda kinds: kinds[0])
def test_what_comments_docstrings_and_pages_name_exists(endings: tuple[str, ...], known: set[str]) -> None:
    paths = files(*endings)
    assert len(paths) > 5
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in paths
        for line, text in prose(path, path.read_text(encoding="utf-8"))
        for name in missing(text, known)
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see tests/conftest.py and conftest.py", []),
        ("see tests/no_such.py, text/memo.py.", ["tests/no_such.py"]),
        ("# nothing.py does", ["nothing.py"]),
        ("gramvec.load, gramvec.text.memo.Memo and gramvec.errors", []),
        ("gramvec.text.nothing of gramvec_training.nothing.", ["gramvec.text.nothing", "gramvec_training.nothing"]),
        ("gramvec.options in runs/mine/run.json", []),
    ],
)
def test_names_that_do_not_exist_are_found(text: str, names: list[str], known: set[str]) -> None:
    assert list(missing(text, known)) == names


EXTRAS = re.compile(r"gramvec\[([a-z,]+)\]|'\.\[([a-z,]+)\]'|import_extra\(\s*\"[^\"]+\",\s*\"([a-z]+)\"")


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {*project["optional-dependencies"]}
    named = {
        (extra, str(path.relative_to(ROOT)))
        for path in files(".py", ".md", *SCRIPTS)
        if path.relative_to(ROOT).parts[0] != "tests"
        for found in EXTRAS.finditer(path.read_text(encoding="utf-8"))
        for extra in "".join(filter(None, found.groups())).split(",")
    }
    assert len(named) > 50
    assert sorted((extra, path) for extra, path in named if extra not in extras) == []
