"""Rooms: packages whose files change together, entered through their faces alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"gramvec_training": ROOT / "training" / "gramvec_training"}


def files() -> Iterator[tuple[str, Path]]:
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            yield package, path


def room_of(module: str, package: str) -> str | None:
    """The room that a module is in or is: the first folder below its package."""
    parts = module.split(".")
    return parts[1] if parts[0] == package and len(parts) > 1 and (PACKAGES[package] / parts[1]).is_dir() else None


def imported(path: Path) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [name.name for name in node.names]
        elif isinstance(node, ast.Import):
            yield from ((name.name, []) for name in node.names)


def test_other_rooms_are_entered_through_their_faces() -> None:
    strayed = []
    for package, path in files():
        own = path.relative_to(PACKAGES[package]).parts[0]
        for module, _ in imported(path):
            room = room_of(module, package)
            if room is not None and room != own and module != f"{package}.{room}":
                strayed.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not strayed, "\n".join(strayed)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_face_says_what_the_room_is_and_what_others_may_use(package: str) -> None:
    for face in sorted(PACKAGES[package].glob("*/__init__.py")):
        tree = ast.parse(face.read_text())
        said = ast.get_docstring(tree) or ""
        name = face.parent.name
        assert said.count("\n") + 1 <= 6, f"{name}: three lines say what it is, what it imports, where a new thing goes"
        assert "new" in said, f"{name}: where does a new thing of its kind go?"
        offered = [
            [element.value for element in node.value.elts]  # type: ignore[attr-defined]
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ]
        assert offered, f"{name} has no __all__"
        assert offered[0] == sorted(offered[0], key=lambda one: (not one.isupper(), not one[0].isupper(), one))
