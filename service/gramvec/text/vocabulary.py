"""The vocabulary and its file, vocabulary.safetensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.text import hashing
from gramvec.text.array_file import file_bytes, pack_arrays, read_arrays
from gramvec.text.characters import MAX_ALPHABET, SYMBOL, WORD, CharacterTable, class_ranges, lower, lower_case_pairs
from gramvec.text.checks import check_vocabulary

KIND, VERSION = "vocabulary", 3

EntryKind = Literal["ngram", "word", "unknown"]

_DTYPES = {
    "meta": "<i8",
    "alphabet": "<u4",
    "folded": "<u4",
    "range_firsts": "<u4",
    "range_classes": "|u1",
    "ngram_keys": "<u8",
    "ngram_rows": "<i4",
    "word_starts": "<u4",
    "word_chars": "<u2",
    "word_rows": "<i4",
    "counts": "<u8",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Row of the table: an n-gram, a word, or the row that unknown words share (text "")."""

    kind: EntryKind
    text: str
    count: int


class Vocabulary:
    """Which n-gram and which word owns which row of the table.

    Make one with `build` (training) or `open` (serving). The arrays are read-only: n-gram i has the key `ngram_keys[i]`
    (see hashing.pack) and the row `ngram_rows[i]`; word i the character ids `word_chars[word_starts[i] :
    word_starts[i + 1]]` and the row `word_rows[i]`, both by ascending row. `table` gives the class and the id of a
    character, `bits` are what an id takes in a key; `unknown_row` or -1, `longest_word` in characters. `symbols`: see
    `build`.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        for array in arrays.values():
            array.setflags(write=False)
        self._arrays = arrays
        self.rows, self.bits, self.unknown_row, self.longest_word, lowercase = (int(v) for v in arrays["meta"])
        self.lowercase = bool(lowercase)
        self.symbols = bool(np.any(arrays["range_classes"] == SYMBOL))
        self.alphabet: NDArray[np.uint32] = arrays["alphabet"]
        self.ngram_keys: NDArray[np.uint64] = arrays["ngram_keys"]
        self.ngram_rows: NDArray[np.int32] = arrays["ngram_rows"]
        self.word_starts: NDArray[np.uint32] = arrays["word_starts"]
        self.word_chars: NDArray[np.uint16] = arrays["word_chars"]
        self.word_rows: NDArray[np.int32] = arrays["word_rows"]
        self.table = CharacterTable(
            self.alphabet, arrays["folded"].reshape(-1, 2), arrays["range_firsts"], arrays["range_classes"]
        )

    @cached_property
    def ngram_index(self) -> hashing.SortedKeys:
        """Return the index of n-grams by their keys; it is built on first use, in 7 ms for 180,000."""
        return hashing.SortedKeys(self.ngram_keys)

    @cached_property
    def word_index(self) -> hashing.SortedKeys:
        """Return the index of words by their hashes (see hashing.word_hashes); it is built on first use.

        Raises InputError for repeated words, and for words chosen to share a hash. In vocabularies of a million words
        that were not chosen, two words share a hash in one of 30 million vocabularies.
        """
        starts = self.word_starts.astype(np.int64)
        index = hashing.SortedKeys(hashing.word_hashes(self.word_chars, starts[:-1], np.diff(starts)))
        if not index.are_distinct:
            raise InputError("the vocabulary's words are repeated, or were chosen to have one hash; take another model")
        return index

    def __len__(self) -> int:
        return self.rows

    @property
    def n_words(self) -> int:
        """The number of word rows, the unknown word's not counted."""
        return len(self.word_rows)

    @property
    def n_ngrams(self) -> int:
        """The number of n-gram rows."""
        return self.rows - self.n_words - (self.unknown_row >= 0)

    @classmethod
    def build(cls, entries: Sequence[Entry], *, lowercase: bool = True, symbols: bool = True) -> Vocabulary:
        """Build a vocabulary in which row i of the table belongs to entries[i].

        Args:
            entries: one for each row.
            lowercase: upper-case code points share the id of their lower case.
            symbols: characters that are neither letters nor similar are words by themselves. Without it a word is what
                stands between white space (the word rules runs-and-symbols/1 and white-space/1 of a FeatureSpec).

        Raises:
            InputError: an entry is empty, repeated, or has upper case under `lowercase`; or the alphabet is too large
                for the longest n-gram. At n characters 64 // n bits hold an id, so order 4 takes 65,535 different
                characters, order 5 4,095 and order 6 1,023.
        """
        _check_entries(entries, lowercase)
        ngrams = [(row, entry.text) for row, entry in enumerate(entries) if entry.kind == "ngram"]
        words = [(row, entry.text) for row, entry in enumerate(entries) if entry.kind == "word"]
        unknown = [row for row, entry in enumerate(entries) if entry.kind == "unknown"]
        alphabet = sorted({character for entry in entries for character in entry.text})
        bits = max(1, len(alphabet).bit_length())
        longest = max((len(text) for _, text in ngrams), default=1)
        if bits * longest > 64 or len(alphabet) > MAX_ALPHABET:
            max_symbols = min((1 << 64 // longest) - 1, MAX_ALPHABET)
            raise InputError(
                f"{len(alphabet)} different characters do not fit into n-grams of {longest}; "
                f"keep the entries of the {max_symbols} most frequent characters"
            )
        ids = {character: index for index, character in enumerate(alphabet, start=1)}
        coded_words = [[ids[character] for character in text] for _, text in words]
        keys = [hashing.pack([ids[character] for character in text], bits) for _, text in ngrams]
        folded = [(cp, ids[chr(low)]) for cp, low in lower_case_pairs() if lowercase and chr(low) in ids]
        firsts, classes = class_ranges()
        if not symbols:
            classes = np.where(classes == SYMBOL, WORD, classes)
        lengths = [len(text) for _, text in words]
        arrays: dict[str, NDArray[Any]] = {
            "meta": np.array([len(entries), bits, unknown[0] if unknown else -1, max(lengths, default=0), lowercase]),
            "alphabet": np.array([ord(character) for character in alphabet]),
            "folded": np.array(folded).reshape(-1),
            "range_firsts": firsts,
            "range_classes": classes,
            "ngram_keys": np.array(keys, np.uint64),
            "ngram_rows": np.array([row for row, _ in ngrams]),
            "word_starts": np.cumsum([0, *lengths]),
            "word_chars": np.array([symbol for word in coded_words for symbol in word]),
            "word_rows": np.array([row for row, _ in words]),
            "counts": np.array([entry.count for entry in entries], np.uint64),
        }
        return cls({name: array.astype(_DTYPES[name]) for name, array in arrays.items()})

    def save(self, path: Path) -> None:
        """Write vocabulary.safetensors."""
        path.write_bytes(pack_arrays(KIND, VERSION, self._arrays))

    @classmethod
    def open(cls, path: Path) -> Vocabulary:
        """Read the file of a vocabulary. Raises BundleError, naming it, if it is missing or damaged."""
        return cls.read(Path(path), file_bytes(path))

    @classmethod
    def read(cls, path: Path, data: bytes) -> Vocabulary:
        """Return the vocabulary in the bytes of a file, without a copy; `path` is for messages. Raises BundleError."""
        return cls(read_arrays(path, data, KIND, VERSION, _DTYPES, check=check_vocabulary).arrays)

    def locate(self, text: str, spec: Any) -> Any:
        """Return the places of a text's features where the vocabulary finds them itself; None for n-grams and words."""
        return None

    @cached_property
    def ngram_texts(self) -> tuple[str, ...]:
        """The n-grams by ascending row: a tenth of what all `entries` take."""
        return self.spell(*hashing.unpack_keys(self.ngram_keys, self.bits))

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        """The words by ascending row."""
        return self.spell(self.word_chars, self.word_starts)

    def entries(self) -> list[Entry]:
        """Return the entry of every row, decoded from the arrays."""
        return list(self._entries)

    @cached_property
    def _entries(self) -> list[Entry]:
        # Kept: an export asks seven times, and 240,000 rows take a third of a second.
        counts = self._arrays["counts"].tolist()
        entries: list[Entry] = [Entry("unknown", "", count) for count in counts]
        for text, row in zip(self.ngram_texts, self.ngram_rows.tolist(), strict=True):
            entries[row] = Entry("ngram", text, counts[row])
        for text, row in zip(self.word_texts, self.word_rows.tolist(), strict=True):
            entries[row] = Entry("word", text, counts[row])
        return entries

    def spell(self, ids: NDArray[np.uint16], starts: NDArray[Any]) -> tuple[str, ...]:
        """Return the texts of character ids: text i is of ids[starts[i] : starts[i + 1]]."""
        whole = self.alphabet[ids - 1].astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        return tuple(whole[a:b] for a, b in pairwise(starts.tolist()))


def _check_entries(entries: Sequence[Entry], lowercase: bool) -> None:
    if not entries:
        raise InputError("a vocabulary needs at least one entry; lower min_count or give more text")
    if len({(entry.kind, entry.text) for entry in entries}) != len(entries):
        raise InputError("a vocabulary entry is repeated; give each n-gram and each word once")
    for entry in entries:
        if (entry.kind == "unknown") == bool(entry.text):
            raise InputError(f"entry {entry!r}: an n-gram or word needs a text, the unknown word has none")
        if lowercase and any(lower(character) != character for character in entry.text):
            raise InputError(f"entry {entry.text!r} has upper case, but the vocabulary is lower-cased")
