"""Jobs of an index: a Python program does with files what `gramvec index` and `gramvec search` do."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.common.file_job import OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.search.job import AddJob, BuildJob, RebuildJob, RemoveJob, SearchJob
from support.bulk import MODEL

pytest.importorskip("tantivy", reason="an index needs tantivy: pip install 'gramvec[search]'")


class MessageWatch(JobWatch):
    """Watcher that keeps messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def report(self, message: str) -> None:
        """Keep the message."""
        self.messages.append(message)


def test_an_index_is_built_changed_and_searched(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tickets, more, index = tmp_path / "tickets.csv", tmp_path / "more.csv", tmp_path / "tickets.index"
    tickets.write_text("number,subject\n1,forgot my password\n2,where is my parcel\n")
    more.write_text("number,subject\n3,the parcel is lost\n")
    (tmp_path / "queries.txt").write_text("lost parcel\nzzzzqq\n")
    watch = MessageWatch()
    build = BuildJob(source=tickets, column="subject", id="number", output=index, model=MODEL, device="cpu")
    assert build.run(watch).rows == 2
    assert AddJob(index=index, source=more, device="cpu").run(watch).rows == 1
    assert RemoveJob(index=index, ids=["1"]).run(watch) == 2
    assert RebuildJob(index=index, device="cpu").run(watch) == 2
    assert [re.sub(r"\d\.\d s", "0 s", message.replace(str(index), "INDEX")) for message in watch.messages] == [
        "2 rows put into INDEX in 0 s",
        "1 rows put into INDEX in 0 s",
        "1 rows removed, 2 left in INDEX",
        "2 rows in INDEX, in 0 s",
    ]
    search = SearchJob(
        index=index, file=tmp_path / "queries.txt", k=1, only="letters", output=tmp_path / "hits.csv", device="cpu"
    )
    watch = MessageWatch()
    assert search.run(watch) == 2
    assert watch.messages == ["nothing found for 'zzzzqq'"]
    with (tmp_path / "hits.csv").open(newline="") as file:
        (hit,) = csv.DictReader(file)
    assert (hit["query"], hit["rank"], hit["id"], hit["subject"]) == ("lost parcel", "1", "3", "the parcel is lost")
    columns, answers = SearchJob(index=index, queries=["parcel"], device="cpu").open_answers()
    assert columns == ["subject", "number"]
    assert [hit.id for answer in answers for hit in answer.hits] == [
        hit.id for hit in gramvec.Index(index, device="cpu").search("parcel")[0]
    ]
    assert capfd.readouterr() == ("", "")


def test_options_that_exclude_each_other_are_named(tmp_path: Path) -> None:
    for options in ({}, {"queries": ["a"], "file": "b.txt"}):
        with pytest.raises(OptionError) as error:
            SearchJob(index=tmp_path, **options)
        assert error.value.field == "queries"
    with pytest.raises(InputError, match="is a table"):
        SearchJob(index=tmp_path, file="queries.csv")
    with pytest.raises(OptionError, match="ids: there are none to remove"):
        RemoveJob(index=tmp_path).run()
