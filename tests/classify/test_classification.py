"""Heads: learned from labeled texts, stored without code, read by whoever trusts no file, and applied."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from conftest import MODELS
from gramvec.cli import cli
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.jobs.classify.fit import SCALES, fit_head, logistic_regression
from gramvec.jobs.classify.head import MAX_LABELS, VERSION, Head, HeadWeights, score_logits
from gramvec.jobs.classify.ngrams import NgramColumns
from gramvec.jobs.classify.targets import Targets
from gramvec.jobs.common.columns import read_columns
from gramvec.text.array_file import pack_arrays
from gramvec.text.folding import fold_letters
from support.errors import assert_names, refused

DIGEST = "ab" * 32
MODEL = str(MODELS / "charagram-phrase")
INTENTS = {
    "card": ["my card is lost", "i lost the card", "the card was stolen", "where is my new card", "block the card"],
    "rate": ["what is the exchange rate", "how much is a euro", "the rate of the dollar", "is the rate good", "rates"],
    "close": ["close my account", "i want to leave", "delete the account", "end the contract", "please cancel it all"],
}
ROWS = [(label, f"{who}{text}") for who in ("", "hello, ") for label, texts in INTENTS.items() for text in texts]


def call(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["classify", *map(str, arguments)], input=given)


KNOWN = ["my card is lost", "i lost the card", "a card", "dollars"]


def head(labels: int = 3, d: int = 4, **changes: Any) -> Head:
    rng = np.random.default_rng(1)
    vocabulary = NgramColumns.of_texts(KNOWN, min_texts=1, max_columns=1000)
    values: dict[str, Any] = {
        "coefficients": rng.normal(size=(labels, d)).astype(np.float32),
        "intercepts": rng.normal(size=labels).astype(np.float32),
        "ngrams": HeadWeights.of(vocabulary, rng.normal(size=(len(vocabulary.keys), labels)).astype(np.float32)),
        "labels": tuple(f"label {one}" for one in range(labels)),
        "threshold": 0.6,
        "model": "m",
        "digest": DIGEST,
    }
    return Head.of(**values | changes)


def forged(values: dict[str, Any], arrays: dict[str, Any], *, kind: str = "head") -> bytes:
    """A file with a right checksum over these changes."""
    said = {
        "model": "m", "digest": DIGEST, "unit": 0.1, "threshold": 0.5, "thresholds": {}, "several": False,
        "none": -9.0, "novelty": 4.0, "unseen": 5.0,
    } | values  # fmt: skip
    whole: dict[str, Any] = {
        "labels": b'["a", "b"]', "intercepts": np.zeros(2, "<f4"), "vector_weights": np.ones((2, 2), "<i2"),
        "ngram_keys": np.array([7], "<i4"), "ngram_idf": np.ones(1, "<f4"), "ngram_units": np.full(1, 0.1, "<f4"),
        "ngram_weights": np.ones((1, 2), "|i1"),
    }  # fmt: skip
    whole |= arrays
    whole["labels"] = np.frombuffer(whole["labels"], np.uint8)
    text = values.get("text", json.dumps(said))
    return pack_arrays(kind, VERSION, whole, values={"head": text}, checksum=True)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    (folder / "my.tsv").write_text("\n".join(f"{label}\t{text}" for label, text in ROWS))
    done = call("fit", folder / "my.tsv", "-o", folder / "my.head", "-m", MODEL)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "30 held-out texts of 3 labels, 14 without near copies"
    assert [line[:12] for line in lines[1:6]] == [
        "right label,", "calibration ", "unknown, sco", "right, but u", "right label ",
    ]  # fmt: skip
    assert lines[6].startswith("weights of what it sees       meaning ")
    assert lines[-1].startswith(f"{folder / 'my.head'}: 3 labels of charagram-phrase, ")
    return folder / "my.head"


def test_scores_by_hand() -> None:
    one = head(
        coefficients=np.array([[1, 0], [0, 1], [0, 0]], np.float32), intercepts=np.array([0, 0, 0.5], np.float32),
        ngrams=None,
    )  # fmt: skip
    scores = one.predict(["a", "b"], np.array([[1, 0], [0, 0]], np.float32))
    logits = np.array([[1, 0, 0.5], [0, 0, 0.5]])
    assert scores == pytest.approx(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), abs=1e-6)
    one = replace(one, threshold=0.48)
    answers = one.answers(scores)
    assert [(answer.labels, answer.known) for answer in answers] == [(("label 0",), True), (("label 2",), False)]
    assert [answer.score for answer in answers] == pytest.approx([0.506, 0.452], abs=1e-3)
    assert replace(one, thresholds={"label 0": 0.6}).answers(scores)[0].known is False
    # "None of them" has a logit, too: 1.5, whatever the text is, because the head has no n-grams.
    beside = replace(one, none=1.5, novelty=4.0).predict(["a", "b"], np.array([[1, 0], [0, 0]], np.float32))
    assert beside == pytest.approx(np.exp(logits) / (np.exp(logits).sum(axis=1, keepdims=True) + np.exp(1.5)), abs=1e-6)
    # Of a head of several labels each stands by itself.
    several = replace(one, none=0.2, several=True, threshold=0.55)
    scores = several.predict(["a", "b"], np.array([[1, 0], [0, 0]], np.float32))
    assert scores == pytest.approx(1 / (1 + np.exp(0.2 - logits)), abs=1e-6)
    answers = several.answers(scores)  # 0.69, 0.45, 0.57; 0.45, 0.45, 0.57
    assert [(answer.labels, answer.known) for answer in answers] == [
        (("label 0", "label 2"), True),
        (("label 2",), True),
    ]
    answer = replace(several, threshold=0.9).answers(scores)[0]
    assert (answer.labels, answer.known) == (("label 0",), False)
    assert one.predict([], np.zeros((0, 2), np.float32)).shape == (0, 3)
    with refused(InputError, "2 columns"):
        one.predict(["a"], np.zeros((1, 3), np.float32))


def spelt(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """How often each n-gram of 2 to 4 characters within a word and its edges occurs, and each word and pair."""
    characters: dict[str, int] = {}
    words = fold_letters(text).split()
    padded = f" {' '.join(words)} " if words else ""
    for order in (2, 3, 4):
        for start in range(len(padded) - order + 1):
            one = padded[start : start + order]
            if " " not in one[1:-1]:
                characters[one] = characters.get(one, 0) + 1
    pairs = [" ".join(pair) for pair in pairwise(words)]
    return characters, {one: [*words, *pairs].count(one) for one in [*words, *pairs]}


TEXTS = ["my my card", "A  Card is lost", "x", "", "dollars dollars for a euro", "ü ßs ÅÅ"]


def test_tf_idf_as_a_slow_reference_has_it() -> None:
    vocabulary = NgramColumns.of_texts(TEXTS, min_texts=1, max_columns=1000)
    documents = [spelt(text) for text in TEXTS]
    assert len(vocabulary.keys) == sum(len(set().union(*(one[part] for one in documents))) for part in (0, 1))
    found = vocabulary.weigh(TEXTS)
    for row, document in enumerate(documents):
        expected = []
        for part in (0, 1):
            n = len(documents)
            values = [
                (1 + math.log(times)) * (math.log((1 + n) / (1 + sum(one in other[part] for other in documents))) + 1)
                for one, times in document[part].items()
            ]
            length = math.sqrt(sum(value * value for value in values))
            expected += [value / length for value in values]
        assert sorted(found.value[found.text == row]) == pytest.approx(sorted(expected), rel=1e-6)
    assert not len(vocabulary.weigh(["qqq www"]).value)


def test_the_commonest_features_of_each_part_are_kept() -> None:
    texts = ["aa bb", "aa cc", "aa bb"]
    vocabulary = NgramColumns.of_texts(texts, min_texts=2, max_columns=2)
    parts = vocabulary.keys >> 24
    assert np.bincount(parts).tolist() == [2, 2]  # words: aa, and bb or "aa bb"
    assert vocabulary.idf[parts == 1].min() == pytest.approx(1.0)  # aa is in every text


def test_ngrams_add_to_the_logits_by_hand() -> None:
    one = head(d=2)
    assert one.ngrams is not None
    weights = one.ngrams.weights * one.ngrams.units[:, None].astype(np.float64)
    for text in ("my card is lost", "CARD dollars dollars", "zzz"):
        found = one.ngrams.vocabulary.weigh([text])
        logits = found.value @ weights[found.place] + one.intercepts
        expected = np.exp(logits) / np.exp(logits).sum()
        assert one.predict([text], np.zeros((1, 2), np.float32))[0] == pytest.approx(expected, rel=1e-3)
    rounded = HeadWeights.of(one.ngrams.vocabulary, weights.astype(np.float32))
    assert np.abs(rounded.weights - one.ngrams.weights.astype(int)).max() <= 1


def test_a_text_has_its_scores_in_any_batch() -> None:
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice([*" ".join(KNOWN).split(), "zzz"], 5)) for _ in range(40)]
    for labels, d in ((2, 300), (77, 300), (5000, 300)):
        one = head(labels, d)
        vectors = rng.normal(size=(40, d)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        scores = one.predict(texts, vectors)
        assert scores.dtype == np.float32
        assert scores.sum(axis=1) == pytest.approx(1, abs=1e-4)
        for row in (0, 17, 39):
            assert one.predict(texts[row : row + 1], vectors[row : row + 1]).tobytes() == scores[row].tobytes()
        assert one.predict(texts, np.asfortranarray(vectors)).tobytes() == scores.tobytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    one = replace(head(), labels=("x", "ü\n", "z" * 1024), thresholds={"x": 0.25}, several=True, none=0.5, novelty=2.0)
    one.save(tmp_path / "h")
    found = Head.load(tmp_path / "h")
    assert (found.labels, found.threshold, found.thresholds, found.model, found.digest) == (
        one.labels, 0.6, {"x": 0.25}, "m", DIGEST,
    )  # fmt: skip
    assert (found.several, found.none, found.novelty) == (True, 0.5, 2.0)
    vectors = np.eye(4, dtype=np.float32)
    assert found.predict(KNOWN, vectors).tobytes() == one.predict(KNOWN, vectors).tobytes()
    first = (tmp_path / "h").read_bytes()
    found.save(tmp_path / "h")
    assert (tmp_path / "h").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["h"]
    with refused(InputError, "m", "abababababab"):
        found.check_bundle("cd" * 32)
    found.check_bundle(DIGEST, 4)
    with refused(InputError, "4 columns", "5"):
        found.check_bundle(DIGEST, 5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"none": float("nan")}, "none"),
        ({"thresholds": {"c": 0.5}}, "threshold"),
        ({"labels": ("a", "", "b")}, "labels"),
        ({"intercepts": np.array([0, np.nan, 0], np.float32)}, "not finite"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(head(), **changes).save(tmp_path / "h")
    assert not (tmp_path / "h").exists()


def one(name: str, value: float, dtype: str = "<f4") -> dict[str, Any]:
    return {name: np.array([value], dtype)}


MANY = json.dumps([str(number) for number in range(MAX_LABELS + 1)]).encode()


@pytest.mark.parametrize(
    ("values", "arrays", "said"),
    [
        ({"text": "{"}, {}, "not JSON"),
        ({"text": "[]"}, {}, "damaged"),
        ({"text": '{"model": "\\ud800"}'}, {}, "not JSON"),
        ({"none": 1e300}, {}, "none"),
        ({"novelty": -1.0}, {}, "novelty"),
        ({"unseen": 1e300}, {}, "unseen"),
        ({"several": 1}, {}, "several"),
        ({"thresholds": {"a": 2.0}}, {}, "thresholds"),
        ({"thresholds": {"c": 0.5}}, {}, "threshold"),
        ({"unit": -0.1}, {}, "unit"),
        ({"unit": 1e5}, {}, "finite"),
        ({"threshold": 1.5}, {}, "threshold"),
        ({"digest": "../../x"}, {}, "digest"),
        ({"code": "import os"}, {}, "code"),
        ({}, {"labels": b'["a"]'}, "labels"),
        ({}, {"labels": b'["a", "a"]'}, "same"),
        ({}, {"labels": b'["a", 1]'}, "labels"),
        ({}, {"labels": b'["a", ""]'}, "labels"),
        ({}, {"labels": b'["a", "b", "c"]'}, "not of the shape"),
        ({}, {"labels": b"[" * 100}, "32 levels"),
        ({}, {"labels": MANY}, "100,000"),
        ({}, {"labels": json.dumps(["a", "b" * 1025]).encode()}, "labels"),
        ({}, {"vector_weights": np.ones((2, 0), "<i2")}, "not of the shape"),
        ({}, {"vector_weights": np.ones((2, 65_537), "<i2")}, "more than 65,536 dimensions"),
        ({}, {"vector_weights": np.ones((2, 2), "<f4")}, "vector_weights is not int16"),
        ({}, {"intercepts": np.array([0, np.nan], "<f4")}, "not finite"),
        ({}, {"intercepts": np.array([0, 1e38], "<f4")}, "finite"),
        ({}, one("ngram_keys", -1, "<i4"), "do not ascend"),
        ({}, one("ngram_keys", 2 << 24, "<i4"), "do not ascend"),
        ({}, {"ngram_keys": np.array([5, 5], "<i4")}, "n-grams"),
        ({}, one("ngram_idf", np.nan), "negative or too large"),
        ({}, one("ngram_idf", 0.0), "negative or too large"),
        ({}, one("ngram_units", np.nan), "negative or too large"),
        ({}, one("ngram_units", -1.0), "negative or too large"),
        ({}, one("ngram_units", 1e30), "finite"),
        ({}, {"ngram_weights": np.ones((1, 3), "|i1")}, "n-grams"),
    ],
)
def test_a_forged_file_is_refused(tmp_path: Path, values: dict[str, Any], arrays: dict[str, Any], said: str) -> None:
    (tmp_path / "h").write_bytes(forged({}, {}))
    assert Head.load(tmp_path / "h").predict(["a"], np.zeros((1, 2), np.float32)).shape == (1, 2)
    (tmp_path / "h").write_bytes(forged(values, arrays))
    with pytest.raises(InputError, match=said) as error:
        Head.load(tmp_path / "h")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"gvhead01" + bytes(60), "header"),
        (forged({}, {}, kind="vocabulary"), "not a gramvec head file"),
    ],
)
def test_what_is_no_head_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "h").write_bytes(data)
    with pytest.raises(InputError, match=said):
        Head.load(tmp_path / "h")


def test_the_longest_label_is_counted_in_bytes() -> None:
    assert replace(head(2), labels=("a", "\u20ac" * 3)).longest_label == 9


def test_a_missing_head_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.head")
    for name, said in {
        "h": "cannot be read: No such file",
        ".": "cannot be read: Is a directory",
        "a.head": "cut off",
    }.items():
        with pytest.raises(InputError, match=said):
            Head.load(tmp_path / name)


def test_a_head_is_not_saved_through_what_is_planted_in_its_way(tmp_path: Path) -> None:
    (tmp_path / ".a.head.new").symlink_to("victim")
    with refused(InputError, ".a.head.new", "link"):
        head().save(tmp_path / "a.head")
    assert [one.name for one in tmp_path.iterdir()] == [".a.head.new"]


@given(place=st.integers(0, 10_000), change=st.integers(1, 255), cut=st.booleans())
def test_every_damaged_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "h"
    head().save(path)
    data = bytearray(path.read_bytes())
    place %= len(data)
    if cut:
        del data[place:]
    else:
        data[place] ^= change
    path.write_bytes(data)
    with pytest.raises(InputError):
        Head.load(path)


def fitted(vectors: Any, labels: list[str], **options: Any) -> Any:
    """Fit on vectors of texts without n-grams."""
    return fit_head([""] * len(vectors), vectors, labels, model="m", digest=DIGEST, **options)


def test_a_head_tells_what_it_is_worth() -> None:
    rng = np.random.default_rng(1)
    centers = np.eye(4, dtype=np.float32)
    own = rng.integers(0, 4, 1500)
    vectors = centers[own] + rng.normal(0, 0.45, (1500, 4)).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = [f"label {one}" for one in own.tolist()]
    found, report = fitted(vectors, labels)
    assert (report.texts, report.labels) == (1500, 4)
    assert 0.75 < report.accuracy < 0.95
    assert report.calibration < 0.06
    assert report.lost <= 0.01
    answers = found.answers(found.predict([""] * 4, centers))
    assert [answer.labels[0] for answer in answers] == ["label 0", "label 1", "label 2", "label 3"]
    again, same = fitted(vectors, labels)
    assert again.vector_weights.tobytes() == found.vector_weights.tobytes()
    assert same == report
    assert fitted(vectors, labels, threshold=0)[1].unknown == 0
    strict, report = fitted(vectors, labels, threshold=0.9)
    assert (strict.threshold, strict.thresholds) == (0.9, {})
    assert report.unknown > 0.2 and report.accuracy_known > report.accuracy
    assert report.lost == pytest.approx(1 - (1 - report.unknown) * report.accuracy_known / report.accuracy)
    with refused(InputError, "'x'"):
        fitted(vectors, labels, thresholds={"x": 0.5})
    assert fitted(vectors, labels, thresholds={"label 1": 0.99})[0].thresholds["label 1"] == 0.99


def test_two_labels_and_a_label_with_one_text() -> None:
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)
    found, report = fitted(vectors, ["a", "a", "b", "b"], threshold=0)
    assert report.texts == 4
    assert [one.labels for one in found.answers(found.predict([""] * 4, vectors))] == [("a",), ("a",), ("b",), ("b",)]
    report = fitted(vectors, ["a", "a", "b", "c"])[1]
    assert (report.texts, report.labels) == (2, 3)
    with pytest.raises(InputError, match="same label"):
        fitted(vectors, ["a"] * 4)
    with refused(InputError, "two texts"):
        fitted(vectors, list("abcd"))


def test_a_copy_of_a_text_is_never_asked_beside_it() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(40, 30)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = [f"label {one}" for one in rng.integers(0, 4, 40)]  # there is nothing to be learned
    report = fitted(np.tile(vectors, (5, 1)), labels * 5)[1]
    assert report.texts == 200
    assert report.accuracy < 0.5


def test_texts_of_two_labels_leave_none_out() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    found, report = fitted(vectors, ["a", "a", "b"])
    assert found.labels == ("a", "b")
    assert report.texts == 3


def test_ngrams_decide_where_vectors_cannot() -> None:
    rng = np.random.default_rng(1)
    own = rng.integers(0, 3, 300)
    words = [["card", "rate", "close"][one] for one in own.tolist()]
    texts = [
        " ".join(rng.permutation([word, *rng.choice(["please", "my", "the", "now", "yes", "so"], 3)])) for word in words
    ]
    vectors = rng.normal(size=(300, 20)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found, report = fit_head(texts, vectors, words, model="m", digest=DIGEST)
    assert report.accuracy > 0.95
    assert found.ngrams is not None
    assert max(report.weights[1:]) > report.weights[0]
    known, unknown = found.answers(found.predict(["my card so", "qqq"], np.zeros((2, 20), np.float32)))
    assert (known.labels, known.known, unknown.known) == (("card",), True, False)


def test_meaning_decides_alone_where_ngrams_do_not_help() -> None:
    rng = np.random.default_rng(1)
    own = np.arange(40) % 2
    vectors = np.eye(2, dtype=np.float32)[own]
    vectors += rng.normal(0, 0.1, vectors.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = ["".join(rng.choice([*"abcdefghijkl "], 12)) for _ in own]
    found, report = fit_head(texts, vectors, [str(one) for one in own], model="m", digest=DIGEST)
    assert report.weights[0] > 3 * max(report.weights[1:])
    assert report.accuracy == 1
    answers = found.answers(found.predict(["", ""], np.eye(2, dtype=np.float32)))
    assert [answer.labels for answer in answers] == [("0",), ("1",)]


def test_few_texts_are_one_logistic_regression_over_vectors_and_scaled_ngrams() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    own = np.arange(60) % 3
    texts = [" ".join(rng.choice(["card", "rate", "close", "my", "now", "so", f"about{one}"], 4)) for one in own]
    vectors = rng.normal(size=(60, 20)).astype(np.float32) + np.eye(3, 20, dtype=np.float32)[own]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found, report = fit_head(texts, vectors, [str(one) for one in own], model="m", digest=DIGEST)
    assert found.ngrams is not None and min(report.weights) > 0
    weighed = found.ngrams.vocabulary.weigh(texts)
    ngrams = np.zeros((60, len(found.ngrams.vocabulary.keys)))
    ngrams[weighed.text, weighed.place] = weighed.value
    ours = np.log(found.predict(texts, vectors).astype(np.float64))
    ours -= ours.mean(axis=1, keepdims=True)
    apart = []
    for scale in SCALES:
        learner = LogisticRegression(C=10, max_iter=1000, tol=1e-8)
        theirs = learner.fit(np.hstack([vectors, scale * ngrams]), own).decision_function(
            np.hstack([vectors, scale * ngrams])
        )
        theirs *= (ours * theirs).sum() / (theirs**2).sum()  # scores are calibrated
        apart.append(float(np.abs(ours - theirs).max() / np.abs(theirs).max()))
    assert min(apart) < 0.05 and np.median(apart) > 0.1


def test_logistic_regression_is_scikit_learns() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    own = rng.integers(0, 5, 300)
    vectors = rng.normal(size=(300, 20)).astype(np.float32) + 2 * np.eye(5, 20, dtype=np.float32)[own]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = logistic_regression(vectors, Targets(np.arange(300), own, 300, 5))
    theirs = LogisticRegression(C=10, max_iter=1000, tol=1e-8).fit(vectors, own)
    ours = score_logits(vectors @ weights[:-1] + weights[-1], np.full(300, -np.inf, np.float32), several=False)
    assert np.abs(ours - theirs.predict_proba(vectors)).max() < 0.03


def test_a_tab_within_a_text_stays(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\tcars\n1\tbuy\tnow\n")
    found = read_columns(tmp_path / "a.tsv", ["label", "text"], positional=True, filled=["label", "text"])
    assert found.values == {"label": ["x", "1"], "text": ["cars", "buy\tnow"]}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.tsv", b"x\tcars\nbuy\n", "a.tsv: line 2: no 'text'"),
        ("a.tsv", b"", "a.tsv"),
        ("a.jsonl", b'{"text": "cars"}\n', "a.jsonl: has no column 'label'"),
        ("a.csv", b"text,klass\ncars,x\n", "'label'"),
        ("a.tsv", b"x\tcars\ny\t" + b"q" * 70_000 + b"\n", "a.tsv: line 2"),
    ],
)
def test_bad_labeled_files_are_named(tmp_path: Path, name: str, text: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(text)
    done = call("fit", tmp_path / name, "-o", tmp_path / "h", "-m", MODEL)
    assert done.exit_code == 1
    assert said in done.output
    assert not (tmp_path / "h").exists()


def test_texts_get_the_labels_that_were_learned(learned: Path, tmp_path: Path) -> None:
    done = call("predict", learned, "--threshold", "0.5", given=b"where is my card\nclose the account\nqqq\n")
    assert done.exit_code == 0, done.output
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert rows.pop(0) == ["text", "label", "score", "known"]
    assert [row[0] for row in rows] == ["where is my card", "close the account", "qqq"]
    assert [row[1] for row in rows[:2]] == ["card", "close"]
    assert all(0 < float(row[2]) <= 1 for row in rows)
    assert [row[3] for row in rows] == ["True", "True", "False"]

    (tmp_path / "in.csv").write_text("id,subject\n7,where is my card\n8,close the account\n")
    out = tmp_path / "out.jsonl"
    assert call("predict", learned, tmp_path / "in.csv", "--column", "subject", "-o", out).exit_code == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [list(one) for one in found] == [["id", "subject", "label", "score", "known"]] * 2
    assert [one["label"] for one in found] == ["card", "close"]
    with closing(load(MODEL)) as embedder:
        scores = Head.load(learned).predict(["where is my card"], embedder.embed(["where is my card"]))
    assert found[0]["score"] == float(rows[0][2]) == round(float(scores.max()), 6)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_the_best_label_is_in_every_form_with_its_score_and_whether_it_is_known(
    learned: Path, tmp_path: Path, ending: str
) -> None:
    (tmp_path / "in.csv").write_text("id,text\n7,where is my card\n")
    output = tmp_path / f"out.{ending}"
    done = call("predict", learned, tmp_path / "in.csv", "--threshold", "1", "-o", output)
    assert done.exit_code == 0, done.output
    found = read_columns(output, ["id", "text", "label", "score", "known"]).values
    assert (found["id"], found["label"], found["known"][0].casefold()) == (["7"], ["card"], "false")
    assert 0 < float(found["score"][0]) < 1


def test_thresholds_differ_by_label(learned: Path, tmp_path: Path) -> None:
    texts = b"where is my card\nclose the account\n"

    def known(*options: str) -> list[str]:
        done = call("predict", learned, *options, given=texts)
        assert done.exit_code == 0, done.output
        return [line.rsplit("\t", 1)[1] for line in done.stdout.splitlines()[1:]]

    assert known("--threshold", "card=1") == ["False", "True"]
    assert known("--threshold", "1", "--threshold", "card=0") == ["True", "False"]
    for wrong, said in {
        "x=0.5": "has no label 'x'",
        "card=2": "2 is not from 0 to 1",
        "card": "'card' is not a sc",
    }.items():
        done = call("predict", learned, "--threshold", wrong, given=texts)
        assert done.exit_code != 0 and said in done.output
    (tmp_path / "my.tsv").write_text("\n".join(f"{label}\t{text}" for label, text in ROWS))
    done = call("fit", tmp_path / "my.tsv", "-o", tmp_path / "h", "-m", MODEL, "--threshold", "rate=0.75")
    assert done.exit_code == 0, done.output
    assert "rate 0.75" in done.output
    assert Head.load(tmp_path / "h").thresholds["rate"] == 0.75


def test_a_column_that_is_there_is_not_taken_by_a_label(learned: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("label,text\nmine,where is my card\n")
    done = call("predict", learned, tmp_path / "in.csv")
    assert done.exit_code == 1
    assert_names(done.output, "'label'", "--prefix")
    done = call("predict", learned, tmp_path / "in.csv", "--prefix", "new_", "--format", "csv")
    assert done.stdout.splitlines()[0] == "label,text,new_label,new_score,new_known"
    assert done.stdout.splitlines()[1].startswith("mine,where is my card,card,0.")


def test_a_bad_line_stops_or_is_told(learned: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"where is my card\n\xff\n")
    done = call("predict", learned, tmp_path / "in.txt", "-o", tmp_path / "out.tsv")
    assert done.exit_code == 1
    assert "line 2" in done.output
    assert not (tmp_path / "out.tsv").exists()
    done = call("predict", learned, tmp_path / "in.txt", "-o", tmp_path / "out.tsv", "--on-error", "skip")
    assert done.exit_code == 0
    assert "line 2" in done.output
    assert (tmp_path / "out.tsv").read_text().splitlines()[2] == "\t\t\t"


def test_another_model_is_refused(learned: Path, tmp_path: Path) -> None:
    done = call("predict", learned, "-m", MODELS / "sif", given=b"x\n")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "charagram-phrase" in done.stderr
    done = call("fit", learned, "-o", tmp_path / "no" / "h")
    assert "no folder" in done.output
    assert call("predict", MODELS / "sif" / "manifest.json", given=b"x\n").output.endswith("fetch it again\n")


def test_applying_a_head_imports_no_scikit_learn(learned: Path) -> None:
    program = (
        "import sys\nfrom gramvec.cli import main\n"
        "try:\n    main()\nfinally:\n    assert not {'sklearn', 'scipy', 'pickle5', 'torch'} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "classify", "predict", str(learned)], input=b"where is my card\n",
        capture_output=True, check=False, env={**os.environ, "GRAMVEC_MODELS": str(MODELS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith(b"where is my card\tcard\t")


def test_a_head_takes_a_column_of_any_library_and_names_what_is_no_text() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    own = head()
    vectors = np.eye(2, own.dimensions, dtype=np.float32)
    expected = own.predict(["x", "y"], vectors)
    for texts in (pandas.Series(["x", "y"], index=[4, 4]), np.array(["x", "y"]), iter(["x", "y"])):
        assert np.array_equal(own.predict(texts, vectors), expected)
    for wrong, said in (([1, "y"], "text 0 is of type int; give str"), (["x", None], "text 1 is missing")):
        with pytest.raises(InputError, match=said):
            own.predict(wrong, vectors)
    with refused(InputError, "1 texts", "2 vectors"):
        own.predict(["x"], vectors)
