"""Files of labeled texts: one label, several, fastText's lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import MODELS
from gramvec.cli import cli
from gramvec.errors import InputError
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.labeled import LabeledTexts, read_labeled
from gramvec.jobs.tables.inputs import FileFormat, form_of
from support.errors import refused


def read(path: Path, content: str, **options: bool | None) -> LabeledTexts:
    path.write_text(content)
    return read_labeled(path, FileFormat(form_of(path)), "text", "label", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "a|b\tred car\na\tred\nb\tcar\n"),
        ("a.csv", "text,label\nred car,a | b\nred,a\ncar,b\n"),
        ("a.jsonl", '{"text":"red car","label":["a","b"]}\n{"text":"red","label":"a"}\n{"text":"car","label":["b"]}\n'),
        ("a.txt", "__label__a __label__b red car\n__label__a red\n__label__b  car\n"),
    ],
)
def test_several_labels_in_each_form(tmp_path: Path, name: str, content: str) -> None:
    found = read(tmp_path / name, content)
    assert found.several
    assert (found.texts, found.labels) == (["red car", "red", "car"], [("a", "b"), ("a",), ("b",)])


def test_a_bar_within_a_label_stays_unless_its_parts_are_labels(tmp_path: Path) -> None:
    content = "food|fruit\tapple\ndrink|tea\tgreen tea\n"
    found = read(tmp_path / "a.tsv", content)
    assert (found.several, found.labels) == (False, [("food|fruit",), ("drink|tea",)])
    assert read(tmp_path / "a.tsv", content, several=True).labels == [("food", "fruit"), ("drink", "tea")]
    assert read(tmp_path / "a.tsv", "a|b\tx\na\ty\n", several=False).labels == [("a|b",), ("a",)]


def test_lines_of_fasttext_with_one_label(tmp_path: Path) -> None:
    found = read(tmp_path / "a.txt", "__label__a red car\n__label__b\tblue house\n")
    assert (found.several, found.texts, found.labels) == (False, ["red car", "blue house"], [("a",), ("b",)])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "__label__a\n", r"a.txt: line 1: no text"),
        ("a.csv", "label,text\na,x\nb,\n", r"a\.csv: line 3: no 'text'"),
        ("b.csv", "label,text\na,x\n,\n", r"b\.csv: line 3: no 'text'"),
    ],
)
def test_a_row_without_a_label_or_a_text_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path / name, content)


def test_one_label_is_asked_for_where_there_are_lists(tmp_path: Path) -> None:
    with refused(InputError, "several=False"):
        read(tmp_path / "a.jsonl", '{"text":"x","label":["a","b"]}\n{"text":"y","label":"a"}\n', several=False)
    with refused(InputError, "line 1", "several=False"):
        read(tmp_path / "a.txt", "__label__a __label__b x\n", several=False)


def test_a_head_of_several_labels_writes_those_that_are_known(tmp_path: Path) -> None:
    labeled = [
        ("card", "my card is lost"), ("card", "block the card"), ("rate", "what is the rate"),
        ("rate", "rate of a euro"), ("card|rate", "rate of my card"), ("card|rate", "what rate has the card"),
    ]  # fmt: skip
    rows = [f"{label}\t{who} {text}" for who in ("hello", "please", "now") for label, text in labeled]
    (tmp_path / "my.tsv").write_text("\n".join(rows))
    model = str(MODELS / "charagram-phrase")
    done = CliRunner().invoke(
        cli, ["classify", "fit", str(tmp_path / "my.tsv"), "-o", str(tmp_path / "h"), "-m", model]
    )
    assert done.exit_code == 0, done.output
    assert "a text may have several, written a|b" in done.output and "right labels, F1 %" in done.output
    assert Head.load(tmp_path / "h").several
    done = CliRunner().invoke(
        cli, ["classify", "predict", str(tmp_path / "h"), "--format", "csv"],
        input="the rate of my card\nmy card is lost\n",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    cells = [line.split(",")[1] for line in done.stdout.splitlines()[1:]]
    assert [set(cell.split(" | ")) for cell in cells] == [{"card", "rate"}, {"card"}]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", "label,text\nfood,buy tea\n,who knows\ntravel,book a flight\n\" \",what is it\n"),
        ("a.jsonl", '{"label":"food","text":"buy tea"}\n{"label":null,"text":"b"}\n{"text":"c"}\n'
                    '{"label":"travel","text":"book a flight"}\n'),
        ("a.txt", "__label__food buy tea\nwho knows\nwhat is it\n__label__travel book a flight\n"),
        ("b.jsonl", '{"label":["food"],"text":"buy tea"}\n{"label":[],"text":"b"}\n{"label":[""],"text":"c"}\n'
                    '{"label":["travel"],"text":"book a flight"}\n'),
    ],
)  # fmt: skip
def test_rows_without_a_label_are_left_out_and_counted(name: str, data: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(data)
    found = read_labeled(path, FileFormat(form_of(path)), "text", "label")
    assert (found.texts, [*map(list, found.labels)]) == (["buy tea", "book a flight"], [["food"], ["travel"]])
    assert (found.unlabeled, found.bad.count) == (2, 0)
