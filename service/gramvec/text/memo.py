"""The memo and its file: frequent chunks and edges of text that own a row with the sum of all their features.

A chunk is the text between two spaces of a normalized text, with its punctuation. Its row is the sum of the rows of
every n-gram inside " chunk " and of its words: the sum that the model computes for the chunk as a text of its own.

The n-grams that cross a space, with a character on both sides, depend only on the few characters around it. An edge
is those characters: from `reach` = longest order - 2 characters before the space to as many after it, but not past the
space that ends the next chunk. Its row is the sum of the n-grams inside it that hold that space, except as their first
or last character.

So a text is the sum of its chunks and edges: the rows that it has without a memo, added in another order. A chunk that
the memo does not know is spelt out in n-grams, only the longest of those that end in one character: with a memo the
rows of n-grams hold their suffixes, see gramvec.text.suffixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.text import hashing
from gramvec.text.array_file import pack_arrays, read_arrays
from gramvec.text.characters import ID_MASK
from gramvec.text.checks import check_memo
from gramvec.text.vocabulary import Vocabulary

KIND, VERSION = "memo", 3

_DTYPES = {
    "meta": "<i8",
    "starts": "<u4",
    "chars": "<u2",
    "rows": "<i4",
    "edge_keys": "<u8",
    "edge_rows": "<i4",
}


def cut_edges(text: str, reach: int) -> Iterator[str]:
    """Yield the edges of a normalized text, padded with one space on each side, from left to right."""
    space = text.find(" ", 1)
    while 0 < space < len(text) - 1:
        end = text.find(" ", space + 1)
        yield text[max(0, space - reach) : min(end, space + reach) + 1]
        space = end


def ngrams_across(edge: str, orders: Sequence[int]) -> list[str]:
    """Return the n-grams whose sum is the row of an edge."""
    return [ngram for ngrams in ngrams_by_end(edge, orders) for ngram in ngrams]


def ngrams_by_end(edge: str, orders: Sequence[int]) -> list[list[str]]:
    """Return the n-grams of `ngrams_across`, grouped by the character in which they end."""
    space = edge.rfind(" ", 1, len(edge) - 1)
    return [
        [edge[end - n : end] for n in orders if n >= end - space + 1 and end >= n]
        for end in range(space + 2, len(edge) + 1)
    ]


def longest_reach(orders: Sequence[int], bits: int) -> int:
    """Return the reach of edges for these orders; 0 if no n-gram crosses a space or the keys do not fit 64 bits."""
    reach = max(orders, default=0) - 2
    return reach if reach > 0 and (2 * reach + 1) * bits <= 64 else 0


class Memo:
    """Which chunk and which edge own which row. Make one with `build`, at export, or `read`; the arrays are read-only.

    `starts`, `chars` and `rows` are to chunks what a vocabulary's are to words, `edge_keys` and `edge_rows` to edges
    what a vocabulary's are to n-grams. `longest` chunk in characters; `reach` of the edges, 0 without any. The rows of
    the chunks begin at `first_row`, those of the edges follow.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        for array in arrays.values():
            array.setflags(write=False)
        self._arrays = arrays
        self.first_row, self.longest, self.reach, self.n_edges = (int(v) for v in arrays["meta"])
        self.starts: NDArray[np.uint32] = arrays["starts"]
        self.chars: NDArray[np.uint16] = arrays["chars"]
        self.rows: NDArray[np.int32] = arrays["rows"]
        self.edge_keys: NDArray[np.uint64] = arrays["edge_keys"]
        self.edge_rows: NDArray[np.int32] = arrays["edge_rows"]

    def __len__(self) -> int:
        return len(self.rows) + self.n_edges

    @classmethod
    def build(cls, chunks: Sequence[str], vocabulary: Vocabulary, *, edges: Sequence[str] = (), reach: int = 0) -> Memo:
        """Build a memo of normalized chunks and edges, the most frequent first; their rows follow the vocabulary's.

        Raises:
            InputError: a chunk or an edge is empty, repeated in lower case, or holds a character that the vocabulary
                lacks; or a chunk has white space.
        """
        coded = [_ids(chunk, vocabulary) for chunk in chunks]
        for chunk in chunks:
            if len(chunk.split()) != 1 or chunk != chunk.strip():
                raise InputError(f"the chunk {chunk!r} is empty or holds white space")
        keys = [hashing.pack(_ids(edge, vocabulary), vocabulary.bits) for edge in edges]
        if len(set(map(tuple, coded))) != len(coded) or len(set(keys)) != len(keys):
            raise InputError("a chunk or an edge is repeated; give each once, in lower case")
        if any(len(edge) > 2 * reach + 1 for edge in edges) or (2 * reach + 1) * vocabulary.bits > 64:
            raise InputError(f"an edge is longer than {2 * reach + 1} characters, or its key than 64 bits")
        lengths = [len(ids) for ids in coded]
        first = len(vocabulary)
        after = first + len(coded)
        arrays: dict[str, NDArray[Any]] = {
            "meta": np.array([first, max(lengths, default=0), reach if edges else 0, len(keys)]),
            "starts": np.cumsum([0, *lengths]),
            "chars": np.array([symbol for ids in coded for symbol in ids]),
            "rows": np.arange(first, after),
            "edge_keys": np.array(keys, np.uint64),
            "edge_rows": np.arange(after, after + len(keys)),
        }
        return cls({name: array.astype(_DTYPES[name]) for name, array in arrays.items()})

    def decode(self, vocabulary: Vocabulary) -> tuple[list[str], list[str]]:
        """Return the chunks and the edges, in the order of their rows."""
        edges = hashing.unpack_keys(self.edge_keys, vocabulary.bits)
        return list(vocabulary.spell(self.chars, self.starts)), list(vocabulary.spell(*edges))

    def save(self, path: Path) -> None:
        """Write memo.safetensors."""
        path.write_bytes(pack_arrays(KIND, VERSION, self._arrays))

    @classmethod
    def read(cls, path: Path, data: bytes, vocabulary: Vocabulary) -> Memo:
        """Return the memo in the bytes of its file, without a copy; `path` is for messages.

        Raises BundleError for a file that is damaged, or the memo of another vocabulary.
        """
        check = partial(
            check_memo, rows=len(vocabulary), bits=vocabulary.bits, alphabet=len(vocabulary.alphabet),
            space=int(vocabulary.table[ord(" ")]) & ID_MASK,
        )  # fmt: skip
        return cls(read_arrays(path, data, KIND, VERSION, _DTYPES, check=check).arrays)


def _ids(text: str, vocabulary: Vocabulary) -> list[int]:
    ids = (vocabulary.table[np.frombuffer(text.encode("utf-32-le"), np.uint32)] & ID_MASK).tolist()
    if not ids or 0 in ids:
        raise InputError(f"the chunk or edge {text!r} is empty or holds a character that the vocabulary lacks")
    return list(ids)
