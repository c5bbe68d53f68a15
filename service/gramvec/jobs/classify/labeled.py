"""Labeled texts of a file: a label and a text in each row, several labels, or fastText's lines."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.common.columns import read_columns
from gramvec.jobs.tables.columns import text_of
from gramvec.jobs.tables.inputs import FileFormat, Source

PREFIX = "__label__"  # of a label in a line of fastText's
BETWEEN = "|"  # labels of a text
_FIELD = "\x1f"  # between those of a list, while they are a text


@dataclass(frozen=True)
class LabeledTexts:
    """Texts and the labels of each.

    labels: one or more of each text. several: whether a text may have several. numbers: of the rows, from 1. unit: what
    they count. bad: the rows that were left out. unlabeled: how many rows have no label, and are left out, too.
    """

    texts: list[str]
    labels: list[tuple[str, ...]]
    several: bool
    numbers: list[int]
    unit: str
    bad: BadRows
    unlabeled: int = 0


def read_labeled(
    path: Path,
    given: FileFormat,
    column: str,
    label: str,
    *,
    several: bool | None = None,
    on_error: OnError = "stop",
) -> LabeledTexts:
    """Read labeled texts; rows without a label are left out and counted.

    Args:
        path: label<TAB>text lines, CSV, JSON lines or Parquet with the columns `label` and `column`, or lines of
            fastText's, in which each word that begins with __label__ is a label.
        given: form, delimiter and encoding.
        column: of the texts.
        label: column of the labels: a text, or a list of texts.
        several: True divides labels at bars, False takes them as they are; None divides them where a row has a list, or
            two labels of fastText's, or two parts that are labels of their own in other rows.
        on_error: "stop" at a bad row or "skip" it.

    Raises:
        InputError: naming file and line, see gramvec.jobs.common.columns.read_columns.
    """
    if is_fasttext(path, given):
        return _read_fasttext(path, given, several=several, on_error=on_error)
    found = read_columns(
        path,
        [label, column],
        format=given,
        options={label: "label"},
        positional=True,
        filled=(column,),
        on_error=on_error,
        as_text=_as_text,
    )
    cells = found.values[label]
    lists = any(_FIELD in cell for cell in cells)
    if several is None:
        several = lists or _are_divided(cells)
    elif lists and not several:
        raise InputError(
            f"{path}: a row has a list of labels; leave out `several=False`, or write one label in each row"
        )
    labels = [
        tuple(part.strip() for part in _parts(cell) if part.strip()) if several else (cell.strip(),) for cell in cells
    ]
    texts = [text.strip() for text in found.values[column]]
    places = [place for place, some in enumerate(labels) if any(some)]
    return LabeledTexts(
        [texts[place] for place in places], [labels[place] for place in places], several,
        [found.numbers[place] for place in places], found.unit, found.bad, len(labels) - len(places),
    )  # fmt: skip


def _as_text(value: Any) -> str:
    return _FIELD.join(["", *map(text_of, value)]) if isinstance(value, list | tuple) else text_of(value)


def _parts(cell: str) -> list[str]:
    return cell.split(_FIELD if _FIELD in cell else BETWEEN)


def _are_divided(cells: list[str]) -> bool:
    """Return True if bars separate labels in a cell: each part is a cell of its own or stands beside other parts."""
    divided = [cell for cell in cells if BETWEEN in cell]
    single = {cell.strip() for cell in cells if BETWEEN not in cell}
    seen: dict[str, int] = {}
    for cell in {*divided}:
        for part in {label.strip() for label in cell.split(BETWEEN)}:
            seen[part] = seen.get(part, 0) + 1
    return any(part in single or count > 1 for part, count in seen.items() if part)


def is_fasttext(path: Path, given: FileFormat) -> bool:
    """Return whether the first line of a text file begins with a label of fastText's."""
    if given.form not in ("txt", "tsv"):
        return False
    with closing(Source(path)) as source:
        return source.peek().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(PREFIX.encode())


def _read_fasttext(path: Path, given: FileFormat, *, several: bool | None, on_error: OnError) -> LabeledTexts:
    plain = FileFormat("txt", given.delimiter, given.encoding)
    table = read_columns(path, ["text"], format=plain, on_error=on_error)
    texts, labels, numbers, bad, unlabeled = [], [], [], table.bad, 0
    for number, line in zip(table.numbers, table.values["text"], strict=True):
        text, line_labels = _split_line(line)
        if text and not line_labels:
            unlabeled += 1
            continue
        why = None if text else "no text"
        if line_labels and len(line_labels) > 1 and several is False:
            why = "several labels; leave out `several=False`, or write one"
        if why is None:
            texts.append(text)
            labels.append(line_labels)
            numbers.append(number)
        elif not line.strip():
            continue
        else:
            bad.add(number, why)
    more = any(len(line_labels) > 1 for line_labels in labels)
    return LabeledTexts(texts, labels, more if several is None else several, numbers, table.unit, bad, unlabeled)


def _split_line(line: str) -> tuple[str, tuple[str, ...]]:
    words = line.split()
    labels = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
    return " ".join(word for word in words if not word.startswith(PREFIX)), tuple(label for label in labels if label)
