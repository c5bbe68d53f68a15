"""`Embedder.rerank`: letters and meaning of given texts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import gramvec
from conftest import ROOT
from gramvec.errors import InputError
from gramvec.lexical.letters import letter_scores

QUERY = "lost parcle"
TEXTS = ["bananas", "a lost parcel", "", "my package has not arrived", "a lost parcel", "PARCEL"]


def test_a_score_is_letters_and_cosine(embedder: gramvec.Embedder) -> None:
    found = embedder.rerank(QUERY, TEXTS)
    cosines = embedder.similarity([QUERY], TEXTS)[0].tolist()
    letters = letter_scores(QUERY, TEXTS, shipped=embedder.sketch).tolist()
    expected = [cosine + part / 1.1 for cosine, part in zip(cosines, letters, strict=True)]
    assert [one.score for one in found] == pytest.approx([expected[one.place] for one in found], abs=1e-6)
    assert [one.place for one in found] == sorted(range(len(TEXTS)), key=lambda at: -found_score(found, at))
    assert [one.place for one in found[:2]] == [1, 4]  # equal texts: the earlier is first
    # The letters of "package" are other ones: its score is the meaning's.
    assert letters[3] == 0 and expected[3] == cosines[3] > 0


def found_score(found: list[Any], place: int) -> float:
    (score,) = [one.score for one in found if one.place == place]
    return float(score)


def test_top_n_and_generators(embedder: gramvec.Embedder) -> None:
    every = embedder.rerank(QUERY, (text for text in TEXTS))
    assert every == embedder.rerank(QUERY, TEXTS)
    assert embedder.rerank(QUERY, TEXTS, top_n=2) == every[:2]
    assert embedder.rerank(QUERY, TEXTS, top_n=100) == every
    assert embedder.rerank(QUERY, []) == []
    assert [one.score for one in embedder.rerank("", TEXTS)] == [0] * len(TEXTS)
    assert [tuple(one) for one in embedder.rerank("", ["", " "])] == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda model: model.rerank(QUERY, TEXTS, top_n=0), "top_n:"),
        (lambda model: model.rerank(QUERY, TEXTS, top_n=True), "top_n:"),
        (lambda model: model.rerank([QUERY], TEXTS), "query:"),
        (lambda model: model.rerank(QUERY, ["a", None]), "text 1 "),
        (lambda model: model.rerank(QUERY, "a text"), ""),
        (lambda model: model.rerank(QUERY, ["a", "b" * 10_000_000]), "text 1"),
    ],
)
def test_a_bad_argument_is_named(embedder: gramvec.Embedder, call: Any, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        call(embedder)
    assert str(raised.value).startswith(sentence)


def test_scores_are_the_same_in_every_process(embedder: gramvec.Embedder) -> None:
    code = (
        f"import gramvec; print(repr([tuple(one) for one in gramvec.load('gramvec-en').rerank({QUERY!r}, {TEXTS!r})]))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, timeout=120,
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert printed == {f"{[tuple(one) for one in embedder.rerank(QUERY, TEXTS)]!r}\n"}
