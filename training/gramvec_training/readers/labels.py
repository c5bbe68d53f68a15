"""Labeled texts or pairs of texts: label<TAB>text or label<TAB>text<TAB>text, CSV or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gramvec.errors import InputError
from gramvec_training.readers.columns import describe_header, find_places, is_number, split_header, table_rows
from gramvec_training.readers.lines import SkippedRows, shorten_path
from gramvec_training.readers.pairs import LEFT, RIGHT
from gramvec_training.sections import OnBad, TableFormat

_REMEDY = "write a label, a tab and a text (and, of pairs, a tab and the other text) on each line"
_TEXT_REMEDY = "write a label, a tab and a text on each line"
_LABELS = frozenset({"label", "labels", "intent", "category", "class", "topic", "tag"})
_TEXTS = frozenset({"text", "texts", "utterance", "sentence", "query", "question", "message", "example"})


class Labeled(NamedTuple):
    """A label and one or two texts."""

    label: str
    texts: tuple[str, ...]


def read_labeled(
    path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[list[Labeled], SkippedRows]:
    """Read the rows of a file, plain or compressed; each has as many texts as the first usable row, one or two.

    A header that names a column `label`, `intent`, `category` or the like and one `text`, `utterance`, `query` or the
    like, or two such as `premise` and `hypothesis`, is recognized, names these columns, and is no row; a CSV
    or JSON file has one in any case, and of it the first two columns are read where the names say nothing. Bad rows
    (another number of columns, an empty one, not UTF-8, longer than 16 MiB) are skipped and counted, or refused with
    InputError.

    Raises:
        InputError: The file is missing or holds no usable row.
    """
    return _read(SkippedRows(path, on_bad, _REMEDY, given), frozenset({2, 3}))


def read_label_texts(
    path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None
) -> tuple[list[Labeled], SkippedRows]:
    """Read rows with one text each, like `read_labeled`; a third column of numbers is reported and ignored.

    Raises:
        InputError: Nothing can be learned from the labels: where there is one label only, no label has two texts, or
            there are fewer texts than labels, as where the text comes first.
    """
    rows, bad = _read(SkippedRows(path, on_bad, _TEXT_REMEDY, given), frozenset({2}))
    texts: dict[str, set[str]] = {}
    for label, (text,) in rows:
        texts.setdefault(label, set()).add(fold_text(text))
    if len(texts) < 2:
        raise InputError(
            f"{shorten_path(path)}: every row has the label {rows[0].label!r}; give texts of two labels or more"
        )
    if len(set().union(*texts.values())) < len(texts):
        raise InputError(
            f"{shorten_path(path)}: more labels than texts; write the label first, then a tab and the text"
        )
    if max(map(len, texts.values())) < 2:
        raise InputError(
            f"{shorten_path(path)}: no label has two different texts; give more, label first, a tab, the text"
        )
    return rows, bad


def fold_text(text: str) -> str:
    """Return the text in lower case with single spaces, equal for texts that differ only in these."""
    return " ".join(text.lower().split())


def _read(bad: SkippedRows, counts: frozenset[int]) -> tuple[list[Labeled], SkippedRows]:
    labeled: list[Labeled] = []
    pairs = 3 in counts
    header, rows = split_header(table_rows(bad), bad, _LABELS, _TEXTS | LEFT if pairs else _TEXTS)
    places = None
    if header is not None:
        places = (_places_of_pairs(header) if pairs else None) or find_places(header, _LABELS, _TEXTS) or (0, 1)
        texts = " and ".join(repr(header[place]) for place in places[1:])
        bad.add_note(f"{describe_header(bad)}; labels are {header[places[0]]!r} and texts {texts}")
    scores = 0
    for number, columns, why in rows:
        if places is not None and len(columns) > max(places):
            columns = [columns[place] for place in places]
        elif len(columns) == 3 and counts == {2} and is_number(columns[2]):
            columns, scores = columns[:2], scores + 1
        wanted = {len(labeled[0].texts) + 1} if labeled else {len(places)} if places else counts
        if why:
            bad.add(number, why)
        elif len(columns) not in wanted:
            counted = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
            bad.add(number, counted)
        elif not all(columns):
            bad.add(number, "an empty column")
        else:
            labeled.append(Labeled(columns[0], tuple(columns[1:])))
    if scores:
        bad.add_note(f"column 3 holds numbers and is not used: {scores:,} row{'s' if scores > 1 else ''}")
    bad.require(labeled)
    return labeled, bad


def _places_of_pairs(header: Sequence[str]) -> tuple[int, ...] | None:
    label, pair = find_places(header, _LABELS, LEFT), find_places(header, LEFT, RIGHT)
    return (label[0], *pair) if label and pair else None
