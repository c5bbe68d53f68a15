"""POST /rows/add and /rows/remove over real HTTP: durable, in every worker, repeated, refused, and by no other key."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gramvec
from conftest import MODELS
from gramvec.client import AsyncClient, Client
from gramvec.errors import InputError, ServiceError
from gramvec.jobs.search import changes as changes_module
from gramvec.jobs.search.folder import lock_for_writing
from gramvec.jobs.search.index import spool_records
from gramvec.server.job_routes import changes
from gramvec.server.settings import settings_from
from support.bulk import MODEL
from support.errors import assert_names
from support.http import PATIENCE, RunningServer, running, served_process, until

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

KEY, READS = "writes-rows", "reads-rows"
WRITES = {"authorization": f"Bearer {KEY}"}
RECORDS = [
    {"number": 1, "subject": "lost parcel", "team": "post"},
    {"number": 2, "subject": "parcel is late", "team": "post"},
    {"number": 3, "subject": "reset my password", "team": "web"},
]


def built(path: Path, small: gramvec.Embedder, records: list[dict[str, Any]] = RECORDS) -> Path:
    gramvec.Index.build(path, records, model=small, column="subject", id="number", filter=["team"])
    return path


@pytest.fixture
def path(tmp_path: Path, small: gramvec.Embedder) -> Path:
    return built(tmp_path / "things.index", small)


@pytest.fixture
def server(path: Path, small: gramvec.Embedder, embedder: gramvec.Embedder) -> Iterator[RunningServer]:
    chosen = settings_from({"index": [f"things={path}"], "write_key": [KEY], "max_texts": 300})
    with running(chosen, [embedder, small]) as started:
        yield started


@pytest.fixture
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=WRITES, timeout=PATIENCE) as made:
        yield made


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> Iterator[tuple[Path, httpx.Client]]:
    """An index, and a client of a service of it, for requests that change nothing."""
    path = built(tmp_path_factory.mktemp("unchanged") / "things.index", small)
    chosen = settings_from({"index": [f"things={path}"], "write_key": [KEY], "max_texts": 300})
    with (
        running(chosen, small) as started,
        httpx.Client(base_url=started.url, headers=WRITES, timeout=PATIENCE) as made,
    ):
        yield path, made


def ids_found(client: httpx.Client, query: str) -> list[str]:
    return [hit["id"] for hit in client.post("/search", json={"queries": query}).json()["results"][0]]


def test_rows_are_added_replaced_and_removed_and_the_next_search_knows(
    client: httpx.Client, path: Path, small: gramvec.Embedder
) -> None:
    digest = client.get("/info").json()["indexes"][0]["digest"]
    added = client.post("/rows/add", json={"rows": [{"number": 9, "subject": "violin lessons", "team": "art"}]})
    assert (added.status_code, added.json()) == (200, {"index": "things", "total": 4})
    assert ids_found(client, "violin lesson")[0] == "9"
    told = client.get("/info").json()["indexes"][0]
    assert (told["rows"], told["digest"] != digest) == (4, True)
    replaced = {"rows": [{"number": "9", "subject": "piano lessons", "team": "art"}], "index": "things"}
    for _ in range(2):  # the same request again changes nothing
        assert client.post("/rows/add", json=replaced).json()["total"] == 4
        assert client.post("/rows", json={"ids": ["9"]}).json()["rows"][0]["record"]["subject"] == "piano lessons"
    narrowed = client.post("/search", json={"queries": "lessons", "where": {"team": "art"}}).json()
    assert (narrowed["total"], narrowed["results"][0][0]["id"]) == (1, "9")
    for _ in range(2):
        assert client.post("/rows/remove", json={"ids": ["9", "9", "none"]}).json() == {"index": "things", "total": 3}
    assert "9" not in ids_found(client, "piano lessons")
    # What the command would have left.
    assert dict(gramvec.Index(path, model=small).items()) == {str(record["number"]): record for record in RECORDS}


def test_a_change_by_the_command_is_served_too(client: httpx.Client, path: Path, small: gramvec.Embedder) -> None:
    gramvec.Index(path, model=small).add([{"number": 4, "subject": "violin"}])
    assert ids_found(client, "violin")[0] == "4"
    built(path, small, [*RECORDS, {"number": 5, "subject": "trombone"}])  # another generation
    assert ids_found(client, "trombone")[0] == "5"


def test_an_index_that_was_damaged_meanwhile_is_served_as_it_was(
    client: httpx.Client, path: Path, small: gramvec.Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    other = built(path.with_name("other.index"), small, RECORDS[:1])
    manifest = (path / "manifest.json").read_bytes()
    (path / "manifest.json").write_bytes((other / "manifest.json").read_bytes())
    assert len(ids_found(client, "parcel")) >= 2
    assert [record for record in caplog.messages if "stays as it is" in record]
    (path / "manifest.json").write_bytes(manifest)
    assert len(ids_found(client, "parcel")) >= 2


@pytest.mark.parametrize(
    ("route", "body", "status", "names"),
    [
        ("add", {}, 422, ["rows"]),
        ("add", {"rows": []}, 422, ["rows"]),
        ("add", {"rows": {}}, 422, ["rows", "a list"]),
        ("add", {"rows": ["text"]}, 422, ["rows[0]"]),
        ("add", {"rows": [{"number": 4}]}, 422, ["rows[0]", "'subject'"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}, {"subject": "b"}]}, 422, ["rows[1]", "'number'"]),
        ("add", {"rows": [{"number": 4, "subject": None}]}, 422, ["rows[0]", "'subject'"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}, {"number": 5, "subject": [1]}]}, 422, ["rows[1]"]),
        ("add", {"rows": [{"number": None, "subject": "a"}]}, 422, ["rows[0]", "'number'"]),
        ("add", {"rows": [{"number": "", "subject": "a"}]}, 422, ["rows[0]", "'number'"]),
        ("add", {"rows": [{"number": "x" * 257, "subject": "a"}]}, 422, ["rows[0]", "'number'"]),
        ("add", {"rows": [{"number": 4, "subject": "q" * 70_000}]}, 422, ["rows[0]", "70000"]),
        ("add", {"rows": [{"number": 4, "subject": "a", "team": [*map(str, range(101))]}]}, 422, ["rows[0]", "101"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}, {"number": "4", "subject": "b"}]}, 422, ["4"]),
        ("add", {"rows": [{"number": 1, "subject": "a"}], "replace": False}, 422, ["1"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}] * 301}, 413, ["301 texts"]),
        ("add", {"rows": [{"number": 4, "subject": "a", "deep": json.loads("[" * 40 + "]" * 40)}]}, 422, ["rows[0]"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}], "index": "none"}, 404, ["'things'"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}], "filter": "x"}, 422, ["filter"]),
        ("add", {"rows": [{"number": 4, "subject": "a"}], "replace": 1}, 422, ["replace"]),
        ("remove", {}, 422, ["ids"]),
        ("remove", {"ids": []}, 422, ["ids"]),
        ("remove", {"ids": "1"}, 422, ["ids"]),
        ("remove", {"ids": [1]}, 422, ["ids[0]"]),
        ("remove", {"ids": ["1"] * 10_001}, 413, ["JSON values"]),
        ("remove", {"ids": ["1", "2", "3"]}, 422, ["things", "row"]),
        ("remove", {"ids": ["1"], "index": "none"}, 404, ["'things'"]),
    ],
)
def test_bad_requests_are_one_sentence_without_a_path_and_change_nothing(
    unchanged: tuple[Path, httpx.Client], route: str, body: Any, status: int, names: list[str]
) -> None:
    path, client = unchanged
    before = gramvec.Index(path).digest
    answer = client.post(f"/rows/{route}", json=body)
    assert answer.status_code == status, answer.text
    assert_names(answer.json()["error"], *names)
    assert str(path.parent) not in answer.text and "/proc" not in answer.text and "`on_error" not in answer.text
    assert gramvec.Index(path).digest == before


@pytest.mark.parametrize(
    "content",
    [
        b'{"rows": [{"number": "\\ud800", "subject": "a"}]}',
        b'{"rows": [{"number": 4, "subject": "\\ud800"}]}',
        b'{"rows": [{"number": 4, "subject": "a", "\\ud800": 1}]}',
        b'{"ids": ["\\ud800"]}',
        b'{"rows": [' + b"[" * 900 + b"]" * 900 + b"]}",
        b'{"rows": [{"number": 4, "subject": NaN}]}',
        b'{"rows": [{"number": 99999999999999999999999999, "subject": "a", "subject": "b"}, 1]}',
        b"\x00",
        b"",
    ],
)
def test_hostile_bodies_are_refused(unchanged: tuple[Path, httpx.Client], content: bytes) -> None:
    path, client = unchanged
    before = gramvec.Index(path).digest
    for route in ("add", "remove"):
        answer = client.post(f"/rows/{route}", content=content, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422), answer.text
    assert gramvec.Index(path).digest == before


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
some_rows = st.lists(
    st.dictionaries(st.sampled_from(["number", "subject", "team", "", "\x00"]), json_values, max_size=4), max_size=3
)


def test_any_row_is_taken_whole_or_refused(server: RunningServer, path: Path, small: gramvec.Embedder) -> None:
    held = {str(record["number"]): record for record in RECORDS}

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(some_rows, st.booleans())
    def tried(rows: list[dict[str, Any]], replace: bool) -> None:
        with httpx.Client(base_url=server.url, headers=WRITES, timeout=PATIENCE) as client:
            answer = client.post("/rows/add", json={"rows": rows, "replace": replace})
            assert answer.status_code in (200, 422), answer.text
            if answer.status_code == 200:
                held.update({str(row["number"]): row for row in rows})
            every = client.post("/rows", json={"limit": 10_000}).json()
            stored = {row["id"]: row["record"] for row in every["rows"]}
            assert stored.keys() == held.keys()
            assert json.dumps(stored, sort_keys=True) == json.dumps(held, sort_keys=True)

    tried()


def test_the_clients_change_it(server: RunningServer, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(server.url, write_key=KEY) as client:
        assert client.add_rows({"number": at, "subject": f"song {at}", "tags": ["a", "b"]} for at in range(700)) == 700
        assert client.search(["song 650"], 1)[0][0].id == "650"
        assert client.add_rows([{"number": 650, "subject": "tuba"}], index="things") == 700
        with pickle.loads(pickle.dumps(client)) as copied:
            assert copied.remove_rows([650, "651", "none"]) == 698
        for change, name in (
            (lambda: client.add_rows([]), "rows"),
            (lambda: client.add_rows(["text"]), "row 0"),  # type: ignore[list-item]
            (lambda: client.add_rows([{"number": 1, "subject": {1, 2}}]), "row 0"),
            (lambda: client.add_rows([{"number": 1, "subject": "a"}], replace=False), "1"),
            (lambda: client.remove_rows([]), "ids"),
            (lambda: client.remove_rows([1.5]), "ids"),  # type: ignore[list-item]
        ):
            with pytest.raises(InputError) as caught:
                change()
            assert_names(str(caught.value), name)
    with Client(server.url, patience=0) as client, pytest.raises(ServiceError, match="write key") as refused:
        client.remove_rows("1")
    assert refused.value.status == 401

    async def change_it() -> int:
        async with AsyncClient(server.url, write_key=KEY) as client:
            await client.add_rows([{"number": 9999, "subject": "oboe"}])
            assert (await client.search(["oboe"], 1))[0][0].id == "9999"
            return await client.remove_rows("9999")

    assert asyncio.run(change_it()) == 698
    monkeypatch.setattr(changes, "PATIENCE_SECONDS", 0.05)
    with (
        lock_for_writing(path),
        Client(server.url, write_key=KEY, patience=0) as client,
        pytest.raises(ServiceError, match="another run"),
    ):
        client.remove_rows("1")


def test_the_key_is_the_one_for_writing(path: Path, small: gramvec.Embedder, tmp_path: Path) -> None:
    body = {"rows": [{"number": 4, "subject": "a"}]}
    file = tmp_path / "keys"
    file.write_text("first\n")
    both = settings_from({"index": [f"things={path}"], "api_key": [READS], "write_key_file": file})
    with running(both, small) as started, httpx.Client(base_url=started.url, timeout=PATIENCE) as client:

        def status(key: str, route: str = "/rows/add", send: Any = body) -> int:
            return client.post(route, json=send, headers={"authorization": f"Bearer {key}"}).status_code

        assert [status(key) for key in ("first", READS, "none")] == [200, 401, 401]
        assert client.post("/rows/add", json=body).status_code == 401
        assert client.post("/rows/add", json=body, headers={"api-key": "first"}).status_code == 200
        # It opens nothing else.
        assert [status(key, "/search", {"queries": "a"}) for key in ("first", READS)] == [401, 200]
        assert client.post("/rows/remove", json={"ids": ["1"]}).json()["error"].startswith("a write key is needed")
        file.write_text("second\n")
        assert status(READS, "/admin/reload", {}) == 200
        assert [status(key) for key in ("first", "second")] == [401, 200]
    for keys in ([], [READS]):
        without = settings_from({"index": [f"things={path}"], "api_key": keys})
        with running(without, small) as started, httpx.Client(base_url=started.url, timeout=PATIENCE) as client:
            for route in ("/rows/add", "/rows/remove"):
                refused = client.post(route, json=body, headers={"authorization": f"Bearer {READS}"})
                assert (refused.status_code, refused.json()["error_type"]) == (403, "unauthorized")
                assert_names(refused.json()["error"], "--write-key-file")
                assert client.post(route, json=body).status_code == (401 if keys else 403)
    with pytest.raises(gramvec.InputError, match="write_key_file: .*cannot be read"):
        settings_from({"write_key_file": tmp_path / "none"})
    with pytest.raises(gramvec.InputError, match="write_key: must be printable") as caught:
        settings_from({"write_key": ["a secret"]})
    assert "secret" not in str(caught.value)


def test_an_index_that_counts_its_ids_takes_no_rows_and_gives_some_up(tmp_path: Path, small: gramvec.Embedder) -> None:
    index = gramvec.Index.build(tmp_path / "x", ["one", "two"], model=small)
    with running(settings_from({"index": [f"x={index.path}"], "write_key": [KEY]}), small) as started:
        refused = httpx.post(f"{started.url}/rows/add", json={"rows": [{"text": "three"}]}, headers=WRITES)
        assert refused.status_code == 422
        assert_names(refused.json()["error"], "'x'", "ids")
        assert httpx.post(f"{started.url}/rows/remove", json={"ids": ["2"]}, headers=WRITES).json()["total"] == 1


def test_there_is_one_writer(client: httpx.Client, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"rows": [{"number": 4, "subject": "a"}]}
    monkeypatch.setattr(changes, "PATIENCE_SECONDS", 0.05)
    with lock_for_writing(path):
        for route, sent in (("add", body), ("remove", {"ids": ["1"]})):
            refused = client.post(f"/rows/{route}", json=sent)
            assert (refused.status_code, refused.headers["retry-after"]) == (409, "1")
            assert_names(refused.json()["error"], "'things'")
        assert len(ids_found(client, "parcel")) >= 2  # searches do not wait
    monkeypatch.setattr(changes, "PATIENCE_SECONDS", PATIENCE)
    with ThreadPoolExecutor(8) as pool:  # each waits for its turn
        rows = [{"rows": [{"number": number, "subject": f"song {number}"}]} for number in range(10, 26)]
        answers = [*pool.map(lambda row: client.post("/rows/add", json=row).status_code, rows)]
    assert answers == [200] * 16
    assert client.post("/rows", json={"limit": 100}).json()["total"] == 19


def test_a_full_disk_is_told_and_nothing_has_changed(
    client: httpx.Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("write_manifest", "lock_for_writing"):
        with monkeypatch.context() as patch:
            patch.setattr(changes_module, name, full)
            refused = client.post("/rows/add", json={"rows": [{"number": 4, "subject": "a"}]})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1"), refused.text
        assert_names(refused.json()["error"], "'things'", "No space left on device")
    assert client.post("/rows", json={}).json()["total"] == 3


def test_rows_on_their_way_lie_in_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with spool_records([{"text": "secret"}], ["text"]) as path:
        assert path.read_bytes() == b'{"text":"secret"}\n'
        assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_kill_after_the_answer_keeps_the_rows_and_every_worker_has_them(
    tmp_path: Path, small: gramvec.Embedder, workers: str
) -> None:
    path = built(tmp_path / "things.index", small)
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n")
    options = ["--model", str(MODELS / MODEL), "--index", f"things={path}", "--workers", workers]
    with served_process(*options, "--write-key-file", str(keys), start_new_session=True) as (process, port):
        url = f"http://127.0.0.1:{port}"
        for number in range(10, 14):
            row = {"number": number, "subject": f"violin {number}"}
            assert httpx.post(f"{url}/rows/add", json={"rows": [row]}, headers=WRITES, timeout=PATIENCE).is_success
            for _ in range(8):  # connections of their own, which either worker takes
                found = httpx.post(f"{url}/search", json={"queries": f"violin {number}"}, timeout=PATIENCE).json()
                assert found["results"][0][0]["id"] == str(number)
        assert httpx.post(f"{url}/rows/remove", json={"ids": ["1"]}, headers=WRITES, timeout=PATIENCE).is_success
        os.killpg(process.pid, signal.SIGKILL)
        until(lambda: process.poll() is not None)
    assert [key for key, _ in gramvec.Index(path, model=small).items()] == ["2", "3", "10", "11", "12", "13"]
