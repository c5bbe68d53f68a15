"""POST /search over real HTTP: what gramvec.Index finds, narrowed, together, reloaded, refused."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import gramvec
from conftest import MODELS
from gramvec.client import Client
from gramvec.errors import InputError
from gramvec.jobs.search.snapshot import Snapshot
from gramvec.server.app import create_app
from gramvec.server.batching import work_queue
from gramvec.server.settings import Settings, settings_from
from support.bulk import MODEL
from support.errors import refused
from support.http import COMMAND, PATIENCE, RunningServer, post_bytes, running, served_process, until

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

RECORDS = [
    {"text": "lost parcel", "team": "post", "n": 1},
    {"text": "parcel is late", "team": "post", "n": 2},
    {"text": "reset my password", "team": "web", "n": 3},
    {"text": "app closes", "team": "app", "n": 4},
]
QUERY = "parcle lost"
KEY = {"authorization": "Bearer secret"}
JSON = {"content-type": "application/json"}


def built(path: Path, small: gramvec.Embedder, records: list[dict[str, Any]] = RECORDS) -> gramvec.Index:
    return gramvec.Index.build(path, records, model=small, filter=["team", "n"])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    return built(tmp_path_factory.mktemp("search") / "things.index", small)


@pytest.fixture(scope="module")
def server(index: gramvec.Index, small: gramvec.Embedder, embedder: gramvec.Embedder) -> Iterator[RunningServer]:
    # The index's model is not the default one.
    with running(Settings(index=(f"things={index.path}",), max_texts=300), [embedder, small]) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        yield client


def hits(found: list[list[gramvec.jobs.search.Hit]]) -> list[list[dict[str, Any]]]:
    return [[{"id": hit.id, "score": pytest.approx(hit.score), "record": hit.record} for hit in one] for one in found]


def test_it_answers_what_the_index_finds(client: httpx.Client, index: gramvec.Index, small: gramvec.Embedder) -> None:
    answer = client.post("/search", json={"queries": QUERY, "k": 2})
    assert answer.status_code == 200
    assert answer.json() == {"index": "things", "total": 4, "results": hits(index.search(QUERY, k=2))}
    assert answer.headers["x-model"] == f"{small.name}@{small.digest[:12]}"
    many = [QUERY, "", "pasword", *(f"{QUERY} {n}" for n in range(200))]
    assert client.post("/search", json={"queries": many}).json()["results"] == hits(index.search(many))
    body = {"index": "things", "queries": [QUERY], "where": {"team": "post", "n": [2, 3]}, "k": None}
    (found,) = client.post("/search", json=body).json()["results"]
    assert [hit["record"]["text"] for hit in found] == ["parcel is late"]
    bare = client.post("/search", json={"queries": QUERY, "k": 1, "return_records": False}).json()
    assert [set(hit) for hit in bare["results"][0]] == [{"id", "score"}]
    assert client.post("/search", json={"queries": QUERY, "where": {"team": "none"}}).json()["results"] == [[]]


def test_pages_and_totals(client: httpx.Client, index: gramvec.Index, server: RunningServer) -> None:
    whole = hits(index.search([QUERY, "app"], k=4))
    pages = [client.post("/search", json={"queries": [QUERY, "app"], "k": 2, "offset": at}).json() for at in (0, 2, 4)]
    assert [[hit for page in pages for hit in page["results"][at]] for at in (0, 1)] == whole
    assert [page["total"] for page in pages] == [4, 4, 4]
    for where, total in (({"team": "post"}, 2), ({"n": {"gte": 2}}, 3), ({"team": "none"}, 0)):
        for only in ("letters", None):
            asked = {"queries": QUERY, "where": where, "only": only, "offset": 10}
            assert client.post("/search", json=asked).json() == {"index": "things", "total": total, "results": [[]]}
    with Client(server.url) as made:
        assert [hit.id for hit in made.search([QUERY], 2, offset=1)[0]] == [hit["id"] for hit in whole[0][1:3]]
        with refused(InputError, "offset", "-1"):
            made.search([QUERY], offset=-1)


def test_rows_by_their_ids_and_all_of_them(client: httpx.Client, index: gramvec.Index) -> None:
    answer = client.post("/rows", json={"ids": ["3", "nothing", "1", "3", "\u00fc"]}).json()
    records = [answer["rows"][at].pop("record") for at in range(5)]
    assert records == [RECORDS[2], None, RECORDS[0], RECORDS[2], None]
    rows = [{"id": given_id} for given_id in ("3", "nothing", "1", "3", "\u00fc")]
    assert answer == {"index": "things", "total": 4, "rows": rows, "next": None}
    every = client.post("/rows", json={}).json()["rows"]
    assert [(row["id"], row["record"]) for row in every] == [*index.items()]
    first = client.post("/rows", json={"limit": 3, "return_records": False}).json()
    assert first["rows"] == [{"id": "1"}, {"id": "2"}, {"id": "3"}]
    rest = client.post("/rows", json={"limit": 3, "start": first["next"]}).json()
    assert ([row["id"] for row in rest["rows"]], rest["next"]) == (["4"], None)
    assert client.post("/rows", json={"start": 2**40}).json()["rows"] == []
    assert client.post("/rows", json={"ids": []}).json()["rows"] == []


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"ids": [7]}, 422, "ids[0]"),
        ({"ids": "7"}, 422, "ids"),
        ({"ids": ["7"] * 10_001}, 413, "JSON values"),
        ({"limit": 0}, 422, "limit"),
        ({"limit": 10_001}, 422, "limit"),
        ({"start": -1}, 422, "start"),
        ({"index": "nothing"}, 404, "'things'"),
        ({"where": {}}, 422, "where"),
    ],
)
def test_bad_requests_for_rows_are_one_sentence(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/rows", json=body)
    assert (answer.status_code, sentence in answer.json()["error"]) == (status, True), answer.text


def test_rows_of_an_index_from_which_some_were_removed(tmp_path: Path, small: gramvec.Embedder) -> None:
    index = built(tmp_path / "t.index", small)
    index.remove(["2"])
    with running(Settings(index=(f"t={index.path}",)), [small]) as started:
        pages = [httpx.post(f"{started.url}/rows", json={"limit": 1, "start": at}).json() for at in range(4)]
        lone = httpx.post(f"{started.url}/rows", content=b'{"ids": ["\\ud800"]}', headers=JSON)
    assert [[row["id"] for row in page["rows"]] for page in pages] == [["1"], [], ["3"], ["4"]]
    assert [page["next"] for page in pages] == [1, 2, 3, None] and {page["total"] for page in pages} == {3}
    assert lone.status_code in (400, 422), lone.text


def test_only_one_part(client: httpx.Client, index: gramvec.Index, server: RunningServer) -> None:
    for only in ("letters", "meaning", None):
        expected = hits(index.search([QUERY, "closes"], 3, where={"team": "post"}, only=only))  # type: ignore[arg-type]
        asked = {"queries": [QUERY, "closes"], "k": 3, "where": {"team": "post"}, "only": only}
        assert client.post("/search", json=asked).json()["results"] == expected
        with Client(server.url) as made:
            found = made.search([QUERY, "closes"], 3, where={"team": "post"}, only=only, return_records=False)  # type: ignore[arg-type]
        assert [[hit.id for hit in one] for one in found] == [[hit["id"] for hit in one] for one in expected]
    ranged = client.post("/search", json={"queries": "password parcel", "where": {"n": {"gte": 2, "lt": 4}}}).json()[
        "results"
    ]
    assert sorted(hit["id"] for hit in ranged[0]) == ["2", "3"]


def test_demands_and_a_least_score(client: httpx.Client, index: gramvec.Index, server: RunningServer) -> None:
    for options in ({}, {"literal": True}, {"min_score": 0.5}, {"min_score": None, "literal": None}):
        asked = {"queries": ["parcel -lost", '"parcel is late"'], "k": 3, "only": "letters", **options}
        given: Any = {name: value for name, value in options.items() if value is not None}
        expected = index.search(asked["queries"], 3, only="letters", **given)  # type: ignore[arg-type]
        assert client.post("/search", json=asked).json()["results"] == hits(expected)
        with Client(server.url) as made:
            found = made.search(["parcel -lost", '"parcel is late"'], 3, only="letters", **given)
        assert [[hit.id for hit in one] for one in found] == [[hit.id for hit in one] for one in expected]
    found = client.post(
        "/search", json={"queries": "parcel late", "where": {"team": {"ne": "post"}, "n": {"ne": None}}}
    )
    assert {hit["id"] for hit in found.json()["results"][0]} <= {"3", "4"}


def test_info_tells(client: httpx.Client, index: gramvec.Index, small: gramvec.Embedder) -> None:
    (told,) = client.get("/info").json()["indexes"]
    assert told == {
        "name": "things", "model": small.name, "rows": 4, "digest": index.digest, "text_columns": ["text"],
        "id_column": None, "filters": ["team", "n"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 422, "queries is missing"),
        ({"queries": []}, 422, "queries"),
        ({"queries": [1]}, 422, "queries[0]"),
        ({"queries": "x", "only": "both"}, 422, "only"),
        ({"queries": "x", "min_score": -1}, 422, "min_score"),
        ({"queries": "x", "literal": 1}, 422, "literal"),
        ({"queries": "x", "k": 0}, 422, "k:"),
        ({"queries": "x", "k": 10_001}, 422, "10,000"),
        ({"queries": "x", "offset": -1}, 422, "offset"),
        ({"queries": "x", "k": 10, "offset": 9_991}, 422, "offset"),
        ({"queries": ["x"] * 11, "offset": 9_990}, 413, "10000 documents"),
        (
            {"queries": ["x"] * 20, "k": 10_000},
            413,
            "10000 documents",
        ),
        ({"queries": ["x"] * 301}, 413, "301 texts"),
        ({"queries": "q" * 70_000}, 422, "70000"),
        ({"queries": "x", "index": "nothing"}, 404, "'things'"),
        ({"queries": "x", "where": {"text": "x"}}, 422, "team, n"),
        ({"queries": "x", "where": {"team": [["x"]]}}, 422, "team"),
        ({"queries": "x", "where": {"team": {"a": [1]}}}, 422, "gt, gte, lt"),
        ({"queries": "x", "where": {"n": "much"}}, 422, "much"),
        ({"queries": "x", "where": "team=post"}, 422, "where"),
        ({"queries": "x", "filter": {}}, 422, "filter"),
    ],
)
def test_bad_requests_are_one_sentence(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/search", json=body)
    assert (answer.status_code, sentence in answer.json()["error"]) == (status, True), answer.text


def test_a_plain_search_does_not_wait_for_narrowed_ones(
    server: RunningServer, index: gramvec.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, entered = threading.Event(), threading.Event()
    look = Snapshot.find

    def held(snapshot: Any, queries: Any, units: Any, k: int, conditions: Any, *rest: Any) -> Any:
        if conditions:
            entered.set()
            assert gate.wait(PATIENCE)
        return look(snapshot, queries, units, k, conditions, *rest)

    monkeypatch.setattr(Snapshot, "find", held)

    def ask(**others: Any) -> list[Any]:
        answer = httpx.post(f"{server.url}/search", json={"queries": QUERY, **others}, timeout=PATIENCE)
        return answer.json()["results"]  # type: ignore[no-any-return]

    with ThreadPoolExecutor(2) as pool:
        narrowed = [pool.submit(ask, where={"n": {"gte": at}}) for at in (0.5, 1.5)]
        assert entered.wait(PATIENCE)
        assert ask() == hits(index.search(QUERY))
        gate.set()
        assert [len(one.result(PATIENCE)) for one in narrowed] == [1, 1]


def test_many_queries_leave_others_their_turn(
    server: RunningServer, index: gramvec.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[str]] = []
    gate, entered = threading.Event(), threading.Event()
    look = Snapshot.find

    def held(snapshot: Any, texts: list[str], *rest: Any) -> Any:
        looks.append(texts)
        entered.set()
        assert gate.wait(PATIENCE)
        return look(snapshot, texts, *rest)

    monkeypatch.setattr(Snapshot, "find", held)
    monkeypatch.setattr("gramvec.server.edge.protocol.HALF_CLOSED_SECONDS", -1)
    queue = server.service.work_queue("searches")
    many = [f"parcel {number}" for number in range(20)]

    def ask(queries: Any) -> httpx.Response:
        return httpx.post(f"{server.url}/search", json={"queries": queries}, timeout=PATIENCE)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, many)
        assert entered.wait(PATIENCE)
        other = pool.submit(ask, QUERY)
        until(lambda: queue._present == 2)
        with server.connect() as gone:
            gone.sendall(post_bytes(b'{"queries": "nobody waits"}', path="/search"))
            until(lambda: queue._present == 3)
            there = server.connections
        until(lambda: server.connections < there)
        with monkeypatch.context() as patch:
            patch.setattr(work_queue, "MAX_PRESENT", 3)
            refused = ask(QUERY)
        assert (refused.status_code, refused.json()["error_type"]) == (429, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
        with monkeypatch.context() as patch:
            patch.setattr(queue._throughput, "cost_seconds", 1e9)
            late = ask(QUERY)
        assert (late.status_code, late.json()["error_type"]) == (429, "overloaded")
        assert "after its deadline" in late.json()["error"]
        gate.set()
        found = [answer.result(PATIENCE).json()["results"] for answer in (first, other)]
    # The short request came between two pieces of the long one; what nobody waited for was not searched.
    assert [len(texts) for texts in looks] == [8, 1, 8, 4]
    assert found == [[one for query in many for one in hits(index.search(query))], hits(index.search(QUERY))]
    assert queue._present == 0


def test_what_cannot_be_asked_for_does_not_wait(server: RunningServer, index: gramvec.Index) -> None:
    """It is refused before it is admitted."""
    queue = server.service.work_queue("searches")
    deep = b'{"queries": "x", "where": {"team": %b%b}}' % (b"[" * 500, b"]" * 500)
    bodies = [deep, b'{"queries": "x", "k": 10001}', b'{"queries": "x", "where": {"n": %b}}' % (b"9" * 40)] * 8

    def ask(body: bytes) -> int:
        headers = {"content-type": "application/json"}
        return httpx.post(f"{server.url}/search", content=body, headers=headers, timeout=PATIENCE).status_code

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, bodies)) == [422] * 24
        assert ask(b'{"queries": "parcel"}') == 200
    assert queue._present == 0


def test_a_new_file_is_served_after_a_reload(tmp_path: Path, small: gramvec.Embedder) -> None:
    path = tmp_path / "things.index"
    old = built(path, small)
    settings = settings_from({"index": (f"things={path}",), "api_key": ["secret"]})
    with running(settings, small) as server, httpx.Client(base_url=server.url, headers=KEY, timeout=PATIENCE) as client:
        unchanged = client.post("/admin/reload").json()["indexes"]
        assert unchanged == [{"name": "things", "digest": old.digest, "changed": False}]
        built(path, small, RECORDS[:1]).add([{"text": "new parcel", "team": "new"}])
        assert len(client.post("/search", json={"queries": QUERY}).json()["results"][0]) == 4
        new = gramvec.Index(path, model=small)
        changed = client.post("/admin/reload").json()["indexes"]
        assert changed == [{"name": "things", "digest": new.digest, "changed": True}]
        found = client.post("/search", json={"queries": QUERY, "where": {"team": "new"}}).json()["results"]
        assert found[0][0]["record"]["text"] == "new parcel"
        os.truncate(path / new.manifest.generation / "vectors.bin", 100)
        answer = client.post("/admin/reload")
        assert (answer.status_code, "a damaged index" in answer.json()["error"]) == (422, True)
        assert len(client.post("/search", json={"queries": QUERY}).json()["results"][0]) == 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_command_serves_and_reloads_it(tmp_path: Path, small: gramvec.Embedder, workers: str) -> None:
    path = tmp_path / "things.index"
    built(path, small)
    options = ["--model", MODEL, "--index", f"things={path}", "--workers", workers]
    with served_process(*options) as (process, port):
        url = f"http://127.0.0.1:{port}"

        def rows() -> list[int]:
            return [httpx.get(f"{url}/info", timeout=PATIENCE).json()["indexes"][0]["rows"] for _ in range(8)]

        def texts() -> list[str]:
            found = httpx.post(f"{url}/search", json={"queries": QUERY}, timeout=PATIENCE).json()["results"][0]
            return [hit["record"]["text"] for hit in found]

        assert set(rows()) == {4}
        assert texts()[0] == "lost parcel"
        gramvec.Index(path, model=small).add([{"text": QUERY}])
        process.send_signal(signal.SIGHUP)
        until(lambda: set(rows()) == {5})
        # Eight answers may all have come from the one worker that was replaced first.
        until(lambda: {texts()[0] for _ in range(8)} == {QUERY})


def test_an_index_that_cannot_be_served_is_refused_at_the_start(
    tmp_path: Path, small: gramvec.Embedder, embedder: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "things.index"
    built(path, small)
    for given, sentence in (
        (("things",), "NAME=FILE"),
        (("=x",), r"must be NAME=FILE"),
        (("a=x", "a=y"), "the name 'a'"),
    ):
        with pytest.raises(InputError, match=sentence):
            settings_from({"index": given})
    for file, sentence in (
        (path, "'paragram-phrase' .*gramvec-en"),
        (tmp_path / "none.index", "not an index"),
        (MODELS / MODEL / "manifest.json", "is a file"),
    ):
        with pytest.raises(InputError, match=sentence):
            create_app(Settings(index=(f"things={file}",)), embedder)
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "tantivy", None)
        with refused(InputError, "gramvec[search]"):
            create_app(Settings(index=(f"things={path}",)), small)


def test_what_is_not_there_is_said_before_it_listens(tmp_path: Path) -> None:
    for option in ("index", "head"):
        path = tmp_path / "none"
        done = subprocess.run(
            [*COMMAND, "--model", MODEL, "--port", "0", f"--{option}", f"a={path}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (1, f"Error: the {option} 'a' is not there: {path} does not exist\n")
