"""`gramvec dedupe`: pairs as by comparing all, numbers, groups, what is kept."""

from __future__ import annotations

import csv
import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from bulk_support import MODEL, as_csv, gramvec_command
from conftest import KeptProgress
from errors_support import assert_names, refused
from gramvec.errors import InputError
from gramvec.jobs.duplicates import differences, exact_join, pairs
from gramvec.jobs.duplicates.differences import difference, same_numbers, word_replaced
from gramvec.jobs.duplicates.distinct import DuplicateRows, distinct_rows, staying_rows
from gramvec.jobs.duplicates.features import NO_PAIRS, SLACK, Features, NearPairs
from gramvec.jobs.duplicates.likely import STAYS, LikelyPairs, Stays, likely_pairs
from gramvec.jobs.duplicates.pairs import groups, similar_pairs
from gramvec.jobs.duplicates.rows import read_rows
from gramvec.jobs.tables.inputs import FileFormat
from gramvec.jobs.tables.outputs import TABLE_FORMS
from spreadsheet_support import write_xlsx

for _module in ("tantivy", "scipy"):
    pytest.importorskip(_module, reason=f"{_module} is not installed: pip install '.[search]'")

LINES = ["Kingston SSD 2TB drive", "Kingston SSD 4TB drive", "bananas", "Kingston SSD 2 TB drive", "bananas", "x" * 9]


@pytest.fixture(scope="module")
def lines(real_texts: list[str]) -> list[str]:
    """Real lines, some of them again with a letter less."""
    short = [one for one in dict.fromkeys(real_texts) if 20 < len(one) < 120][:300]
    return list(dict.fromkeys([*short, *(one[:7] + one[8:] for one in short[::2])]))


def brute_force(texts: list[str], threshold: float) -> dict[tuple[int, int], float]:
    features = Features(texts)
    dense = features.matrix(features.rows(texts))
    scores = (dense @ dense.T).toarray()
    found = np.argwhere(np.triu(scores >= threshold - SLACK, 1)).tolist()
    return {(a, b): min(float(scores[a, b]), 1.0) for a, b in found}


def found_in(texts: list[str], threshold: float, **options: object) -> dict[tuple[int, int], float]:
    left, right, scores = similar_pairs(texts, threshold, numbers=False, words=False, **options).pairs  # type: ignore[arg-type]
    assert (left < right).all()
    return dict(zip(zip(left.tolist(), right.tolist(), strict=True), scores.tolist(), strict=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
def test_all_pairs_as_by_comparing_all(
    threads: int, threshold: float, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_join, "JOINED_PAIRS", 20_000)
    monkeypatch.setattr(pairs, "BLOCK_TEXTS", 100)
    progress = KeptProgress()
    found = found_in(lines, threshold, threads=threads, progress=progress)
    expected = brute_force(lines, threshold)
    assert found == pytest.approx(expected, abs=1e-5)
    assert len(expected) > (0 if threshold > 0.9 else 100)
    assert progress.tasks == [("reading letters and words", len(lines)), ("comparing", len(lines))]
    assert sum(progress.steps) == 2 * len(lines)


def test_accents_are_no_difference() -> None:
    left, right, scores = similar_pairs(["Crème brûlée, Łódź", "bananas", "creme brulee, lodz"], 0.85).pairs
    assert (left.tolist(), right.tolist(), scores.tolist()) == ([0], [2], [pytest.approx(1, abs=1e-6)])


@given(st.lists(st.text("abc 1", max_size=12), max_size=30, unique=True), st.floats(0.3, 1))
def test_any_texts_as_by_comparing_all(texts: list[str], threshold: float) -> None:
    assert found_in(texts, threshold) == pytest.approx(brute_force(texts, threshold) if texts else {}, abs=1e-5)


def test_of_many_texts_likely_pairs_are_compared_and_a_sample_tells(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "EXACT_TEXTS", 100)
    monkeypatch.setattr(pairs, "SAMPLE", 300)
    made = similar_pairs(lines, 0.7, numbers=False, words=False)
    expected = brute_force(lines, 0.7)
    assert len(made.pairs.left) >= 0.9 * len(expected)
    assert 0.9 * made.sampled <= made.sampled_found <= made.sampled
    assert made.sampled > 50


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SSD 2TB", "SSD 4TB", False),
        ("SSD 2TB", "2 TB ssd", True),
        ("core i3", "core i7", False),
        ("64GB RAM", "128GB RAM", False),
        ("A12B case", "A12C case", False),
        ("A-12B case", "a12b case", True),
        ("iPhone 6", "iPhone", False),
        ("no numbers", "none at all", True),
        ("2020-01-02", "2020/01/02", True),
        ("Lego Star Wars", "Lego Star Wars II", False),
        ("Legend VI", "Legend ii", False),
        ("World War II", "World War 2", True),
        ("Louis XIV", "Louis 14", True),
        ("Louis XVIII and XIX", "Louis 18 and 19", True),
        ("Mac OS X", "Mac OS", True),
        ("civic", "civics", True),
    ],
)
def test_numbers_and_codes(one: str, other: str, same: bool) -> None:
    assert same_numbers(one, other) is same_numbers(other, one) is same
    assert difference(one, other, words=False) == difference(other, one, words=False) == (None if same else "numbers")
    assert difference(one, other, numbers=False, words=False) is None


@pytest.mark.parametrize(
    ("one", "other", "replaced"),
    [
        ("windows home basic", "windows home premium", True),
        ("East region", "west REGION", True),
        ("map of the east region", "west region, the map", True),
        ("red shoes for men", "red shoes for women", True),
        ("quicken deluxe", "quicken deluxe academic", False),
        ("windows home basic", "windows home basik", False),
        ("windows home basic", "windows home basix edition", False),
        ("paint shop professional", "paint shop pro", False),
        ("a note book stand", "a notebook stand", False),
        ("a note book for men", "a notebook for women", True),
        ("size xl shirt", "size xs shirt", False),
        ("a fast red car", "the slow blue bus", False),
        ("one two", "three four", False),
        ("east", "west", True),
        ("laboratory rules", "laboratories rules", False),
        ("東京都の天気予報と気温と湿度と風速と気圧の記録", "大阪府の天気予報と気温と湿度と風速と気圧の記録", False),
        ("", "east", False),
    ],
)
def test_one_word_in_the_place_of_another(one: str, other: str, replaced: bool) -> None:
    assert word_replaced(one, other) is word_replaced(other, one) is replaced
    assert difference(one, other) == ("words" if replaced else None)
    assert difference(one, other, words=False) is None


def test_texts_written_anew_are_not_told_apart_by_one_word() -> None:
    ours, theirs = "abcdefghi", "mnopqrstu"
    one, other = (" ".join(4 * letter for letter in letters) for letters in (ours, theirs))
    assert not word_replaced(f"{one} east", f"{other} west")
    assert word_replaced("east same words", "west same words")


def test_codes_of_very_long_words_are_looked_for_in_linear_time() -> None:
    began = time.process_time()
    assert same_numbers("a" * 65_536, "a" * 65_535 + "b")
    assert time.process_time() - began < 20  # it would be minutes


def test_misspellings_of_very_long_words_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "_within", lambda *_: pytest.fail("letters of a long word were compared"))
    one, other = (" ".join(letter + "a" * 8_000 for letter in letters) for letters in ("bcdefghi", "nopqrstu"))
    assert not word_replaced(one, other)


@given(st.text("ab1 iv\u6771_", max_size=30), st.text("ab1 iv\u6771_", max_size=30))
def test_a_difference_of_any_texts_is_the_same_from_both_sides(one: str, other: str) -> None:
    assert difference(one, one) is None
    assert difference(one, other) == difference(other, one)


@given(st.text("abcde", min_size=8, max_size=12), st.data())
def test_a_misspelt_word_is_not_another_one(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(word) - 2))
    rest = data.draw(st.sampled_from([
        word[at + 1 :], "x" + word[at:], "x" + word[at + 1 :], word[at + 1] + word[at] + word[at + 2 :],
    ]))  # fmt: skip
    misspelt = data.draw(st.sampled_from(["x{}", "{}x", "{}"])).format(word[:at] + rest)
    assert not word_replaced(f"one {word}", f"one {misspelt}")
    assert word_replaced(f"one {word}", "one zzzzzzzzzz")


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
    with refused(InputError, "3 pairs", "--threshold"):
        similar_pairs(texts, 0.5, max_pairs=3)
    for threshold in (0.0, 0.2, 1.5):
        with refused(InputError, "threshold"):
            similar_pairs(texts, threshold)
    assert similar_pairs([], 0.9).pairs.left.tolist() == []


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
    grouped, _ = run("--threshold", "1", "--groups", "--json", text="\n".join(LINES) + "\n")
    assert [json.loads(line)["lines"] for line in grouped.splitlines()] == [[3, 5]]
    for output in ((), ("--output", "-")):
        bare, _ = run("--threshold", "1", "--columns", "none", *output, text="\n".join(LINES))
        assert bare.splitlines() == ["line\tother_line\tscore", "3\t5\t1.0"]


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


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([0.5, 0.9]))), st.sampled_from(STAYS))
def test_what_goes_is_alike_to_what_stays(pairs: list[tuple[int, int, float]], stays: Stays) -> None:
    texts = [f"{at}" * (at * 7 % 4 + 1) for at in range(10)]
    known = {(min(a, b), max(a, b)): score for a, b, score in pairs if a != b}
    columns = [
        np.array(column) for column in zip(*((*pair, score) for pair, score in sorted(known.items())), strict=True)
    ]
    near = NearPairs(*(columns or NO_PAIRS))
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
    kept = {stays: run("--keep", "-", "--stays", stays, text=text)[0] for stays in STAYS if stays != "complete"}
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
    kept = run("--keep", "-", text="\n".join(lines) + "\n")[0].splitlines()
    assert kept[0] == lines[0] and len(kept) > 1


def test_what_is_kept_has_its_own_bytes_and_a_sample_is_shown(tmp_path: Path) -> None:
    source = tmp_path / "lines.csv"
    source.write_bytes(
        b'id,text\r\n1,"Please call me back, tomorrow"\r\n2,bananas\r\n3,"Please  call me back, tomorow"'
    )
    _, said = run(source, "--threshold", "0.2", "--keep", tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_bytes() == source.read_bytes().rsplit(b"\n", 1)[0] + b"\n"
    assert_names(said, "line 4: 'Please call me back, tomorow'", "line 2: 'Please call me back, tomorrow'")
    assert "2 of 3 lines kept" in said
    many = "\n".join(f"one and the same sentence{'!' * (number % 60)}" for number in range(60))
    kept, said = run("--keep", "-", text=many)
    assert kept == "one and the same sentence\n"
    assert_names(said, "60 lines", "line 1: 'one and the same sentence'", "--threshold")


def test_what_is_kept_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[bulk]'")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"n": [1, 2, 3], "text": ["bananas", "apples", "bananas"]})
    pq.write_table(table, tmp_path / "a.parquet")
    run(tmp_path / "a.parquet", "--keep", tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"n": [1, 2], "text": ["bananas", "apples"]}


def test_what_is_kept_has_the_form_of_its_ending(tmp_path: Path) -> None:
    """A table of any form may become one of another; what an ending cannot hold is refused before any work."""
    pytest.importorskip("python_calamine", reason="python-calamine is not installed: pip install '.[sheets]'")
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
            run(tmp_path / source, "--keep", kept)
            if form == "parquet":
                assert pq.read_table(kept).to_pylist() == rows[:2]
            elif form == "jsonl":
                assert [json.loads(line) for line in kept.read_text().splitlines()] == rows[:2]
            else:
                with kept.open(newline="") as file:
                    assert list(csv.reader(file, delimiter="," if form == "csv" else "\t")) == table[:3]
    assert run(tmp_path / "a.xlsx", "--keep", "-")[0] == 'n,text\n7,"bananas, ripe"\n8,apples\n'
    for source, ending in (("a.xlsx", "xlsx"), ("a.csv", "txt"), ("a.json", "json"), ("a.csv", "csv.gz")):
        _, said = run(tmp_path / source, "--keep", tmp_path / f"b.{ending}", code=1)
        assert_names(said, "written", f".{ending.removeprefix('csv.')}", ".csv,")
    run(tmp_path / "a.dat", "--input-format", "csv", "--keep", tmp_path / "b.dat")
    assert (tmp_path / "b.dat").read_text() == 'n,text\n7,"bananas, ripe"\n8,apples\n'
    (tmp_path / "bad.csv").write_text("n,text\n1,a\n2\n")
    run(tmp_path / "bad.csv", "--on-error", "skip", "--keep", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == "n,text\n1,a\n2\n"
    _, said = run(tmp_path / "bad.csv", "--on-error", "skip", "--keep", tmp_path / "b.jsonl", code=1)
    assert_names(said, "line 3", "1 fields", "2")


def test_lines_that_an_index_has_already(tmp_path: Path) -> None:
    index = gramvec.Index.build(tmp_path / "known.index", LINES, model=gramvec.load(MODEL, device="cpu"))
    text = "Kingston SSD  2TB drive.\nnew thing\nKingston SSD 8TB drive\n"
    listed, _ = run("--against", index.path, "--threshold", "0.9", text=text)
    assert [line.split("\t")[:2] for line in listed.splitlines()] == [["line", "known_id"], ["1", "1"]]
    kept, said = run("--against", index.path, "--threshold", "0.9", "--keep", "-", text=text)
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
        (["--stays", "longest"], "a", "--stays"),
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
    kept, said = run("--on-error", "skip", "--keep", "-", text=f"a\n{long}\na\n")
    assert kept == f"a\n{long}\n"
    assert "1 of 3 could not be embedded" in said or "line 2" in said


def test_equal_lines_are_kept_once(tmp_path: Path) -> None:
    rows = 300_000
    (tmp_path / "a.txt").write_bytes(b"x\n" * rows)
    tracemalloc.start()
    try:
        table = read_rows(tmp_path / "a.txt", FileFormat("txt"), ["text"], None, on_error="stop")
        distinct = distinct_rows(table.columns)
        kept = DuplicateRows(distinct, LikelyPairs(NO_PAIRS, 1, None), staying_rows(distinct, NO_PAIRS, "first")).kept
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
    kept, said = run(source, "--keep", "-")
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
    pair = json.loads(run(source, *on, "--json")[0])
    assert 0.5 < pair.pop("score") < 1
    assert pair == {
        "ids": ["7", "9"],
        "lines": [2, 4],
        "texts": ["Oaks Nursery | 7 Mill Lane", "Oak Nursery | 7 Mill Lane"],
    }
    whole = json.loads(run(source, *on, "--json", "--columns", "all", "--id", "none")[0])
    assert whole["ids"] == ["2", "4"] and [row["phone"] for row in whole["rows"]] == ["", "312-555-0142"]
    grouped = run(source, *on, "--groups", "--columns", "all")[0].splitlines()
    assert grouped[0] == "group\tid\tline\tname\tstreet\tphone" and grouped[2].startswith("1\t9\t4\tOak Nursery")
    run(source, *on, "--columns", "all", "--id", "phone", "-o", tmp_path / "pairs.csv")
    header = (tmp_path / "pairs.csv").read_text().splitlines()[0].split(",")
    assert header[5:] == ["row_id", "name", "street", "other_other_id", "other_name", "other_street"]
    kept, _ = run(source, *on, "--keep", "-", "--stays", "complete")
    assert [line.partition(",")[0] for line in kept.splitlines()] == ["id", "8", "9", "9"]
    assert "'x'" in run(source, "--on", "x", code=1)[1]


def test_meanings_are_compared_at_a_threshold_that_is_given(tmp_path: Path) -> None:
    listed, said = run("--by", "meaning", "--model", MODEL, "--threshold", "0.99", text="bananas\nBananas\nother\n")
    assert [line.split("\t")[:2] for line in listed.splitlines()[1:]] == [["1", "2"]]
    assert "expected to be right" not in said
    assert_names(run("--by", "meaning", text="a", code=1)[1], "threshold", "cosines")
