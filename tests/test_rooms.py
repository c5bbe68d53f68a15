"""Rooms: packages whose files change together, entered through their faces alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Each room is a package in one of these folders.
FLOORS = {
    "gramvec": ROOT / "service" / "gramvec",
    "gramvec.http": ROOT / "service" / "gramvec" / "http",
    "gramvec_training": ROOT / "training" / "gramvec_training",
    "gramvec_training.experiments": ROOT / "training" / "gramvec_training" / "experiments",
}
ROOMS = {
    f"{floor}.{face.parent.name}": face.parent
    for floor, folder in FLOORS.items()
    for face in folder.glob("*/__init__.py")
    if face.parent not in FLOORS.values()
}


def files() -> Iterator[tuple[str | None, Path]]:
    """Every file of both packages, with the room that it is in."""
    for floor in FLOORS.values():
        for path in sorted(floor.rglob("*.py")):
            inside = [room for room, folder in ROOMS.items() if folder in path.parents]
            yield max(inside, key=len, default=None), path


def room_of(module: str) -> str | None:
    """The room that a module is in, or is."""
    return max((room for room in ROOMS if f"{module}.".startswith(f"{room}.")), key=len, default=None)


def imported(path: Path) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [name.name for name in node.names]
        elif isinstance(node, ast.Import):
            yield from ((name.name, []) for name in node.names)


def test_other_rooms_are_entered_through_their_faces() -> None:
    strayed = []
    for own, path in files():
        for module, _ in imported(path):
            room = room_of(module)
            if room is not None and room != own and module != room:
                strayed.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not strayed, "\n".join(strayed)


@pytest.mark.parametrize("room", ROOMS)
def test_each_face_says_what_the_room_is_and_what_others_may_use(room: str) -> None:
    face = ROOMS[room] / "__init__.py"
    tree = ast.parse(face.read_text())
    said = ast.get_docstring(tree) or ""
    assert said.count("\n") + 1 <= 6, f"{room}: three lines say what it is, what it imports, where a new thing goes"
    assert "new" in said, f"{room}: where does a new thing of its kind go?"
    offered = [
        [element.value for element in node.value.elts]  # type: ignore[attr-defined]
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    assert offered, f"{room} has no __all__"
    assert offered[0] == sorted(offered[0], key=lambda one: (not one.isupper(), not one[0].isupper(), one))
