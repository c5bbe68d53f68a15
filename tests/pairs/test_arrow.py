"""Blocking keys and scores of Arrow arrays: the same for a row beside any others, in any engine."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import gramvec
from gramvec.jobs.pairs.arrow import blocking_keys, pair_scores
from support.errors import refused

pa = pytest.importorskip("pyarrow")

TEXTS = [
    "Canon PowerShot SD1100 IS",
    "CANON PowerShot  SD-1100 IS",
    "garden hose",
    "",
    None,
    "木村 拓哉",
    "C++",
    "a",
    "🙂",
]


def keys_of(texts: Any) -> list[list[int]]:
    found = blocking_keys(texts)
    assert found.type == pa.list_(pa.int64())
    return list(found.to_pylist())


def test_texts_that_are_alike_have_keys_in_common() -> None:
    keys = [set(one) for one in keys_of(pa.array(TEXTS))]
    assert [len(one) for one in keys] == [20, 20, 20, 0, 0, 20, 20, 20, 20]
    assert keys[0] & keys[1]
    assert not keys[0] & keys[2]
    same = keys_of(["Zürich", "ZURICH", "Zu\u200brich", "Ｚürich"])
    assert same == [same[0]] * 4


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_row_has_the_same_beside_any_others(size: int) -> None:
    array = pa.chunked_array([pa.array(TEXTS[:4]), pa.array(TEXTS[4:])])
    parts = [TEXTS[at : at + size] for at in range(0, len(TEXTS), size)]
    assert keys_of(array) == [one for part in parts for one in keys_of(part)]
    right = [*TEXTS[1:], TEXTS[0]]
    whole = pair_scores(array, right)
    assert whole.type == pa.float32()
    scores = whole.to_pylist()
    cut = [pair_scores(TEXTS[at : at + size], right[at : at + size]) for at in range(0, len(TEXTS), size)]
    assert scores == [one for part in cut for one in part.to_pylist()]
    assert scores[0] > 0.9
    assert scores[2:5] == [0, 0, 0]


def test_nothing_has_nothing() -> None:
    assert keys_of(pa.array([], pa.string())) == []
    assert keys_of([None, ""]) == [[], []]
    assert pair_scores([], []).to_pylist() == []


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(gramvec.InputError, match="text"):
        blocking_keys([1])
    with refused(gramvec.InputError, "1 left", "2 right"):
        pair_scores(["a"], ["a", "b"])


@pytest.mark.slow
def test_duckdb_finds_the_pairs_of_one_process() -> None:
    duckdb = pytest.importorskip("duckdb", reason="make test-integrations installs it")
    drawn = random.Random(1)
    words = ["".join(drawn.choices("abcdefghiklmnoprstuvw", k=drawn.randint(4, 9))) for _ in range(20_000)]
    texts = [" ".join(drawn.choices(words, k=3)) for _ in range(90_000)]
    # A tenth once more, with two letters swapped.
    for text in drawn.sample(texts, 10_000):
        at = drawn.randrange(len(text) - 1)
        texts.append(text[:at] + text[at + 1] + text[at] + text[at + 2 :])
    keys = np.array(blocking_keys(texts).flatten()).reshape(-1, 20)
    order = np.argsort(keys.ravel(), kind="stable")
    _, starts = np.unique(keys.ravel()[order], return_index=True)
    blocks = [np.unique(one // 20) for one in np.split(order, starts[1:]) if 2 <= len(one) <= 20]
    expected = sorted({pair for one in blocks for pair in combinations(one.tolist(), 2)})

    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    connection.create_function("keys_of", blocking_keys, ["VARCHAR"], "BIGINT[]", type="arrow")
    connection.create_function("score_of", pair_scores, ["VARCHAR", "VARCHAR"], "FLOAT", type="arrow")
    rows = pa.table({"id": range(len(texts)), "name": texts})
    connection.register("names", rows)
    connection.execute("create table keys as select id, unnest(keys_of(name)) as key from names")
    connection.execute("delete from keys where key in (select key from keys group by key having count(*) > 20)")
    ask = """
        with pairs as (
            select distinct a.id as one, b.id as other from keys a join keys b on a.key = b.key and a.id < b.id
        )
        select one, other, score_of(l.name, r.name) from pairs
        join names l on l.id = one join names r on r.id = other order by one, other
    """
    found = connection.execute(ask).fetchnumpy()
    one, other, scores = found.values()
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == expected
    left, right = ([texts[place] for place in side.tolist()] for side in (one, other))
    assert scores.tolist() == pair_scores(left, right).to_pylist()
    # Nearly all of what was changed is found.
    changed = {
        pair for pair, score in zip(expected, scores.tolist(), strict=True) if score >= 0.5 and pair[1] >= 90_000
    }
    assert len(changed) > 9_000
