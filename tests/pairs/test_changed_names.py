"""What the pair models learn from beside tables with known answers, and that the card is of the shipped models."""

from __future__ import annotations

import hashlib
from random import Random

import pytest

from gramvec.jobs.pairs.model import FOLDER

names = pytest.importorskip("gramvec_training.data.changed_names", reason="the training package is not installed")
NAMES = ["Golden Road Brewing", "Galaxy 31", "Louis XIV", "Big Sky", "\u6771\u4eac", "", "1999 final", "Galaxy 32"]


def test_the_card_is_of_the_shipped_models() -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in ("two_tables", "one_table"):
        digest = hashlib.sha256((FOLDER / f"{name}.json").read_bytes()).hexdigest()
        assert digest in card.split(f"## {name}.json")[1].split("##")[0], f"run make pair-model: {name}.json"


def test_short_words_keep_their_letters() -> None:
    made = {
        way: {getattr(names, way)("cat 7", Random(seed)) for seed in range(9)} for way in ("swap_letters", "drop_space")
    }
    assert made == {"swap_letters": {"cat 7"}, "drop_space": {"cat7"}}


def test_each_way_changes_one_word() -> None:
    ways = {
        "swap_letters": {"abdc", "acbd", "bacd"},
        "lose_letter": {"acd", "bcd", "abd"},
        "double_letter": {"aabcd", "abbcd", "abccd"},
        "split_word": {"a bcd", "ab cd", "abc d"},
    }
    for way, expected in ways.items():
        assert {getattr(names, way)("abcd", Random(seed)) for seed in range(60)} == expected


def test_another_number_is_another_thing() -> None:
    assert names.change_number("none", Random(0)) == "none"
    assert {names.change_number("no. 7", Random(seed)) for seed in range(99)} == {
        f"no. {number}" for number in (3, 5, 6, 8, 9, 17)
    }


def test_the_same_seed_gives_the_same_small_tables() -> None:
    known = names.KnownRows(NAMES, ["golden road", "Galaxy no. 31"], [(0, 0), (1, 1)])
    first, again = (list(names.make_small_tables(known, Random("x"))) for _ in range(2))
    assert first == again and len(first) > 60
    for table in first:
        assert 1 <= len(table.left) <= names.SMALL_ROWS
        assert all(a < len(table.left) and b < len(table.right) for a, b in table.truth)
        rows, things = names.join_lists(table)
        assert len(rows) == len(things) and all(things[a] == things[len(table.left) + b] for a, b in table.truth)


def test_answered_rows_are_those_that_a_pair_has() -> None:
    known = names.KnownRows(["a", "b", "c"], ["b2", "x", "b3"], [(1, 0), (1, 2)])
    assert names.answer_rows(known) == (["b"], ["b2", "x", "b3"], [(0, 0), (0, 2)])
