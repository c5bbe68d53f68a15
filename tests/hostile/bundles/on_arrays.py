"""Arrays of a vocabulary and a memo that lie about themselves, about each other, or were chosen to take time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hostile.bundles.craft import (
    Arrays,
    arrays,
    attack,
    content,
    family,
    headed,
    header_of,
    inverse_of_hash,
    manifest,
    split,
)


def change(name: str, file: str, sentence: str, edit: Callable[[Arrays], None]) -> None:
    def make(folder: Path) -> None:
        with arrays(folder, file) as found:
            edit(found)

    family(f"{file}: {name}", file, sentence, make)


def vocabulary(name: str, sentence: str, edit: Callable[[Arrays], None]) -> None:
    change(name, "vocabulary.safetensors", sentence, edit)


def memo(name: str, sentence: str, edit: Callable[[Arrays], None]) -> None:
    change(name, "memo.safetensors", sentence, edit)


def put(array: str, place: int, value: int) -> Callable[[Arrays], None]:
    def edit(found: Arrays) -> None:
        found[array][place] = value

    return edit


def cut(array: str, by: int = 1) -> Callable[[Arrays], None]:
    def edit(found: Arrays) -> None:
        found[array] = found[array][:-by]

    return edit


def swap(array: str) -> Callable[[Arrays], None]:
    def edit(found: Arrays) -> None:
        found[array][:2] = found[array][1::-1].copy()

    return edit


vocabulary("more rows than there is memory", "2147483647 rows", put("meta", 0, 2**31 - 1))
vocabulary("rows below nothing", "not -1 rows", put("meta", 0, -1))
vocabulary("a row too many", "not 16 rows", put("meta", 0, 16))
vocabulary("no bits", "ids of 0 bits for 9 characters", put("meta", 1, 0))
vocabulary("bits below nothing", "ids of -8 bits", put("meta", 1, -8))
vocabulary("bits that shift all away", f"ids of {2**62} bits", put("meta", 1, 2**62))
vocabulary("too few bits", "ids of 3 bits for 9 characters", put("meta", 1, 3))
vocabulary("more bits than keys were made with", "ngram_keys holds", put("meta", 1, 5))
vocabulary("unknown words in no row", "not 15 rows", put("meta", 2, 2**40))
vocabulary("unknown words in another's row", "not 15 rows", put("meta", 2, 3))
vocabulary("unknown words below nothing", "row -5 for unknown words", put("meta", 2, -5))
vocabulary("a longest word that is longer", "the longest word has not 1000 characters", put("meta", 3, 1000))
vocabulary("a longest word that is shorter", "the longest word has not 1 characters", put("meta", 3, 1))
vocabulary("neither lower case nor not", "lowercase is neither 0 nor 1", put("meta", 4, 7))
vocabulary("too short a meta", "meta has not 5 numbers", cut("meta"))
vocabulary("no meta", "meta has not 5 numbers", cut("meta", 5))
vocabulary("a letter that is no code point", "alphabet holds no ascending code points", put("alphabet", -1, 0x110000))
vocabulary("a letter that is half of one", "alphabet holds a surrogate", put("alphabet", -1, 0xD800))
vocabulary("letters out of order", "alphabet holds no ascending code points", swap("alphabet"))
vocabulary("half a pair of cases", "folded holds no pairs", cut("folded"))
vocabulary("upper case of no letter", "folded holds what is no character", put("folded", 1, 60_000))
vocabulary("upper case that is a letter itself", "folded and alphabet", put("folded", -2, ord("t")))
vocabulary("upper case beyond Unicode", "folded holds no ascending code points", put("folded", -2, 2**32 - 1))
vocabulary("classes from the middle", "range_firsts", put("range_firsts", 0, 1))
vocabulary("classes beyond Unicode", "range_firsts", put("range_firsts", -1, 2**31))
vocabulary("classes out of order", "range_firsts", swap("range_firsts"))
vocabulary("a class that is none", "range_classes", put("range_classes", 3, 255))
vocabulary("fewer classes than ranges", "range_classes", cut("range_classes"))
vocabulary("a space that is a letter", "U+0020 is no space", lambda found: found["range_classes"].fill(1))
vocabulary("a key of no n-gram", "ngram_keys holds 0", put("ngram_keys", 4, 0))
vocabulary("a key with a hole", "ngram_keys", put("ngram_keys", 4, 0x101))
vocabulary("a key of no letters", "ngram_keys", put("ngram_keys", 4, 0xEE))
vocabulary("a key of all bits", "ngram_keys", put("ngram_keys", 4, 2**64 - 1))
vocabulary("fewer keys than rows", "ngram_keys and ngram_rows", cut("ngram_keys"))
vocabulary("a row below nothing", "ngram_rows", put("ngram_rows", 0, -(2**31)))
vocabulary("a row beyond the last", "ngram_rows", put("ngram_rows", -1, 2**31 - 1))
vocabulary("rows out of order", "ngram_rows does not ascend", swap("ngram_rows"))
vocabulary("a word's row beyond the last", "word_rows", put("word_rows", -1, 15))
vocabulary("a word in the row of an n-gram", "twice", put("word_rows", 0, 0))
vocabulary("words that begin late", "characters of words", put("word_starts", 0, 1))
vocabulary("words that end beyond", "the characters of words are not those that", put("word_starts", -1, 2**32 - 1))
vocabulary("words that go back", "without a character", put("word_starts", 1, 6))
vocabulary(
    "an empty word", "a word without a character", lambda found: put("word_starts", 2, found["word_starts"][1])(found)
)
vocabulary("a word of no letters", "a word holds what is no character", put("word_chars", 2, 60_000))
vocabulary("a word with a hole", "a word holds what is no character", put("word_chars", 2, 0))
vocabulary("fewer words than rows", "words and their rows", cut("word_starts"))
vocabulary("no word begins", "words and their rows", cut("word_starts", 5))
vocabulary("fewer counts than rows", "15 rows", cut("counts"))

memo("rows of another vocabulary", "begin at 14", put("meta", 0, 14))
memo("rows that would overflow", f"its rows begin at {2**63 - 1}", put("meta", 0, 2**63 - 1))
memo("a longest chunk that lies", "the longest chunk has not 99 characters", put("meta", 1, 99))
memo("a reach below nothing", "a reach of -1", put("meta", 2, -1))
memo("a reach whose double is none", f"a reach of {2**62}", put("meta", 2, 2**62))
memo("a reach that wraps around", f"a reach of {-(2**63)}", put("meta", 2, -(2**63)))
memo("a reach longer than keys", "a reach of 8", put("meta", 2, 8))
memo("edges without a reach", "edges without a reach", put("meta", 2, 0))
memo("more edges than keys", "edge_keys and edge_rows", put("meta", 3, 2**40))
memo("too short a meta", "meta has not 4 numbers", cut("meta"))
memo("chunks that end beyond", "characters of chunks", put("starts", -1, 2**31))
memo("a chunk of no letters", "a chunk holds what is no character", put("chars", 0, 2**16 - 1))
memo("a chunk with a space", "a space", put("chars", 1, 1))
memo("rows that do not count up", "from the first", swap("rows"))
memo("a row of the vocabulary", "from the first", put("rows", 0, 3))
memo("an edge's row below nothing", "edge_rows", put("edge_rows", 0, -1))
memo("an edge of no letters", "edge_keys holds what is no character", put("edge_keys", 0, 2**63))
memo("an edge of nothing", "edge_keys holds 0", put("edge_keys", 0, 0))


def twice(file: str, key: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with arrays(folder, file) as found:
            found[key][1] = found[key][0]

    return make


family(
    "an n-gram that is there twice",
    "vocabulary.safetensors",
    "ngram_keys holds one twice",
    twice("vocabulary.safetensors", "ngram_keys"),
)


@attack("manifest.json", "an entry is repeated")
def a_word_that_is_there_twice(folder: Path) -> None:
    with arrays(folder, "vocabulary.safetensors") as found:
        found["word_starts"] = np.array([0, 1, 5, 8, 12], np.uint32)
        found["word_chars"] = np.concatenate([found["word_chars"][:8], found["word_chars"][1:5]])
        found["meta"][3] = 4


@attack("manifest.json", "FeatureSpec and the vocabulary")
def sums_that_write_beyond_their_rows(folder: Path) -> None:
    """Each chunk of one letter has a row of its own, and one for the edge before it, where a row a letter had room."""
    with manifest(folder) as values:
        values["features"] |= {"orders": [2], "words": False}
        values["features_digest"] = digest_of(values["features"])


def header(name: str, sentence: str, edit: Callable[[dict[str, Any]], None]) -> None:
    def make(folder: Path) -> None:
        with header_of(folder, "vocabulary.safetensors") as found:
            edit(found)

    family(name, "vocabulary.safetensors", sentence, make)


def set_field(array: str, field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda found: found[array].update({field: value})


header("a type that numpy would read", "of the unknown type (2,3)f4", set_field("counts", "dtype", "(2,3)f4"))
header("an object for a type", "of the unknown type |O8", set_field("counts", "dtype", "|O8"))
header("arrays that overlap", "gap", lambda found: found["ngram_rows"].update(found["word_rows"]))
header("an array beyond the end", "sizes", set_field("ngram_keys", "data_offsets", [0, 2**61]))
header("an array that ends before it begins", "does not lie inside", set_field("counts", "data_offsets", [64, 0]))
header("a shape whose product wraps around", "has other bytes", set_field("counts", "shape", [2**32, 2**32, 2**32]))
header("a shape below 0", "sizes", set_field("counts", "shape", [-1]))
header("a shape of no whole number", "sizes", set_field("counts", "shape", [1.5]))
header("an array in two dimensions", "of 1 dimension(s)", set_field("meta", "shape", [1, 5]))
header("an array too few", "has not the arrays of its kind", lambda found: found.update(other=found.pop("counts")))
header(
    "another kind of file",
    "not a gramvec vocabulary",
    lambda found: found["__metadata__"].update(format="gramvec memo"),
)
header("metadata of numbers", "metadata are not strings", lambda found: found.update(__metadata__={"format": 1}))


@attack("vocabulary.safetensors", "inside")
def an_array_that_is_not_aligned(folder: Path) -> None:
    with header_of(folder, "vocabulary.safetensors") as found:
        for name, entry in found.items():
            if name != "__metadata__" and name != "meta":
                entry["data_offsets"] = [one + 4 for one in entry["data_offsets"]]


@attack("vocabulary.safetensors", "lists more than 1000 arrays")
def a_million_arrays(folder: Path) -> None:
    with content(folder, "vocabulary.safetensors") as data:
        data[:] = headed(b"{" + b'"a":[],' * 100_000 + b'"b":[]}', b"")


@attack("vocabulary.safetensors", "header of at most 1048576 bytes")
def a_header_without_end(folder: Path) -> None:
    with content(folder, "vocabulary.safetensors") as data:
        data[:8] = b"\xff" * 8


@attack("vocabulary.safetensors", "names an array twice")
def one_array_under_one_name_twice(folder: Path) -> None:
    with content(folder, "vocabulary.safetensors") as data:
        found, begin = split(bytes(data))
        data[:] = headed(json.dumps(found).replace('"word_rows"', '"ngram_rows"').encode(), bytes(data[begin:]))


@attack("vocabulary.safetensors", "cut off")
def an_empty_file(folder: Path) -> None:
    with content(folder, "vocabulary.safetensors") as data:
        data.clear()


def many_keys(folder: Path, keys: list[int]) -> None:
    """A vocabulary of these n-grams alone, of four ids of 16 bits each, and nothing else that could stop it."""
    n = len(keys)
    letters = np.append([32], np.arange(0x4E00, 0x4E00 + 20_000))
    letters = np.append(letters, np.arange(0xE000, 0xE000 + 65_535 - len(letters)))
    with manifest(folder) as values:
        del values["files"]["memo.safetensors"]
        values |= {"rows": n, "ngrams": n, "words": 0, "memo": 0, "golden": []}
        values["graph"]["stored"]["rows"] = n
        values["features"] |= {"orders": [4], "words": False}
        values["features_digest"] = digest_of(values["features"])
    (folder / "memo.safetensors").unlink()
    (folder / "model.onnx.data").write_bytes(bytes(4 * 8 * n))
    with arrays(folder, "vocabulary.safetensors") as found:
        found["meta"][:] = [n, 16, -1, 0, 1]
        found["alphabet"] = letters.astype(np.uint32)
        found["folded"] = found["folded"][:0]
        found["ngram_keys"] = np.array(keys, np.uint64)
        found["ngram_rows"] = np.arange(n, dtype=np.int32)
        for name in ("word_chars", "word_rows"):
            found[name] = found[name][:0]
        found["word_starts"] = found["word_starts"][:1]
        found["counts"] = np.zeros(n, np.uint64)


def keys_in(slots: Iterable[int]) -> list[int]:
    """Keys, each of four ids and none twice, whose searches begin in these slots of 2^18."""
    keys: list[int] = []
    number = 0
    for slot in slots:
        while True:
            number += 1
            key = inverse_of_hash((slot << 46) + number)
            if all(0 < key >> shift & 0xFFFF < 65_535 for shift in (0, 16, 32, 48)):
                break
        keys.append(key)
    return keys


@attack("manifest.json", "entries were chosen to collide, and searches would be long")
def keys_that_all_want_one_slot(folder: Path) -> None:
    """They took fifteen seconds, with the interpreter's lock held."""
    many_keys(folder, keys_in([7] * 80_000))


@attack("manifest.json", "entries were chosen to collide, and searches would be long")
def keys_in_one_long_row(folder: Path) -> None:
    """Each has its own slot, and every search for what is not there has to pass them all."""
    many_keys(folder, keys_in(range(80_000)))


def digest_of(features: dict[str, object]) -> str:
    text = json.dumps(features, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
