"""Word vectors as text: one word and its numbers a line, with or without a first line of counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.readers.rows import numbered_lines


def read_vectors(path: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Words and their vectors, float32[n, d], in file order; a repeated word keeps its first row.

    A first line of two whole numbers is taken as counts (word2vec's header). A word may hold spaces: the last d
    columns are the numbers. Raises InputError naming the line that is not UTF-8 or has another number of columns.
    """
    words: list[str] = []
    seen: set[str] = set()
    rows: list[npt.NDArray[np.float32]] = []
    dimension: int | None = None
    for number, raw in numbered_lines(path):
        fields = raw.rstrip().split(b" ")
        if number == 1 and len(fields) == 2 and all(part.isdigit() for part in fields):
            dimension = int(fields[1])
            continue
        if dimension is None:
            dimension = len(fields) - 1
        if dimension < 1 or len(fields) <= dimension:
            raise InputError(
                f"{path} line {number} has {len(fields) - 1} numbers where {dimension} are due; "
                "each line is a word and its numbers, separated by single spaces."
            )
        try:
            word = b" ".join(fields[:-dimension]).decode("utf-8")
            row = np.array(fields[-dimension:], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path} line {number} is not a word and {dimension} numbers: {error}.") from error
        if not np.isfinite(row).all():
            raise InputError(f"{path} line {number} holds a number that is not finite; remove the line.")
        if word not in seen:
            seen.add(word)
            words.append(word)
            rows.append(row)
    if not rows:
        raise InputError(f"{path} holds no word vector.")
    return words, np.stack(rows)
