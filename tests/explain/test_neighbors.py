"""Nearest words and n-grams against a plain sort; and the commands that look into a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_cli import run

import gramvec
from conftest import MODELS
from gramvec.errors import InputError
from gramvec.explain import neighbors
from gramvec.explain.contributions import explain
from gramvec.explain.neighbors import find_nearest_words, nearest_ngrams, nearest_words, vocabulary_words
from gramvec_training.export.bundle import read_weights
from support.errors import assert_failed, refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def charagram() -> Iterator[gramvec.Embedder]:
    opened = gramvec.load(MODELS / "charagram-phrase", device="cpu")
    yield opened
    opened.close()


def test_words_in_order_of_their_cosines(embedder: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["cars", "ripe bananas", "vehicle", "vehicals", "", "cars", "\N{EGYPTIAN HIEROGLYPH A001}", "car", "Cars"]
    scores = embedder.similarity(["vehicals"], words)[0]
    expected = sorted(
        {(float(score), word) for score, word in zip(scores, words, strict=True) if word != "vehicals" and score != 0},
        reverse=True,
    )
    found = nearest_words(embedder, "vehicals", iter(words))
    assert [round(score, 6) for _, score in found] == [round(score, 6) for score, _ in expected]
    assert [one.text for one in found][:2] == ["vehicle", "cars"]
    # "Cars" has the features of "cars", which comes first.
    assert [one.text for one in found if one.text.lower() == "cars"] == ["cars", "Cars"]
    other = find_nearest_words(embedder, ["vehicals", "", "CARS"], words, k=2)
    assert other[:2] == [found[:2], []]
    to_cars = dict(zip(words, embedder.similarity(["CARS"], words)[0].tolist(), strict=True))
    nearest = sorted(set(words) - {"cars", "Cars"}, key=to_cars.__getitem__, reverse=True)  # not itself, in no case
    assert [one.text for one in other[2]] == nearest[:2]
    for block in (1, 2, 5):
        monkeypatch.setattr(neighbors, "BLOCK", block)
        assert nearest_words(embedder, "vehicals", words) == found
        assert nearest_words(embedder, "vehicals", words, k=2) == found[:2]


def test_the_words_of_the_model(embedder: gramvec.Embedder) -> None:
    words = list(vocabulary_words(embedder.bundle.vocabulary))
    assert words == [one.text for one in embedder.bundle.vocabulary.entries() if one.kind == "word"]
    found = nearest_words(embedder, "vehicals", k=3)
    assert [one.text for one in found] == ["vehicles", "vehicle", "vehicular"]
    # "not able": the first kind of neighbor that Table 8 of the CHARAGRAM paper shows.
    assert nearest_words(embedder, "not able", k=1)[0].text == "unable"


def test_ngrams_in_order_of_their_cosines(charagram: gramvec.Embedder) -> None:
    table, _ = read_weights(charagram.bundle)
    entries = charagram.bundle.vocabulary.entries()
    (row,) = (row for row, entry in enumerate(entries) if entry.text == "vehi")
    rows = table[: len(entries)].astype(np.float64)
    cosines = rows @ rows[row] / (np.linalg.norm(rows, axis=1) * np.linalg.norm(rows[row]))
    best = np.argsort(-cosines, kind="stable")[1:21]
    found = nearest_ngrams(charagram, "VEHI", k=20)
    assert [one.text for one in found] == [entries[one].text for one in best]
    np.testing.assert_allclose([one.score for one in found], cosines[best], atol=1e-6)
    assert [one.text for one in found if one.text.startswith("car")]  # Table 10: n-grams of one meaning


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: nearest_ngrams(one, "q\u4e00"), r"charagram-phrase.* 2, 3, 4"),
        (lambda one: nearest_ngrams(one, ""), "n-gram"),
        (lambda one: nearest_ngrams(one, "toolongforakey" * 9), "n-gram"),
        (lambda one: nearest_ngrams(one, "\ud800"), "lone surrogate"),
        (lambda one: nearest_words(one, "car"), "words"),
        (lambda one: nearest_words(one, "", ["car"]), "no feature"),
        (lambda one: nearest_words(one, "car", ["a", "b\ud800"]), r"word 1 .*surrogate"),
        (lambda one: nearest_words(one, "car", ["a"], k=0), "k:"),
        (lambda one: nearest_ngrams(one, "in", k=True), "k:"),
    ],
)
def test_a_bad_question_says_what_to_do(charagram: gramvec.Embedder, call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(charagram)


def test_a_model_of_words_has_no_ngrams() -> None:
    embedder = gramvec.load(MODELS / "sif", device="cpu")
    with refused(InputError, "sif", "n-grams"):
        nearest_ngrams(embedder, "in")
    embedder.close()


def test_explain_on_the_command_line(embedder: gramvec.Embedder) -> None:
    done = run("explain", "vehicals", "vehicles", "--top-k", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    found = explain(embedder, "vehicals", "vehicles", top_k=3)
    assert lines[0] == f"score {found.score:.4f}"
    assert lines[1].split() == [f"{found.pairs[0].contribution:+.4f}", "␣v", "␣v"]
    assert len(lines) == 7
    parts = [float(line.split()[0]) for line in lines[1:6]]
    assert sum(parts) == pytest.approx(found.score, abs=5e-4)
    assert lines[-1] == "known features cover 100% of the source's characters, 100% of the target's"

    values = json.loads(run("explain", "vehicals", "vehicles", "--top-k", "3", "--json").stdout)
    assert values["score"] == pytest.approx(found.score)
    assert values["features"][0]["source"] == {"kind": "ngram", "text": " v", "start": 0, "end": 1, "times": 1}
    assert [len(one) for one in values["characters"]] == [8, 8]
    # What does not print is escaped.
    assert b"\\x1b (unknown)" in run("explain", "-m", "paragram-phrase", "\x1b a", "a").stdout
    by_word = run("explain", "-m", "paragram-phrase", "--by-word", "\x1b a", "a").stdout
    assert b"\\x1b" in by_word and b"\x1b" not in by_word
    assert_failed(run("explain", "a", "b", "--top-k", "0"), "top-k", code=2)


def test_letters_that_look_alike_are_told_on_the_command_line() -> None:
    lines = run("explain", "Москва", "Москвa", "--confusables").stdout.decode().splitlines()
    assert lines[-2:] == [
        "the texts look alike, but their letters differ:",
        "  character 6: а CYRILLIC SMALL LETTER A and a LATIN SMALL LETTER A",
    ]
    values = json.loads(run("explain", "Москва", "Москвa", "--confusables", "--json").stdout)
    assert values["look_alike"] is True
    assert values["confusables"] == [{"place": 5, "source": "а", "target": "a"}]
    assert run("explain", "a", "b", "--confusables").stdout.endswith(b"do not look alike in different letters\n")


def test_neighbors_on_the_command_line(embedder: gramvec.Embedder) -> None:
    done = run("neighbors", "vehicals", "--top-k", "2")
    scores = embedder.similarity(["vehicals"], ["vehicles", "vehicle"])[0].tolist()
    assert done.stdout.decode() == "{:.4f}\tvehicles\n{:.4f}\tvehicle\n".format(*scores), done.stderr
    words = b"cars\r\n\nvehicle\ncars\n"
    done = run("neighbors", "-m", "charagram-phrase", "vehicals", "--words", "-", "--json", stdin=words)
    assert [one["text"] for one in json.loads(done.stdout)] == ["vehicle", "cars"]
    (nearest,) = nearest_ngrams(embedder, " un", k=1)
    assert run("neighbors", "--ngram", " un", "--top-k", "1").stdout.decode().split("\t")[
        1
    ] == f"{nearest.text}\n".replace(" ", "␣")
    assert_failed(run("neighbors"), "TEXT", "--ngram", code=2)
    assert_failed(run("neighbors", "--ngram", "in", "--words", "-"), "--words", "TEXT", code=2)
    assert_failed(run("neighbors", "-m", "charagram-phrase", "a"), "--words FILE")
    assert_failed(run("neighbors", "a", "--words", "-", stdin=b"\xff\n"), "line 1", "UTF-8")
