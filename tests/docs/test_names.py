"""One name has one meaning: no class is defined twice in the product."""

from __future__ import annotations

import ast
from collections import defaultdict

from conftest import ROOT

PACKAGES = (ROOT / "service" / "gramvec", ROOT / "training" / "gramvec_training")


def classes(source: str) -> list[str]:
    """Return the names of the classes that a module defines at its top level."""
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]


def test_classes_are_found() -> None:
    assert classes("class A: ...\nname = 1\nclass B(A):\n    class C: ...\n") == ["A", "B"]


def test_no_class_is_defined_twice() -> None:
    places = defaultdict(list)
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for name in classes(path.read_text(encoding="utf-8")):
                places[name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports files of folders that are not packages by their names."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in files]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
