"""What a query demands: words that are left out, phrases, a least score; and what it takes as it is."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.jobs.search import snapshot as snapshot_module
from gramvec.lexical.demands import Demands, demands_of
from support.bulk import gramvec_command
from support.errors import refused

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

TEXTS = [
    "track a parcel",
    "Parcel a track",
    "the parcel is lost",
    "lost and found: a parcel",
    "TRACK  A PARCEL now",
    "track a parcelling",
    "東京大学の天気",
    "Caf\u00e9 cr\u00e8me",
    "creme of a cafe",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    return gramvec.Index.build(tmp_path_factory.mktemp("demands") / "x.index", TEXTS, model=small)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('a "lost parcel" now', Demands("a lost parcel now", ("lost parcel",))),
        ("parcel -lost", Demands("parcel", (), ("lost",))),
        ('parcel -"lost and found" -late', Demands("parcel", (), ("lost and found", "late"))),
        ("\u201clost parcel\u201d", Demands("lost parcel", ("lost parcel",))),
        ("-東京 天気", Demands("天気", (), ("東京",))),
    ],
)
def test_what_a_query_demands(query: str, expected: Demands) -> None:
    assert demands_of(query) == expected


@pytest.mark.parametrize(
    "query",
    ["", "-lost", '-"lost parcel"', "6205-2Z", "6205 -2Z", "a - b", "well-known", '6" pipe 4" long', '"', '""', '" "',
     '"half', 'a "long" query -that has many words and so its marks are prose', 'a"b c"d', "5 -3", "it's", "--", "- -"],
)  # fmt: skip
def test_a_query_that_does_not_say_so_is_taken_as_it_is(query: str) -> None:
    assert demands_of(query) == Demands(query)


@pytest.mark.parametrize("only", [None, "letters", "meaning"])
@pytest.mark.parametrize("compared", [3, 1 << 15])
def test_texts_are_left_out_and_phrases_kept(
    index: gramvec.Index, only: Any, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "COMPARED_ROWS", compared)

    def ids(query: str, **options: Any) -> set[str]:
        return {hit.id for hit in index.search(query, 9, only=only, **options)[0]}

    assert ids('"track a parcel"') == {"1", "5"}
    assert ids('now "track a parcel" -now') == {"1"}
    assert ids('"creme" cafe') == {"8", "9"}
    assert ids('"cafe creme"') == {"8"}
    assert ids('"nothing at all"') == set()
    assert not {"3", "4"} & ids("parcel -lost")
    assert {"1", "2", "5"} <= ids("parcel -lost")
    assert "3" in ids("parcel -lost", literal=True)
    assert not {"3", "4"} & ids("parcel -lost -nothing")
    if only != "meaning":
        assert "7" in ids('"東京"')
        assert "7" not in ids("大学 a parcel -東京")


def test_phrases_are_looked_for_beyond_the_first_documents(
    tmp_path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"red shoe {number}" for number in range(300)] + [
        "a shoe that is red, and long in words " * 3 + "shoe red"
    ]
    index = gramvec.Index.build(tmp_path / "x", texts, model=small)
    assert [hit.id for hit in index.search('"shoe red"', 5)[0]] == ["301"]
    monkeypatch.setattr(snapshot_module, "MAX_LOOKED_THROUGH", 100)
    assert index.search('"shoe red"', 5) == [[]]


def test_hits_without_a_score_are_not_listed(index: gramvec.Index) -> None:
    for only in (None, "letters", "meaning"):
        hits = index.search("parcel 東京", 9, only=only)[0]  # type: ignore[arg-type]
        assert all(hit.score > 0 for hit in hits)
        least = hits[1].score
        assert index.search("parcel 東京", 9, only=only, min_score=least)[0] == [h for h in hits if h.score >= least]  # type: ignore[arg-type]
    assert index.search("", 9) == [[]]
    for score in (-1, float("nan"), "x", True, float("inf")):
        with refused(InputError, "min_score"):
            index.search("x", min_score=score)  # type: ignore[arg-type]


def test_the_command_takes_them(index: gramvec.Index) -> None:
    done = gramvec_command("search", index.path, '"track a parcel" -now', "--only", "letters", "--format", "jsonl")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["1"]
    done = gramvec_command("search", index.path, "parcel -lost", "--literal", "--only", "letters")
    assert b"\t3\t" in done.stdout
    best = float(done.stdout.split(b"\t")[0])
    done = gramvec_command(
        "search", index.path, "parcel -lost", "--literal", "--only", "letters", "--min-score", str(best - 0.0001)
    )
    assert len(done.stdout.splitlines()) == 1


def test_ids_may_be_numbers(tmp_path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.build(tmp_path / "x", [f"text {at}" for at in range(9)], model=small)
    assert index.remove(1) == 8
    assert index.remove([2, "3"]) == 6
    assert index.remove(np.array([4, 5])) == 4
    assert index.remove({6}) == 3
    for wrong in (True, [1.5], [None], Decimal(7)):
        with pytest.raises(InputError, match="ids|iterable"):
            index.remove(wrong)  # type: ignore[arg-type]
