"""The loops in C: the widths of vectors among each other, their limits, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec import native
from gramvec.embed.vectors import unit
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer as PythonFeaturizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.characters import SPACE
from gramvec_training.data.vocabulary import build_vocabulary
from support.errors import refused

assert native.loops is not None
WIDTHS = (512, 256, 0)
Table, Featurizer, BLOCK = native.loops.Table, native.loops.Featurizer, native.loops.BLOCK


def int8_table(random: np.random.Generator, rows: int, d: int) -> tuple[Any, Any]:
    stored = random.integers(-127, 128, rows * d + BLOCK).astype(np.int8)
    return stored, (1 << random.integers(0, 8, rows)).astype(np.uint8)


LEVELS = [-21, -16, -12, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 12, 16, 21]


def fours_table(random: np.random.Generator, rows: int, d: int) -> tuple[Any, Any, Any]:
    """Rows of four bits, their weights, and the whole numbers that they stand for, by a reference that is slow."""
    half = (d + 1) // 2
    stored = random.integers(0, 256, rows * half + BLOCK).astype(np.uint8)
    weights = random.integers(0, 128, rows).astype(np.uint8)
    exact = np.zeros((rows, d), np.int64)
    for row, c in product(range(rows), range(d)):
        byte = int(stored[row * half + c // 2])
        exact[row, c] = LEVELS[byte >> 4 if c % 2 else byte & 15] * int(weights[row])
    return stored, weights, exact


def vectors_of(table: Any, ids: Any, offsets: Any, d: int) -> tuple[int, Any]:
    vectors = np.full((len(offsets) - 1, d), np.nan, np.float32)
    return table(np.asarray(ids, np.int32), np.asarray(offsets, np.int64), vectors), vectors


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.lists(st.integers(0, 40), max_size=12))
def test_all_widths_give_the_exact_sum(seed: int, d: int, counts: list[int]) -> None:
    random = np.random.default_rng(seed)
    rows = 50
    stored, weights = int8_table(random, rows, d)
    ids, offsets = random.integers(0, rows, sum(counts)), np.cumsum([0, *counts])
    step = 0.25
    exact = stored[: rows * d].reshape(rows, d).astype(np.int64) * weights[:, None]
    for width in WIDTHS:
        table = Table(stored, rows, d, d, 1, None, weights, step, False, None, None, width)
        wrong, vectors = vectors_of(table, ids, offsets, d)
        assert wrong == -1
        expected = np.array([exact[ids[a:b]].sum(0) for a, b in pairwise(offsets)])
        assert np.array_equal(vectors, expected.reshape(-1, d).astype(np.float32) * np.float32(step))


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.lists(st.integers(0, 40), max_size=12))
def test_rows_of_four_bits_have_the_exact_sum_in_all_widths_alone_and_together(
    seed: int, d: int, counts: list[int]
) -> None:
    random = np.random.default_rng(seed)
    rows, step = 9, np.float32(0.3)
    stored, weights, exact = fours_table(random, rows, d)
    ids, offsets = random.integers(0, rows, sum(counts)), np.cumsum([0, *counts])
    sums = np.array([exact[ids[a:b]].sum(0) for a, b in pairwise(offsets)]).reshape(-1, d)
    for width in WIDTHS:
        table = Table(stored, rows, d, (d + 1) // 2, 0, None, weights, float(step), False, None, None, width)
        wrong, vectors = vectors_of(table, ids, offsets, d)
        assert (wrong, vectors.tobytes()) == (-1, (sums.astype(np.float32) * step).tobytes())
        for text, (a, b) in enumerate(pairwise(offsets)):
            assert vectors_of(table, ids[a:b], [0, b - a], d)[1].tobytes() == vectors[text].tobytes()


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_four_bits_by_hand(width: int) -> None:
    # Three columns in two bytes: codes 15, 8 and 0 of the first row, 7, 12 and 3 of the second. The last four bits are
    # of no column.
    stored = np.array([15 | 8 << 4, 0 | 9 << 4, 7 | 12 << 4, 3, *[255] * BLOCK], np.uint8)
    columns, bias = np.array([1, 10, 100], np.float32), np.array([0.5, 0, 0], np.float32)
    table = Table(stored, 2, 3, 2, 0, None, np.array([2, 3], np.uint8), 0.5, False, columns, bias, width)
    # 2 x (21, 1, -21) is (42, 2, -42), and 3 x (-1, 9, -9) is (-3, 27, -27).
    _, vectors = vectors_of(table, [0, 0, 1], [0, 1, 3, 3], 3)
    assert vectors.tolist() == [[21.5, 10, -2100], [20, 145, -3450], [0.5, 0, 0]]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("code", [0, 15])
def test_no_sum_of_the_largest_rows_of_four_bits_leaves_its_integers(width: int, code: int) -> None:
    d = 131
    stored = np.full(2 * 66 + BLOCK, code * 17, np.uint8)
    table = Table(stored, 2, d, 66, 0, None, np.array([127, 1], np.uint8), 1.0, False, None, None, width)
    for n in (1, 11, 12, 13, 24, 25, 65_536, 65_537, 900_001):  # 127 * 21 * 900,000 is over 2^31
        _, vectors = vectors_of(table, [0] * (n - 1) + [1], [0, n], d)
        assert vectors.tolist() == [[np.float32(LEVELS[code] * (127 * (n - 1) + 1))] * d]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", range(27))
def test_an_id_that_is_no_row_of_four_bits_is_found_wherever_it_stands(width: int, place: int) -> None:
    stored, weights, _ = fours_table(np.random.default_rng(0), 5, 7)
    table = Table(stored, 5, 7, 4, 0, None, weights, 1.0, False, None, None, width)
    for wrong_id in (-1, 5, 2**31 - 1, -(2**31)):
        ids = [i % 5 for i in range(27)]
        ids[place] = wrong_id
        assert vectors_of(table, ids, [0, 13, 27], 7)[0] == place


@pytest.mark.parametrize(
    "change",
    [
        {0: np.zeros(19, np.uint8)},  # shorter than its rows
        {0: np.zeros(20, np.uint8)},  # without a block to read over
        {0: np.zeros(16 + BLOCK - 1, np.uint8)},
        {2: 9},  # rows that overlap
        {2: 2**62},
        {3: 3},
        {5: np.ones(5, np.float32), 6: None},
        {6: None},
        {6: np.ones(4, np.uint8)},
        {6: np.array([1, 1, 128, 1, 1], np.uint8)},
        {9: np.zeros(6, np.float32)},
    ],
)
def test_a_table_of_four_bits_that_does_not_fit_is_refused(change: dict[int, Any]) -> None:
    stored, weights = np.zeros(20 + BLOCK, np.uint8), np.zeros(5, np.uint8)
    arguments: list[Any] = [stored, 5, 7, 4, 0, None, weights, 1.0, False, None, None, 512]
    assert vectors_of(Table(*arguments), [4], [0, 1], 7)[0] == -1
    for place, value in change.items():
        arguments[place] = value
    with pytest.raises(ValueError, match=r"fit|items where|weights must be"):
        Table(*arguments)


@pytest.mark.parametrize("width", WIDTHS)
def test_more_rows_than_an_int32_holds(width: int) -> None:
    stored = np.full(2 * 3 + BLOCK, 127, np.int8)
    table = Table(stored, 2, 3, 3, 1, None, np.array([128, 1], np.uint8), 1.0, False, None, None, width)
    n = 200_001  # 127 * 128 * 200,000 is over 2^31
    _, vectors = vectors_of(table, [0] * (n - 1) + [1], [0, n], 3)
    assert vectors.tolist() == [[np.float32(127 * 128 * (n - 1) + 127)] * 3]


@given(st.integers(0, 2**32 - 1), st.integers(1, 350), st.lists(st.integers(0, 40), max_size=12))
def test_floats_are_added_one_row_after_the_other_in_all_widths(seed: int, d: int, counts: list[int]) -> None:
    random = np.random.default_rng(seed)
    rows = 50
    ids, offsets = random.integers(0, rows, sum(counts)), np.cumsum([0, *counts])
    for dtype in (np.float32, np.float16):
        stored = random.normal(0, 1, (rows, d)).astype(dtype)
        expected = np.zeros((len(counts), d), np.float32)
        for text, (first, last) in enumerate(pairwise(offsets)):
            for row in ids[first:last]:
                expected[text] += stored[row].astype(np.float32)
        item = stored.itemsize
        for width in WIDTHS:
            table = Table(stored, rows, d, d * item, item, None, None, 1.0, False, None, None, width)
            assert vectors_of(table, ids, offsets, d)[1].tobytes() == expected.tobytes()


def test_float16_is_read_as_numpy_reads_it() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    finite = np.isfinite(bits.view(np.float16))
    halves = bits[finite].view(np.float16)
    table = Table(halves, len(halves), 1, 2, 2, None, None, 1.0, False, None, None, 512)
    _, vectors = vectors_of(table, range(len(halves)), range(len(halves) + 1), 1)
    assert np.array_equal(vectors[:, 0], halves.astype(np.float32) + 0.0)  # a sum that begins at 0 has no -0


def test_scales_columns_bias_and_mean_by_hand() -> None:
    rows = np.array([[1, 2], [3, 4]], np.int8)
    columns, bias = np.array([10, 100], np.float32), np.array([0.5, -0.5], np.float32)
    table = Table(rows, 2, 2, 2, 1, np.array([1, 0.5], np.float32), None, 1.0, True, columns, bias, 512)
    # (1 + 1.5, 2 + 2) / 2 = (1.25, 2), times the columns and plus the bias; no row at all is the bias.
    assert vectors_of(table, [0, 1], [0, 2, 2], 2)[1].tolist() == [[13, 199.5], [0.5, -0.5]]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", range(9))
def test_an_id_that_is_no_row_is_found_wherever_it_stands(width: int, place: int) -> None:
    stored, weights = int8_table(np.random.default_rng(0), 5, 7)
    for wrong_id in (-1, 5, 2**31 - 1, -(2**31)):
        ids = [0, 1, 2, 3, 4, 0, 1, 2, 3]
        ids[place] = wrong_id
        table = Table(stored, 5, 7, 7, 1, None, weights, 1.0, False, None, None, width)
        assert vectors_of(table, ids, [0, 4, 9], 7)[0] == place
        floats = Table(np.zeros((5, 7), np.float32), 5, 7, 28, 4, None, None, 1.0, False, None, None, width)
        assert vectors_of(floats, ids, [0, 4, 9], 7)[0] == place


ROWS = np.zeros(5 * 7 + BLOCK, np.int8)
ONES = np.ones(5, np.uint8)


@pytest.mark.parametrize(
    "change",
    [
        {0: np.zeros(34, np.int8)},  # shorter than its rows
        {0: np.zeros(35, np.int8)},  # without a block to read over
        {1: -1},
        {2: 0},
        {3: 6},  # rows that overlap
        {4: 3},
        {6: np.ones(4, np.uint8)},
        {6: np.array([1, 1, 0, 1, 1], np.uint8)},
        {6: np.array([1, 1, 129, 1, 1], np.uint8)},
        {9: np.zeros(6, np.float32)},
        {10: np.zeros(8, np.float32)},
    ],
)
def test_a_table_that_does_not_fit_is_refused(change: dict[int, Any]) -> None:
    arguments: list[Any] = [ROWS, 5, 7, 7, 1, None, ONES, 1.0, False, None, None, 512]
    assert vectors_of(Table(*arguments), [4], [0, 1], 7)[0] == -1
    for place, value in change.items():
        arguments[place] = value
    with pytest.raises(ValueError, match=r"fit|items where|weights must be"):
        Table(*arguments)


@pytest.mark.parametrize(
    ("ids", "offsets", "shape"),
    [
        ([0], [0, 2], (1, 7)),
        ([0], [-1, 1], (1, 7)),
        ([0, 0], [0, 2, 1], (2, 7)),
        ([0], [0, 1], (2, 7)),
        ([0], [], (0, 7)),
    ],
)
def test_offsets_that_do_not_fit_are_refused(ids: list[int], offsets: list[int], shape: tuple[int, int]) -> None:
    table = Table(ROWS, 5, 7, 7, 1, None, ONES, 1.0, False, None, None, 512)
    with refused(ValueError, "fit"):
        table(np.array(ids, np.int32), np.array(offsets, np.int64), np.zeros(shape, np.float32))
    readonly = np.zeros((1, 7), np.float32)
    readonly.setflags(write=False)
    with pytest.raises((BufferError, ValueError)):
        table(np.array([0], np.int32), np.array([0, 1], np.int64), readonly)


def words(starts: list[int], chars: list[int], rows: list[int]) -> tuple[Any, ...]:
    return np.array(starts, np.uint32), np.array(chars, np.uint16), np.array(rows, np.int32)


NO_WORDS = words([0], [], [])
KEYS, PLACES = np.zeros(0, np.uint64), np.zeros(0, np.int32)
PAGES, ENTRIES = np.zeros(0x1100, np.uint16), np.zeros(256, np.uint32)
ENTRIES[ord(" ")] = SPACE << 16
Change = Callable[[list[Any]], None]


def arguments() -> list[Any]:
    return [str, PAGES, ENTRIES, (2, 3), 8, KEYS, PLACES, True, NO_WORDS, 0, -1, NO_WORDS, 0, 0, KEYS, PLACES]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, PAGES[:-1]),
        (1, np.ones(0x1100, np.uint16)),  # beyond the entries
        (3, (2, 9)),  # 72 bits
        (3, (0,)),
        (3, (1, 2, 3, 4, 5, 6, 7)),
        (4, 0),
        (3, (2, 7)),  # longer than any
        (3, (3, 2)),
        (3, (2, 2)),
        (3, (2**62,)),
        (4, 17),
        (4, -8),
        (4, 2**62),
        (2, ENTRIES * 0),  # a space that is none
        (2, ENTRIES + (3 << 16)),  # no class
        (2, ENTRIES + 256),  # an id of 9 bits
        (5, np.zeros(9, np.uint8)[1:].view(np.uint64)),  # not aligned
        (5, np.ones(3, np.uint64)),  # rows of another length
        (8, words([0, 2], [1], [5])),  # a word beyond the characters
        (8, words([0, 1, 1], [1], [5, 6])),  # an empty word
        (8, words([1, 0], [1], [5])),
        (8, words([0, 1, 1], [1], [5])),  # more words than rows
        (8, words([0, 1], [1], [-1])),
        (8, words([0, 65_536], [1] * 65_536, [5])),
        (13, 4),  # edges of 72 bits
        (13, 5),  # longer than any
        (13, -1),
        (13, 2**62),  # twice that is none in 64 bits
        (8, words([0, 1, 2], [1, 1], [5, 6])),  # a word twice
        (11, words([0, 2, 3, 5], [1, 2, 3, 1, 2], [5, 6, 7])),
    ],
)
def test_arrays_on_which_a_search_could_run_wild_are_refused(place: int, value: Any) -> None:
    assert Featurizer(*arguments())(["a b"], True)[:2] == (bytearray(), bytearray(16))
    changed = arguments()
    changed[place] = value
    with pytest.raises(ValueError, match=r"fit|short|many orders|differ in length|not aligned|repeated"):
        Featurizer(*changed)


def test_sums_of_texts_that_do_not_fit() -> None:
    featurizer, vectors = Featurizer(*arguments()), np.zeros((2, 7), np.float32)
    table = Table(ROWS, 5, 7, 7, 1, None, ONES, 1.0, False, None, None, 512)
    counts, _, share, wrong = table.embed(featurizer, ["a", "b c"], True, vectors)
    assert (counts, wrong) == (bytearray(16), None)
    assert 0 <= share <= 1
    with refused(TypeError, "Featurizer"):
        table.embed(table, ["a", "b"], True, vectors)
    with refused(ValueError, "fit"):
        table.embed(featurizer, ["a"], True, vectors)
    with refused(TypeError, "text 1", "str"):
        table.embed(featurizer, ["a", 1], True, vectors)
    with refused(TypeError, "sequence of str"):
        table.embed(featurizer, None, True, vectors)
    with pytest.raises(BufferError):
        table.embed(featurizer, ["a", "b"], True, bytes(56))


@pytest.mark.parametrize("row", [-5, 5, 2**31 - 1, -(2**31)])
def test_rows_of_texts_that_the_table_has_not(row: int) -> None:
    changed = arguments()
    changed[5:7] = np.array([1 << 8 | 1], np.uint64), np.array([row], np.int32)  # of the n-gram "aa"
    changed[2] = ENTRIES + 1
    table = Table(ROWS, 5, 7, 7, 1, None, ONES, 1.0, False, None, None, 512)
    if row < 0:
        with refused(ValueError, "negative"):
            Featurizer(*changed)
        return
    assert table.embed(Featurizer(*changed), ["aa", "aa"], False, np.zeros((2, 7), np.float32))[3] == row


def test_texts_that_are_none() -> None:
    featurize = Featurizer(*arguments())
    with refused(TypeError, "text 1", "str"):
        featurize(["a", b"b"], False)
    with refused(ValueError, "text 1", "surrogate"):
        featurize(["\U0001f600", "a\udc00"], False)
    changed = arguments()
    changed[3] = ()
    with refused(ValueError, "n-grams"):
        Featurizer(*changed)(["a"], True)
    changed = arguments()
    changed[5:7] = np.zeros(1, np.uint64), np.zeros(1, np.int32)
    with refused(ValueError, "0", "n-gram"):
        Featurizer(*changed)
    for place in (5, 14):
        changed = arguments()
        changed[place : place + 2] = np.array([7, 8, 7], np.uint64), np.arange(3, dtype=np.int32)
        with refused(ValueError, "repeated"):
            Featurizer(*changed)
    with refused(TypeError, "sequence of str"):
        featurize(None, False)
    assert featurize([], True) == (bytearray(), bytearray(8), 0)


def test_a_text_whose_places_an_int32_could_not_count() -> None:
    table = Table(ROWS, 5, 7, 7, 1, None, ONES, 1.0, False, None, None, 512)
    featurize = Featurizer(*arguments())
    long = "a" * (2**28 + 1)
    with refused(OverflowError, "text 1", "268435456"):
        featurize(["a", long], True)
    with refused(OverflowError, "text 0"):
        table.embed(featurize, [long], True, np.zeros((1, 7), np.float32))
    vocabulary = build_vocabulary(["a b"], FeatureSpec())
    with refused(InputError, "text 0", "268435456"):
        PythonFeaturizer(FeatureSpec(), vocabulary, compiled=True)([long])


def fibonacci_inverse(slot: int) -> int:
    """A key whose look-up begins at the top of the table, near this place of 2^64."""
    return slot * pow(0x9E3779B97F4A7C15, -1, 2**64) % 2**64


@pytest.mark.parametrize("place", [5, 14])
def test_keys_that_were_chosen_to_collide_are_refused_at_once(place: int) -> None:
    """All want one slot; or each its own, but these stand in one row that every other search has to pass."""
    n = 80_000
    capacity = 2**18
    one_slot = [fibonacci_inverse(1 + k) for k in range(n)]
    in_a_row = [fibonacci_inverse(k * 2**64 // capacity + 1) for k in range(n)]
    for keys in (one_slot, in_a_row):
        changed = arguments()
        changed[place : place + 2] = np.array(keys, np.uint64), np.arange(n, dtype=np.int32)
        with refused(ValueError, "collide"):
            Featurizer(*changed)
    apart = [fibonacci_inverse((3 * k + k // 400 * 3) * 2**64 // capacity + 1) for k in range(n)]
    changed = arguments()
    changed[place : place + 2] = np.array(apart, np.uint64), np.arange(n, dtype=np.int32)
    Featurizer(*changed)


def colliding_words(n: int) -> list[list[int]]:
    """Words of one hash: the highest bit of four characters, and what it changes in the next four, cancel out."""
    halves = [0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24], [0x11, 0x12, 0x13, 0x8014, 0x21, 0x8022, 0x23, 0x8024]
    bits = (n - 1).bit_length()
    return [[one for bit in range(bits) for one in halves[number >> bit & 1]] for number in range(n)]


@pytest.mark.parametrize("place", [8, 11])
def test_words_that_were_chosen_to_collide_are_refused_at_once(place: int) -> None:
    changed = arguments()
    for n, fits in ((400, True), (4_000, False)):
        coded = colliding_words(n)
        lengths = [len(word) for word in coded]
        changed[place] = words([0, *np.cumsum(lengths)], [one for word in coded for one in word], list(range(n)))
        if fits:
            Featurizer(*changed)
        else:
            with refused(ValueError, "collide"):
                Featurizer(*changed)


def test_unit_by_hand_and_against_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unit(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [[np.float32(0.6), np.float32(0.8)], [0, 0]]
    rows = np.random.default_rng(3).normal(size=(50, 301)).astype(np.float32)
    found = unit(rows)
    assert all(np.array_equal(unit(rows[i : i + 1])[0], found[i]) for i in range(50))
    # The least and the greatest that float32 has, whose squares it has not.
    tiny, huge = np.float32(1e-45), np.finfo(np.float32).max
    extremes = np.array([[tiny, 0], [-tiny, tiny], [huge, -huge], [1e-22, 1e-22], [1e-13, 1], [0, 0]], np.float32)
    half = np.sqrt(np.float32(0.5))
    expected = np.array([[1, 0], [-half, half], [half, -half], [half, half], [1e-13, 1], [0, 0]], np.float32)
    assert np.allclose(unit(extremes), expected, rtol=2e-7, atol=0)
    monkeypatch.setattr(native, "loops", None)
    assert np.allclose(found, unit(rows), rtol=1e-6, atol=0)
    assert np.allclose(unit(extremes), expected, rtol=2e-7, atol=0)
    filled = np.empty_like(extremes)
    assert unit(extremes, filled) is filled
    assert np.allclose(filled, expected, rtol=2e-7, atol=0)


@pytest.mark.parametrize("chunks", [False, True])
def test_words_are_told_apart_wherever_they_differ(chunks: bool) -> None:
    letters = "abcdefghijklm"
    table = ENTRIES.copy()
    table[[ord(one) for one in letters]] = (1 << 16) + np.arange(1, 14)
    table[32] = (2 << 16) + 14
    # Of every length, and with one letter changed in every place: a slot holds eight, the hash takes four at a time.
    texts = [letters[:n] for n in range(1, 14)]
    texts += [letters[:i] + "m" + letters[i + 1 : n] for n in range(1, 14) for i in range(n) if letters[i] != "m"]
    known, strange = texts[::2], texts[1::2]
    coded = [[ord(one) - 96 for one in text] for text in known]
    given = arguments()
    given[2] = table
    given[11 if chunks else 8] = words(
        np.cumsum([0, *map(len, coded)]).tolist(), [one for ids in coded for one in ids], list(range(len(known)))
    )
    given[12 if chunks else 9] = 13
    rows, offsets, unknown = Featurizer(*given)([*known, *strange, " ".join(known)], chunks)
    assert np.frombuffer(rows, np.int32).tolist() == 2 * list(range(len(known)))
    assert np.frombuffer(offsets, np.int64).tolist() == [
        *range(len(known) + 1), *[len(known)] * len(strange), 2 * len(known)
    ]  # fmt: skip
    assert unknown == len(strange)


def test_threads_share_objects_and_a_list_may_change_meanwhile() -> None:
    table = ENTRIES.copy()
    table[[ord(one) for one in "abcdef"]] = (1 << 16) + np.arange(1, 7)
    table[32] = (2 << 16) + 7
    known = ["".join(letters) for letters in product("abcdef", repeat=3)]
    given = arguments()
    given[2], given[9] = table, 3
    given[8] = words(np.arange(0, 3 * len(known) + 1, 3).tolist(), [ord(one) - 96 for text in known for one in text],
                     list(range(len(known))))  # fmt: skip
    changing: list[str] = []
    # Composing runs Python, which may let another thread, or itself, change the list.
    given[0] = lambda text: (changing.clear(), text)[1]
    featurizer, d = Featurizer(*given), 37
    stored, weights = int8_table(np.random.default_rng(1), len(known), d)
    summed = Table(stored, len(known), d, d, 1, None, weights, 0.25, False, None, None, 512)
    texts = [" ".join(known[i % len(known)] for i in range(7 * n, 8 * n)) for n in range(100)]

    def embedded(asked: list[str]) -> bytes:
        vectors = np.zeros((len(asked), d), np.float32)
        summed.embed(featurizer, asked, False, vectors)
        return vectors.tobytes()

    def work(first: int) -> set[bytes]:
        changing.extend([*texts[:20], "\u00e9 abc"] * 3)
        featurizer(changing, False)
        return {embedded(texts[first : first + 50]) for _ in range(20)}

    expected = [{embedded(texts[first : first + 50])} for first in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == expected
