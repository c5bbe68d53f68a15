"""One name has one meaning: no class or alias is defined twice, and no function assigns two things to `found`."""

from __future__ import annotations

import ast
from collections import defaultdict

from conftest import ROOT

PACKAGES = (ROOT / "service" / "gramvec", ROOT / "training" / "gramvec_training")


def names(source: str) -> list[str]:
    """Return the classes and aliases that a module defines at its top level: names that begin with a capital letter."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [one.id for one in node.targets if isinstance(one, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append(node.target.id)
    return [name for name in found if name[0].isupper() and not name.isupper()]


def test_names_are_found() -> None:
    assert names("class A1b: ...\nname = 1\nLIMIT = 2\nAb = int\nAc: type = int\nclass Ad: Ae = 1\n") == [
        "A1b",
        "Ab",
        "Ac",
        "Ad",
    ]


def test_no_name_is_defined_twice() -> None:
    places = defaultdict(list)
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for name in names(path.read_text(encoding="utf-8")):
                places[name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports files of folders that are not packages by their names."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in files]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def assignments(source: str, name: str) -> dict[str, int]:
    """Return how often each function or method assigns `name`; a function inside another counts by itself."""
    counts: dict[str, int] = {}

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            counts[function] = counts.get(function, 0) + 1
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return counts


def test_assignments_are_counted() -> None:
    source = """
class A:
    def first(self):
        found = 1
        found: int = 2
        found += 1
        def inner():
            found, other = 1, 2
    def second(self, found):
        [found for found in (1,)]
        return found.found
"""
    assert assignments(source, "found") == {"A.first": 3, "A.first.inner": 1, "A.second": 1}


def test_found_names_one_thing() -> None:
    """A local is named after what it holds; what a function assigns to `found` twice has two better names."""
    paths = [path for folder in (PACKAGES[0], ROOT / "training") for path in sorted(folder.rglob("*.py"))]
    assert len(paths) > 400
    counts = {path: assignments(path.read_text(encoding="utf-8"), "found") for path in paths}
    twice = [f"{path.relative_to(ROOT)}: {name}" for path in paths for name, count in counts[path].items() if count > 1]
    assert twice == []
