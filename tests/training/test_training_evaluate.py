"""Correlations on hand-made sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import orjson
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.hub.static_models import import_static
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.evaluation.report import format_markdown, format_table, list_win_rows
from gramvec_training.evaluation.similarity import (
    SimilaritySet,
    correlate,
    find_sets,
    measure_coverage,
    read_set,
    score_sets,
)
from support.static import write_model2vec, write_static_embedding


def by_right_text(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    return np.array([float(text) for text in right], dtype=np.float32)


def put(path: Path, rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rows, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # Predictions stand in the right-hand texts. Task one: set a is perfect, set b reversed.
    put(tmp_path / "one/a.tsv", "1\tx\t0.1\n2\tx\t0.2\n3\tx\t0.3\n")
    put(tmp_path / "one/b.tsv", "1\tx\t0.3\n2\tx\t0.2\n3\tx\t0.1\n")
    put(tmp_path / "two/c.tsv", "1\tx\t0\n2\tx\t1\n3\tx\t5\n4\tx\t4\n")
    put(tmp_path / "other/typos.tsv", "right\twrong\n")
    put(tmp_path / "typos/a.tsv", "right\twrong\n")
    put(tmp_path / "typos/b.tsv", "right\twrong\n")
    return tmp_path


def test_sets_means_and_pooled_by_hand(folder: Path) -> None:
    sets, notes = find_sets([folder])
    report = score_sets(sets, by_right_text)
    one, two = report["tasks"]["one"], report["tasks"]["two"]
    assert one["sets"]["a"] == {"pairs": 3, "pearson": pytest.approx(100), "spearman": pytest.approx(100)}
    assert one["sets"]["b"]["pearson"] == pytest.approx(-100)
    assert one["mean"] == {"pearson": pytest.approx(0), "spearman": pytest.approx(0)}
    assert one["pooled"] == {"pairs": 6, "pearson": pytest.approx(0), "spearman": pytest.approx(0)}
    # Scores 1 2 3 4, predictions 0 1 5 4: covariance sum 8.0, squares 5 and 17; ranks 1 2 4 3.
    assert two["mean"]["pearson"] == pytest.approx(100 * 8 / math.sqrt(5 * 17), abs=1e-4)
    assert two["mean"]["spearman"] == pytest.approx(80)
    reason = "left out: not rows of score<TAB>text<TAB>text."
    assert notes == [f"{folder}/other/typos.tsv is {reason}", f"{folder}/typos: 2 files are {reason}"]


def test_a_folder_of_sets_is_a_task_and_a_file_a_set(folder: Path) -> None:
    sets, _ = find_sets([folder / "one", folder / "two/c.tsv"])
    assert [(one.task, one.name) for one in sets] == [("one", "a"), ("one", "b"), ("two", "c")]


def test_constant_predictions_have_no_correlation_and_count_as_zero(folder: Path) -> None:
    sets, _ = find_sets([folder / "one"])
    report = score_sets(sets, lambda left, right: np.ones(len(left)))
    assert report["tasks"]["one"]["sets"]["a"]["pearson"] is None
    assert report["tasks"]["one"]["mean"] == {"pearson": 0.0, "spearman": 0.0}
    assert report["notes"][0].startswith("one/a: all predicted similarities are equal")
    assert orjson.loads(orjson.dumps(report))["tasks"]["one"]["pooled"]["pearson"] is None
    assert "-/-" in format_table({"model": report})


def test_a_prediction_that_is_not_a_number_is_undefined() -> None:
    assert all(math.isnan(value) for value in correlate(np.array([1.0, np.nan, 2.0]), np.array([1.0, 2.0, 3.0])))


def test_models_stand_side_by_side_in_text_and_markdown_with_their_wins(folder: Path) -> None:
    sets, _ = find_sets([folder / "one"])
    good, bad = (score_sets(sets, lambda a, b, sign=sign: sign * by_right_text(a, b)) for sign in (1, -1))
    lines = [line.split() for line in format_table({"good": good, "bad": bad}).split("\n")]
    assert lines[1:3] == [["good", "bad"], ["one/a", "100.0/100.0", "-100.0/-100.0"]]
    assert lines[4] == ["one", "mean", "0.0/0.0", "0.0/0.0"]
    title, *rows = format_table({"good": good, "bad": bad}).split("\n\n")[1].split("\n")
    assert title == "On how many of 2 sets a row's model has a higher Pearson than a column's"
    assert [row.split() for row in rows] == [["good", "bad"], ["good", "-", "1"], ["bad", "1", "-"]]
    assert "On how many" not in format_table({"good": good})
    marked = format_markdown({"good": good, "b|d": bad}).split("\n")
    assert marked[2:5] == ["|  | good | b\\|d |", "| --- | ---: | ---: |", "| one/a | 100.0/100.0 | -100.0/-100.0 |"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1\ta\tb\nx\ta\tb\n", "line 2: not readable: each line is a score"),
        ("1\ta\tb\n2\ta\n", "line 2: not readable"),
        ("nan\ta\tb\n", "line 1: not readable"),
        ("2\ta\tb\n2\tc\td\n", "fewer than two different scores"),
    ],
)
def test_unusable_sets_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_set(put(tmp_path / "s.tsv", rows))


def test_missing_and_empty_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such folder"):
        find_sets([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="no similarity set"):
        find_sets([tmp_path])


def test_wins_by_hand() -> None:
    """Of four sets: both have one, one is equal, and one has no score of the second."""
    scores = {"first": (0.5, 0.2, 0.3, 0.1), "second": (0.4, 0.3, 0.3, None)}
    reports = {
        name: {"tasks": {"t": {"sets": {str(at): {"pearson": one} for at, one in enumerate(some)}}}}
        for name, some in scores.items()
    }
    assert list_win_rows(reports) == [["", "first", "second"], ["first", "-", "1"], ["second", "1", "-"]]


def test_coverage_by_hand() -> None:
    spec = FeatureSpec(orders=(2,), words=True, unknown_words="row")
    entries = [Entry("ngram", " a", 2), Entry("ngram", "b ", 1), Entry("word", "b", 1), Entry("unknown", "", 0)]
    featurizer = Featurizer(spec, Vocabulary.build(entries))
    scores = np.array([1.0, 2.0])
    found = measure_coverage([SimilaritySet("t", "s", scores, ["a b", "x"], ["", "ab \u65e5"])], featurizer)
    # " a b " has " a" "a " " b" "b ", two of them known, and the word b of two; " x " has two, none known; "" has
    # nothing; " ab 日 " has five, " a" and "b " known, and two words, none known.
    assert found == {"t": {"texts": 4, "texts_unknown": 2, "ngrams_known": 4 / 11, "words_known": 1 / 5}}


@pytest.mark.parametrize(
    ("write", "unknown"), [(write_model2vec, 2), (write_static_embedding, 1)], ids=["model2vec", "StaticEmbedding"]
)
def test_coverage_of_tokens_by_hand(write: Callable[[Path], Path], unknown: int, tmp_path: Path) -> None:
    import_static(write(tmp_path / "theirs"), tmp_path / "ours")
    model = gramvec.load(tmp_path / "ours", device="cpu")
    # "the cats" has the tokens the, cat and ##s; zebra is unknown, and model2vec leaves it out of the sum.
    one = SimilaritySet("t", "s", np.zeros(2), ["the cats", "zebra"], ["", "cat"])
    assert measure_coverage([one], model.bundle.featurizer)["t"] == {
        "texts": 4, "texts_unknown": 2, "ngrams_known": None, "words_known": 4 / 5,
    }  # fmt: skip
    assert np.count_nonzero(model.raw(["the cats", "zebra", "", "cat"]).feature_counts == 0) == unknown
    model.close()


def test_coverage_agrees_with_what_the_model_embeds(embedder: gramvec.Embedder, real_texts: list[str]) -> None:
    texts = real_texts * 3  # more than a chunk
    one = SimilaritySet("t", "s", np.zeros(len(texts)), texts, texts)
    unknown = np.count_nonzero(embedder.raw(texts).feature_counts == 0)
    found = measure_coverage([one], embedder.bundle.featurizer)["t"]
    assert (found["texts"], found["texts_unknown"]) == (2 * len(texts), 2 * unknown)
    assert 0 < unknown < len(texts)
