from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import BundleError, InputError
from gramvec.features.spec import FeatureSpec
from gramvec.text import hashing
from gramvec.text.characters import CODE_POINTS, SPACE, SYMBOL, WORD, class_ranges, lower, lower_case_pairs
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.data.vocabulary import build_vocabulary
from support.errors import refused
from support.reference import is_word_character

ENTRIES = [
    Entry("ngram", "th", 9),
    Entry("word", "the", 7),
    Entry("ngram", " th", 5),
    Entry("word", "é", 3),
    Entry("ngram", "🙂 ", 1),
    Entry("unknown", "", 0),
]


def test_entries_survive_build_save_and_open(tmp_path: Path) -> None:
    built = Vocabulary.build(ENTRIES)
    assert built.entries() == ENTRIES
    assert (len(built), built.n_ngrams, built.n_words, built.unknown_row) == (6, 3, 2, 5)
    built.save(tmp_path / "vocabulary.safetensors")
    opened = Vocabulary.open(tmp_path / "vocabulary.safetensors")
    assert opened.entries() == ENTRIES
    everything = np.arange(0x110000, dtype=np.uint32)
    assert np.array_equal(opened.table[everything], built.table[everything])
    assert opened.table.entries.nbytes < 400_000
    assert not opened.ngram_keys.flags.writeable


@given(st.lists(st.integers(1, 127), min_size=1, max_size=6))
def test_a_key_unpacks_to_its_characters(ids: list[int]) -> None:
    assert hashing.unpack(hashing.pack(ids, 7), 7) == ids


@given(st.lists(st.lists(st.integers(1, 127), min_size=1, max_size=9), max_size=20))
def test_keys_unpack_together_as_each_does(ngrams: list[list[int]]) -> None:
    ids, starts = hashing.unpack_keys(np.array([hashing.pack(one, 7) for one in ngrams], np.uint64), 7)
    assert [ids[a:b].tolist() for a, b in pairwise(starts.tolist())] == ngrams


def test_texts_stand_by_row_and_may_hold_any_character() -> None:
    entries = [Entry("ngram", "a\0", 3), Entry("word", "\0", 2), Entry("ngram", "\0\0", 1), Entry("word", "b🙂", 1)]
    built = Vocabulary.build(entries)
    assert built.entries() == entries
    assert (built.ngram_texts, built.word_texts) == (("a\0", "\0\0"), ("\0", "b🙂"))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=60), st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_an_index_finds_keys_where_they_stand(keys: list[int], others: list[int]) -> None:
    index = hashing.SortedKeys(np.array(keys, np.uint64))
    asked = [*keys, *others, 0, 2**64 - 1]
    expected = [keys.index(one) if one in keys else -1 for one in asked]
    assert index.find(np.array(asked, np.uint64)).tolist() == expected
    assert index.are_distinct == (len(set(keys)) == len(keys))


@given(st.lists(st.lists(st.integers(1, 5), max_size=40), max_size=12))
def test_words_have_the_hashes_of_the_definition(words: list[list[int]]) -> None:
    def hashed(word: list[int]) -> int:
        value = hashing.WORD_SEED
        for one in word:
            value = (value ^ one) * hashing.WORD_PRIME % 2**64
        return value

    chars = np.array([one for word in words for one in word], np.uint16)
    lengths = np.array([len(word) for word in words], np.int64)
    starts = np.cumsum(np.append(0, lengths))[: len(words)]
    assert hashing.word_hashes(chars, starts, lengths).tolist() == [hashed(word) for word in words]


def test_lower_case_keeps_the_length() -> None:
    assert lower("\u0130") == "i"
    assert "".join(map(lower, "ΟΔΟΣ")) == "οδοσ"


def test_upper_case_and_white_space_share_ids() -> None:
    table = Vocabulary.build(ENTRIES).table
    assert table[ord("T")] == table[ord("t")] != 0
    assert table[ord("\n")] == table[0x2003] == table[ord(" ")]
    cased = Vocabulary.build(ENTRIES, lowercase=False).table
    assert cased[ord("T")] & 0xFFFF == 0


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "at least one entry"),
        ([Entry("word", "a", 1), Entry("word", "a", 2)], "repeated"),
        ([Entry("word", "", 1)], "needs a text"),
        ([Entry("unknown", "a", 1)], "the unknown word has none"),
        ([Entry("word", "Ab", 1)], "upper case"),
        ([Entry("ngram", "abcdef", 1), *(Entry("word", chr(i), 1) for i in range(0x4E00, 0x5200))], "do not fit"),
    ],
)
def test_bad_entries_are_refused(entries: list[Entry], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Vocabulary.build(entries)


def test_building_counts_every_occurrence_by_hand() -> None:
    spec = FeatureSpec(orders=(2,), words=True, unknown_words="row")
    entries = build_vocabulary(["Ab ab.", "b"], spec).entries()
    # " ab ab. " and " b ": the padding counts, and the n-gram "b " crosses from one word to the next.
    assert {(e.kind, e.text): e.count for e in entries} == {
        ("ngram", " a"): 2,
        ("ngram", "ab"): 2,
        ("ngram", "b "): 2,
        ("ngram", "b."): 1,
        ("ngram", ". "): 1,
        ("ngram", " b"): 1,
        ("word", "ab"): 2,
        ("word", "."): 1,
        ("word", "b"): 1,
        ("unknown", ""): 0,
    }
    counts = [entry.count for entry in entries]
    assert counts == sorted(counts, reverse=True)


def test_building_keeps_the_most_frequent_and_depends_on_nothing_else() -> None:
    spec = FeatureSpec(orders=(2, 3), words=True)
    texts = ["one two two three three three", "four"]
    entries = build_vocabulary(texts, spec, min_count=2, max_ngrams=4, max_words=1).entries()
    assert [e.text for e in entries if e.kind == "word"] == ["three"]
    assert sum(e.kind == "ngram" for e in entries) == 4
    again = build_vocabulary(iter(texts[::-1]), spec, min_count=2, max_ngrams=4, max_words=1).entries()
    assert again == entries
    with pytest.raises(InputError, match="hold no characters"):
        build_vocabulary(["", " "], spec)


def test_too_large_an_alphabet_keeps_its_most_frequent_characters() -> None:
    spec = FeatureSpec(orders=(6,))
    rare = ["".join(map(chr, range(0x4E00, 0x5300)))]
    vocabulary = build_vocabulary(["abcdef"] * 3 + rare, spec)
    assert vocabulary.bits * 6 <= 64
    assert Entry("ngram", "abcdef", 3) in vocabulary.entries()


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with refused(BundleError, "vocabulary.safetensors"):
        Vocabulary.open(tmp_path / "vocabulary.safetensors")


def test_classes_and_lower_case_of_all_code_points_are_those_of_each() -> None:
    characters = [chr(cp) for cp in range(CODE_POINTS)]
    assert lower_case_pairs() == tuple((ord(one), ord(lower(one))) for one in characters if lower(one) != one)
    firsts, classes = class_ranges()
    found = np.repeat(classes, np.diff(firsts, append=np.uint32(CODE_POINTS))).tolist()
    assert found == [SPACE if one.isspace() else WORD if is_word_character(one) else SYMBOL for one in characters]
    assert [found[ord(one)] for one in "a_é9\u0301 \n.\x00🙂"] == [1, 1, 1, 1, 1, 2, 2, 0, 0, 0]
