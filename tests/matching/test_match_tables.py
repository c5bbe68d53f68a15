"""Matches by the pair model: equal rows, thresholds, one-to-one, and tables of which none is the other."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.matching import groups
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.groups import GroupPairs, group_rows, sort_groups
from gramvec.jobs.matching.match_tables import (
    MIN_DUPLICATE,
    MIN_THRESHOLD,
    block_of,
    match_fields,
    own_threshold,
    threshold_of,
)
from gramvec.jobs.matching.nearest import Matches
from support.bulk import gramvec_command
from support.errors import refused

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

names = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=8)


def scored(left: list[str], right: list[str], seed: int, *, same: bool = False) -> GroupPairs:
    """Groups of rows with all their pairs, and scores of which some are equal."""
    one, other = group_rows([left]), group_rows([right])
    at, with_ = (
        x.ravel() for x in np.meshgrid(np.arange(len(one.counts)), np.arange(len(other.counts)), indexing="ij")
    )
    scores = (np.random.default_rng(seed).integers(1, 10, len(at)) / 10).astype(np.float32)
    order = np.lexsort((with_, -scores, at))
    return GroupPairs(Matches(at[order], with_[order], scores[order]), one, other, same)


def by_rows(found: GroupPairs) -> list[tuple[int, int, float]]:
    """All pairs of rows, by left row, then descending score, then group."""
    pairs = {(a, b): s for a, b, s in zip(*(one.tolist() for one in found.pairs), strict=True)}
    return [
        (i, j, pairs[a, b])
        for i, a in enumerate(found.left.of_row.tolist())
        for j, b in sorted(
            ((j, b) for j, b in enumerate(found.right.of_row.tolist())),
            key=lambda one: (-pairs.get((a, one[1]), 0), one[1]),
        )
        if (a, b) in pairs and not (found.same and i == j)
    ]


@given(names, names, st.integers(0, 9), st.none() | st.integers(1, 5))
def test_groups_stand_for_all_their_rows(left: list[str], right: list[str], seed: int, top: int | None) -> None:
    found = scored(left, right, seed)
    expected = by_rows(found)
    assert int(found.numbers().sum()) == len(expected)
    if top is not None:
        expected = [pair for i in range(len(left)) for pair in [one for one in expected if one[0] == i][:top]]
    expected.sort(key=lambda pair: (pair[0], -pair[2], pair[1]))
    assert list(zip(*(one.tolist() for one in found.rows(top)), strict=True)) == expected


@given(names, st.integers(0, 9), st.none() | st.integers(1, 5))
def test_rows_of_one_table_are_not_compared_with_themselves(rows: list[str], seed: int, top: int | None) -> None:
    found = scored(rows, rows, seed, same=True)
    expected = by_rows(found)
    if top is not None:
        expected = [pair for i in range(len(rows)) for pair in [one for one in expected if one[0] == i][:top]]
    expected.sort(key=lambda pair: (pair[0], -pair[2], pair[1]))
    assert list(zip(*(one.tolist() for one in found.rows(top)), strict=True)) == expected


def test_the_first_rows_of_one_table_are_each_pair_once_whatever_their_order() -> None:
    for rows in (["b!", "b", "a"], ["b", "b!", "a"], ["a", "b!", "b"]):
        groups_of_rows = sort_groups(group_rows([rows]), [rows])
        pairs = Matches(np.array([0, 1, 1]), np.array([1, 0, 1]), np.array([0.5, 0.5, 0.9], np.float32))
        found = GroupPairs(pairs, groups_of_rows, groups_of_rows, same=True).first_rows()
        named = [{rows[a], rows[b]} for a, b in zip(found.left.tolist(), found.right.tolist(), strict=True)]
        assert named == [{"a", "b"}, {"b", "b!"}] and (found.left < found.right).all()


@given(names, names, st.integers(0, 9), st.booleans())
def test_one_to_one_takes_each_row_once_and_as_many_as_there_are(
    left: list[str], right: list[str], seed: int, same: bool
) -> None:
    found = scored(left, left if same else right, seed, same=same)
    pairs = found.one_to_one()
    taken = [*pairs.left.tolist(), *pairs.right.tolist()] if same else None
    for rows in [taken] if same else [pairs.left.tolist(), pairs.right.tolist()]:
        assert len(set(rows)) == len(rows)
    # Nothing more could be taken.
    free = [set(range(len(found.left.of_row))), set(range(len(found.right.of_row)))]
    used = (set(taken), set(taken)) if same else (set(pairs.left.tolist()), set(pairs.right.tolist()))
    assert not [pair for pair in by_rows(found) if pair[0] in free[0] - used[0] and pair[1] in free[1] - used[1]]


def test_equal_rows_are_sure_and_all_of_them_find_a_partner() -> None:
    found = gramvec.match(["Acme Ltd"] * 20, ["Acme Ltd"] * 20 + ["Beta Inc"], one_to_one=True, threshold=0.9)
    assert len(found.left) == 20 == len(set(found.left.tolist())) == len(set(found.right.tolist()))
    many = [f"customer {n % 7}" for n in range(2_000)]
    assert len(gramvec.match(many, many[::-1], one_to_one=True).left) == 2_000
    assert gramvec.match(["Acme Ltd"], ["acme, ltd.", "Acme Ltd", "Beta Inc"], threshold=0.99).right.tolist() == [0, 1]


def test_too_many_pairs_are_refused_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_PAIRS", 99)
    with refused(InputError, "100", "99"):
        gramvec.match(["a b"] * 10, ["a b"] * 10)


def test_the_threshold_is_that_of_the_highest_expected_f1() -> None:
    # Expected F1 of one, two, three and four: 1.8 / 3, 3.4 / 4, 3.8 / 5, 4 / 6.
    assert threshold_of(np.array([0.9, 0.1, 0.8, 0.2], np.float32)) == pytest.approx(0.8)
    # As often as each stands: 1.8 / 2.9, and 3.8 / 11.9.
    assert threshold_of(np.array([0.9, 0.1], np.float32), np.array([1, 10])) == pytest.approx(0.9)
    assert threshold_of(np.array([0.2, 0.1], np.float32)) == threshold_of(np.zeros(0, np.float32)) == MIN_THRESHOLD


def test_one_to_one_the_least_threshold_is_taken_for_rivals_are_gone() -> None:
    clean = np.array([0.99] * 20 + [0.36], np.float32)
    assert own_threshold(clean, None) == pytest.approx(0.99)
    assert own_threshold(clean, None, one_to_one=True) == MIN_THRESHOLD
    assert own_threshold(clean, None, same=True, one_to_one=True) == MIN_DUPLICATE
    # What a precision asks for is asked for one to one, too.
    assert own_threshold(clean, 0.9, one_to_one=True) == own_threshold(clean, 0.9)
    towns = ["Brakel", "Aachen", "Lippstadt", "Soest", "Herne", "Bocholt", "Gronau", "Unna", "Hamm", "Witten"]
    assert gramvec.match(towns, towns[::-1], one_to_one=True).threshold == MIN_THRESHOLD
    assert gramvec.match(towns, towns[::-1]).threshold > 0.9
    assert gramvec.match(towns, towns[::-1], one_to_one=True, threshold=0.7).threshold == 0.7
    assert gramvec.match(towns, towns, one_to_one=True).threshold == MIN_DUPLICATE


def test_a_table_without_anything_in_common_has_no_match() -> None:
    rng = random.Random(1)
    given_names = [
        "".join(rng.choices("aeilnorst", k=6)) + " " + "".join(rng.choices("bcdkmuw", k=7)) for _ in range(200)
    ]
    stadiums = ["".join(rng.choices("aeilnorst", k=8)) + " stadium" for _ in range(200)]
    assert len(set(gramvec.match(given_names, stadiums).left.tolist())) <= 4
    assert not len(gramvec.match(["Maria"], ["Old Trafford", "Camp Nou", "Anfield"]).left)


@pytest.mark.parametrize(
    ("one", "other"),
    [("CIPLAR LA 40 TABLET", "CIPLAR LA 80 TABLET"), ("Bank of the West", "Bank of the East")],
)
def test_what_contradicts_is_not_probable(one: str, other: str) -> None:
    assert (gramvec.match([one], [other], threshold=0).scores < 0.35).all()


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("apple pie", ["apple tart"]),
        ("apple pie", ["apple tart", "cherry pie"]),
        ("apple pie", ["apple tart", "cherry pie", "zebra", "xylophone"]),
        ("Peter Smith", ["Paul Smith", "Peter Jones"]),
        ("Berlin Airport", ["Hamburg Airport", "Berlin Station"]),
        ("Bank of Ireland", ["Bank of Scotland", "Bank of England"]),
        (
            "senior engineer",
            [
                "senior analyst",
                "junior engineer",
                "lead engineer",
                "senior nurse",
                "chief designer",
                "assistant driver",
            ],
        ),
        ("Zeltweg", ["Zell am See", "Zeltingen", "Zella-Mehlis", "Zell am Ziller", "Zeist", "Zerbst"]),
    ],
)
def test_the_nearest_of_a_few_is_no_match_because_it_is_the_nearest(text: str, others: list[str]) -> None:
    assert not len(gramvec.match([text], others).left)
    assert not len(gramvec.match(others, [text]).left)


def test_both_directions_have_the_same_scores() -> None:
    left, right = ["jon smith", "acme inc", "mary ann"], ["john smith", "acme incorporated", "ann mary", "smith"]
    there, back = gramvec.match(left, right, threshold=0), gramvec.match(right, left, threshold=0)
    pairs = {(a, b): s for a, b, s in zip(*(one.tolist() for one in there), strict=True)}
    assert pairs == {(b, a): s for a, b, s in zip(*(one.tolist() for one in back), strict=True)}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("ab c1", max_size=8), max_size=8), st.lists(st.text("ab c1", max_size=8), max_size=8))
def test_any_texts_have_probabilities(left: list[str], right: list[str]) -> None:
    found = gramvec.match(left, right, threshold=0)
    assert ((found.scores >= 0) & (found.scores <= 1)).all()
    for a, b, score in zip(*(one.tolist() for one in found), strict=True):
        assert score >= np.float32(0.99) or left[a].split() != right[b].split()


def test_blocks_know_whole_numbers_with_and_without_a_point() -> None:
    assert [block_of(one) for one in (" A  b", "60601.0", "60601", "1.50", "-3.00")] == [
        "a b",
        "60601",
        "60601",
        "1.50",
        "-3",
    ]
    fields = [Field(["acme"], ["acme"], 1.0)]
    assert len(match_fields(fields, (["60601"], ["60601.0"])).matches.left) == 1
    assert not len(match_fields(fields, (["60601"], ["60602"])).matches.left)


def test_missing_values_of_pandas_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    class NAType:  # as pandas.NA: neither equal nor unequal to anything
        def __eq__(self, other: object) -> NAType:  # type: ignore[override]
            return self

        __ne__ = __eq__  # type: ignore[assignment]

        def __bool__(self) -> bool:
            raise TypeError("boolean value of NA is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    table = {"name": ["acme", NAType(), "beta"], "zip": [60601.0, NAType(), float("nan")]}
    other = {"name": ["acme", "x"], "zip": [60601, 2]}
    assert gramvec.match(table["name"], other["name"]).left.tolist() == [0]
    assert gramvec.match(table, other, on=["name", "zip"], block="zip").left.tolist() == [0]
    with refused(InputError, "text 1", "int", "str"):
        gramvec.match(["a", 5], ["a"])
    with refused(InputError, "'b'", "bytes"):
        gramvec.match({"b": [b"acme"]}, {"b": ["acme"]}, on="b")


def test_rows_may_be_dicts() -> None:
    """A list, a tuple or a generator of them, as of `gramvec.dedupe`; a member that a row lacks is empty."""
    rows = [{"name": "Acme Limited", "city": "Bonn"}, {"name": "Beta GmbH"}, {"name": None, "n": 3}]
    columns = {"name": ["Acme Limited", "Beta GmbH", None], "city": ["Bonn", None, None]}
    others = [{"name": "ACME Ltd", "city": "Bonn"}, {"name": "Beta"}]
    wanted = gramvec.match(columns, others, on=["name", "city"], threshold=0)
    assert wanted.left.size
    for left in (rows, tuple(rows), iter(rows)):
        found = gramvec.match(left, iter(others), on=["name", "city"], threshold=0)
        assert [one.tolist() for one in found] == [one.tolist() for one in wanted]
    same = gramvec.match(rows, rows, on="name", threshold=0)
    assert not (same.left == same.right).any()
    assert gramvec.match([], others, on="name").left.size == 0
    assert gramvec.pair_scores(rows[:2], others, on="name").shape == (2,)
    assert gramvec.match(rows, others, on="name", block="city", threshold=0).left.tolist() == [0]
    for left, on, said in (
        (["Acme"], "name", "texts; leave it out"),
        (columns, None, "tables"),
        ([{"name": "a"}, "b"], "name", "row 1 .*str"),
        (rows, "nme", "'nme'"),
    ):
        with pytest.raises(InputError, match=said):
            gramvec.match(left, others if on else ["x"], on=on)


def test_given_pairs_are_scored_without_others(tmp_path: Path) -> None:
    left = ["Acme Inc", "CIPLAR LA 40", "Bank of the West", "", "same"]
    right = ["Acme Incorporated", "CIPLAR LA 80", "Bank of the East", "x", "Same!"]
    found = gramvec.pair_scores(left, right)
    assert (
        found.dtype == np.float32
        and found[0] > 0.5
        and (found[1:3] < 0.35).all()
        and found[3] == 0
        and found[4] >= 0.98
    )
    assert gramvec.pair_scores({"a": left}, {"a": right}, on="a").tobytes() == found.tobytes()
    assert gramvec.pair_scores(right, left).tolist() == found.tolist()
    assert len(gramvec.pair_scores([], [])) == 0
    with refused(InputError, "2 left", "1 right"):
        gramvec.pair_scores(["a", "b"], ["a"])
    with pytest.raises(InputError, match="0 columns to compare; give 1 to 16"):
        gramvec.pair_scores([{"a": "x"}], [{"a": "x"}], on=[])
    (tmp_path / "a.csv").write_text("n,a,b\n1,Acme Inc,Acme Incorporated\n2,CIPLAR LA 40,CIPLAR LA 80\n3,,x\n")
    done = gramvec_command("pairs", tmp_path / "a.csv", "--left", "a", "--right", "b")
    rows = [line.split(",") for line in done.stdout.decode().splitlines()]
    assert rows[0] == ["line", "score", "left", "right"] and [row[0] for row in rows[1:]] == ["2", "3", "4"]
    assert float(rows[1][1]) > 0.5 > 0.35 > float(rows[2][1]) > float(rows[3][1]) == 0
    every = ("pairs", "--left", "a", "--right", "b", "--columns", "all", "--input-format", "csv")
    done = gramvec_command(*every, stdin=(tmp_path / "a.csv").read_bytes().replace(b"n,a,b", b"line,a,b"))
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "line,score,input_line,a,b" and lines[1].endswith(",1,Acme Inc,Acme Incorporated")
    done = gramvec_command("pairs", tmp_path / "a.csv", "--left", "a", "--right", "c")
    assert done.returncode == 1 and b"'c'" in done.stderr and b"--right" in done.stderr
