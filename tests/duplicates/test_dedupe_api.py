"""`gramvec.dedupe`: rows of every kind, several columns, which row stays, meanings, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from gramvec.errors import InputError
from support.bulk import MODEL
from support.errors import refused

pytest.importorskip("scipy", reason="scipy is not installed: pip install 'gramvec[match]'")

NAMES = ["Oaks Nursery", "bananas", "Oak Nursery", "bananas", None, ""]
TABLE = {"id": [1, 2, 3, 4, 5, 6], "name": NAMES, "phone": ["312-555-0142", None, "3125550142", "1", None, None]}
ROWS = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]


def kinds() -> dict[str, Any]:
    found: dict[str, Any] = {"dict of lists": TABLE, "list of dicts": ROWS, "generator": (row for row in ROWS)}
    for name, make in (
        ("pandas", lambda it: it.DataFrame(TABLE, index=range(7, 13)).convert_dtypes()),
        ("polars", lambda it: it.DataFrame(TABLE)),
        ("pyarrow", lambda it: it.table(TABLE)),
    ):
        try:
            found[name] = make(__import__(name))
        except ImportError:
            continue
    return found


@pytest.mark.parametrize("kind", kinds())
def test_tables_of_every_kind(kind: str) -> None:
    found = gramvec.dedupe(kinds()[kind], on=["name", "phone"], id="id")
    assert (found.pairs.left.tolist(), found.pairs.right.tolist()) == ([0, 1], [2, 3])
    assert (found.groups, found.kept.tolist(), found.empty) == ([[0, 2], [1, 3]], [0, 1, 4, 5], 2)
    assert found.ids == ["1", "2", "3", "4", "5", "6"]
    assert repr(found) == f"DuplicateRows(6 rows, 4 kept, 2 empty, threshold {found.threshold:.3f})"
    complete = gramvec.dedupe(kinds()[kind], on="name", keep="complete")
    assert complete.kept.tolist() == [0, 3, 4, 5]
    # All columns but the ids.
    assert gramvec.dedupe(kinds()[kind], id="id").pairs.scores.tobytes() == found.pairs.scores.tobytes()


def test_texts_of_every_kind() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    series = pd.Series(NAMES, dtype="string"), pl.Series(NAMES)
    for rows in (NAMES, iter(NAMES), tuple(NAMES), np.array(NAMES, object), *series):
        found = gramvec.dedupe(rows)
        assert list(zip(*(part.tolist() for part in found.pairs[:2]), strict=True)) == [(0, 2), (1, 3)]
        assert found.pairs.scores[1] == 1 and found.kept.tolist() == [0, 1, 4, 5] and found.ids is None


@pytest.mark.parametrize("rows", [[], ["a"], [""], iter(()), {"name": []}, [{"name": "x"}], ["a", "b", "c"]])
def test_few_rows_have_no_duplicates(rows: Any) -> None:
    found = gramvec.dedupe(rows)
    assert found.pairs.left.dtype == found.kept.dtype == np.int64 and found.pairs.scores.dtype == np.float32
    assert found.groups == [] and found.kept.tolist() == list(range(len(found.stays)))


def test_which_row_stays() -> None:
    rows = ["acme limited", "Acme Limited!!", "acme limited.", "acme limited."]
    kept = {keep: gramvec.dedupe(rows, keep=keep).kept.tolist() for keep in ("first", "longest", "frequent")}  # type: ignore[arg-type]
    assert kept == {"first": [0], "longest": [1], "frequent": [2]}


@pytest.mark.parametrize("named", [True, False])
def test_groups_keep_their_ids(named: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"on": "name", "groups_file": tmp_path / "groups"} | ({"id": "id"} if named else {})
    rows = [{"id": 7, "name": "Acme Inc"}, {"id": 8, "name": "bananas"}, {"id": 9, "name": None}]
    first = gramvec.dedupe(rows, **options)
    assert first.group_ids is not None and first.group_ids.tolist() == [1, 2, 0] and first.group_ids.dtype == np.int64
    more = gramvec.dedupe([{"id": 10, "name": "Acme Incorporated"}, *rows[::-1]], **options)
    assert more.group_ids is not None and more.group_ids.tolist() == [1, 0, 2, 1] and more.groups == [[0, 3]]
    assert more.numbered_groups() == [(1, [0, 3]), (2, [2])]
    changed = gramvec.dedupe([rows[0], {"id": 8, "name": "bananas, yellow, ripe"}], **options)
    assert changed.group_ids is not None and changed.group_ids.tolist() == [1, 2 if named else 3]
    with refused(InputError, "groups", "columns name"):
        gramvec.dedupe(["a"], groups_file=options["groups_file"])
    if named:
        with refused(InputError, "row 0 and row 1", "id 7", index=1):
            gramvec.dedupe([rows[0], rows[0]], **options)


def test_several_tables_are_one_with_their_sources(tmp_path: Path) -> None:
    crm = {"id": [1, 2], "name": ["Acme Inc", "bananas"], "city": ["Rome", None]}
    shop = [{"id": 1, "name": "Acme Incorporated"}, {"id": 7, "name": "cherries", "phone": "312"}]
    tables = {"crm": crm, "shop": shop}
    found = gramvec.dedupe(tables, on="name", id="id", groups_file=tmp_path / "groups")
    assert found.names.sources == ["crm", "crm", "shop", "shop"] and found.ids == ["1", "2", "1", "7"]
    assert found.groups == [[0, 2]] and found.group_ids is not None and found.group_ids.tolist() == [1, 2, 1, 3]
    columns = found.columns()
    assert (columns["source"], columns["other_source"], columns["id"]) == (["crm"], ["shop"], ["1"])
    assert found.merge(tables, "filled") == {
        "source": ["crm", "crm", "shop"], "id": ["1", "2", "7"], "name": ["Acme Inc", "bananas", "cherries"],
        "city": ["Rome", "", ""], "phone": ["", "", "312"],
    }  # fmt: skip
    again = gramvec.dedupe({"shop": shop[1:], "crm": crm}, on="name", id="id", groups_file=tmp_path / "groups")
    assert again.group_ids is not None and again.group_ids.tolist() == [3, 1, 2]
    assert gramvec.dedupe({"name": ["x", "x"]}).names.sources is None
    with refused(InputError, "groups", "sources: True"):
        gramvec.dedupe(crm, on="name", id="id", groups_file=tmp_path / "groups")


def test_frames_in_a_list_are_named_by_their_places() -> None:
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame({"name": ["Acme Inc", None]}), pd.DataFrame({"name": ["bananas", "Acme Inc"]})]
    found = gramvec.dedupe(frames)
    assert found.groups == [[0, 3]] and found.names.sources == ["0", "0", "1", "1"] and found.empty == 1


def test_meanings() -> None:
    rows = ["a red car", "bananas", "A red car.", ""]
    embedder = gramvec.load(MODEL, device="cpu")
    found = gramvec.dedupe(rows, by="meaning", model=embedder, threshold=0.9)
    assert list(zip(*(part.tolist() for part in found.pairs[:2]), strict=True)) == [(0, 2)]
    assert found.pairs.scores[0] == pytest.approx(embedder.pair_similarity(["a red car"], ["A red car."])[0], abs=1e-6)
    assert found.kept.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ("abc", {}, "wrap it in a list"),
        (5, {}, "iterable"),
        ({"a", "b"}, {}, r"\bset\b"),
        ([b"a"], {}, r"row 0 .*bytes"),
        (["a", 1], {}, r"row 1 .*int"),
        ([{"a": "b"}, "a"], {}, r"row 1 .*str"),
        ([{"a": b"b"}], {}, r"'a' .*bytes"),
        (["a"], {"on": "name"}, "leave them out"),
        (TABLE, {"on": "x"}, "'x'"),
        (TABLE, {"on": {"name": 2}}, "list of names"),
        (TABLE, {"on": []}, "no column"),
        (TABLE, {"id": "x"}, r"id:.*'x'"),
        ({"a": ["x"], "b": []}, {}, "different lengths"),
        ({f"c{at}": ["x"] for at in range(17)}, {}, r"17 columns.* 1 to 16"),
        (np.zeros((2, 2)), {}, "no names of columns"),
        (["a"], {"by": "letter"}, r"by:.*'letters'.*'meaning'"),
        (["a"], {"keep": "last"}, r"keep:.*'first'"),
        (["a"], {"threshold": 2}, r"threshold:.* 0 to 1"),
        (["a"], {"model": MODEL}, r"model:.*by='meaning'"),
        (["a"], {"by": "meaning"}, "give the lowest one"),
        (["x" * 65_537], {}, r"row 0.* 65,537"),
        (["a", "\ud800"], {}, r"row 1.*surrogate"),
    ],
)
def test_what_is_no_table_or_no_option_is_refused(rows: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        gramvec.dedupe(rows, **options)


def test_too_many_pairs_of_equal_rows_still_have_groups() -> None:
    found = gramvec.dedupe(["same"] * 5_000)
    assert len(found.groups) == 1 and found.kept.tolist() == [0]
    with refused(InputError, "12,497,500"):
        _ = found.pairs
