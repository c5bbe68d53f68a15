"""`gramvec index`, `gramvec search` and `gramvec.Index`: what is found, what is kept, what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import gramvec
from conftest import ROOT
from gramvec.errors import InputError
from gramvec.jobs.search import build, segments, writer
from gramvec.jobs.search import snapshot as snapshot_module
from gramvec.jobs.search.filters import parse_conditions
from gramvec.jobs.search.folder import lock_for_writing, read_manifest
from gramvec.lexical.demands import Demands
from gramvec.lexical.letters import LETTERS_SHARE, count_ngrams, idf, letter_scores
from support.bulk import MODEL, PATIENCE, gramvec_command
from support.errors import assert_names, refused

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

TEXTS = ["cheap flights", "reset my password", "bananas", "track a parcel", "where is my order", "caf\u00e9 \U0001f642"]
RECORDS = [
    {"key": "a", "text": "lost parcel", "team": "post", "price": 3, "day": "2024-01-05"},
    {"key": "b", "text": "parcel is late", "team": "post", "price": 4.5, "day": "2024-02-05T10:00:00Z"},
    {"key": "c", "text": "reset my password", "team": "web's [x] AND y", "price": -1, "day": "2025-01-05"},
    {"key": "d", "text": "app closes", "team": None},
]


@pytest.fixture
def path(tmp_path: Path, small: gramvec.Embedder) -> Path:
    gramvec.Index.build(tmp_path / "things.index", TEXTS, model=small)
    return tmp_path / "things.index"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    path = tmp_path_factory.mktemp("records") / "records.index"
    return gramvec.Index.build(path, RECORDS, model=small, id="key", filter=["team", "price", "day"])


def failure(*arguments: object, code: int = 1) -> str:
    done = gramvec_command(*arguments)
    assert done.returncode == code, done
    return done.stderr.decode()


def letters_of(query: str, texts: list[str]) -> dict[str, float]:
    """The letters' share of the score: n-grams that no text has are left out of what BM25 is divided by."""
    held, asked = [count_ngrams(text) for text in texts], count_ngrams(query)
    holding = np.array([sum(name in one for one in held) for name in asked], np.float64)
    weights = idf(holding, len(texts)) * [*asked.values()]
    known = weights[holding > 0].sum()
    scores = letter_scores(query, texts) * (weights.sum() / known if known else 0) / LETTERS_SHARE
    return dict(zip(texts, scores.tolist(), strict=True))


def ids(hits: list[gramvec.jobs.search.Hit]) -> list[str]:
    return [hit.id for hit in hits]


def test_who_may_read_the_folder_may_read_all_of_it(path: Path, small: gramvec.Embedder) -> None:
    """As a service in a container, which is another user: tantivy makes some files for their owner only."""
    index = gramvec.Index.build(path, TEXTS, model=small)
    index.add(["one more"])
    assert {stat.S_IMODE(one.stat().st_mode) & 0o444 for one in path.rglob("*") if one.is_file()} == {0o444}


def test_a_folder_that_cannot_be_written_is_read_through_links(
    path: Path, tmp_path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = gramvec.Index.build(path, TEXTS, model=small).search("cheap flihgts")
    monkeypatch.setattr(segments.os, "access", lambda *_: False)
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(links))
    for one in path.rglob("*.lock"):
        one.unlink()
    index = gramvec.Index.open(path, model=small)
    assert index.search("cheap flihgts") == expected
    assert not list(path.rglob("letters/*.lock")) and not list(links.iterdir())


def test_scores_are_letters_and_meaning(path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index(path, model=small)
    for query in ("cheap flihgts", "parcel order", "my passwords my", "fruit"):
        (hits,) = index.search(query, 6)
        assert len(hits) >= 3, query
        texts = [hit.record["text"] for hit in hits]
        meaning = small.similarity([query], texts)[0]
        near = dict(zip(TEXTS, small.similarity([query], TEXTS)[0].tolist(), strict=True))
        # Tantivy rounds lengths of over 40 tokens; these are shorter.
        letters = letters_of(query, TEXTS)
        expected = [cosine + letters[text] for cosine, text in zip(meaning.tolist(), texts, strict=True)]
        assert [hit.score for hit in hits] == pytest.approx(expected, abs=0.006)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        only = {hit.record["text"]: hit.score for hit in index.search(query, 6, only="letters")[0]}
        assert only == pytest.approx({text: score for text, score in letters.items() if score}, abs=1e-5)
        only = {hit.record["text"]: hit.score for hit in index.search(query, 6, only="meaning")[0]}
        assert only == pytest.approx({text: near[text] for text in only}, abs=0.006)
        assert len(only) >= sum(cosine > 0.006 for cosine in near.values())


def test_candidates_of_one_side_have_both_scores(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = gramvec.Index(path, model=small)
    whole = {hit.id: hit.score for hit in index.search("my parcel order", 6)[0]}
    monkeypatch.setattr(snapshot_module, "CANDIDATES", 2)
    found = index.search("my parcel order", 2)[0]
    assert {hit.id: hit.score for hit in found} == pytest.approx({hit.id: whole[hit.id] for hit in found})
    monkeypatch.setattr(snapshot_module, "COMPARED_ROWS", 3)
    large = index.search("my parcel order", 2)[0]
    assert {hit.id: hit.score for hit in large} == pytest.approx({hit.id: whole[hit.id] for hit in large})


def test_what_cannot_be_among_the_best_is_not_looked_up(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["parcel", "order", "late", "lost", "password", "reset", "cheap", "flight", "refund", "where", "my", "the"]
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(words, rng.integers(2, 7))) for _ in range(300)]
    index = gramvec.Index.build(path, texts, model=small)
    queries = ["where is my parcel", "cheap flihgt", "refund", "the the order", "nothing here"]
    monkeypatch.setattr(snapshot_module, "CANDIDATES", 20)
    for k in (1, 3, 20, 25):
        monkeypatch.setattr(snapshot_module, "ROUNDING", 1e-4)
        found = index.search(queries, k)
        monkeypatch.setattr(snapshot_module, "ROUNDING", 1e9)
        assert found == index.search(queries, k)


def test_common_ngrams_of_a_large_index_are_not_searched(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"the order {number}" for number in range(40)] + ["the parcel"]
    index = gramvec.Index.build(path, texts, model=small)
    assert len(index.search("the parcel", 41, only="letters")[0]) == 41
    monkeypatch.setattr(snapshot_module, "COMMON_DOCUMENTS", 10)
    (rare,) = index.search("the parcel", 41, only="letters")
    assert [hit.record["text"] for hit in rare] == ["the parcel"]
    # However common all are, some are searched for.
    assert len(index.search("the", 41, only="letters")[0]) == 41


def test_queries_of_any_kind(path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.open(path, model=small)
    assert len(index) == 6
    assert index.columns == ["text"]
    for text, hits in zip(TEXTS, index.search(TEXTS, k=6), strict=True):
        assert (hits[0].record, hits[0].id) == ({"text": text}, str(TEXTS.index(text) + 1))
    assert index.search([]) == []
    for only in (None, "letters", "meaning"):
        assert index.search("", only=only) == [[]]
    assert index.search("...", 2, only="letters") == [[]]
    assert len(index.search("bananas " * 8_000, 2)[0]) == 2
    long = "".join(chr(0x4E00 + at % 20_000) for at in range(65_536))
    began = time.process_time()
    assert len(index.search([long, " ".join(long)[:65_536]], 2)) == 2
    assert time.process_time() - began < 20
    with pytest.raises(InputError, match="65536"):
        index.search("x" * 65_537)
    for k in (0, 10_001, True, 1.5):
        with refused(InputError, "k"):
            index.search("x", k=k)  # type: ignore[arg-type]
    with refused(InputError, "only", "'letters'", "'meaning'"):
        index.search("x", only="both")  # type: ignore[arg-type]
    with refused(InputError, "text 1", "missing"):
        index.search(["a", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="a mapping"):
        index.search({"a": "b"})


def test_a_repeated_ngram_is_searched_once(
    path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = gramvec.Index(path, model=small).snapshot()
    asked: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(query, name)

    query = snapshot._query
    monkeypatch.setattr(snapshot, "_query", Counting())
    snapshot.find([Demands("parcel " * 5_000)], None, 3, only="letters")
    assert asked.count("term_query") < 10


def test_of_a_long_query_the_rarest_ngrams_count(path: Path, small: gramvec.Embedder, monkeypatch: Any) -> None:
    index = gramvec.Index(path, model=small)
    monkeypatch.setattr(snapshot_module, "MAX_SEARCHED", 3)
    assert ids(index.search("where is my order bananas", 1, only="letters")[0]) in (["3"], ["5"])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"team": "post"}, "ab"),
        ({"team": ["post", "web's [x] AND y"]}, "abc"),
        ({"team": "web's [x] AND y"}, "c"),
        ({"team": "* OR post"}, ""),
        ({"price": 3}, "a"),
        ({"price": "3.0"}, "a"),
        ({"price": {"gte": 3}}, "ab"),
        ({"price": {"gt": 3}}, "b"),
        ({"price": {"gt": -5, "lt": 3}}, "c"),
        ({"price": {"lte": 4.5}, "team": "post"}, "ab"),
        ({"day": "2024-01-05"}, "a"),
        ({"day": {"gte": "2024-02-05T11:00:00+01:00"}}, "bc"),
        ({"day": {"lt": "2024-02-05"}}, "a"),
        ({"day": {"gte": "2024-01-01", "lt": "2025-01-01"}}, "ab"),
        ({}, "abcd"),
    ],
)
def test_conditions(records: gramvec.Index, where: Any, expected: str) -> None:
    for only in (None, "letters", "meaning"):
        found = records.search("parcel app password my", where=where, only=only)[0]  # type: ignore[arg-type]
        assert "".join(sorted(ids(found))) == expected


def test_conditions_of_the_command() -> None:
    assert parse_conditions(["a=x", "a=y", "b>=3", "b<9"]) == {"a": ["x", "y"], "b": {"gte": "3", "lt": "9"}}
    assert parse_conditions(["day:[2024-01-01 TO *]", "n={1 TO 2]"]) == {
        "day": {"gte": "2024-01-01"},
        "n": {"gt": "1", "lte": "2"},
    }
    assert parse_conditions(["a:x=y"]) == {"a": ["x=y"]}
    for wrong in (["a"], ["=x"], ["a=1", "a>2"], ["a>1", "a>2"]):
        with pytest.raises(InputError, match="^where: "):
            parse_conditions(wrong)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"text": "x"}, r"narrowed by text.*team, price, day"),
        ({"team": [["a"]]}, "equal"),
        ({"team": {"gte": "a"}}, "bounds"),
        ({"price": "much"}, r"price.*number.*much"),
        ({"price": True}, r"price.*number"),
        ({"price": 2**60}, r"price.*number"),
        ({"price": {"gte": 1, "gt": 2}}, "two bounds"),
        ({"price": {"from": 1}}, r"price.*gt, gte, lt"),
        ({"day": "yesterday"}, r"day.*date"),
        ({"team": ["x"] * 1_001}, "1001 values"),
        ("team=post", r"where.*columns"),
    ],
)
def test_bad_conditions_are_one_sentence(records: gramvec.Index, where: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        records.search("x", where=where)


def test_a_value_of_another_kind_is_named(tmp_path: Path, small: gramvec.Embedder) -> None:
    rows = [{"text": "a", "n": "1"}, {"text": "b", "n": "two"}]
    with refused(InputError, "line 2", "two", "n", "number"):
        gramvec.Index.build(tmp_path / "x", rows, model=small, filter=["n:number"])
    assert not (tmp_path / "x").exists()
    index = gramvec.Index.build(tmp_path / "x", rows, model=small, filter=["n"])
    assert ids(index.search("a", where={"n": "two"})[0]) == ["2"]
    with refused(InputError, "no row", "m"):
        gramvec.Index.build(tmp_path / "y", rows, model=small, filter=["m"])


@pytest.mark.parametrize("name", ["", "\udcff", "x" * 201])
def test_a_name_that_a_manifest_cannot_hold_is_refused(tmp_path: Path, small: gramvec.Embedder, name: str) -> None:
    for where in ({"column": name}, {"id": name}, {"filter": [f"{name}:number"]}):
        with pytest.raises(InputError, match="a column's name"):
            gramvec.Index.build(tmp_path / "x", [], model=small, **where)  # type: ignore[arg-type]
        assert not (tmp_path / "x").exists()


def test_rows_are_added_removed_and_replaced(records: gramvec.Index, small: gramvec.Embedder, tmp_path: Path) -> None:
    records = gramvec.Index(shutil.copytree(records.path, tmp_path / "x"), model=small)
    before = records.digest
    assert records.add([{"key": "e", "text": "new shoes", "price": 7}]) == 5
    assert records.digest != before
    with refused(InputError, "id a", "already", "nothing"):
        records.add([{"key": "f", "text": "x"}, {"key": "a", "text": "y"}])
    with refused(InputError, "two", "id f"):
        records.add([{"key": "f", "text": "x"}, {"key": "f", "text": "y"}])
    assert len(gramvec.Index(records.path)) == 5
    assert records.add([{"key": "a", "text": "green apples", "team": "fruit"}], replace=True) == 5
    assert ids(records.search("green apples", 1)[0]) == ["a"]
    assert records.search("apples", where={"team": "fruit"})[0][0].record["text"] == "green apples"
    assert "lost parcel" not in [hit.record["text"] for hit in records.search("lost parcel", 9)[0]]
    assert records.remove(["a", "b"]) == 3
    for only in (None, "letters", "meaning"):
        assert not {"a", "b"} & set(ids(records.search("green apples late parcel", 9, only=only)[0]))  # type: ignore[arg-type]
    with refused(InputError, "zz", "1 of 2", "nothing"):
        records.remove(["c", "zz"])
    with refused(InputError, "no row"):
        records.remove(["c", "d", "e"])
    assert len(records) == 3
    # A row is never used twice: what was open before still has its own vectors.
    opened = gramvec.Index(records.path, model=small)
    former = opened.search("new shoes", 3)
    records.remove("e")
    records.add([{"key": "g", "text": "old boots"}])
    assert ids(opened.search("new shoes", 3)[0]) == ids(former[0])


def test_counted_ids_go_on(path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index(path, model=small)
    index.add(["seven", "eight"])
    index.remove("8")
    index.add(["nine"])
    assert ids(index.search("nine", 1)[0]) == ["9"]
    with refused(InputError, "ids"):
        index.add(["x"], replace=True)


def test_all_rows_are_found_in_any_number_of_segments(tmp_path: Path, small: gramvec.Embedder) -> None:
    texts = [f"parcel number {number} of {number % 7}" for number in range(3_000)]
    index = gramvec.Index.build(tmp_path / "x", texts[:2_500], model=small)
    for start in range(2_500, 3_000, 100):
        index.add(texts[start : start + 100])
    for number in (0, 17, 2_499, 2_500, 2_999):
        hit = index.search(texts[number], 1)[0][0]
        assert hit.record == {"text": texts[number]}
    assert len({hit.id for hit in index.search("parcel", 3_000)[0]}) == 3_000


def build_in_process(source: Path, output: Path, *options: str, patch: str) -> subprocess.Popen[bytes]:
    imports = "import sys, time\nfrom gramvec.jobs.search import build, writer"
    code = f"{imports}\n{patch}\nfrom gramvec.cli import main\nmain()"
    arguments = ["index", "build", str(source), "-o", str(output), "-m", MODEL, *options]
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=ROOT, stderr=subprocess.PIPE)


SLOW_BUILD = """
build.CHECKPOINT_SECONDS = 0
commit = writer.IndexWriter.commit
def slow(self):
    WHEN
    commit(self)
    if self.rows > 4000:
        print("committed", file=sys.stderr, flush=True)
        time.sleep(60)
writer.IndexWriter.commit = slow
"""


@pytest.mark.parametrize("before", [False, True])
def test_a_killed_build_is_resumed_to_the_same_answers(tmp_path: Path, small: gramvec.Embedder, before: bool) -> None:
    """Killed after a commit, or between the journal and its commit."""
    source = tmp_path / "lines.csv"
    lines = [f"k{number},parcel {number} is {number * 7919 % 1009}" for number in range(9_000)]
    source.write_text("key,text\n" + "\n".join(lines) + "\n")
    when = (
        'self.rows > 5000 and (print("committed", file=sys.stderr, flush=True), time.sleep(60))' if before else "pass"
    )
    process = build_in_process(source, tmp_path / "x", "--id", "key", patch=SLOW_BUILD.replace("WHEN", when))
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"committed\n"
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert "not finished" in failure("search", tmp_path / "x", "parcel")
    common = ("-o", tmp_path / "x", "-m", MODEL)
    assert "another" in failure("index", "build", source, *common, "--resume")
    done = gramvec_command("index", "build", source, *common, "--id", "key", "--resume")
    assert done.returncode == 0, done.stderr
    index = gramvec.Index(tmp_path / "x", model=small)
    plain = gramvec.Index.build(
        tmp_path / "y", [dict(zip(("key", "text"), line.split(","), strict=True)) for line in lines], id="key",
        model=small,
    )  # fmt: skip
    assert len(index) == len(plain) == 9_000
    for query in ("parcel 8999 is 1", "parcel 17"):
        one, other = index.search(query, 5)[0], plain.search(query, 5)[0]
        assert ids(one)[:1] == ids(other)[:1]
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=1e-5)
    assert sorted(one.name for one in (tmp_path / "x").iterdir()) == [
        ".lock", read_manifest(tmp_path / "x").generation, "manifest.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"job": []},
        {"checkpoints": [3]},
        {"point": {"position": [-1, 1]}},
        {"point": {"position": [0]}},
        {"point": {"rows": "x"}},
    ],
)
def test_a_damaged_journal_is_one_sentence(
    path: Path, small: gramvec.Embedder, tmp_path: Path, changed: dict[str, Any]
) -> None:
    point = {"rows": 0, "position": [0, 1], "read": 0, "next_id": 0, "bad": {"reasons": []}} | changed.get("point", {})
    manifest = json.loads((path / "manifest.json").read_text()) | {"generation": "0" * 16}
    journal = {"job": {}, "manifest": manifest, "checkpoints": [point]} | changed
    (path / "building.json").write_text(json.dumps(journal))
    (tmp_path / "a.txt").write_text("cheap flights")
    with refused(InputError, "building.json", "damaged", "`resume`"):
        build.build_index(small, tmp_path / "a.txt", path, resume=True)
    assert len(gramvec.Index(path)) == 6


def test_a_killed_add_leaves_the_last_commit(path: Path, small: gramvec.Embedder, tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text("one more parcel\n")
    for patch in ("pass", "commit(self)"):
        code = (
            "import os, sys\nfrom gramvec.jobs.search import writer\ncommit = writer.IndexWriter.commit\n"
            f"def killed(self):\n    {patch}\n    os.kill(os.getpid(), 9)\nwriter.IndexWriter.commit = killed\n"
            "from gramvec.cli import main\nmain()"
        )
        before = len(gramvec.Index(path))
        subprocess.run([sys.executable, "-c", code, "index", "add", path, more, "-m", MODEL], cwd=ROOT, check=False)
        index = gramvec.Index(path, model=small)
        assert len(index) == before + (patch != "pass")
    assert index.add(["the last"]) == before + 2
    assert index.search("the last", 1)[0][0].record == {"text": "the last"}
    assert len({one.id for some, _ in index.snapshot().stored.by_row() for one in some}) == len(index)


def test_two_writers_are_refused(path: Path, small: gramvec.Embedder) -> None:
    with lock_for_writing(path), refused(InputError, "another run"):
        gramvec.Index(path, model=small).add(["x"])


def test_a_full_disk_is_one_sentence_and_changes_nothing(
    path: Path, small: gramvec.Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer.IndexWriter, "commit", full)
    with refused(gramvec.GramvecError, "No space left", "nothing was added"):
        gramvec.Index(path, model=small).add(["x"])
    assert len(gramvec.Index(path)) == 6
    with refused(gramvec.GramvecError, "No space left", "nothing was kept"):
        gramvec.Index.build(path, ["y"], model=small)
    assert len(gramvec.Index(path)) == 6
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("gramvec.jobs.search.build.IndexWriter", lambda *_: full(None))
    for place in (path, tmp_path / "new.index"):
        with pytest.raises(OSError, match="No space left"):
            gramvec.Index.build(place, ["y"], model=small)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_index_is_replaced_when_the_new_one_is_whole(path: Path, small: gramvec.Embedder) -> None:
    opened = gramvec.Index(path, model=small)
    with refused(InputError, "no text"):
        gramvec.Index.build(path, [], model=small)
    assert len(gramvec.Index(path)) == 6
    gramvec.Index.build(path, ["other"], model=small)
    assert len(gramvec.Index(path)) == 1
    assert ids(opened.search("bananas", 1)[0]) == ["3"]
    assert opened.reload() == 1


def replaced_by_link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


def changed(manifest: Path, **values: Any) -> None:
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | values))


DAMAGES: dict[str, Callable[[Path, Path], object]] = {  # of manifest.json and the folder of the generation
    "link": lambda manifest, made: replaced_by_link(manifest),
    "fifo": lambda manifest, made: (manifest.unlink(), os.mkfifo(manifest)),
    "large": lambda manifest, made: manifest.write_text(" " * 70_000),
    "generation": lambda manifest, made: changed(manifest, generation="../../../etc/pass"),
    "format": lambda manifest, made: changed(manifest, format=9),
    "dimensions": lambda manifest, made: changed(manifest, dimensions=400),
    "swapped": lambda manifest, made: (
        np.fromfile(made / "vectors.bin", np.int8).reshape(6, -1)[::-1].tofile(made / "vectors.bin")
    ),
    "cut": lambda manifest, made: os.truncate(made / "vectors.bin", 100),
    "segment": lambda manifest, made: next(made.glob("letters/*.term")).unlink(),
    "linked segment": lambda manifest, made: replaced_by_link(next(made.glob("letters/*.store"))),
    "footer": lambda manifest, made: os.truncate(next(made.glob("letters/*.store")), 9),
    "meta": lambda manifest, made: (made / "letters" / "meta.json").write_text('{"segments": 3}'),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_folder_is_one_sentence(path: Path, small: gramvec.Embedder, how: str) -> None:
    DAMAGES[how](path / "manifest.json", path / read_manifest(path).generation)
    with pytest.raises(InputError) as caught:
        gramvec.Index(path, model=small).search("bananas")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.fixture
def checked(path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of an index's files that were checked, as it is once they are old enough."""
    found = path / read_manifest(path).generation / "checked.json"
    gramvec.Index(path, model=small)
    assert not found.exists()  # the files have only just been written
    monkeypatch.setattr(segments, "SETTLED_NS", 0)
    gramvec.Index(path, model=small)
    return found


def test_a_file_is_read_again_once_it_has_changed(
    checked: Path, path: Path, small: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    compare = segments._check_sum
    monkeypatch.setattr(segments, "_check_sum", lambda path, file: (read.append(file.name), compare(path, file)))
    assert len(gramvec.Index(path, model=small)) == 6
    assert not read
    store = next(checked.parent.glob("letters/*.store"))
    before = store.stat()
    data = store.read_bytes()
    time.sleep(0.02)  # or the file system may take both times for one
    store.write_bytes(data[:3] + b"?" + data[4:])
    os.utime(store, ns=(before.st_atime_ns, before.st_mtime_ns))  # the file looks as it did, but to the file system
    with pytest.raises(InputError, match="checksum of .*store"):
        gramvec.Index(path, model=small)
    assert read == [store.name]
    store.write_bytes(data)
    copy = Path(shutil.copytree(path, path.parent / "copy"))
    read.clear()
    assert len(gramvec.Index(copy, model=small)) == 6
    assert set(read) == {*orjson.loads(checked.read_bytes())}  # a copy's files are others


@pytest.mark.parametrize("planted", ["link", "fifo", "large", "nonsense", "list"])
def test_a_list_of_checked_files_that_is_not_one_is_no_list(
    checked: Path, path: Path, small: gramvec.Embedder, planted: str
) -> None:
    kept, before = checked.read_bytes(), (path / "manifest.json").read_bytes()
    checked.unlink()
    {
        "link": lambda: checked.symlink_to(path / "manifest.json"),
        "fifo": lambda: os.mkfifo(checked),
        "large": lambda: checked.write_bytes(kept + b" " * (5 << 20)),
        "nonsense": lambda: checked.write_bytes(b"\xff" + kept),
        "list": lambda: checked.write_bytes(b"[1]"),
    }[planted]()
    assert len(gramvec.Index(path, model=small)) == 6
    assert (path / "manifest.json").read_bytes() == before
    if planted in {"large", "nonsense", "list"}:
        assert checked.read_bytes() == kept


def test_another_model_is_refused(path: Path, embedder: gramvec.Embedder) -> None:
    with refused(InputError, "paragram-phrase", "gramvec-en"):
        gramvec.Index(path, model=embedder)
    both = gramvec.load("gramvec-en", device="cpu", space="both")
    with refused(InputError, "space"):
        gramvec.Index.build(path, TEXTS, model=both)


def test_a_record_that_is_nested_too_deeply_is_never_kept(tmp_path: Path, small: gramvec.Embedder) -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    with refused(InputError, "deeper", "32"):
        gramvec.Index.build(tmp_path / "x", ["fine", {"text": "a", "more": deep}], model=small)
    source = tmp_path / "lines.jsonl"
    source.write_text('{"text": "fine"}\n{"text": "deep", "more": ' + "[" * 40 + "]" * 40 + "}\n")
    done = gramvec_command("index", "build", source, "-o", tmp_path / "x", "-m", MODEL, "--on-error", "skip")
    assert done.returncode == 0, done
    assert len(gramvec.Index(tmp_path / "x")) == 1


def test_planted_links_are_not_followed(path: Path, small: gramvec.Embedder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    before = gramvec.Index(path, model=small).search(["parcel"])
    for planted in (path / ".manifest.json.new", path / ".building.json.new"):
        for plant in (lambda one: one.symlink_to(victim), Path.mkdir):
            plant(planted)
            with refused(InputError, "link"):
                gramvec.Index(path, model=small).add(["x"])
            with refused(InputError, "link"):
                gramvec.Index.build(path, ["y"], model=small)
            planted.unlink() if planted.is_symlink() else planted.rmdir()
    assert victim.read_text() == "precious"
    assert gramvec.Index(path, model=small).search(["parcel"]) == before
    other = tmp_path / "link.index"
    other.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a file"):
        gramvec.Index.build(other, ["y"], model=small)


def test_other_folders_are_left_alone(tmp_path: Path, small: gramvec.Embedder) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("precious")
    with refused(InputError, "other files"):
        gramvec.Index.build(tmp_path / "mine", ["y"], model=small)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "precious"


def test_the_options_of_the_commands(tmp_path: Path) -> None:
    """Those that the examples of docs/search.md have not."""
    source, more, path = tmp_path / "tickets.csv", tmp_path / "more.csv", tmp_path / "tickets.index"
    source.write_text("number,subject,team\n7,lost parcel,post\n9,app closes,web\n")
    more.write_text("number,subject,team\n7,found parcel,post\n")
    options = ("--column", "subject", "--id", "number", "--filter", "team", "-m", MODEL)
    assert gramvec_command("index", "build", source, "-o", path, *options).returncode == 0
    for only in ("letters", "meaning"):
        done = gramvec_command("search", path, "app", "--only", only, "--format", "jsonl", "-k", "1")
        assert json.loads(done.stdout)["id"] == "9"
    info = json.loads(gramvec_command("index", "info", path, "--json").stdout)
    assert (info["rows"], info["filters"]) == (2, ["team:text"])
    assert_names(failure("index", "add", path, more), "id 7", "already")
    assert gramvec_command("index", "add", path, more, "--replace").returncode == 0
    found = gramvec_command("search", path, "parcel found", "-k", "1")
    assert found.stdout.decode().split("\t")[2] == "found parcel"
    assert gramvec_command("search", path, "parcel found", "app", "-k", "1", "-o", tmp_path / "h.csv").returncode == 0
    lines = (tmp_path / "h.csv").read_text().splitlines()
    assert lines[0] == "query,rank,score,id,subject,number,team"
    assert [line.split(",")[-3:] for line in lines[1:]] == [["found parcel", "7", "post"], ["app closes", "9", "web"]]
    assert_names(failure("search", path, "app", "-o", tmp_path / "h.html"), ".html")
    done = gramvec_command("search", path, "app", "-o", tmp_path / "h.txt", "--format", "jsonl")
    assert done.returncode == 0 and json.loads((tmp_path / "h.txt").read_text().splitlines()[0])["subject"]
    assert_names(failure("search", path, "--file", source), "table", "--file")
    more.write_text("id,subject\nx,found parcel\n")
    options = ("--column", "subject", "-m", MODEL)
    assert gramvec_command("index", "build", more, "-o", tmp_path / "more.index", *options).returncode == 0
    done = gramvec_command("search", tmp_path / "more.index", "found", "--format", "csv")
    assert done.stdout.splitlines()[0] == b"query,rank,score,id,subject,record_id"
    refusal = failure("search", tmp_path / "more.index", "found", "--where", "id=x")
    assert_names(refusal, "narrowed by id", "--filter")


def test_columns_may_be_members_of_members(tmp_path: Path) -> None:
    """Text, id and filters have dots; also after a rebuild, and for `gramvec dedupe --against`."""
    source, path = tmp_path / "t.jsonl", tmp_path / "t.index"
    rows = [{"key": {"n": at}, "doc": {"title": title, "kind": "post"}} for at, title in enumerate(TITLES, start=7)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--column", "doc.title", "--id", "key.n", "--filter", "doc.kind", "-m", MODEL)
    assert gramvec_command("index", "build", source, "-o", path, *options).returncode == 0
    for _ in range(2):
        found = gramvec_command("search", path, "parcel", "-k", "1", "--where", "doc.kind=post")
        assert found.stdout.decode().split("\t")[1:3] == ["7", TITLES[0]]
        assert gramvec_command("search", path, '"lost parcel"', "-o", tmp_path / "h.csv").returncode == 0
        assert "lost parcel" in (tmp_path / "h.csv").read_text().splitlines()[1].split(",")[4]
        assert gramvec_command("index", "rebuild", path).returncode == 0
    (tmp_path / "new.txt").write_text(f"{TITLES[0]}\nbananas\n")
    known = gramvec_command("dedupe", tmp_path / "new.txt", "--against", path)
    assert known.stdout.decode().splitlines()[1].split("\t") == ["1", "7", "1.0", TITLES[0], TITLES[0]]


TITLES = ["lost parcel", "app closes"]


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.index"
    file.write_bytes(bytes(9_000))
    assert "is a file" in failure("search", file, "x")
    assert "is a file" in failure(
        "index", "build", ROOT / "README.md", "-o", file, "-m", MODEL, "--input-format", "txt"
    )
    assert "not an index" in failure("search", tmp_path, "x")


def test_ids_that_are_there_twice_are_found_across_blocks(tmp_path: Path, small: gramvec.Embedder) -> None:
    rows = [{"key": str(at % 5_000), "text": f"row {at}"} for at in range(5_001)]
    with refused(InputError, "two", "id 0"):
        gramvec.Index.build(tmp_path / "x", rows, model=small, id="key")
    assert not (tmp_path / "x").exists()
    seen = build.SeenIds(None, 0)
    seen.add([str(at) for at in range(200_000)])
    with refused(InputError, "two", "id 17"):
        seen.add(["200000", "17"])
