"""Texts and tables of pandas, polars, pyarrow and numpy in every function of the library."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.text.frames import column_of, is_missing, rows_of, texts_or_empty, to_plain
from gramvec.text.inputs import is_whole
from support.errors import refused

TEXTS = ["cheap flights", "low-cost air fares", ""]
PANDAS: dict[str, dict[str, Any]] = {
    "object": {"dtype": object}, "string": {"dtype": "string"}, "default": {}, "category": {"dtype": "category"},
    "string[pyarrow]": {"dtype": "string[pyarrow]"},
}  # fmt: skip


def columns() -> dict[str, Callable[[list[Any]], Any]]:
    """How a column of each library is made."""
    made: dict[str, Callable[[list[Any]], Any]] = {
        "list": list,
        "tuple": tuple,
        "generator": lambda values: (value for value in values),
        "numpy": lambda values: np.array(values, object),
    }
    if pandas := pytest.importorskip("pandas", reason="pandas is not installed"):
        index = [7, 3, 7]  # neither in order nor different
        for name, options in PANDAS.items():
            made[f"pandas {name}"] = lambda values, given=options: pandas.Series(
                values, index=index[: len(values)], **given
            )
    polars = pytest.importorskip("polars", reason="polars is not installed")
    made["polars"] = polars.Series
    made["polars Categorical"] = lambda values: polars.Series(values, dtype=polars.Categorical)
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    made["pyarrow"] = arrow.array
    made["pyarrow chunked"] = lambda values: arrow.chunked_array([values[:1], values[1:]])
    made["pyarrow dictionary"] = lambda values: arrow.array(values).dictionary_encode()
    made["pandas of pyarrow"] = lambda values: pandas.Series(values, dtype=pandas.ArrowDtype(arrow.string()))
    return made


def test_a_column_of_any_library_is_texts(small: gramvec.Embedder) -> None:
    expected = small.embed(TEXTS)
    for name, column in columns().items():
        assert np.array_equal(small.embed(column(TEXTS)), expected), name
        assert np.array_equal(np.concatenate([*small.stream(column(TEXTS), batch_size=2)]), expected), name
        assert np.array_equal(small.encode(column(TEXTS), normalize_embeddings=True), expected), name
        assert small.similarity(column(TEXTS), column(TEXTS)).shape == (3, 3), name
        assert small.pair_similarity(column(TEXTS), column(TEXTS)).shape == (3,), name
        assert len(small.rerank("fares", column(TEXTS))) == 3, name
        assert small.adapted(column(TEXTS), space="lexical").embed(["x"]).shape[0] == 1, name
        assert texts_or_empty(column([*TEXTS[:2], None])) == [*TEXTS[:2], ""], name
        assert gramvec.match(column(TEXTS[:2]), column(["low-cost fares", None]), threshold=0).left.size, name


def test_what_is_missing_or_no_text_is_one_sentence(small: gramvec.Embedder) -> None:
    for name, column in columns().items():
        with pytest.raises(InputError, match="text 1 .*missing .*dropna"):
            small.embed(column(["a", None, "b"]))
        if "Categorical" not in name and "string" not in name:
            with pytest.raises(InputError, match="text 0 .*(int|missing)"):
                small.similarity(column([1, 2]) if "pandas of" not in name else [1, 2], ["a"])
    for values in ([b"a"], np.array([b"a"])):
        with refused(InputError, "text 0", "bytes"):
            small.pair_similarity(values, ["a"])
        with refused(InputError, "text 0", "bytes"):
            texts_or_empty(values)
    frame = pytest.importorskip("pandas").DataFrame({"a": ["x"]})
    with refused(InputError, "(1, 1)"):
        small.embed(frame)


def test_rows_of_frames(tmp_path: Path) -> None:
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    day = datetime.datetime(2024, 1, 5, 6)
    data = {"text": ["a", "b"], "n": [1, None], "day": [day, None]}
    wanted = [{"text": "a", "n": 1, "day": day}, {"text": "b", "n": None, "day": None}]
    frames = {
        "pandas": pandas.DataFrame(data, index=[5, 5]),
        "pandas nullable": pandas.DataFrame(data).convert_dtypes(),
        "polars": polars.DataFrame(data),
        "pyarrow": arrow.table(data),
        "columns": data,
        "rows": wanted,
    }
    for name, frame in frames.items():
        assert list(rows_of(frame)) == wanted, name
        if name != "rows":
            assert column_of(frame, "n") == [1, None], name
            with refused(InputError, "'x'", "text, n, day"):
                column_of(frame, "x")
    assert list(rows_of("a")) == ["a"]
    assert list(rows_of({"text": "a", "tags": ["x", "y"]})) == [{"text": "a", "tags": ["x", "y"]}]
    with pytest.raises(InputError, match="different lengths .*'a'.* 1.*'b'.* 2"):
        rows_of({"a": ["x"], "b": ["y", "z"]})
    with pytest.raises(InputError, match="are a set"):
        rows_of({1, 2})
    pytest.importorskip("tantivy")
    for name, frame in frames.items():
        index = gramvec.Index.build(tmp_path / name, frame, model="paragram-phrase")
        hit = index.search(["b"], k=1)[0][0]
        assert (hit.record["n"], hit.record["day"]) == (None, None), name
        first = index.search(["a"], k=1)[0][0].record
        assert (first["n"], first["day"]) == (1, "2024-01-05T06:00:00"), name


def test_values_that_json_lacks() -> None:
    pandas = pytest.importorskip("pandas")
    values = {
        "na": pandas.NA, "nat": pandas.NaT, "int": np.int64(3), "bool": np.bool_(True), "decimal": Decimal("1.50"),
        "whole": Decimal(3), "stamp": pandas.Timestamp("2024-01-05 06:00"), "period": pandas.Period("2024-01"),
        "delta": pandas.Timedelta(hours=30), "date": datetime.date(2024, 1, 5),
    }  # fmt: skip
    assert orjson.loads(orjson.dumps(values, to_plain, orjson.OPT_SERIALIZE_NUMPY)) == {
        "na": None, "nat": None, "int": 3, "bool": True, "decimal": 1.5, "whole": 3, "stamp": "2024-01-05T06:00:00",
        "period": "2024-01", "delta": "1 days 06:00:00", "date": "2024-01-05",
    }  # fmt: skip
    with pytest.raises(TypeError, match="bytes"):
        orjson.dumps(b"a", to_plain)
    assert [is_missing(one) for one in (None, math.nan, np.float32("nan"), pandas.NA, pandas.NaT, "", 0, "nan")] == [
        True, True, True, True, True, False, False, False,
    ]  # fmt: skip


def test_a_model_is_a_context_manager() -> None:
    with gramvec.load("paragram-phrase", device="cpu") as embedder:
        assert embedder.embed(["a"]).shape == (1, 300)
    with pytest.raises(gramvec.BackendError):
        embedder.embed(["a"])


def test_whole_numbers_of_numpy_are_taken() -> None:
    one = np.int64(1)
    assert is_whole(one) and is_whole(3) and not is_whole(True) and not is_whole(np.bool_(True)) and not is_whole(1.0)
    assert gramvec.match(["red car"], ["red car", "red cars"], top=one).right.tolist() == [0]
    with gramvec.load() as model:
        assert model.embed(["red car"], dimensions=one).shape == (1, 1)
        assert len(model.rerank("red", ["red car", "blue"], top_n=one)) == 1


def test_a_frame_that_is_not_computed_is_refused() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    lazy = polars.LazyFrame({"name": ["a", "b"]})
    with refused(InputError, "LazyFrame", "collect()"):
        gramvec.match(lazy, lazy, on="name")
    with refused(InputError, "LazyFrame", "collect()"):
        gramvec.match(lazy, lazy)
    with refused(InputError, "LazyFrame", "collect()"):
        gramvec.dedupe(lazy, on="name")
    with refused(InputError, "LazyFrame", "collect()"):
        texts_or_empty(lazy)


@pytest.mark.parametrize("file", ["acme.csv", b"acme.csv", Path("acme.csv")])
def test_a_file_is_no_table(file: Any) -> None:
    with refused(InputError, "read the file first", "MatchJob"):
        gramvec.match(file, file, on="name")
    with refused(InputError, "read the file first"):
        gramvec.pair_scores([{"name": "a"}], file, on="name")
    with refused(InputError, "read the file first", "DedupeJob"):
        gramvec.dedupe(file, on="name")


def test_a_path_is_no_list_of_texts() -> None:
    with refused(InputError, "read the file first"):
        texts_or_empty(Path("texts.txt"))  # type: ignore[arg-type]
