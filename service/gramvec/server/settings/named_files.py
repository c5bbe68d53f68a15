"""What may stand in the settings `index` and `head`: NAME=FILE, as in things=things.gvi."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def named_files(given: Sequence[str]) -> dict[str, Path]:
    """Name -> file, in the order given. Raises ValueError, a sentence, for what is no NAME=FILE or names one twice."""
    found: dict[str, Path] = {}
    for one in given:
        name, _, path = one.partition("=")
        if not name or not path:
            raise ValueError("must be NAME=FILE, as in things=things.gvi")
        if name in found:
            raise ValueError(f"gives two files the name {name!r}; choose another for one of them")
        found[name] = Path(path)
    return found
