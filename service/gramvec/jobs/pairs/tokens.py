"""Tokens of the rows of tables, as arrays: runs of letters and runs of digits, weighted by how rare they are.

A row is its columns, one after the other. A text without letters and digits is the runs of its symbols.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.pairs.word_shares import BACKGROUND_TEXTS, ONLY_BACKGROUND_TEXTS, shares_of
from gramvec.lexical.sparse import MAX_CHARACTERS
from gramvec.text.arrays import Floats, Int32s, Int64s
from gramvec.text.folding import fold_letters
from gramvec.text.scripts import close_gaps

LETTERS, DIGITS, SYMBOLS, ZEROS = range(4)
# A + or # behind letters belongs to them: C++ and C# are two things.
_TOKEN = re.compile(r"[^\W\d_]+[+#]*|\d+")
_SYMBOLS = re.compile(r"\S+")


class PairVocabulary(NamedTuple):
    """Different tokens of all texts.

    Attributes:
        characters: uint32, their code points, one token after the other.
        starts: int32[v + 1], where each begins.
        values: int32[v], the token that each is equal to: of digits, the one without zeros in front.
        kinds: uint8[v], LETTERS, DIGITS, SYMBOLS or, for several zeros and nothing else, ZEROS.
        weights: float32[v], inverse document frequencies.
        heaviest: the weight of a token of one text.
    """

    characters: NDArray[np.uint32]
    starts: Int32s
    values: Int32s
    kinds: NDArray[np.uint8]
    weights: Floats
    heaviest: float


class TokenRows(NamedTuple):
    """Tokens of rows of several columns.

    Attributes:
        bounds: int64[rows * columns + 1], where the tokens of each column of each row begin.
        tokens: int32, places in the vocabulary, in the order of the text.
        sorted: int32, places of tokens within their column, by value.
        together: int32, places of tokens within their row, by value.
    """

    bounds: Int64s
    tokens: Int32s
    sorted: Int32s
    together: Int32s


class Tokens(NamedTuple):
    """The tokens of one table or two, of one vocabulary, and the number of columns."""

    vocabulary: PairVocabulary
    tables: list[TokenRows]
    columns: int


def fold_text(text: str) -> str:
    """Return a text as it is compared: its letters folded, cut where only that makes it longer than MAX_CHARACTERS."""
    return close_gaps(fold_letters(text))[: max(MAX_CHARACTERS, len(text))].strip()


def strip_punctuation(text: str) -> str:
    """Return the tokens of a folded text with spaces between."""
    return " ".join(_TOKEN.findall(text) or text.split())


def tokens_of(tables: Sequence[Sequence[Sequence[str]]], *, rows_count: bool = True) -> Tokens:
    """Return the tokens of tables, each a list of columns of folded texts.

    Args:
        tables: one or two.
        rows_count: whether weights are those of the rows of all tables; else they are those of common English words,
            and a row has the same ones beside any others.
    """
    known: dict[str, int] = {}
    lists = [_read(columns, known) for columns in tables]
    values = _values(known)
    made = [_sort_tokens(bounds, tokens, values, len(tables[0])) for bounds, tokens in lists]
    counted = made if rows_count else []
    return Tokens(_vocabulary(known, values, counted, len(tables[0])), made, len(tables[0]))


def _read(columns: Sequence[Sequence[str]], known: dict[str, int]) -> tuple[Int64s, Int32s]:
    tokens: list[int] = []
    counts = []
    find, number = _TOKEN.findall, known.setdefault
    for row in zip(*columns, strict=True):
        for text in row:
            found = find(text) or (_SYMBOLS.findall(text) if text else [])
            tokens += [number(token, len(known)) for token in found]
            counts.append(len(found))
    return np.append(0, np.cumsum(np.array(counts, np.int64))), np.array(tokens, np.int32)


def _values(known: dict[str, int]) -> Int32s:
    """Return the values of tokens. Numbers without zeros in front become known."""
    values = []
    for token, number in list(known.items()):
        plain = token.lstrip("0") if token[0] == "0" else token
        values.append(number if plain == token or not plain else known.setdefault(plain, len(known)))
    values += range(len(values), len(known))
    return np.array(values, np.int32)


def _sort_tokens(bounds: Int64s, tokens: Int32s, values: Int32s, columns: int) -> TokenRows:
    of_token = values[tokens]
    cells = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    place = np.lexsort((of_token, cells)) - bounds[cells]
    if columns == 1:
        return TokenRows(bounds, tokens, place.astype(np.int32), place.astype(np.int32))
    rows = cells // columns
    together = np.lexsort((of_token, rows)) - bounds[rows * columns]
    return TokenRows(bounds, tokens, place.astype(np.int32), together.astype(np.int32))


def _vocabulary(known: dict[str, int], values: Int32s, tables: Sequence[TokenRows], columns: int) -> PairVocabulary:
    names = list(known)
    kinds = np.array([_kind(name) for name in names], np.uint8)
    lengths = np.array([len(name) for name in names], np.int64)
    characters = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.append(0, np.cumsum(lengths)).astype(np.int32)
    held = np.zeros(len(names), np.int64)
    rows = 0
    for table in tables:
        # A token counts once in each row.
        number = (len(table.bounds) - 1) // columns
        row = np.repeat(np.arange(number), np.diff(table.bounds[::columns]))
        values_of_row = values[table.tokens[table.together + table.bounds[row * columns]]]
        first = (np.diff(values_of_row, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0)
        held += np.bincount(values_of_row[first], minlength=len(names))
        rows += number
    background = BACKGROUND_TEXTS if tables else ONLY_BACKGROUND_TEXTS
    often = held + background * shares_of(names)
    total = rows + background
    weights = np.log((1 + total) / (1 + often[values])) + 1
    return PairVocabulary(characters, starts, values, kinds, weights.astype(np.float32), float(np.log(1 + total) + 1))


def _kind(token: str) -> int:
    if token[0].isdecimal():
        return ZEROS if len(token) > 1 and not token.strip("0") else DIGITS
    return LETTERS if token[0].isalpha() else SYMBOLS
