from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gramvec.errors import InputError
from gramvec.jobs.review.answers_file import AnswersFile
from support.errors import refused

COLUMNS = ("left", "right", "match")
HEADER = "left,right,match\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def test_each_answer_is_there_before_the_next(path: Path):
    file = AnswersFile(path, COLUMNS)
    assert path.read_text() == HEADER
    file.add(["a,1", "b", "1"])
    assert path.read_text() == HEADER + '"a,1",b,1\n'
    file.add(["ü", "line\nfeed", ""])
    file.close()
    assert AnswersFile(path, COLUMNS).answers == [["a,1", "b", "1"], ["ü", "line\nfeed", ""]]


def test_undo_takes_back_what_this_review_wrote(path: Path):
    path.write_text(HEADER + "a,b,1\n")
    file = AnswersFile(path, COLUMNS)
    file.add(["c", "d", "0"])
    assert file.undo() == ["c", "d", "0"]
    assert file.undo() is None
    assert path.read_text() == HEADER + "a,b,1\n"


@pytest.mark.parametrize("cut", range(1, len(HEADER + "a,b,1\n")))
def test_a_kill_in_the_middle_of_a_line_loses_that_line_only(path: Path, cut: int):
    path.write_text((HEADER + "a,b,1\n")[:cut])
    file = AnswersFile(path, COLUMNS)
    assert file.answers == []
    file.add(["c", "d", "0"])
    assert path.read_text() == HEADER + "c,d,0\n"


def test_a_second_review_is_told(path: Path):
    file = AnswersFile(path, COLUMNS)
    with refused(InputError, "another review"):
        AnswersFile(path, COLUMNS)
    file.close()
    AnswersFile(path, COLUMNS).close()


@pytest.mark.parametrize(
    "content", ["id,name\n1,x\n", "left,right,match\na,b\n", 'left,right,match\na,"b,1\n', "left,right,match\n\xff\n"]
)
def test_other_files_are_refused_and_stay(path: Path, content: str):
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError):
        AnswersFile(path, COLUMNS)
    assert path.read_bytes() == content.encode("latin-1")


def test_a_link_is_refused(path: Path):
    path.symlink_to("/dev/null")
    with refused(InputError, "opened"):
        AnswersFile(path, COLUMNS)


def test_a_full_disk_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch):
    file = AnswersFile(path, COLUMNS)
    whole = os.pwrite

    def half(descriptor: int, data: bytes, place: int) -> int:
        if len(data) < 3:
            raise OSError(28, "No space left on device")
        return whole(descriptor, data[: len(data) // 2], place)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(OSError, match="No space"):
        file.add(["a", "b", "1"])
    monkeypatch.undo()
    assert path.read_text() == HEADER
    file.add(["c", "d", "1"])
    assert path.read_text() == HEADER + "c,d,1\n"


def replace_by_another(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(path.read_text())
    other.replace(path)


@pytest.mark.parametrize(
    "change",
    [
        replace_by_another, Path.unlink, lambda path: path.write_text(HEADER), lambda path: os.truncate(path, 5),
        lambda path: path.write_text(HEADER + "a,b,0\n"),
    ],
    ids=["replaced", "removed", "a line less", "cut", "another answer"],
)  # fmt: skip
def test_a_file_that_another_program_changed_takes_no_answer(path: Path, change: Callable[[Path], object]):
    file = AnswersFile(path, COLUMNS)
    file.add(["a", "b", "1"])
    change(path)
    left = path.read_bytes() if path.exists() else None
    for write in (lambda: file.add(["c", "d", "0"]), file.undo):
        with refused(InputError, "labels.csv", "another program"):
            write()
    assert file.answers == [["a", "b", "1"]]
    assert (path.read_bytes() if path.exists() else None) == left
    file.close()


def test_a_file_that_is_replaced_while_an_answer_is_written_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch):
    file = AnswersFile(path, COLUMNS)
    wait, other = os.fsync, path.with_name("other")
    other.write_text(HEADER)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (other.replace(path), wait(descriptor)))
    with refused(InputError, "labels.csv", "another program"):
        file.add(["a", "b", "1"])
    assert (file.answers, path.read_text()) == ([], HEADER)


def test_a_file_of_an_earlier_version_keeps_its_columns(path: Path):
    columns = ("left", "right", "texts_digest", "match")
    path.write_text(HEADER + "a,b,1\n")
    file = AnswersFile(path, columns, older=COLUMNS)
    assert (file.columns, file.answers) == ([*COLUMNS], [["a", "b", "1"]])
    file.close()
    path.unlink()
    assert AnswersFile(path, columns, older=COLUMNS).columns == [*columns]
    assert path.read_text() == "left,right,texts_digest,match\n"
