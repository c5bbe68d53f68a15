"""Texts, or pairs of texts, with a label each: label<TAB>text or label<TAB>text<TAB>text, or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gramvec.errors import InputError
from gramvec_training.configuration import OnBad
from gramvec_training.readers.columns import named_places, split_header, table_rows
from gramvec_training.readers.rows import BadRows, near

_REMEDY = "write a label, a tab and a text (and, of pairs, a tab and the other text) on each line"
_LABELS = frozenset({"label", "labels", "intent", "category", "class", "topic", "tag"})
_TEXTS = frozenset({"text", "texts", "utterance", "sentence", "query", "question", "message", "example"})


class Labelled(NamedTuple):
    """A label as it is spelt, and one text or two."""

    label: str
    texts: tuple[str, ...]


def read_labelled(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Labelled], BadRows]:
    """The rows of a file, plain or gzip: as many texts each as the first usable row has, one or two.

    A header that names a column `label`, `intent`, `category` or the like and one `text`, `utterance`, `query` or the
    like is recognised, says which columns these are, and is no row; a CSV file has one in any case, and of it the first
    two columns are read where the names say nothing. Bad rows (another number of columns, an empty one, not UTF-8,
    longer than 16 MiB) are skipped and counted, or refused with InputError.
    Raises InputError where the file is missing or holds no usable row.
    """
    found: list[Labelled] = []
    bad = BadRows(path)
    header, rows = split_header(table_rows(path), path, _LABELS, _TEXTS)
    places = None
    if header is not None:
        places = named_places(header, _LABELS, _TEXTS) or (0, 1)
        bad.say(f"line 1 is a header; labels are {header[places[0]]!r} and texts {header[places[1]]!r}")
    for number, columns, why in rows:
        if places is not None and len(columns) > max(places):
            columns = [columns[place] for place in places]
        wanted = {len(found[0].texts) + 1} if found else {2} if places else {2, 3}
        if why:
            bad.note(number, why, on_bad=on_bad, remedy=_REMEDY)
        elif len(columns) not in wanted:
            counted = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
            bad.note(number, counted, on_bad=on_bad, remedy=_REMEDY)
        elif not all(columns):
            bad.note(number, "an empty column", on_bad=on_bad, remedy=_REMEDY)
        else:
            found.append(Labelled(columns[0], tuple(columns[1:])))
    if not found:
        why = f" ({bad.summary(of_file=False)})" if bad.total else ""
        raise InputError(f"{near(path)} holds no usable row{why}; {_REMEDY}.")
    return found, bad
