"""English sentences of Tatoeba, and those that have the same translation, by way of manythings.org's pairs."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence

from corpora.readers import MAX_UNPACKED, Files, Records
from corpora.recipe import AuthorsFile
from corpora.writers import clean


def read_pairs(file: AuthorsFile) -> Iterator[tuple[str, str]]:
    """Yield each English sentence and its translation."""
    text = _unzip(file.data) if file.path.endswith(".zip") else file.text
    for line in text.split("\n"):
        columns = line.rstrip("\r").split("\t")
        if len(columns) >= 2 and columns[0] and columns[1]:
            yield columns[0], columns[1]


def _unzip(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".txt") and "about" not in member.filename.lower():
                if member.file_size > MAX_UNPACKED:
                    raise ValueError("unpacks to more than 256 MiB")
                return archive.read(member).decode("utf-8", "replace")
    return ""


def read_same_translation(files: Files, columns: Sequence[str]) -> Records:
    """Yield the English sentences with one translation; `columns` has the language of each file."""
    for language in dict.fromkeys(columns):
        groups: dict[str, dict[str, None]] = {}
        for file, own in zip(files, columns, strict=True):
            for english, translation in read_pairs(file) if own == language else ():
                key = re.sub(r"\W+", " ", translation.lower()).strip()
                groups.setdefault(key, {})[english] = None
        yield from (list(sentences) for sentences in groups.values() if len(sentences) > 1)


def read_english(files: Files, columns: Sequence[str]) -> Records:
    """Yield each English sentence once, sorted."""
    sentences = {english for file in files for english, _ in read_pairs(file)}
    yield from ((sentence,) for sentence in sorted(map(clean, sentences)))
