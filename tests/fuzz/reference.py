"""The rows of a text, slowly and from a vocabulary's own tables: lists and dictionaries, one character after the other.

tests/support/reference.py is the same from Python's Unicode and from entries; this one also follows vocabularies that
nobody would have trained, and knows chunks and edges.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Any, NamedTuple

from gramvec.features.spec import FeatureSpec
from gramvec.text import hashing
from gramvec.text.characters import CLASS_SHIFT, ID_MASK, SPACE, WORD
from gramvec.text.memo import Memo
from gramvec.text.vocabulary import Vocabulary

Ids = tuple[int, ...]


class Known(NamedTuple):
    """Rows by the character ids of what owns them."""

    ngrams: dict[Ids, int]
    words: dict[Ids, int]
    chunks: dict[Ids, int]
    edges: dict[Ids, int]


def known(vocabulary: Vocabulary, memo: Memo | None) -> Known:
    """What a vocabulary and a memo know."""

    def spelt(starts: Any, chars: Any, rows: Any) -> dict[Ids, int]:
        spans = pairwise(starts.tolist())
        return {tuple(chars[a:b].tolist()): row for (a, b), row in zip(spans, rows.tolist(), strict=True)}

    def unpacked(keys: Any, rows: Any) -> dict[Ids, int]:
        ids = (tuple(hashing.unpack(key, vocabulary.bits)) for key in keys.tolist())
        return dict(zip(ids, rows.tolist(), strict=True))

    return Known(
        unpacked(vocabulary.ngram_keys, vocabulary.ngram_rows),
        spelt(vocabulary.word_starts, vocabulary.word_chars, vocabulary.word_rows),
        {} if memo is None else spelt(memo.starts, memo.chars, memo.rows),
        {} if memo is None else unpacked(memo.edge_keys, memo.edge_rows),
    )


def sums(text: str, spec: FeatureSpec, vocabulary: Vocabulary, memo: Memo, rows: Known) -> list[int]:
    """The rows of a text where rows are sums, sorted."""
    codes = normalized(text, vocabulary)
    ids = [code & ID_MASK for code in codes]
    kinds = [code >> CLASS_SHIFT for code in codes]
    spaces = [place for place, kind in enumerate(kinds) if kind == SPACE]
    found: list[int] = []
    for space, end in pairwise(spaces):
        if space > 0:
            edge = tuple(ids[max(0, space - memo.reach) : min(space + memo.reach, end) + 1])
            if memo.reach and edge in rows.edges:
                found.append(rows.edges[edge])
            else:
                last = min(space + spec.orders[-1] - 2, end)
                for at in range(space + 1, last + 1):
                    found += longest(ids, at, [n for n in spec.orders if n >= at - space + 2], rows)
        chunk = tuple(ids[space + 1 : end])
        if chunk in rows.chunks:
            found.append(rows.chunks[chunk])
            continue
        for at in range(space, end + 1):
            found += longest(ids, at, [n for n in spec.orders if n <= at - space + 1], rows)
        if spec.words:
            found += words(
                ids, kinds, space + 1, end, vocabulary.unknown_row if spec.unknown_words == "row" else -1, rows
            )
    return sorted(found)


def longest(ids: list[int], at: int, orders: list[int], rows: Known) -> list[int]:
    """The row of the longest n-gram that ends at this character, if there is one."""
    for n in reversed(orders):
        if at - n + 1 >= 0 and (row := rows.ngrams.get(tuple(ids[at - n + 1 : at + 1]))) is not None:
            return [row]
    return []


def words(ids: list[int], kinds: list[int], begin: int, end: int, unknown: int, rows: Known) -> list[int]:
    """The rows of the words of a chunk."""
    found, at = [], begin
    while at < end:
        first, at = at, at + 1
        while kinds[first] == WORD and at < end and kinds[at] == WORD:
            at += 1
        row = rows.words.get(tuple(ids[first:at]), unknown)
        found += [row] if row >= 0 else []
    return found


def normalized(text: str, vocabulary: Vocabulary) -> list[int]:
    """The codes of a text's characters: composed, single spaces, one on each side; none of white space alone."""
    space = int(vocabulary.table[ord(" ")])
    codes = [space]
    for character in unicodedata.normalize("NFC", text):
        code = int(vocabulary.table[ord(character)])
        if code >> CLASS_SHIFT != SPACE or codes[-1] >> CLASS_SHIFT != SPACE:
            codes.append(code)
    if len(codes) == 1:
        return []
    return codes if codes[-1] >> CLASS_SHIFT == SPACE else [*codes, space]
