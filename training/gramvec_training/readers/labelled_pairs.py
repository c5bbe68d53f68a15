"""Pairs of texts with a label: `a<TAB>b<TAB>1`, 0 or 1, or a score; or a file with a header that names the columns."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec_training.configuration import OnBad
from gramvec_training.readers.columns import chosen_columns, is_number, table_rows
from gramvec_training.readers.pairs import LEFT, PAIRS_REMEDY, RIGHT, too_few
from gramvec_training.readers.rows import BadRows, near

# Rows by which a file is found to hold labels.
_LOOKED_AT = 1_000


class LabelledPairs(NamedTuple):
    """left, right: texts; labels: float64[n], 0 and 1 alone if `binary`, else scores of any range."""

    left: list[str]
    right: list[str]
    labels: npt.NDArray[np.float64]
    binary: bool


def holds_labels(path: Path) -> bool:
    """Whether the first thousand rows have a column of labels, and not one label alone.

    Raises InputError where the file is missing or no text.
    """
    chosen, rows = chosen_columns(table_rows(path), BadRows(path), LEFT, RIGHT, labels=True)
    if chosen.score is None:
        return False
    return len({row.values[chosen.score] for row in islice(rows, _LOOKED_AT) if len(row.values) > chosen.score}) > 1


def read_labelled_pairs(path: Path, *, on_bad: OnBad = "skip") -> tuple[LabelledPairs, BadRows]:
    """The pairs of a file. Labels are binary where those of its first hundred rows are 0 or 1.

    Bad rows (too few columns, an empty side, not UTF-8, longer than 16 MiB) are skipped and counted, or refused.
    Raises InputError, naming the line, for a label that is no number, or another than 0 and 1 where they are binary;
    and for a file without labels.
    """
    bad = BadRows(path)
    chosen, rows = chosen_columns(table_rows(path), bad, LEFT, RIGHT, labels=True)
    if chosen.score is None:
        raise InputError(f"{near(path)} has no column of labels; write 0, 1 or a score behind the two texts.")
    left, right, labels = [], [], []
    for number, values, why in rows:
        if why or len(values) <= max(*chosen.wanted, chosen.score):
            bad.note(number, why or too_few(values, chosen), on_bad=on_bad, remedy=PAIRS_REMEDY)
            continue
        one, other = (values[place] for place in chosen.wanted)
        if not one or not other:
            bad.note(number, "an empty side", on_bad=on_bad, remedy=PAIRS_REMEDY)
            continue
        labels.append(_label(values[chosen.score], f"{near(path)} line {number}", binary=chosen.zero_is_not))
        left.append(one)
        right.append(other)
    return LabelledPairs(left, right, np.array(labels, np.float64), chosen.zero_is_not), bad


def _label(value: str, where: str, *, binary: bool) -> float:
    number = float(value) if is_number(value) else float("nan")
    if binary and number not in (0, 1):
        raise InputError(f"{where}: the label is {value[:40]!r}, and others are 0 or 1; mend it, or give --learn rows.")
    if not np.isfinite(number):
        raise InputError(f"{where}: the label is {value[:40]!r}, which is no number; mend it, or give --learn rows.")
    return number
