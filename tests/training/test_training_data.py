"""The readers on hand-made files, the bad rows above all."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gramvec.errors import InputError
from gramvec_training.config import load_config
from gramvec_training.readers.lines import read_texts
from gramvec_training.readers.pairs import read_groups, read_pairs, read_paraphrases, read_ppdb
from gramvec_training.readers.vectors import read_frequencies, read_vectors

BAD = (
    b"cars\tvehicles\none column\n\tempty left\nsame\tsame\n\xff\xfe\tnot utf-8\nempty right\t \nbuy\tpurchase\textra\n"
)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_pairs_skip_and_count_bad_rows_with_their_lines(tmp_path: Path, name: str) -> None:
    groups, bad = read_pairs(write(tmp_path / name, BAD))
    assert groups == [("cars", "vehicles"), ("buy", "purchase")]
    assert bad.lines == {
        "one column": [2],
        "an empty side": [3, 6],
        "identical sides": [4],
        "not UTF-8": [5],
    }
    assert bad.count == 5
    assert "5 rows skipped: 2 an empty side (lines 3, 6), 1 identical sides (line 4)" in bad.summary()


@pytest.mark.parametrize(
    ("row", "reason"),
    [(b"one", "one column"), (b"\ta", "an empty side"), (b"a\ta", "identical sides"), (b"\xff\ta", "not UTF-8")],
)
def test_pairs_refuse_the_first_bad_row_by_line(tmp_path: Path, row: bytes, reason: str) -> None:
    path = write(tmp_path / "a.tsv", b"cars\tvehicles\n" + row + b"\n")
    with pytest.raises(InputError, match=rf"a\.tsv line 2: {reason}"):
        read_pairs(path, on_bad="refuse")


def test_long_lists_of_bad_lines_are_cut(tmp_path: Path) -> None:
    _, bad = read_pairs(write(tmp_path / "a.tsv", b"one\n" * 9))
    assert bad.summary().endswith("9 rows skipped: 9 one column (lines 1, 2, 3, 4, 5, ...)")


def test_lines_end_at_newline_alone(tmp_path: Path) -> None:
    odd = "a\u2028b\x0bc\tx\u0085y\rz\n".encode()
    assert read_pairs(write(tmp_path / "a.tsv", odd))[0] == [("a\u2028b\x0bc", "x\u0085y\rz")]


def test_byte_order_mark_and_windows_line_ends_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"\xef\xbb\xbfcars\tvehicles\r\nbuy\tpurchase")
    assert read_pairs(path)[0] == [("cars", "vehicles"), ("buy", "purchase")]


def test_groups_keep_distinct_wordings_in_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.groups.tsv", b"one\ttwo\tone\t\tthree\nalone\nx\tx\tx\n")
    groups, bad = read_groups(path)
    assert groups == [("one", "two", "three")]
    assert bad.lines == {"one column": [2], "identical sides": [3]}


def test_ppdb_reads_phrase_and_paraphrase(tmp_path: Path) -> None:
    rows = (
        b"[NN] ||| vehicle ||| car ||| PPDB2.0Score=3.1 ||| 0-0 ||| Equivalence\n"
        b"[NP] ||| the talks ||| negotiations ||| p(e|f)=1.2 ||| 0-0 1-0\n"
        b"[NN] ||| vehicle\n"
        b"[NN] ||| same ||| same ||| x ||| 0-0 ||| Equivalence\n"
    )
    groups, bad = read_ppdb(write(tmp_path / "ppdb.gz", rows))
    assert groups == [("vehicle", "car"), ("the talks", "negotiations")]
    assert bad.lines == {"fewer than three fields": [3], "identical sides": [4]}


def test_layout_goes_by_name_unless_it_is_given(tmp_path: Path) -> None:
    row = b"a\tb\tc\n"
    assert read_paraphrases(write(tmp_path / "x.groups.tsv.gz", row))[0] == [("a", "b", "c")]
    assert read_paraphrases(write(tmp_path / "x.tsv", row))[0] == [("a", "b")]
    assert read_paraphrases(tmp_path / "x.tsv", layout="groups")[0] == [("a", "b", "c")]


def test_a_file_without_a_usable_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"empty\.tsv: no usable row when read as pairs"):
        read_paraphrases(write(tmp_path / "empty.tsv", b""))
    with pytest.raises(InputError, match=r"pairs .*2 one column \(lines 1, 2\)"):
        read_paraphrases(write(tmp_path / "commas.tsv", b"a,b\nc,d\n"))


def test_a_file_below_the_working_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_pairs(write(tmp_path / "a.tsv", b"one\n"))[1].summary().startswith("a.tsv: 1 row skipped")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file"):
        read_pairs(tmp_path / "nowhere.tsv")


def test_damaged_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.tsv.gz"
    path.write_bytes(gzip.compress(b"cars\tvehicles\n" * 1000)[:-12])
    with pytest.raises(InputError, match=r"cut\.tsv\.gz: damaged"):
        read_pairs(path)


def test_raw_text_leaves_out_blank_and_undecodable_lines(tmp_path: Path) -> None:
    assert list(read_texts(write(tmp_path / "t.txt", b"one\n\n  \n\xff\n two \n"))) == ["one", "two"]


@pytest.mark.parametrize("header", [b"", b"3 2\n"])
def test_vectors_with_and_without_a_header(tmp_path: Path, header: bytes) -> None:
    path = write(tmp_path / "v.txt.gz", header + b"cat 1 -2\nnew york 0.5 3e-1\ncat 9 9\n")
    words, vectors = read_vectors(path)
    assert words == ["cat", "new york"]
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, -2], [0.5, np.float32(0.3)]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"cat 1 2\ndog 1\n", "line 2: 1 numbers where 2 are due"),
        (b"cat 1 2\ndog 1 x\n", "line 2: not a word and 2 numbers"),
        (b"cat 1 nan\n", "line 1: a number that is not finite"),
        (b"", "no word vector"),
    ],
)
def test_bad_vectors_are_refused_by_line(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_vectors(write(tmp_path / "v.txt", data))


def test_frequencies_from_counts_fold_case(tmp_path: Path) -> None:
    frequencies = read_frequencies(write(tmp_path / "f.txt", b"the 60\nThe 20\ncat 20\nnever 0\n"))
    assert frequencies == {"the": pytest.approx(0.8), "cat": pytest.approx(0.2)}


def test_frequencies_from_centibels(tmp_path: Path) -> None:
    frequencies = read_frequencies(write(tmp_path / "f.tsv", b"the\t-100\ncat\t-250\n"))
    assert frequencies == {"the": pytest.approx(0.1), "cat": pytest.approx(10**-2.5)}


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"the 5\nlonely\n", 'line 2: not "word count"'), (b"a 1\nb -1\n", "mixes counts"), (b"\n", "no word")],
)
def test_bad_frequencies_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_frequencies(write(tmp_path / "f.txt", data))


def test_a_config_takes_and_changes_the_sources_of_a_corpus_file(tmp_path: Path) -> None:
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "open.toml").write_text(
        '[[texts]]\npath = "a.txt"\nlicense = "CC0"\ncap = 9\n[[texts]]\npath = "b.txt"\nlicense = "CC0"\n'
    )
    (tmp_path / "c.toml").write_text(
        'corpora = "corpora/open.toml"\n[model]\nname = "x"\nkind = "gramvec"\n'
        '[distillation]\nteacher = "t"\nsteps = 1\n'
        '[[texts]]\npath = "c.txt"\n[[texts]]\npath = "a.txt"\ncap = 3\n'
    )
    texts = load_config(tmp_path / "c.toml").texts
    assert [(str(one.path), one.license, one.cap) for one in texts] == [
        ("a.txt", "CC0", 3), ("b.txt", "CC0", None), ("c.txt", "not stated", None),
    ]  # fmt: skip
    (tmp_path / "c.toml").write_text('corpora = ["a", "b"]\n')
    with pytest.raises(InputError, match="corpora .*'a', 'b'"):
        load_config(tmp_path / "c.toml")
    (tmp_path / "c.toml").write_text('corpora = "none.toml"\n')
    with pytest.raises(InputError, match=r"none\.toml"):
        load_config(tmp_path / "c.toml")
