"""Results as frames: every result of every job, with its threshold and its promise, in three libraries."""

from __future__ import annotations

import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from gramvec import jobs
from gramvec.errors import InputError
from gramvec.jobs.common.frames import FrameColumn, ResultTable
from gramvec.jobs.common.outcome import Done
from support.bulk import MODEL
from support.errors import refused

for module in ("pandas", "polars", "pyarrow", "scipy", "sparse_dot_topn"):
    pytest.importorskip(module, reason=f"{module} is not installed")

LEFT = ["Oaks Nursery", "bananas", "Mill Lane School"]
RIGHT = ["Oak Nursery", "Mill Lane School", "pears"]


class Made(ResultTable):
    """A result of these columns."""

    def __init__(self, **columns: FrameColumn) -> None:
        self._columns = columns

    def columns(self) -> dict[str, FrameColumn]:
        return self._columns

    def facts(self) -> dict[str, float]:
        return {"threshold": 0.25}


def rows_in(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame of any library as dicts, None where a value is missing."""
    if hasattr(frame, "to_pylist"):
        return frame.to_pylist()
    if hasattr(frame, "iter_rows"):
        return list(frame.iter_rows(named=True))
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def all_frames(result: ResultTable) -> list[dict[str, Any]]:
    """The rows of a result, which are the same in all libraries; what holds for all stands where it belongs."""
    pandas, polars, arrow = result.to_pandas(), result.to_polars(), result.to_arrow()
    assert pandas.attrs == result.facts()
    metadata = {name.encode(): str(value).encode() for name, value in result.facts().items()}
    assert (arrow.schema.metadata or {}) == {b"gramvec." + name: value for name, value in metadata.items()}
    assert rows_in(pandas) == rows_in(polars) == rows_in(arrow)
    return rows_in(arrow)


def test_matches_have_rows_scores_and_texts() -> None:
    found = gramvec.match(LEFT, RIGHT, threshold=0.2)
    left, right, scores = found
    pairs = list(zip(left.tolist(), right.tolist(), scores.tolist(), strict=True))
    assert [pair[:2] for pair in pairs] == [(0, 0), (2, 1)] and found.expected is not None
    assert all_frames(found) == [
        {"left_row": a, "right_row": b, "score": score, "left": LEFT[a], "right": RIGHT[b]} for a, b, score in pairs
    ]
    assert found.facts() == {
        "threshold": 0.2, "expected_low": found.expected.low, "expected_high": found.expected.high
    }  # fmt: skip
    assert "2 pairs" in repr(found) and "0.200" in repr(found)


def test_several_columns_are_one_text_as_in_the_file(tmp_path: Path) -> None:
    left = {"id": ["a", "b"], "name": ["Oaks Nursery", "bananas"], "city": ["Graz", "Wien"]}
    right = {"id": ["x"], "name": ["Oak Nursery"], "city": ["Graz"]}
    (row,) = all_frames(gramvec.match(left, right, on=["name", "city"], threshold=0.2))
    assert (row["left"], row["right"]) == ("Oaks Nursery | Graz", "Oak Nursery | Graz")
    for name, table in (("a.csv", left), ("b.csv", right)):
        lines = [",".join(table), *(",".join(cells) for cells in zip(*table.values(), strict=True))]
        (tmp_path / name).write_text("\n".join(lines))
    job = jobs.MatchJob(left=tmp_path / "a.csv", right=tmp_path / "b.csv", on=["name", "city"], threshold=0.2)
    (found,) = all_frames(result := job.run())
    assert (found["left_id"], found["right_id"], found["left"]) == ("a", "x", row["left"])
    assert result.left_ids == ["a", "b"] and "1 of 2 rows" in result.summary


def test_duplicates_have_rows_ids_scores_and_texts(tmp_path: Path) -> None:
    table = {"id": [7, 8, 9], "name": ["Oaks Nursery", "bananas", "Oak Nursery"], "score": ["1", "2", "1"]}
    found = gramvec.dedupe(table, id="id", threshold=0.2)
    (row,) = all_frames(found)
    score = row.pop("score")
    assert score == found.pairs.scores[0]
    assert row == {
        "row": 0, "other_row": 2, "id": "7", "other_id": "9", "name": "Oaks Nursery", "row_score": "1",
        "other_name": "Oak Nursery", "other_score": "1",
    }  # fmt: skip
    assert found.facts()["threshold"] == 0.2 and found.facts().keys() > {"expected_low", "expected_high"}
    (text,) = all_frames(gramvec.dedupe(["Oaks Nursery", "Oak Nursery"], threshold=0.2))
    assert (text["text"], text["other_text"]) == ("Oaks Nursery", "Oak Nursery")
    path = tmp_path / "a.csv"
    path.write_text("name\nOaks Nursery\nbananas\nOak Nursery\n")
    (line,) = all_frames(result := jobs.DedupeJob(source=path, on=["name"], threshold=0.2).run())
    assert (line["line"], line["other_line"], line["other_name"]) == (2, 4, "Oak Nursery") and "id" not in line
    assert result.threshold == 0.2


def test_rows_beside_an_index_and_hits(tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="tantivy is not installed: pip install 'gramvec[search]'")
    records = [{"text": "Oaks Nursery", "rank": 1}, {"text": "bananas", "rank": "two"}, {"text": "pears"}]
    index = gramvec.Index.build(tmp_path / "known.index", records, model=gramvec.load(MODEL, device="cpu"))
    found = index.search(["Oaks Nursery", "pears"], k=1, only="letters")
    first, second = all_frames(found)
    assert (first["query"], first["rank"], first["id"], first["text"]) == ("Oaks Nursery", 1, "1", "Oaks Nursery")
    # A row's own column has another name than the hit's.
    assert (first["record_rank"], second["record_rank"]) == (1, None)
    assert found == [found[0], found[1]] and found[0][0].score == first["score"]
    assert all_frames(index.search("xyz", k=1, only="letters")) == []
    mixed = index.search(["Oaks Nursery", "bananas"], k=1, only="letters")
    assert [row["record_rank"] for row in all_frames(mixed)] == ["1", "two"]
    path = tmp_path / "new.txt"
    path.write_text("Oaks nursery\nkiwis\n")
    (known,) = all_frames(jobs.DedupeJob(source=path, against=index.path, threshold=0.5).run())
    assert (known["row"], known["line"], known["known_id"], known["known_text"]) == (0, 1, "1", "Oaks Nursery")


def test_pairs_that_were_given(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\nOaks Nursery,Oak Nursery\nx,y\n")
    result = jobs.PairsJob(source=path, left="a", right="b").run()
    first, _ = all_frames(result)
    assert first == {"line": 2, "score": result.scores[0], "left": "Oaks Nursery", "right": "Oak Nursery"}


def test_labels_and_what_was_learned(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'gramvec[classify]'")
    path = tmp_path / "labeled.tsv"
    path.write_text("".join(f"fruit\tripe bananas {n}\nschool\tMill Lane School {n * 7}\n" for n in range(20)))
    result = jobs.FitJob(labeled=path, output=tmp_path / "a.head", model=str(MODEL)).run()
    held = all_frames(result)
    assert len(held) == result.quality.texts and held[0].keys() == {"row", "text", "label", "score", "right"}
    assert result.facts()["accuracy"] == result.quality.accuracy
    texts = ["ripe bananas 5", "Mill Lane School 2"]
    with gramvec.load(MODEL, device="cpu") as model:
        answers = result.head.answers(result.head.predict(texts, model.embed(texts)))
    assert [row["label"] for row in all_frames(answers)] == ["fruit", "school"]
    assert [row["known"] for row in all_frames(answers)] == [answer.known for answer in answers]


def test_a_column_has_values_of_one_type() -> None:
    made = Made(
        text=["a", None], flag=[True, None], number=[1, 2.5], many=[2**70, 1], mixed=[1, "a"], list=[["a", "b"], None],
        object=[{"a": 1}, None], none=[None, None], array=np.array([1, 2]),
    )  # fmt: skip
    first, second = all_frames(made)
    assert first == {
        "text": "a", "flag": True, "number": 1.0, "many": str(2**70), "mixed": "1", "list": "a | b",
        "object": '{"a":1}', "none": None, "array": 1,
    }  # fmt: skip
    assert second["number"] == 2.5 and second["mixed"] == "a" and second["list"] is None
    assert str(made.to_arrow().schema.field("none").type) == "string" == str(made.to_polars()["none"].dtype).lower()


def test_a_result_without_rows_has_its_columns() -> None:
    found = gramvec.match(["a"], ["bananas"])
    for frame in (found.to_pandas(), found.to_polars(), found.to_arrow()):
        assert len(frame) == 0
        names = getattr(frame, "column_names", None) or list(frame.columns)
        assert names == ["left_row", "right_row", "score", "left", "right"]
    filled = gramvec.match(["a"], ["a"], threshold=0.0).to_pandas()
    assert found.to_pandas().dtypes.tolist() == filled.dtypes.tolist()


@pytest.mark.parametrize(
    ("library", "install"), [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "'gramvec[bulk]'")]
)
def test_a_missing_library_is_named_in_one_sentence(
    library: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    way = {"pyarrow": "to_arrow"}.get(library, f"to_{library}")
    with refused(InputError, way, library, f"pip install {install}"):
        getattr(Made(text=["a"]), way)()


def test_no_library_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, gramvec; gramvec.match(['a'], ['a']); gramvec.dedupe(['a', 'a']);"
        "print({'pandas', 'polars', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_job_gives_a_table_but_those_that_write_a_file_line_by_line() -> None:
    """What is written as it is read, or is one number, is no table in memory."""
    given = {
        name: typing.get_type_hints(getattr(jobs, name).run)["return"] for name in jobs.__all__ if name.endswith("Job")
    }
    others = {name for name, kind in given.items() if not (isinstance(kind, type) and issubclass(kind, ResultTable))}
    reviews = {"LabelReviewJob", "PairReviewJob"}
    assert others == {"AddJob", "BuildJob", "EmbedJob", "PredictJob", "RebuildJob", "RemoveJob", "SearchJob", *reviews}
    assert all(given[name] in (Done, int) for name in others - reviews)
    for function in (gramvec.match, gramvec.dedupe, jobs.Matcher.match, gramvec.Index.search, jobs.Head.answers):
        assert issubclass(typing.get_type_hints(function)["return"], ResultTable)
