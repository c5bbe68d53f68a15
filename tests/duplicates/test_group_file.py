"""Groups that keep their ids: what a run of a changed table gives, beside a slow reference, and hostile files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs.duplicates import group_file
from gramvec.jobs.duplicates.distinct import distinct_rows
from gramvec.jobs.duplicates.group_file import GroupChanges, GroupFile
from gramvec.jobs.matching.nearest import Matches
from support.errors import refused


def update(
    path: Path,
    table: dict[str, str] | list[str],
    pairs: Sequence[tuple[str, str]] = (),
) -> GroupChanges:
    """Run a table: texts by id, or texts alone; pairs of texts that are the same thing."""
    texts = [*table.values()] if isinstance(table, dict) else table
    distinct = distinct_rows([texts])
    places = {text: place for place, text in enumerate(distinct.columns[0])}
    found = sorted({tuple(sorted((places[a], places[b]))) for a, b in pairs if a in places and b in places})
    left, right = np.array(found, np.int64).reshape(-1, 2).T
    near = Matches(left, right, np.ones(len(left), np.float32))
    ids = [*table] if isinstance(table, dict) else None
    return GroupFile(path, ["name"], None if ids is None else "id").update(distinct, near, ids)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "groups.jsonl"


def test_new_rows_join_old_groups_or_found_new_ones(path: Path) -> None:
    table = {"p1": "maria", "p2": "anna", "p3": "mariah"}
    assert update(path, table, [("maria", "mariah")]).ids.tolist() == [1, 2, 1]
    again = update(path, {"p9": "bert", "p3": "mariah", "p4": "ana", **table}, [("anna", "ana")])
    assert again.ids.tolist() == [3, 1, 2, 1, 2] and (again.total, again.new) == (3, 1)
    assert str(again) == "3 groups, 1 of them new"
    # Scores change with the table around them: what the file has of two rows stays.
    assert update(path, table, [("maria", "anna")]).ids.tolist() == [1, 2, 1]
    # A row that was not there comes back to its group.
    assert update(path, {"p9": "bert", "p4": "ana"}).ids.tolist() == [3, 2]


def test_where_two_groups_become_one_the_older_id_stays(path: Path) -> None:
    update(path, {"p1": "maria", "p2": "anna", "p3": "mary"})
    joined = update(path, {"p3": "mary", "p2": "anna", "p4": "marya"}, [("marya", "mary"), ("marya", "anna")])
    assert joined.ids.tolist() == [2, 2, 2] and joined.merged == {3: 2}
    assert str(joined) == "1 group, 0 of them new; 3 merged into 2"
    joined = update(path, {"p1": "maria", "p4": "marya", "p5": "marie"}, [("marie", "maria"), ("marie", "marya")])
    assert joined.ids.tolist() == [1, 1, 1] and joined.merged == {2: 1}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[1:3] == [{"group": 3, "merged_into": 1}, {"group": 2, "merged_into": 1}]
    # Rows that were not in the table went along, and no retired id comes back.
    assert {line["row"]: line["group"] for line in lines if "row" in line} == dict.fromkeys(
        ("p1", "p2", "p3", "p4", "p5"), 1
    )
    assert update(path, {"p6": "bert"}).ids.tolist() == [4]


def test_where_a_group_splits_the_rows_that_are_as_they_were_keep_its_id(path: Path) -> None:
    update(path, {"p1": "a", "p2": "ab", "p3": "b"}, [("a", "ab"), ("ab", "b")])
    split = update(path, {"p2": "zzz", "p1": "a", "p3": "b"})
    assert split.ids.tolist() == [2, 1, 1] and split.split == {2: 1} and str(split).endswith("; 2 split from 1")
    assert json.loads(path.read_text().splitlines()[1]) == {"group": 2, "split_from": 1}
    # A row that is alone and changes is still that row; one that changes into another's likeness moves there.
    assert update(path, {"p2": "yyy", "p1": "a", "p3": "b"}).ids.tolist() == [2, 1, 1]
    moved = update(path, {"p1": "a", "p3": "yyyy", "p2": "yyy"}, [("yyy", "yyyy")])
    assert moved.ids.tolist() == [1, 2, 2] and not moved.split and not moved.merged
    # Where all have changed, the id goes where most of them are.
    other = path.with_name("other")
    update(other, {"p1": "a", "p2": "ab", "p3": "b"}, [("a", "ab"), ("ab", "b")])
    assert update(other, {"p1": "x", "p2": "y", "p3": "yy"}, [("y", "yy")]).ids.tolist() == [2, 1, 1]


def test_rows_without_ids_are_known_by_their_texts(path: Path) -> None:
    assert update(path, ["maria", "anna", "maria", " "]).ids.tolist() == [1, 2, 1, 0]
    assert update(path, ["", "anna", "bert", "ana"], [("ana", "anna")]).ids.tolist() == [0, 2, 3, 2]
    assert "maria" not in path.read_text()


def test_rows_that_were_never_in_one_table_are_compared(path: Path) -> None:
    update(path, {"p1": "maria"})
    update(path, {"p2": "mariah"})
    assert update(path, {"p1": "maria", "p2": "mariah"}, [("maria", "mariah")]).merged == {2: 1}


TEXTS = ["a", "b", "c", "d", ""]
TABLES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["p", "q", "r", "s", "t"]), st.sampled_from(TEXTS), max_size=5),
        st.lists(st.tuples(st.sampled_from(TEXTS[:4]), st.sampled_from(TEXTS[:4])), max_size=3),
    ),
    max_size=6,
)


def expected_groups(
    table: dict[str, str], pairs: list[tuple[str, str]], known: dict[str, tuple[str, int, int]]
) -> list[set[str]]:
    """Return the sets of rows that are one, by asking every two rows until nothing changes: slow, and clear."""
    rows = [row for row, text in table.items() if text]
    same = [row for row in rows if row in known and known[row][0] == table[row]]
    last = {text: max((known[row][2] for row in same if table[row] == text), default=0) for text in table.values()}

    def is_one(a: str, b: str) -> bool:
        one, other = table[a], table[b]
        stays = a in same and b in same and known[a][1] == known[b][1]
        paired = (one, other) in pairs or (other, one) in pairs
        return one == other or stays or (paired and (last[one] == 0 or last[one] != last[other]))

    found = [{row} for row in rows]
    for a in rows:
        for b in rows:
            one, other = next(each for each in found if a in each), next(each for each in found if b in each)
            if one is not other and is_one(a, b):
                one |= other
                found.remove(other)
    return found


@given(TABLES)
@example([({"p": "a", "q": "b"}, []), ({"p": "", "q": "b"}, []), ({"p": "a", "q": "b"}, [("a", "b")])])
def test_no_id_ever_names_another_group(tables: list[tuple[dict[str, str], list[tuple[str, str]]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "groups"
        known: dict[str, tuple[str, int, int]] = {}
        used, retired = 0, set()
        for run, (table, pairs) in enumerate(tables, start=1):
            changes = update(path, table, [pair for pair in pairs if pair[0] != pair[1]])
            ids = dict(zip(table, changes.ids.tolist(), strict=True))
            groups = expected_groups(table, pairs, known)
            assert sorted(map(sorted, groups)) == sorted(
                sorted(row for row in table if ids[row] == group) for group in set(ids.values()) - {0}
            )
            assert all((ids[row] == 0) == (text == "") for row, text in table.items())
            assert not retired & {*ids.values()} and changes.new == len(
                [1 for group in {*ids.values()} if group > used]
            )
            for group in groups:
                (new,) = {ids[row] for row in group}
                before = {known[row][1] for row in group if row in known and known[row][0] == table[row]}
                # Of old groups that are one now the oldest id stays, or one that is older still.
                assert not before or new <= min(before)
                assert all(changes.merged.get(old, old) == new for old in before)
            used, retired = max(used, *ids.values(), 0), retired | changes.merged.keys()
            known = {row: (text, changes.merged.get(old, old), last) for row, (text, old, last) in known.items()}
            known |= {row: (table[row], group, run) for row, group in ids.items() if group}
            again = update(path, table)
            assert again.ids.tolist() == changes.ids.tolist() and not (again.new or again.merged or again.split)
            # A row of which nothing is written is not seen.
            known |= {row: (text, group, run) for row, (text, group, _) in known.items() if table.get(row)}


GOOD = [
    {"format": "gramvec groups", "version": 1, "columns": ["name"], "id": "id", "sources": False, "next": 4, "run": 2},
    {"group": 3, "merged_into": 1},
    {"group": 2, "split_from": 1},
    {"row": "p1", "texts": "0" * 24, "group": 1, "run": 2},
    {"row": "p2", "texts": "f" * 24, "group": 2, "run": 1},
]


def write(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("line", "change", "said"),
    [
        (1, {"version": 2}, "version 1"),
        (1, {"format": "x"}, "first line"),
        (1, {"next": 2}, "line 2"),
        (1, {"next": 1.5}, "next"),
        (1, {"run": -1}, "run"),
        (1, {"columns": ["city"]}, "columns city"),
        (1, {"id": None}, "ids of none"),
        (1, {"sources": True}, "sources: True"),
        (2, {"merged_into": 3}, "line 2"),
        (2, {"merged_into": True}, "line 2"),
        (2, {"other": 1}, "line 2"),
        (2, {"group": 1 << 60}, "line 2"),
        (3, {"split_from": 0}, "line 3"),
        (4, {"group": 3}, "retired"),
        (4, {"group": 4}, "line 4"),
        (4, {"texts": "x" * 24}, "no digest"),
        (4, {"texts": 1}, "line 4: texts"),
        (4, {"row": "p2"}, "line 5 names a row twice"),
        (4, {"row": ""}, "line 4: row"),
        (4, {"row": "x" * 1_001}, "line 4: row"),
        (4, {"run": 3}, "line 4: run"),
        (5, {"source": "a"}, "line 5"),
    ],
)
def test_a_file_that_is_not_valid_is_one_sentence(line: int, change: dict[str, Any], said: str, path: Path) -> None:
    write(path, [record | (change if number == line else {}) for number, record in enumerate(GOOD, start=1)])
    before = path.read_bytes()
    with refused(InputError, "groups.jsonl", said):
        update(path, {"p1": "maria"})
    assert path.read_bytes() == before and [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize(
    "lines",
    [
        ["\n"], ["[]\n"], ["x"], [GOOD[0], "{}\n"], [GOOD[0], "[" * 9_000 + "\n"], [GOOD[0], '{"a":' * 99 + "\n"],
        [*GOOD, '{"row":"p3"'], [GOOD[0], "x" * 70_000 + "\n"], [*GOOD, GOOD[1]], [GOOD[0], "\x00\n"], ["id,name\n"],
    ],
)  # fmt: skip
def test_what_is_no_file_of_groups_is_refused_and_stays(lines: list[Any], path: Path) -> None:
    write(path, lines)
    before = path.read_bytes()
    with refused(InputError, "groups.jsonl", "not a valid file of groups"):
        update(path, {"p1": "maria"})
    assert path.read_bytes() == before


def test_a_good_file_is_continued(path: Path) -> None:
    write(path, GOOD)
    assert update(path, {"p1": "maria", "p3": "bert"}).ids.tolist() == [1, 4]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_file_or_one_sentence(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "groups"
        path.write_bytes("".join(json.dumps(line) + "\n" for line in GOOD).encode() + data)
        try:
            update(path, {"p1": "maria"})
        except InputError as error:
            assert "groups" in str(error)


@pytest.mark.parametrize("ids", [["a", "a"], ["a", ""], ["a", "x" * 1_001], ["a", "\ud800"]])
def test_ids_that_name_no_row_are_refused(ids: list[str], path: Path) -> None:
    distinct = distinct_rows([["maria", "bert"]])
    with refused(InputError, "row 1", index=1):
        GroupFile(path, ["name"], "id").update(distinct, Matches(*np.zeros((3, 0), np.int64)), ids)
    assert not path.exists()


def test_bounds_hold_for_what_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update(path, {"p1": "maria"})
    before = path.read_bytes()
    monkeypatch.setattr(group_file, "MAX_ROWS", 1)
    with refused(InputError, "more than 1 rows"):
        update(path, {"p2": "bert"})
    monkeypatch.undo()
    monkeypatch.setattr(group_file, "MAX_BYTES", len(before) + 9)
    with refused(InputError, "bytes"):
        update(path, {"p2": "bert"})
    assert path.read_bytes() == before and [*path.parent.iterdir()] == [path]


def test_no_pipe_is_waited_for_and_no_link_is_followed(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_text("precious")
    (path.parent / ".groups.jsonl.new").symlink_to(victim)
    with refused(InputError, "link"):
        update(path, {"p1": "maria"})
    (path.parent / ".groups.jsonl.new").unlink()
    os.mkfifo(path)
    with refused(InputError, "regular file"):
        update(path, {"p1": "maria"})
    assert victim.read_text() == "precious"


SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_group_file import update
path, replace = Path(sys.argv[1]), Path.replace
update(path, {"p1": "maria"})
print("first", flush=True)
kill = lambda *names: os.kill(os.getpid(), 9)
if sys.argv[3] == "before":
    Path.replace = kill
else:
    Path.replace = lambda *names: (replace(*names), kill())
update(path, {"p1": "maria", "p2": "bert"})
"""


@pytest.mark.parametrize(("when", "rows"), [("before", 1), ("after", 2)])
def test_a_kill_leaves_the_state_before_or_after(when: str, rows: int, path: Path) -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, tests / "duplicates", when], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(tests)},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL and done.stdout == "first\n", done.stderr
    assert len(path.read_text().splitlines()) == 1 + rows
    # The next run is not in the way of what is left.
    assert update(path, {"p2": "bert", "p1": "maria"}).ids.tolist() == [2, 1]


def test_the_order_of_columns_makes_no_difference_and_sources_have_ids_of_their_own(path: Path) -> None:
    none = Matches(*np.zeros((3, 0), np.int64))
    names, cities = ["maria", "bert"], ["rome", "oslo"]
    for columns, values in ((["name", "city"], [names, cities]), (["city", "name"], [cities, names])):
        file = GroupFile(path, columns, "id", has_sources=True)
        assert file.update(distinct_rows(values), none, ["1", "1"], ["a", "b"]).ids.tolist() == [1, 2]
    with refused(InputError, "columns city, name"):
        GroupFile(path, ["name"], "id", has_sources=True)
    with refused(InputError, "sources: True"):
        GroupFile(path, ["name", "city"], "id")
