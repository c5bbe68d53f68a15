"""One name has one meaning: no class or type alias is defined twice in the product."""

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
