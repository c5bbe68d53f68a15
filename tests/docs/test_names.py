"""One name has one meaning: no class or type alias is defined twice in the product. Functions are verbs."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from conftest import ROOT

PACKAGES = (ROOT / "service" / "gramvec", ROOT / "training" / "gramvec_training")
# A participle is no name of a function, with or without a particle: `take`, not `taken`; `hold_out`, not `held_out`.
VERBS = r"embed|exceed|feed|need|proceed|read|seed|shed|speed|spread|succeed"
IRREGULAR = (
    "begun|bound|built|chosen|cut|done|drawn|fed|felt|found|given|gone|held|kept|known|learnt|left|lost|made|meant|met|"
    "misspelt|paid|put|said|seen|sent|shown|sold|sought|spelt|spent|stood|sung|taken|taught|thought|thrown|told|torn|"
    "understood|won|worn|written"
)
VERBS_TOO = r"bound|cut|found|left|met|put|spread"  # also the infinitives of verbs, or nouns
PUBLIC = {"adapted"}  # of Embedder, which people call
PARTICIPLE = re.compile(
    rf"_*(?!(?:{VERBS}|{VERBS_TOO})(?:_|$))(?:[a-z]{{2,}}ed|{IRREGULAR}|[a-z]{{3,}}ing(?<!string)(?<!thing))"
    r"(?:_(?:anew|apart|away|by|down|in|off|on|out|to|together|up|with))?"
)


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


def participles(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function but a property whose name is a participle."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and PARTICIPLE.fullmatch(node.name):
            is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            if not is_property and node.name not in PUBLIC:
                yield node.lineno, node.name


@pytest.mark.parametrize(
    "name", ["taken", "_told", "held_out", "joined", "_spelt", "matching", "shared_with", "writing"]
)
def test_a_participle_is_found(name: str) -> None:
    assert list(participles(f"def {name}(): ...")) == [(1, name)]
    assert list(participles(f"@cached_property\ndef {name}(self): ...")) == []


@pytest.mark.parametrize("name", ["take", "embed", "string", "read_labeled", "cut", "_seed", "is_joined", "nothing"])
def test_other_names_are_no_participles(name: str) -> None:
    assert not list(participles(f"def {name}(): ..."))


def test_functions_are_no_participles() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        for line, name in participles(path.read_text(encoding="utf-8"))
    ]
    assert not found, "give them the names of verbs:\n" + "\n".join(found)


def test_no_name_is_defined_twice() -> None:
    places = defaultdict(list)
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for name in names(path.read_text(encoding="utf-8")):
                places[name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_packages_have_at_most_fourteen_modules() -> None:
    files = [path for package in PACKAGES for path in package.rglob("*.py") if not path.name.startswith("__")]
    sizes = Counter(str(path.parent.relative_to(ROOT)) for path in files)
    assert {name: number for name, number in sizes.items() if number > 14} == {}


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports files of folders that are not packages by their names."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in files]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
