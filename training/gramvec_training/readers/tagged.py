"""Sentences whose words have tags: CoNLL-U (Universal Dependencies), or a word and a tag a line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from gramvec.errors import InputError
from gramvec_training.readers.rows import near, numbered_lines

TagColumn = Literal["xpos", "upos"]

_COLUMNS = {"upos": 3, "xpos": 4}
_CONLLU, _TWO = 10, 2


class TaggedSentence(NamedTuple):
    """The words of a sentence and the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def read_tagged(path: Path, *, column: TagColumn = "xpos") -> list[TaggedSentence]:
    """The sentences of a file, plain or gzip, in which an empty line ends each.

    A line is of CoNLL-U (ten columns with tabs between, of which `column` is the tag: "xpos" of the treebank, "upos"
    universal), or a word, a tab and a tag. Comments, tokens of several words ("1-2") and empty nodes ("1.1") are left
    out. Raises InputError naming the first line that is neither, and for a file without a sentence.
    """
    sentences: list[TaggedSentence] = []
    pairs: list[tuple[str, str]] = []

    def end() -> None:
        if pairs:
            words, tags = zip(*pairs, strict=True)
            sentences.append(TaggedSentence(words, tags))
            pairs.clear()

    for number, raw in numbered_lines(path):
        try:
            fields = raw.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise InputError(f"{near(path)} line {number} is not UTF-8; save the file as UTF-8.") from None
        if fields == [""]:
            end()
        elif not _is_comment(fields):
            pairs += _tagged(fields, _COLUMNS[column], near(path), number)
    end()
    if not sentences:
        raise InputError(f"{near(path)} holds no sentence; give CoNLL-U, or a word, a tab and a tag a line.")
    return sentences


def _is_comment(fields: list[str]) -> bool:
    return fields[0].startswith("#") and len(fields) == 1


def _tagged(fields: list[str], column: int, path: Path, number: int) -> list[tuple[str, str]]:
    if len(fields) == _CONLLU:
        return [(fields[1], fields[column])] if fields[0].isdigit() else []
    if len(fields) == _TWO and all(fields):
        return [(fields[0], fields[1])]
    raise InputError(f"{path} line {number} has {len(fields)} columns; give CoNLL-U, or a word, a tab and a tag.")
