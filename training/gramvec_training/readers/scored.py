"""Pairs of texts with a score each: score<TAB>text<TAB>text lines, CSV or JSON lines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from gramvec.errors import InputError
from gramvec_training.configuration import OnBad
from gramvec_training.readers.columns import SCORES, header_of, is_number, named_places, split_header, table_rows
from gramvec_training.readers.pairs import LEFT, RIGHT
from gramvec_training.readers.rows import BadRows, near

_REMEDY = "write a score, a tab, a text, a tab and the other text on each line"
_IN_ORDER = (0, 1, 2)


class Scored(NamedTuple):
    """A finite score, and two texts."""

    score: float
    texts: tuple[str, ...]


def read_scored(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Scored], BadRows]:
    """The rows of a file, plain or gzip; of CSV and JSON lines the first three columns where no name is known.

    A header that names a score and both texts (`score`, `sentence1`, `sentence2` and the like) says which columns these
    are, and is no row. Bad rows (another number of columns, an empty text, a score that is no finite number, not UTF-8,
    longer than 16 MiB) are skipped and counted, or refused with InputError. Raises InputError where the file is missing
    or holds no usable row.
    """
    found: list[Scored] = []
    bad = BadRows(path)
    header, rows = split_header(table_rows(path), path, SCORES, LEFT)
    places = _IN_ORDER
    if header is not None and len(header) >= len(places):
        score, pair = named_places(header, SCORES, LEFT), named_places(header, LEFT, RIGHT)
        places = (score[0], *pair) if score and pair else _IN_ORDER
        names = [repr(header[place]) for place in places]
        bad.say(f"{header_of(path)}; scores are {names[0]} and texts {names[1]} and {names[2]}")
    for number, columns, why in rows:
        why = why or _wrong(columns, places, named=header is not None)
        if why:
            bad.note(number, why, on_bad=on_bad, remedy=_REMEDY)
        else:
            found.append(Scored(float(columns[places[0]]), (columns[places[1]], columns[places[2]])))
    if not found:
        skipped = f" ({bad.summary(of_file=False)})" if bad.total else ""
        raise InputError(f"{near(path)} holds no usable row{skipped}; {_REMEDY}.")
    return found, bad


def _wrong(columns: list[str], places: tuple[int, int, int], *, named: bool) -> str | None:
    if len(columns) <= max(places) or (not named and len(columns) > len(places)):
        return f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
    score, *texts = (columns[place] for place in places)
    if not is_number(score) or not math.isfinite(float(score)):
        return "no score that is a number"
    return None if all(texts) else "an empty column"
