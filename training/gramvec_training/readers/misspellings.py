"""Real misspellings of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gramvec.errors import InputError
from gramvec_training.readers.rows import numbered_lines


def read_misspellings(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Lower-case word -> its misspellings, from files of `word<TAB>misspelling` rows; other rows are left out.

    Raises InputError for a file that is missing or has no such row.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        rows = 0
        for _, raw in numbered_lines(path):
            word, _, rest = raw.decode("utf-8", "replace").partition("\t")
            misspelling = rest.split("\t")[0].strip()
            if word.isalpha() and misspelling and misspelling.lower() != word.lower():
                found.setdefault(word.lower(), []).append(misspelling)
                rows += 1
        if not rows:
            raise InputError(f"{path} has no misspelling: write a word, a tab and a misspelling of it on each line.")
    return found
