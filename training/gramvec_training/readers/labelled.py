"""Texts, or pairs of texts, with a label each: label<TAB>text or label<TAB>text<TAB>text."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gramvec.errors import InputError
from gramvec_training.configuration import OnBad
from gramvec_training.readers.rows import BadRows, near, numbered_lines

_REMEDY = "write a label, a tab and a text (and, of pairs, a tab and the other text) on each line"


class Labelled(NamedTuple):
    """A label as it is spelt, and one text or two."""

    label: str
    texts: tuple[str, ...]


def read_labelled(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Labelled], BadRows]:
    """The rows of a file, plain or gzip: as many texts each as the first usable row has, one or two.

    Bad rows (another number of columns, an empty one, not UTF-8) are skipped and counted, or refused with InputError.
    Raises InputError where the file is missing or holds no usable row.
    """
    rows: list[Labelled] = []
    bad = BadRows(path)
    for number, raw in numbered_lines(path):
        try:
            columns = [column.strip() for column in raw.decode("utf-8").split("\t")]
        except UnicodeDecodeError:
            bad.note(number, "not UTF-8", on_bad=on_bad, remedy=_REMEDY)
            continue
        wanted = {len(rows[0].texts) + 1} if rows else {2, 3}
        if len(columns) not in wanted:
            found = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
            bad.note(number, found, on_bad=on_bad, remedy=_REMEDY)
        elif not all(columns):
            bad.note(number, "an empty column", on_bad=on_bad, remedy=_REMEDY)
        else:
            rows.append(Labelled(columns[0], tuple(columns[1:])))
    if not rows:
        found = f" ({bad.summary(of_file=False)})" if bad.total else ""
        raise InputError(f"{near(path)} holds no usable row{found}; {_REMEDY}.")
    return rows, bad
