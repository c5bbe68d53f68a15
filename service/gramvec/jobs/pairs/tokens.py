"""Tokens of the rows of tables, as arrays: words, and numbers by their value, weighted by how rare they are.

A row is its columns, one after the other. A text without letters and digits is the runs of its symbols. How a column
writes numbers and dates, all of its cells tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.pairs.companies import FORMS, LEGAL
from gramvec.jobs.pairs.people import GENERATIONS, SAME_GENERATIONS
from gramvec.jobs.pairs.word_shares import BACKGROUND_TEXTS, ONLY_BACKGROUND_TEXTS, shares_of
from gramvec.jobs.pairs.words import find_tokens, read_style
from gramvec.lexical.sparse import MAX_CHARACTERS
from gramvec.text.arrays import Floats, Int32s, Int64s
from gramvec.text.folding import fold_letters
from gramvec.text.scripts import close_gaps

LETTERS, DIGITS, SYMBOLS, ZEROS, MARKS = range(5)
# Names of one thing, however a token is written.
SAME = FORMS | SAME_GENERATIONS
# Share of texts that hold a company's legal form, at least: it says little about which company it is.
FORM_SHARE = 0.05


class PairVocabulary(NamedTuple):
    """Different tokens of all texts.

    Attributes:
        characters: uint32, their code points, one token after the other.
        starts: int32[v + 1], where each begins.
        values: int32[v], the token that each is equal to: of digits, the one without zeros in front; of legal forms and
            generations, the shortest.
        kinds: uint8[v], LETTERS; DIGITS, a number, which may have a point, a sign, or a house's letter; SYMBOLS; ZEROS,
            several of them and nothing else; or MARKS, letters that another spelling would change: Jr, II, A-, C++.
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


def fold_column(texts: Sequence[str]) -> list[str]:
    """Return each text of a column as `fold_text` returns it."""
    return _change_different(texts, fold_text)


def spell_column(texts: Sequence[str]) -> list[str]:
    """Return the tokens of each folded text of a column, with spaces between."""
    style = read_style(texts)
    return _change_different(texts, lambda text: " ".join(find_tokens(text, style)))


def _change_different(texts: Sequence[str], change: Callable[[str], str]) -> list[str]:
    """Return each text changed. Equal ones take the time and the memory of one."""
    changed = {text: change(text) for text in set(texts)}
    return [changed[text] for text in texts]


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
    number = known.setdefault
    styles = [read_style(texts) for texts in columns]
    for row in zip(*columns, strict=True):
        for text, style in zip(row, styles, strict=True):
            found = find_tokens(text, style) if text else []
            tokens += [number(token, len(known)) for token in found]
            counts.append(len(found))
    return np.append(0, np.cumsum(np.array(counts, np.int64))), np.array(tokens, np.int32)


def _values(known: dict[str, int]) -> Int32s:
    """Return the values of tokens. Numbers without zeros in front become known, and so do other names of forms."""
    values = []
    for token, number in list(known.items()):
        plain = (token.lstrip("0") or token) if token.isdecimal() else SAME.get(token, token)
        values.append(number if plain == token else known.setdefault(plain, len(known)))
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
    shares = np.maximum(shares_of(names), [FORM_SHARE * (name in LEGAL) for name in names])
    often = held + background * shares
    total = rows + background
    weights = np.log((1 + total) / (1 + often[values])) + 1
    return PairVocabulary(characters, starts, values, kinds, weights.astype(np.float32), float(np.log(1 + total) + 1))


def _kind(token: str) -> int:
    if token[0].isdecimal() or (token[0] == "-" and token[1:2].isdecimal()):
        return ZEROS if len(token) > 1 and not token.strip("0") else DIGITS
    if token in GENERATIONS or (token[0].isalpha() and token[-1] in "+#-"):
        return MARKS
    return LETTERS if token[0].isalpha() else SYMBOLS
