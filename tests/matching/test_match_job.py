"""`MatchJob`: a Python program does with files what `gramvec match` does."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.jobs.common.file_job import OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.matching.job import MatchJob
from gramvec.jobs.matching.on import ComparedColumn, parse_column

pytest.importorskip("sparse_dot_topn", reason="gramvec match needs SciPy: pip install 'gramvec[match]'")

LEFT = "id,name,city\na1,canon powershot sd1100,Rome\na2,nikon coolpix s8100,Oslo\na3,bananas,Oslo\n"
RIGHT = "id,title,city\nb1,nikon s8100 coolpix camera,Oslo\nb2,canon sd1100 powershot,Rome\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "left.csv").write_text(LEFT)
    (tmp_path / "right.csv").write_text(RIGHT)
    return tmp_path


class ListWatch(JobWatch):
    """Watcher that keeps what it hears."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.messages: list[str] = []

    def start(self, task: str, total: int | None = None, unit: str = "rows", done: int = 0) -> None:
        """Keep the task."""
        self.tasks.append(task)

    def report(self, message: str) -> None:
        """Keep the message."""
        self.messages.append(message)


def test_a_record_matches_files_and_writes_a_table(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = MatchJob(
        left=files / "left.csv", right=files / "right.csv", on="name=title", output=files / "found.csv",
        columns="all", unmatched=True, report=files / "report.html",
    )  # fmt: skip
    watch = ListWatch()
    result = job.run(watch)
    pairs = zip(result.matches.left.tolist(), result.matches.right.tolist(), strict=True)
    assert [(result.left_ids[left], result.right_ids[right]) for left, right in pairs] == [("a1", "b2"), ("a2", "b1")]
    assert result.summary.startswith("2 of 3 rows of ") and result.matcher is None
    with (files / "found.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["left_id"], row["right_id"], row["title"]) for row in rows] == [
        ("a1", "b2", "canon sd1100 powershot"),
        ("a2", "b1", "nikon s8100 coolpix camera"),
        ("a3", "", ""),
    ]
    assert watch.tasks[:2] == ["reading left.csv", "reading right.csv"] and "comparing pairs" in watch.tasks
    assert watch.messages == [f"{job.report} shows what was done: open it in a browser"]
    assert "<html" in (files / "report.html").read_text()
    assert capfd.readouterr() == ("", "")
    job.run()
    (files / "found.csv").write_text("mine")
    with pytest.raises(InputError, match="overwrite"):
        job.run()


def test_without_an_output_no_file_is_written(files: Path) -> None:
    result = MatchJob(left=str(files / "left.csv"), right=files / "right.csv", on=[("name", "title", 1.0)]).run()
    assert len(result.matches.left) == 2
    assert sorted(path.name for path in files.iterdir()) == ["left.csv", "right.csv"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"keep_labels": True}, "keep_labels"),
        ({"save_matcher": "matcher.json"}, "save_matcher"),
        ({"labels": ["labels.csv"], "matcher": "matcher.json"}, "matcher"),
        ({"on": ["name", "name:2"]}, "on"),
        ({"block": "city="}, "block"),
        ({"left": "-", "right": "-"}, "right"),
        ({"left": "-", "left_format": "csv", "columns": "all"}, "columns"),
    ],
)
def test_options_that_exclude_each_other_are_named(options: dict[str, object], field: str) -> None:
    with pytest.raises(OptionError) as error:
        MatchJob(**{"left": "left.csv", "right": "right.csv"} | options)
    assert error.value.field == field


@given(left=st.text("a=\\:.1", min_size=1), right=st.text("b=\\:", min_size=1), weight=st.sampled_from([1.0, 2.5]))
def test_a_column_is_written_as_it_is_read(left: str, right: str, weight: float) -> None:
    column = ComparedColumn(left, right, weight)
    assert parse_column(str(column)) == column


def test_a_column_with_an_equals_sign_in_its_name_is_compared(files: Path) -> None:
    (files / "left.csv").write_text(LEFT.replace("name", "name=en").replace("city", "a=b"))
    job = MatchJob(left=files / "left.csv", right=files / "right.csv", on=r"name\=en=title", block=r"a\=b=city")
    assert job.run().matches.left.tolist() == [0, 1]


def test_rows_that_are_left_out_are_told(files: Path) -> None:
    (files / "left.csv").write_text(f"{LEFT}a4\n")
    watch = ListWatch()
    MatchJob(left=files / "left.csv", right=files / "right.csv", on="name=title", on_error="skip").run(watch)
    assert any("left.csv: line 5" in message for message in watch.messages)
