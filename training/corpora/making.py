"""A recipe carried out: the authors' files read by its reader, and the lines that its writer makes of the records."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence, Set

from corpora import readers, writers
from corpora.bible import read_bible
from corpora.dialogs import read_dialogs
from corpora.openstax import read_openstax
from corpora.readers import Files, Reader
from corpora.recipe import Recipe
from corpora.tatoeba import read_english, read_same_translation
from corpora.translations import (
    read_annotations,
    read_beside_first,
    read_dictionary,
    read_lines,
    read_pages,
    read_sentences,
)
from corpora.wordfreq import read_wordfreq

AS_THEY_ARE = "lines"
READERS: dict[str, Reader] = {
    "annotations": read_annotations,
    "beside the first": read_beside_first,
    "bible": read_bible,
    "codespell": readers.read_codespell,
    "dart": readers.read_dart,
    "definitions": readers.read_definitions,
    "dialogs": read_dialogs,
    "dictionary": read_dictionary,
    "english": read_english,
    "intents": readers.read_intents,
    "json": readers.read_json_columns,
    "letter pairs": readers.read_letter_pairs,
    "lexicon": readers.read_lexicon,
    "onestop": readers.read_onestop,
    "openstax": read_openstax,
    "pages": read_pages,
    "paragraphs": readers.read_paragraphs,
    "paraqa": readers.read_paraqa,
    "rows": readers.read_rows,
    "same translation": read_same_translation,
    "sentences": read_sentences,
    "side by side": readers.read_side_by_side,
    "sides": readers.read_sides,
    "sides of the first": readers.read_sides_of_first,
    "similarity": readers.read_similarity,
    "squad": readers.read_squad,
    "synonyms": readers.read_synonyms,
    "texts": read_lines,
    "texts of a key": readers.read_texts_of_key,
    "typos": readers.read_typos,
    "wordfreq": read_wordfreq,
    "word pairs": readers.read_word_pairs,
}
_TEXTS = {"dialogs": writers.write_turns, "openstax": writers.write_paragraphs}


def make_text(recipe: Recipe, files: Files, withheld: Set[str]) -> bytes:
    """Return the text of a recipe's file, unpacked.

    Raises:
        ValueError: A file is not laid out as its reader expects, or the text has other bytes than the recipe says.
    """
    text = write(recipe, files, withheld)
    if hashlib.sha256(text).hexdigest() != recipe.sha256:
        raise ValueError(f"{recipe.file}: was made with other bytes than recipes.toml says; nothing of it was written")
    return text


def write(recipe: Recipe, files: Files, withheld: Set[str]) -> bytes:
    """Return the text of a recipe's file, unpacked, whatever its digest."""
    if recipe.reader == AS_THEY_ARE:
        return b"".join(file.data for file in files)
    records = READERS[recipe.reader](files, recipe.columns)
    if ".groups." in recipe.file:
        cleaned = writers.join_spaces if recipe.entities else writers.clean
        lines = writers.write_groups(records, withheld=withheld, at_most=recipe.at_most, cleaned=cleaned)
    elif ".pairs." in recipe.file:
        lines = writers.write_pairs(records)
    elif ".translations." in recipe.file:
        lines = writers.write_translations(records)
    else:
        lines = _TEXTS.get(recipe.reader, writers.write_columns)(records)
    return "".join(f"{line}\n" for line in lines).encode()


def pack(recipe: Recipe, text: bytes) -> bytes:
    """Return the file's bytes: the text, or gzip of it where the name says so, without name and time."""
    return gzip.compress(text, 9, mtime=0) if recipe.file.endswith(".gz") else text


def digest_members(files: Sequence[tuple[str, bytes]]) -> str:
    """Return the SHA-256 over the paths and contents of an archive's members, in the order of their paths."""
    state = hashlib.sha256()
    for path, data in sorted(files):
        state.update(f"{path}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    return state.hexdigest()
