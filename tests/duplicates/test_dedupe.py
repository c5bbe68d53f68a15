"""`gramvec dedupe`: pairs as by comparing all, numbers, groups, what is kept."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.duplicates.distinct import DuplicateRows, distinct_rows, staying_rows
from gramvec.jobs.duplicates.likely import KEEPS, Keep, LikelyPairs, likely_pairs
from gramvec.jobs.duplicates.pairs import groups
from gramvec.jobs.duplicates.rows import read_rows
from gramvec.jobs.matching import candidates
from gramvec.jobs.matching.nearest import NO_MATCHES, Matches
from gramvec.jobs.tables.inputs import FileFormat
from gramvec.jobs.tables.outputs import TABLE_FORMS
from support.bulk import MODEL, as_csv, gramvec_command
from support.errors import assert_names, refused
from support.spreadsheet import write_xlsx

for _module in ("tantivy", "scipy"):
    pytest.importorskip(_module, reason=f"{_module} is not installed: pip install '.[search]'")

LINES = ["Kingston SSD 2TB drive", "Kingston SSD 4TB drive", "bananas", "Kingston SSD 2 TB drive", "bananas", "x" * 9]


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40))
def test_groups_are_what_a_chain_of_pairs_joins(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    expected = list(range(20))
    for _ in range(20):
        for a, b in pairs:
            expected = [min(expected[a], expected[b]) if one in (expected[a], expected[b]) else one for one in expected]
    assert groups(20, left, right).tolist() == expected


def test_too_many_pairs_and_bad_thresholds_are_refused() -> None:
    texts = [f"the very same line{mark}" for mark in ("", "!", "!!", "!!!", "!!!!")]
    with refused(InputError, "3 pairs", "`max_pairs`"):
        likely_pairs([texts], 0.5, max_pairs=3)
    for threshold in (-0.1, 1.5):
        with refused(InputError, "threshold"):
            likely_pairs([texts], threshold)
    assert likely_pairs([[]], 0.9).pairs.left.tolist() == []


def test_many_rows_are_compared_as_few_are_and_a_sample_tells_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"person {number * 7919 % 10007} of street {number * 104729 % 9973}" for number in range(400)]
    lines = [*names, *(name[:9] + name[10:] for name in names[::4])]
    few = likely_pairs([lines])
    monkeypatch.setattr(candidates, "EXACT_TEXTS", 100)
    many = likely_pairs([lines])
    np.testing.assert_array_equal(few.pairs.left, many.pairs.left)
    assert few.sampled == 0 and many.sampled >= 100
    assert 0.95 * many.sampled <= many.sampled_found <= many.sampled


def run(*arguments: object, text: str = "", code: int = 0) -> tuple[str, str]:
    done = gramvec_command("dedupe", *arguments, stdin=text.encode())
    assert done.returncode == code, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def test_the_command() -> None:
    listed, said = run(text="\n".join([*LINES, "Kingston SSD, 2tb drive"]) + "\n")
    header, *pairs = [line.split("\t")[:2] for line in listed.splitlines()]
    assert header == ["line", "other_line"]
    assert ["3", "5"] in pairs and ["1", "7"] in pairs
    assert not {("2", "4"), ("1", "3")} & {tuple(pair) for pair in pairs}
    assert "of different lines at the threshold 0." in said and "expected to be right" in said
    grouped, _ = run("--threshold", "1", "--groups", "--format", "jsonl", text="\n".join(LINES) + "\n")
    assert [json.loads(line)["lines"] for line in grouped.splitlines()] == [[3, 5]]
    for output in ((), ("--output", "-")):
        bare, _ = run("--threshold", "1", "--columns", "none", *output, text="\n".join(LINES))
        assert bare.splitlines() == ["line\tother_line\tscore", "3\t5\t1.0"]


@pytest.mark.parametrize("text", ["", "red shoes\n", "red shoes\nblue hats\n"])
def test_a_list_without_repeats_is_told_so(text: str) -> None:
    listed, said = run(text=text)
    assert len(listed.splitlines()) == 1 and said.startswith(
        "no two different lines are probable enough to be the same"
    )
    _, said = run("--precision", "0.9", text=text)
    assert said.startswith("no pairs of different lines are so sure")


TYPOS = """Blackrocks Brewery|Blackrokcs Brewery
Harpoon Brewery|Harpooon Brewery
Terrapin Brewing Company|Terrapin Brewign Company
Golden Road Brewing|Goldenroad Brewing
Big Sky Brewing|Big-Sky Brewing
Tims Ale House|Tim\u2019s Ale House
Oaks Nursery 7 Mill Lane 312-555-0142|Oaks Nursery 7 Mill Lane 3125550142
River Path Preschool 99 Bank Road 01/05/1999|River Path Preschool 99 Bank Road 1/5/1999
Sunny Day School 12 High Street 60601 3125550199|Sunny Day School 12 High Street 60601"""


def test_small_changes_are_found_and_nothing_else() -> None:
    lines = [one for pair in TYPOS.splitlines() for one in pair.split("|")]
    found = likely_pairs([lines])
    assert list(zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True)) == [
        (at, at + 1) for at in range(0, len(lines), 2)
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([0.5, 0.9]))), st.sampled_from(KEEPS))
def test_what_goes_is_alike_to_what_stays(pairs: list[tuple[int, int, float]], stays: Keep) -> None:
    texts = [f"{at}" * (at * 7 % 4 + 1) for at in range(10)]
    known = {(min(a, b), max(a, b)): score for a, b, score in pairs if a != b}
    columns = [
        np.array(column) for column in zip(*((*pair, score) for pair, score in sorted(known.items())), strict=True)
    ]
    near = Matches(*(columns or NO_MATCHES))
    every = [*texts, "", *texts[::3]]
    rows = distinct_rows([every])
    cells = np.arange(len(every)) % 4
    found = DuplicateRows(rows, LikelyPairs(near, 0.5, None), staying_rows(rows, near, stays, cells))
    text = [texts.index(one) if one else 10 for one in every]
    kept = set(found.kept.tolist())
    assert kept.isdisjoint(found.dropped.tolist()) and 10 in kept and found.empty == 1
    for row, one in enumerate(found.stays.tolist()):
        both = tuple(sorted((text[row], text[one])))
        assert one in kept and (one == row or text[row] == text[one] or both in known)
    # No two that stay are a pair.
    assert not [pair for pair in known if set(pair) <= {text[row] for row in kept}]
    equal = {(a, b) for a in range(len(every)) for b in range(a + 1, len(every)) if text[a] == text[b]}
    alike = {(a, b) for a in range(len(every)) for b in range(a + 1, len(every))
             if tuple(sorted((text[a], text[b]))) in known}  # fmt: skip
    assert list(zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True)) == sorted(equal | alike)
    assert found.pairs.scores.tolist() == pytest.approx([
        known.get((min(text[a], text[b]), max(text[a], text[b])), 1) for a, b in sorted(equal | alike)
    ])  # fmt: skip
    assert all(len(group) > 1 and group == sorted(group) for group in found.groups)


def test_which_line_stays() -> None:
    text = "acme limited\nAcme Limited!!\nacme limited.\nacme limited.\n"
    kept = {stays: run("--unique", "-", "--keep", stays, text=text)[0] for stays in KEEPS if stays != "complete"}
    assert kept == {"first": "acme limited\n", "longest": "Acme Limited!!\n", "frequent": "acme limited.\n"}


def test_a_chain_drops_nothing_that_is_unlike_what_stays(tmp_path: Path) -> None:
    words = [
        "northern",
        "regional",
        "hospital",
        "trust",
        "board",
        "annual",
        "general",
        "meeting",
        "minutes",
        "approved",
        "by",
        "members",
    ]
    lines = [" ".join(words[:end]) for end in range(3, len(words) + 1)]
    kept = run("--unique", "-", text="\n".join(lines) + "\n")[0].splitlines()
    assert kept[0] == lines[0] and len(kept) > 1


def test_what_is_kept_has_its_own_bytes_and_a_sample_is_shown(tmp_path: Path) -> None:
    source = tmp_path / "lines.csv"
    source.write_bytes(
        b'id,text\r\n1,"Please call me back, tomorrow"\r\n2,bananas\r\n3,"Please  call me back, tomorow"'
    )
    _, said = run(source, "--threshold", "0.2", "--unique", tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_bytes() == source.read_bytes().rsplit(b"\n", 1)[0] + b"\n"
    assert_names(said, "line 4: 'Please call me back, tomorow'", "line 2: 'Please call me back, tomorrow'")
    assert "2 of 3 lines kept" in said
    many = "\n".join(f"one and the same sentence{'!' * (number % 60)}" for number in range(60))
    kept, said = run("--unique", "-", text=many)
    assert kept == "one and the same sentence\n"
    assert_names(said, "60 lines", "line 1: 'one and the same sentence'", "--threshold")


def test_what_is_kept_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[bulk]'")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"n": [1, 2, 3], "text": ["bananas", "apples", "bananas"]})
    pq.write_table(table, tmp_path / "a.parquet")
    run(tmp_path / "a.parquet", "--unique", tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"n": [1, 2], "text": ["bananas", "apples"]}


def test_what_is_kept_has_the_form_of_its_ending(tmp_path: Path) -> None:
    """A table of any form may become one of another; what an ending cannot hold is refused before any work."""
    python_calamine = pytest.importorskip("python_calamine", reason="it is not installed: pip install '.[sheets]'")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [{"n": "7", "text": "bananas, ripe"}, {"n": "8", "text": "apples"}, {"n": "9", "text": "bananas, ripe"}]
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.csv").write_bytes(as_csv(table[1:], table[0]).replace(b"\r\n", b"\n"))
    (tmp_path / "a.dat").write_bytes((tmp_path / "a.csv").read_bytes())
    write_xlsx(tmp_path / "a.xlsx", {"s": table})
    for source in ("a.json", "a.csv", "a.xlsx"):
        for form in TABLE_FORMS:
            kept = tmp_path / f"{source}.kept.{form}"
            run(tmp_path / source, "--unique", kept)
            if form == "parquet":
                assert pq.read_table(kept).to_pylist() == rows[:2]
            elif form == "xlsx":
                sheet = python_calamine.CalamineWorkbook.from_path(kept).get_sheet_by_index(0)
                assert sheet.to_python() == table[:3]
            elif form == "jsonl":
                assert [json.loads(line) for line in kept.read_text().splitlines()] == rows[:2]
            else:
                with kept.open(newline="") as file:
                    assert list(csv.reader(file, delimiter="," if form == "csv" else "\t")) == table[:3]
    assert run(tmp_path / "a.xlsx", "--unique", "-")[0] == 'n,text\n7,"bananas, ripe"\n8,apples\n'
    for source, ending in (("a.xlsx", "ods"), ("a.csv", "txt"), ("a.json", "json"), ("a.csv", "csv.gz")):
        _, said = run(tmp_path / source, "--unique", tmp_path / f"b.{ending}", code=1)
        assert_names(said, "written", f".{ending.removeprefix('csv.')}", ".csv,")
    run(tmp_path / "a.dat", "--input-format", "csv", "--unique", tmp_path / "b.dat")
    assert (tmp_path / "b.dat").read_text() == 'n,text\n7,"bananas, ripe"\n8,apples\n'
    (tmp_path / "bad.csv").write_text("n,text\n1,a\n2\n")
    run(tmp_path / "bad.csv", "--on-error", "skip", "--unique", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == "n,text\n1,a\n2\n"
    _, said = run(tmp_path / "bad.csv", "--on-error", "skip", "--unique", tmp_path / "b.jsonl", code=1)
    assert_names(said, "line 3", "1 fields", "2")


def test_lines_that_an_index_has_already(tmp_path: Path) -> None:
    index = gramvec.Index.build(tmp_path / "known.index", LINES, model=gramvec.load(MODEL, device="cpu"))
    text = "Kingston SSD  2TB drive.\nnew thing\nKingston SSD 8TB drive\n"
    listed, said = run("--against", index.path, "--threshold", "0.9", text=text)
    assert f"1 of 3 lines are in {index.path} already, at the threshold 0.900" in said
    assert [line.split("\t")[:2] for line in listed.splitlines()] == [["line", "known_id"], ["1", "1"]]
    kept, said = run("--against", index.path, "--threshold", "0.9", "--unique", "-", text=text)
    assert kept.splitlines() == ["new thing", "Kingston SSD 8TB drive"]
    assert "'Kingston SSD 2TB drive'" in said


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (["--threshold", "2"], "a", "'--threshold'"),
        (["--ignore-words"], "a", "--ignore-words: gone since 0.2.0; what lines are one is the pair model's to say"),
        (["--numbers"], "a", "--numbers: gone"),
        (["--model", "x"], "a", "--by meaning"),
        (["--space", "both"], "a", "--space: gone"),
        (["--column", "text"], "a", "--column: gone since 0.2.0; columns are named with --on"),
        (["--keep", "longest"], "a", "--keep"),
        (["--no-texts"], "a", "--no-texts: gone since 0.2.0; --columns none"),
        (["--by", "meaning", "--report", "a.html"], "a", "--report"),
        (["--by", "meaning", "--against", "."], "a", "--by meaning"),
        (["--max-texts", "9"], "a", "--max-texts: gone"),
        (["--against", ".", "--groups"], "a", "which are not groups"),
    ],
)
def test_a_bad_call_says_what_to_do(arguments: list[str], text: str, said: str) -> None:
    assert said in run(*arguments, text=text, code=2)[1]


def test_bad_lines_are_left_as_they_are(tmp_path: Path) -> None:
    long = "x" * 65_537
    assert_names(run(text=f"a\n{long}\na\n", code=1)[1], "standard input", "line 2", "65,537")
    kept, said = run("--on-error", "skip", "--unique", "-", text=f"a\n{long}\na\n")
    assert kept == f"a\n{long}\n"
    assert "1 of 3 could not be embedded" in said or "line 2" in said


def test_equal_lines_are_kept_once(tmp_path: Path) -> None:
    rows = 60_000
    (tmp_path / "a.txt").write_bytes(b"x\n" * rows)
    tracemalloc.start()
    try:
        table = read_rows(tmp_path / "a.txt", FileFormat("txt"), ["text"], None, on_error="stop")
        distinct = distinct_rows(table.columns)
        kept = DuplicateRows(
            distinct, LikelyPairs(NO_MATCHES, 1, None), staying_rows(distinct, NO_MATCHES, "first")
        ).kept
        assert tracemalloc.get_traced_memory()[1] < 200 * rows
    finally:
        tracemalloc.stop()
    assert kept.tolist() == [0]


def test_rows_without_a_text_stay_and_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_bytes(b'id,text\n1,bananas\n2,\n3," "\n4,bananas\n5,\n')
    listed, said = run(source)
    assert [line.split("\t")[:4] for line in listed.splitlines()[1:]] == [["1", "4", "2", "5"]]
    assert "3 lines have no text and repeat nothing" in said
    kept, said = run(source, "--unique", "-")
    assert kept == 'id,text\n1,bananas\n2,\n3," "\n5,\n'
    assert "4 of 5 lines kept" in said
    assert "1 line has no text and repeats nothing" in run(text="a\n\nb\n")[1]


PEOPLE = """id,name,street,phone
7,Oaks Nursery,7 Mill Lane,
8,bananas,1 Long Road,312
9,Oak Nursery,7 Mill Lane,312-555-0142
9,,,
"""


def test_several_columns_with_ids_and_all_columns(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text(PEOPLE)
    on = ("--on", "name", "--on", "street")
    listed, said = run(source, *on)
    assert [line.split("\t") for line in listed.splitlines()] == [
        ["id", "other_id", "line", "other_line", "score", "name", "street", "other_name", "other_street"],
        ["7", "9", "2", "4", listed.split("\t")[12], "Oaks Nursery", "7 Mill Lane", "Oak Nursery", "7 Mill Lane"],
    ]
    assert "1 line has no text and repeats nothing" in said
    pair = json.loads(run(source, *on, "--format", "jsonl")[0])
    assert 0.5 < pair.pop("score") < 1
    assert pair == {
        "ids": ["7", "9"],
        "lines": [2, 4],
        "texts": ["Oaks Nursery | 7 Mill Lane", "Oak Nursery | 7 Mill Lane"],
    }
    whole = json.loads(run(source, *on, "--format", "jsonl", "--columns", "all", "--id", "none")[0])
    assert whole["ids"] == ["2", "4"] and [row["phone"] for row in whole["rows"]] == ["", "312-555-0142"]
    grouped = run(source, *on, "--groups", "--columns", "all")[0].splitlines()
    assert grouped[0] == "group\tid\tline\tname\tstreet\tphone" and grouped[2].startswith("1\t9\t4\tOak Nursery")
    run(source, *on, "--columns", "all", "--id", "phone", "-o", tmp_path / "pairs.csv")
    header = (tmp_path / "pairs.csv").read_text().splitlines()[0].split(",")
    assert header[5:] == ["row_id", "name", "street", "other_other_id", "other_name", "other_street"]
    kept, _ = run(source, *on, "--unique", "-", "--keep", "complete")
    assert [line.partition(",")[0] for line in kept.splitlines()] == ["id", "8", "9", "9"]
    assert "'x'" in run(source, "--on", "x", code=1)[1]


def test_meanings_are_compared_at_a_threshold_that_is_given(tmp_path: Path) -> None:
    listed, said = run("--by", "meaning", "--model", MODEL, "--threshold", "0.99", text="bananas\nBananas\nother\n")
    assert [line.split("\t")[:2] for line in listed.splitlines()[1:]] == [["1", "2"]]
    assert "expected to be right" not in said
    assert_names(run("--by", "meaning", text="a", code=1)[1], "threshold", "cosines")
