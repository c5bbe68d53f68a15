"""Draw the rooms of both packages into docs/architecture.md: python docs/rooms.py [--check]

The floors are those of the layers contracts in pyproject.toml, the words the first sentence of each room's docstring,
and an arrow is an import; one that others imply is left out. So the picture is the code's, and a test compares the two.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SOURCES = {"gramvec": ROOT / "service" / "gramvec", "gramvec_training": ROOT / "training" / "gramvec_training"}

Graph = dict[str, set[str]]


def folder_of(container: str) -> Path:
    """The folder of a package by its dotted name."""
    package, *rest = container.split(".")
    return SOURCES[package].joinpath(*rest)


def floors() -> Iterator[tuple[str, list[str]]]:
    """Each package that has a layers contract, with its rooms from the highest floor down, without modules."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        if contract["type"] == "layers":
            (container,) = contract["containers"]
            names = [name.strip() for layer in contract["layers"] for name in layer.split("|")]
            yield container, [name for name in names if (folder_of(container) / name / "__init__.py").exists()]


def purpose(container: str, room: str) -> str:
    """The first sentence of a room's docstring."""
    said = ast.get_docstring(ast.parse((folder_of(container) / room / "__init__.py").read_text())) or ""
    return re.split(r"(?<=\.)\s", said.replace("\n", " "), maxsplit=1)[0].rstrip(".").replace("`", "")


def imports(container: str, rooms: list[str]) -> Graph:
    """Which rooms of a package each of them imports."""
    found: Graph = {room: set() for room in rooms}
    for room in rooms:
        for path in (folder_of(container) / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    # `from package import room` names the room behind the word import.
                    names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
                    found[room] |= {other for name in names for other in rooms if _is_in(name, f"{container}.{other}")}
        found[room].discard(room)
    return found


def reduced(graph: Graph) -> Graph:
    """The graph without the arrows that a longer way implies. It has no cycles."""

    def reached(room: str) -> set[str]:
        return graph[room].union(*(reached(one) for one in graph[room]))

    return {room: ones - set().union(*(reached(one) for one in ones)) for room, ones in graph.items()}


def picture(container: str, rooms: list[str]) -> str:
    """A Mermaid flowchart: a box a room, the highest floor first, an arrow to what it imports."""
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {room}["<b>{room}</b><br>{purpose(container, room)}"]' for room in rooms]
    lines += [
        f"    {room} --> {other}"
        for room, ones in reduced(imports(container, rooms)).items()
        for other in rooms
        if other in ones
    ]
    return "\n".join([*lines, "```"])


def filled(text: str) -> str:
    """The page with its pictures drawn anew, each between <!-- rooms of NAME --> and <!-- /rooms -->."""
    for container, rooms in floors():
        block = rf"(<!-- rooms of {re.escape(container)} -->\n).*?(<!-- /rooms -->)"
        drawn = picture(container, rooms)
        text, count = re.subn(block, lambda found: found[1] + drawn + "\n" + found[2], text, flags=re.DOTALL)  # noqa: B023
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} places for the rooms of {container}; it should have one")
    return text


def _is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def main() -> None:
    """Write the page, or say that it is stale."""
    text = PAGE.read_text(encoding="utf-8")
    new = filled(text)
    if "--check" in sys.argv and new != text:
        raise SystemExit("docs/architecture.md shows other rooms than the code has: python docs/rooms.py")
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
