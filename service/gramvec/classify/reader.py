"""Texts with a label each, from a file: label<TAB>text lines, or two columns of CSV, JSON lines or Parquet."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from gramvec.errors import InputError
from gramvec.tables.batches import Block
from gramvec.tables.inputs import Source, form_of
from gramvec.tables.readers import open_reader

MOST_TEXTS = 1_000_000
_HEADERS = {("label", "text"), ("intent", "text"), ("category", "text")}


class LabelledTexts(NamedTuple):
    """texts, and the label of each."""

    texts: list[str]
    labels: list[str]


def read_labelled(path: Path, *, column: str = "text", label: str = "label") -> LabelledTexts:
    """The rows of a file; `column` and `label` name the columns of CSV, JSON lines and Parquet.

    Any other file has a label, a tab and a text a line; a first line "label<TAB>text" is no row. Raises InputError,
    naming the file and the line, for a bad row, a file without rows and more than a million of them.
    """
    found = LabelledTexts([], [])
    form = form_of(path)
    has_names = form in ("csv", "jsonl", "parquet")
    with closing(Source(path)) as source:
        reader = open_reader(source, form if has_names else "txt", column, keep=has_names)
        for block in reader.blocks():
            for index, number in enumerate(block.numbers):
                row = _named(block, index, label) if has_names else _line(block, index)
                if not has_names and number == 1 and row is not None and tuple(map(str.lower, row)) in _HEADERS:
                    continue
                if row is None:
                    raise InputError(f"{source.name} {reader.unit} {number}: {_why(block, index, label, has_names)}")
                found.labels.append(row[0])
                found.texts.append(row[1])
            if len(found.texts) > MOST_TEXTS:
                raise InputError(f"{source.name} has more than {MOST_TEXTS:,} rows; give fewer.")
    if not found.texts:
        raise InputError(f"{path} has no rows; write a label, a tab and a text on each line.")
    return found


def _line(block: Block, index: int) -> tuple[str, str] | None:
    label, tab, text = block.texts[index].partition("\t")
    row = label.strip(), text.strip()
    return row if tab and all(row) and index not in block.bad else None


def _named(block: Block, index: int, label: str) -> tuple[str, str] | None:
    record = (block.records or [])[index]
    value = record.get(label)
    if index in block.bad or isinstance(value, bool) or not isinstance(value, str | int):
        return None
    row = str(value).strip(), block.texts[index].strip()
    return row if all(row) else None


def _why(block: Block, index: int, label: str, has_names: bool) -> str:
    if index in block.bad:
        return block.bad[index]
    if has_names:
        return f"no text, or no {label!r} that is a text or a whole number; name its column with --label"
    return "no label, tab and text; mend the line"
