"""Names in scripts without spaces, and letters that look the same: what a search by letters finds."""

from __future__ import annotations

from pathlib import Path

import pytest

import gramvec

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

TEXTS = [
    "東京大学",
    "天気予報",
    "김민준",
    "山田 太郎",
    "王小明",
    "O\u2019Brien\u2019s Caf\u00e9",
    "Москва",
    "\uff21\uff22\uff23 GmbH",
    "Sigmund Freud",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    return gramvec.Index.build(tmp_path_factory.mktemp("scripts") / "x.index", TEXTS, model=small)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("東京", "東京大学"),
        ("大学", "東京大学"),
        ("天気", "天気予報"),
        ("민준", "김민준"),
        ("김 민준", "김민준"),
        ("山田太郎", "山田 太郎"),
        ("太郎", "山田 太郎"),
        ("王 小明", "王小明"),
        ("o'briens cafe", "O\u2019Brien\u2019s Caf\u00e9"),
        ("МОСКВА", "Москва"),
        ("abc", "\uff21\uff22\uff23 GmbH"),
        ("Sig\u200bmund", "Sigmund Freud"),
        ('"東京"', "東京大学"),
        ('"山田太郎"', "山田 太郎"),
    ],
)
def test_letters_find_a_name_as_it_is_typed(index: gramvec.Index, query: str, expected: str) -> None:
    (hits,) = index.search(query, 3, only="letters")
    assert hits[0].record["text"] == expected
    assert hits[0].score > 0.2


def test_an_index_that_grew_has_the_same_ngrams(tmp_path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.build(tmp_path / "x", TEXTS[:1], model=small)
    index.add(TEXTS[1:])
    assert index.search("東京 -天気", 9, only="letters")[0][0].record["text"] == "東京大学"
    assert index.search("天気 -予報 東", 9, only="letters")[0][0].record["text"] == "東京大学"
