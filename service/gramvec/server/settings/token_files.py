"""What may stand in the setting `token_ids`: FILE, or NAME=FILE for one of the models' names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

# The key of the file that holds for all other names.
OTHERS = ""


def token_files(given: Sequence[str]) -> dict[str, Path]:
    """Name of a model, or OTHERS -> file, in the order given. Raises ValueError, a sentence."""
    found: dict[str, Path] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals:
            name, path = OTHERS, one
        elif not name:
            raise ValueError("must be FILE or NAME=FILE, as in cl100k_base.tiktoken")
        if not path:
            raise ValueError("must be FILE or NAME=FILE, as in cl100k_base.tiktoken")
        if name in found:
            raise ValueError(
                "gives two files to " + (f"the name {name!r}" if name else "all names") + "; leave one out"
            )
        found[name] = Path(path)
    return found
