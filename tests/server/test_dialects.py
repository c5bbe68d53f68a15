"""Shapes of other services: what their clients send is taken, and what they read is there."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.embed.vectors import quantize
from gramvec.errors import InputError
from gramvec.server.app import create_app, router
from gramvec.server.compressed import unpack
from gramvec.server.errors import HttpError
from gramvec.server.settings import Settings, settings_from_environment
from support.errors import refused

TEXT, EMPTY = "a fast car", "🙂🙂"


def client_for(embedder: gramvec.Embedder | list[gramvec.Embedder], **settings: Any) -> TestClient:
    return TestClient(create_app(Settings.model_validate(settings), embedder))


@pytest.fixture(scope="module")
def client(embedder: gramvec.Embedder) -> Iterator[TestClient]:
    with client_for(embedder, alias=("text-embedding-3-small=gramvec-en",)) as opened:
        yield opened


@pytest.fixture(scope="module")
def vector(embedder: gramvec.Embedder) -> list[float]:
    return embedder.embed([TEXT])[0].tolist()


@pytest.mark.parametrize(
    ("path", "body", "ignored"),
    [
        ("/embed", {"inputs": [TEXT], "options": {"wait_for_model": True}}, "options"),
        ("/embed", {"inputs": [TEXT], "foo": None}, None),
        ("/embed", {"inputs": [TEXT], "model": "tei", "dimensions": None}, None),
        ("/", {"inputs": TEXT, "parameters": {}, "options": {}}, "parameters, options"),
        ("/embed", {"inputs": TEXT, "weird name": 1, "b": 1, "é": 2}, "b"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "options": {}}, "options"),
        ("/embed_sparse", {"inputs": TEXT, "x": 1}, "x"),
        ("/v1/embeddings", {"input": TEXT, "input_type": "query", "task": "x"}, "input_type, task"),
        ("/v1/embeddings", {"input": TEXT, "input_type": None, "encoding_format": None, "model": None}, None),
        ("/v1/rerank", {"query": "a", "documents": ["b"], "return_doc": 1}, "return_doc"),
        ("/v2/embed", {"texts": [TEXT], "input_type": "search_query", "priority": 3}, "input_type, priority"),
        ("/api/embed", {"model": "gramvec-en", "input": TEXT, "keep_alive": 5, "options": 1}, "keep_alive, options"),
    ],
)  # fmt: skip
def test_fields_that_a_dialect_does_not_have_are_ignored_and_named(
    client: TestClient, path: str, body: dict[str, Any], ignored: str | None
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers.get("x-ignored-fields") == ignored


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/match", {"left": ["a"], "right": ["b"], "x": 1}),
        ("/explain", {"inputs": {"source_sentence": "a", "target_sentence": "b"}, "x": 1}),
    ],
)
def test_our_own_shapes_stay_strict(client: TestClient, path: str, body: dict[str, Any]) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, "x is not a known field" in answer.text) == (422, True)


def test_a_long_list_of_ignored_fields_is_cut(client: TestClient) -> None:
    answer = client.post("/embed", json={"inputs": TEXT, **{f"field{i}": 1 for i in range(500)}})
    assert len(answer.headers["x-ignored-fields"].split(", ")) == 20


def test_any_name_is_the_default_model_where_the_setting_says_so(
    embedder: gramvec.Embedder, small: gramvec.Embedder
) -> None:
    with client_for([embedder, small], any_model="on") as asked:
        for name, served in (("text-embedding-ada-002", embedder), (small.name, small)):
            answer = asked.post("/v1/embeddings", json={"input": TEXT, "model": name})
            assert answer.json()["model"] == served.name
    with client_for([embedder, small]) as asked:
        assert asked.post("/embed", json={"inputs": TEXT, "model": "tei"}).status_code == 404
        assert asked.post("/v1/embeddings", json={"input": TEXT, "model": "x"}).status_code == 404


def test_info_has_the_keys_of_text_embeddings_inference(client: TestClient, embedder: gramvec.Embedder) -> None:
    info = client.get("/info").json()
    assert info["model_id"] == embedder.name
    assert info["model_sha"] == embedder.digest
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert info["max_client_batch_size"] == 2048
    assert info["max_input_length"] == 65_536
    for name in ("model_dtype", "max_batch_tokens", "max_concurrent_requests", "auto_truncate", "version"):
        assert info[name] is not None
    assert info["tokenization_workers"] == 1


def test_words_are_counted_by_tokenize(client: TestClient) -> None:
    found = client.post("/tokenize", json={"inputs": ["cheap  flihgts", ""], "add_special_tokens": False}).json()
    assert found == [
        [
            {"id": 0, "text": "cheap", "special": False, "start": 0, "stop": 5},
            {"id": 1, "text": "flihgts", "special": False, "start": 7, "stop": 14},
        ],
        [],
    ]
    assert client.post("/tokenize", json={"inputs": "a " * 32_768}).status_code == 200
    refused = client.post("/tokenize", json={"inputs": ["a " * 30_000] * 8})
    assert (refused.status_code, "200000 words" in refused.text) == (413, True)


def test_cohere_has_both_versions(client: TestClient, vector: list[float], embedder: gramvec.Embedder) -> None:
    kinds = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    found = client.post("/v2/embed", json={"texts": [TEXT], "embedding_types": kinds}).json()
    assert found["embeddings"]["float"][0] == pytest.approx(vector)
    for kind in kinds[1:5]:
        assert found["embeddings"][kind] == quantize(embedder.embed([TEXT]), kind).tolist()
    assert np.frombuffer(base64.b64decode(found["embeddings"]["base64"][0]), "<f4") == pytest.approx(vector)
    assert found["texts"] == [TEXT]
    assert found["meta"]["billed_units"] == {"input_tokens": 3}
    found = client.post("/v1/embed", json={"texts": [TEXT], "model": "gramvec-en", "output_dimension": 4}).json()
    assert (found["response_type"], np.shape(found["embeddings"])) == ("embeddings_floats", (1, 4))
    found = client.post("/v1/embed", json={"texts": [TEXT], "embedding_types": ["int8"]}).json()
    assert (found["response_type"], list(found["embeddings"])) == ("embeddings_by_type", ["int8"])
    inputs = [{"content": [{"type": "text", "text": TEXT}]}]
    assert client.post("/v2/embed", json={"inputs": inputs}).json()["embeddings"]["float"][0] == pytest.approx(vector)
    assert client.post("/v2/embed", json={"model": "gramvec-en"}).status_code == 422
    image = [{"content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    assert client.post("/v2/embed", json={"inputs": image}).status_code == 422
    long = {"texts": ["x" * 70_000]}
    assert client.post("/v2/embed", json=long).status_code == 200
    assert client.post("/v2/embed", json={**long, "truncate": "NONE"}).status_code == 422


def test_ollama_embeds_and_lists_models(client: TestClient, vector: list[float]) -> None:
    found = client.post("/api/embed", json={"model": "gramvec-en:latest", "input": [TEXT, "b"]}).json()
    assert found["embeddings"][0] == pytest.approx(vector)
    assert (found["model"], found["prompt_eval_count"]) == ("gramvec-en:latest", 4)
    assert client.post("/api/embeddings", json={"model": "gramvec-en", "prompt": TEXT}).json() == {
        "embedding": pytest.approx(vector)
    }
    names = [one["name"] for one in client.get("/api/tags").json()["models"]]
    # Clients make a name full by the tag, and look for that.
    assert names == ["gramvec-en:latest", "text-embedding-3-small:latest"]
    assert client.get("/api/ps").json() == client.get("/api/tags").json()
    assert client.get("/api/version").json() == {"version": gramvec.__version__}
    assert client.post("/api/show", json={"model": "gramvec-en"}).json()["capabilities"] == ["embedding"]
    assert client.post("/api/embed", json={"model": "llama3", "input": "a"}).status_code == 404


def test_azure_names_the_model_in_the_path_and_the_key_in_a_header(
    embedder: gramvec.Embedder, vector: list[float]
) -> None:
    path = "/openai/deployments/gramvec-en/embeddings?api-version=2024-02-01"
    with client_for(embedder, api_key=("k",)) as asked:
        answer = asked.post(path, json={"input": TEXT, "model": "anything"}, headers={"api-key": "k"})
        assert answer.json()["data"][0]["embedding"] == pytest.approx(vector)
        assert asked.post(path, json={"input": TEXT}, headers={"api-key": "x"}).status_code == 401
        refused = asked.post("/openai/deployments/none/embeddings", json={"input": "a"}, headers={"api-key": "k"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


def test_embeddings_without_the_prefix_and_with_the_fields_of_jina_and_voyage(
    client: TestClient, vector: list[float], embedder: gramvec.Embedder
) -> None:
    for path in ("/v1/embeddings", "/embeddings"):
        found = client.post(path, json={"input": [{"text": TEXT}, TEXT], "task": "retrieval.query"}).json()
        assert [one["embedding"] for one in found["data"]] == [pytest.approx(vector)] * 2
    body = {"input": TEXT, "output_dimension": 8, "output_dtype": "int8", "encoding_format": "base64"}
    (entry,) = client.post("/v1/embeddings", json=body).json()["data"]
    packed = np.frombuffer(base64.b64decode(entry["embedding"]), np.int8)
    assert packed.tolist() == quantize(embedder.embed([TEXT], dimensions=8), "int8")[0].tolist()
    (entry,) = client.post("/v1/embeddings", json={"input": TEXT, "embedding_type": "ubinary"}).json()["data"]
    assert entry["embedding"] == quantize(embedder.embed([TEXT]), "ubinary")[0].tolist()
    (entry,) = client.post("/v1/embeddings", json={"input": TEXT, "normalized": False}).json()["data"]
    assert entry["embedding"] == pytest.approx(embedder.embed([TEXT], normalize=False)[0].tolist())
    assert client.post("/v1/embeddings", json={"input": "x" * 70_000, "truncation": True}).status_code == 200
    refused = client.post("/v1/embeddings", json={"input": [{"text": 1}]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[0].text")


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/embed", {"inputs": [TEXT, EMPTY]}, "inputs[1]"),
        ("/", {"inputs": EMPTY}, "inputs"),
        ("/v1/embeddings", {"input": [TEXT, EMPTY]}, "input[1]"),
        ("/v2/embed", {"texts": [EMPTY]}, "texts[0]"),
        ("/api/embed", {"model": "gramvec-en", "input": EMPTY}, "input"),
        ("/api/embeddings", {"model": "gramvec-en", "prompt": EMPTY}, "prompt"),
        ("/embed_sparse", {"inputs": ["a text", "🙂"]}, None),
        ("/embed_sparse", {"inputs": ["a text", ""]}, "inputs[1]"),
    ],
)
def test_texts_of_which_nothing_is_known_are_named(
    client: TestClient, path: str, body: dict[str, Any], place: str | None
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.headers.get("x-empty-inputs")) == (200, place)


def test_a_setting_refuses_such_texts_or_gives_them_a_vector(embedder: gramvec.Embedder) -> None:
    with client_for(embedder, empty_texts="refuse") as asked:
        answer = asked.post("/embed", json={"inputs": [TEXT, EMPTY, ""]})
        assert (answer.status_code, "inputs[1], inputs[2]" in answer.text) == (422, True)
        answer = asked.post("/v1/embeddings", json={"input": EMPTY})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")
    with client_for(embedder, empty_texts="unit") as asked:
        rows = np.array(asked.post("/embed", json={"inputs": [TEXT, EMPTY]}).json())
        assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1])
        (short,) = np.array(asked.post("/embed", json={"inputs": EMPTY, "dimensions": 7}).json())
        assert np.linalg.norm(short) == pytest.approx(1)
        assert asked.post("/similarity", json={"inputs": {"source_sentence": EMPTY, "sentences": [TEXT]}}).json() == [0]


def test_a_setting_has_the_default_dimensions(embedder: gramvec.Embedder) -> None:
    with client_for(embedder, dimensions=16) as asked:
        assert len(asked.post("/embed", json={"inputs": TEXT}).json()[0]) == 16
        assert len(asked.post("/embed", json={"inputs": TEXT, "dimensions": 300}).json()[0]) == 300
        assert len(asked.post("/v1/embeddings", json={"input": TEXT}).json()["data"][0]["embedding"]) == 16
        found = asked.post("/api/embed", json={"model": "gramvec-en", "input": TEXT}).json()
        assert len(found["embeddings"][0]) == 16


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics", "/info", "/docs", "/v1/models", "/", "/ping"])
def test_head_is_answered_wherever_get_is(client: TestClient, path: str) -> None:
    answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert client.options(path).status_code == 204
    assert {"GET", "HEAD", "OPTIONS"} <= set(client.options(path).headers["allow"].split(", "))


@pytest.mark.parametrize("path", ["//embed", "/embed/", "//embed//", "/v1//embeddings/"])
def test_slashes_that_clients_leave_make_no_difference(client: TestClient, path: str) -> None:
    body = {"input": TEXT} if "v1" in path else {"inputs": TEXT}
    assert client.post(path, json=body).status_code == 200
    assert client.get("/nowhere/").status_code == 404


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/ping"])
def test_orchestrators_are_answered_without_a_key(embedder: gramvec.Embedder, path: str) -> None:
    with client_for(embedder, api_key=("k",)) as asked:
        assert asked.get(path).status_code == 200
        assert asked.post("/invocations", json={"inputs": TEXT}).status_code == 401
        key = {"authorization": "Bearer k"}
        assert len(asked.post("/invocations", json={"inputs": TEXT}, headers=key).json()) == 1


def pack(kind: str, data: bytes) -> bytes:
    if kind == "gzip":
        return gzip.compress(data)
    packer = zlib.compressobj(wbits=15 if kind == "deflate" else -15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("kind", ["gzip", "deflate", "raw"])
def test_compressed_bodies_are_read_within_the_limit(client: TestClient, kind: str) -> None:
    headers = {"content-type": "application/json", "content-encoding": kind.replace("raw", "deflate")}
    body = json.dumps({"inputs": TEXT}).encode()
    assert client.post("/embed", content=pack(kind, body), headers=headers).status_code == 200
    assert client.post("/embed", content=body, headers=headers).status_code == 400
    assert client.post("/embed", content=pack(kind, body)[:-6], headers=headers).status_code == 400
    bomb = pack(kind, b'{"inputs": "' + b"a" * 50_000_000 + b'"}')
    assert len(bomb) < 100_000
    assert client.post("/embed", content=bomb, headers=headers).status_code == 413


@given(st.binary(max_size=3000), st.sampled_from(["gzip", "deflate", "raw"]))
def test_unpacking_gives_back_what_was_packed(data: bytes, kind: str) -> None:
    packed = pack(kind, data)
    kept: list[int] = []
    name = kind.replace("raw", "deflate").encode()
    assert unpack(packed, name, 3000, kept.append) == data
    assert sum(kept) == len(data)


@given(st.binary(max_size=300), st.sampled_from([b"gzip", b"deflate", b"br", b"\xff"]))
def test_other_bytes_are_refused(data: bytes, encoding: bytes) -> None:
    try:
        unpack(data, encoding, 1000, lambda size: None)
    except HttpError as error:
        assert error.status in (400, 413, 415)


def test_unknown_variables_are_warned_of_and_kubernetes_links_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GRAMVEC_WORKRES", "2")
    monkeypatch.setenv("GRAMVEC_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("GRAMVEC_PORT_80_TCP_ADDR", "10.0.0.1")
    with caplog.at_level(logging.WARNING):
        settings_from_environment()
    assert [record.getMessage() for record in caplog.records] == [
        "GRAMVEC_WORKRES is the variable of no setting; did you mean GRAMVEC_WORKERS?"
    ]
    monkeypatch.setenv("GRAMVEC_PORT", "tcp://10.0.0.1:80")
    with refused(InputError, "Kubernetes", "enableServiceLinks"):
        settings_from_environment()


def test_origins_of_any_port_and_of_no_page(embedder: gramvec.Embedder) -> None:
    with client_for(embedder, cors_origins=("http://localhost:*", "null", "app://obsidian.md")) as asked:
        for origin, allowed in [("http://localhost:3000", True), ("http://localhost", True), ("null", True),
                                ("app://obsidian.md", True), ("http://localhost.example:3000", False)]:  # fmt: skip
            answer = asked.post("/embed", json={"inputs": TEXT}, headers={"origin": origin})
            assert (answer.headers.get("access-control-allow-origin") == origin) == allowed, origin


def test_the_document_suits_proxies_and_generators(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert document["servers"] == [{"url": "."}]
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)
    assert {"embed_texts", "create_embeddings", "rerank_texts"} <= set(names)

    def enums(value: Any) -> Iterator[list[str]]:
        if isinstance(value, dict):
            if isinstance(value.get("enum"), list):
                yield value["enum"]
            for one in value.values():
                yield from enums(one)
        elif isinstance(value, list):
            for one in value:
                yield from enums(one)

    for found in enums(document):
        assert len({str(one).lower() for one in found}) == len(found), found


def test_capitals_are_taken_where_the_document_has_none(client: TestClient) -> None:
    body = {"inputs": "x" * 70_000, "truncate": True, "truncation_direction": "Left"}
    assert client.post("/embed", json=body).status_code == 200


@pytest.fixture(scope="module")
def with_a_dependency(embedder: gramvec.Embedder) -> Iterator[TestClient]:
    """The same where FastAPI solves a dependency of a user's."""
    app = FastAPI()
    app.include_router(router(Settings(), embedder), dependencies=[Depends(lambda: None)])
    with TestClient(app, base_url="http://127.0.0.1") as opened:
        yield opened


@pytest.mark.parametrize("place", ["client", "with_a_dependency"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/octet-stream", "text/plain", None])
def test_ollama_reads_json_whatever_the_content_type_says(
    request: pytest.FixtureRequest, vector: list[float], kind: str | None, place: str
) -> None:
    """As `curl -d` in Ollama's examples sends it, and clients without any."""
    client: TestClient = request.getfixturevalue(place)
    headers = {"content-type": kind} if kind else {}
    body = json.dumps({"model": "gramvec-en", "input": TEXT}).encode()
    assert client.post("/api/embed", content=body, headers=headers).json()["embeddings"][0] == pytest.approx(vector)
    # A page of any origin may send these without asking.
    refused = client.post("/api/embed", content=body, headers={**headers, "origin": "https://evil.example"})
    assert refused.status_code == (200 if kind == "application/octet-stream" else 415)
    assert client.post("/embed", content=b'{"inputs": "a"}', headers=headers).status_code == 415


def test_ollamas_earlier_name_of_a_model_and_requests_that_only_load_it(client: TestClient) -> None:
    assert client.post("/api/show", json={"name": "gramvec-en"}).json()["model"] == "gramvec-en:latest"
    for nothing in ({}, {"input": None}, {"input": []}):
        loaded = client.post("/api/embed", json={"name": "gramvec-en", **nothing}).json()
        assert (loaded["model"], loaded["embeddings"]) == ("gramvec-en", [])
    for nothing in ({}, {"prompt": None}, {"prompt": ""}):
        assert client.post("/api/embeddings", json={"model": "gramvec-en", **nothing}).json() == {"embedding": []}
    assert client.post("/api/embed", json={"model": "llama3"}).status_code == 404


def test_a_served_model_is_pulled_and_another_is_not(client: TestClient) -> None:
    for name in ("gramvec-en", "gramvec-en:latest"):
        assert client.post("/api/pull", json={"name": name}).json() == {"status": "success"}
    assert client.post("/api/pull", json={"model": "llama3"}).status_code == 404
    assert client.get("/v1/models/gramvec-en:latest").json()["id"] == "gramvec-en:latest"


def test_truncate_in_words_and_types_in_a_list(client: TestClient) -> None:
    long = {"input": "vehicles " + "x" * 70_000}
    answers = {
        word: client.post("/v1/embeddings", json={**long, "truncate": word})
        for word in ("NONE", "START", "END", "end", True, False)
    }
    assert {word: answer.status_code for word, answer in answers.items()} == {
        "NONE": 400, "START": 200, "END": 200, "end": 200, True: 200, False: 400,
    }  # fmt: skip
    assert answers["START"].json()["data"] != answers["END"].json()["data"]
    assert answers["end"].json()["data"] == answers["END"].json()["data"] == answers[True].json()["data"]
    wrong = client.post("/v1/embeddings", json={"input": "a", "truncate": "MIDDLE"}).json()["error"]
    assert wrong["param"] == "truncate"
    listed, single = (
        client.post("/v1/embeddings", json={"input": "a", "embedding_type": kind}).json()["data"]
        for kind in (["int8"], "int8")
    )
    assert listed == single
    assert client.post("/v1/embeddings", json={"input": "a", "embedding_type": ["int8", "float"]}).status_code == 400
    assert client.post("/embed", json={"inputs": "a", "prompt_name": ""}).status_code == 200


def test_a_reranker_shows_itself_to_clients_that_look_for_one(client: TestClient) -> None:
    assert "reranker" in client.get("/reranker/info").json()["model_type"]
    asked = {"query": TEXT, "texts": [TEXT, "b"]}
    assert client.post("/reranker/rerank", json=asked).json() == client.post("/rerank", json=asked).json()


def test_words_of_a_text_with_a_lone_surrogate_are_refused(client: TestClient) -> None:
    """Such a text is no text, and no JSON could give its words back."""
    for sent, place in ((b'{"inputs": "a \\ud800 b"}', "inputs"), (b'{"inputs": ["a", "\\udfff"]}', "inputs[1]")):
        answer = client.post("/tokenize", content=sent, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"].split()[0]) == (422, place)


def test_a_page_that_is_named_may_ask_for_a_service_in_its_network(embedder: gramvec.Embedder) -> None:
    asking = {
        "origin": "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
    }
    for origins, status in (("https://app.example",), 200), (("*",), 400):
        with client_for(embedder, cors_origins=origins) as asked:
            answer = asked.options("/v1/embeddings", headers=asking)
        assert answer.status_code == status
        assert ("access-control-allow-private-network" in answer.headers) == (status == 200)
