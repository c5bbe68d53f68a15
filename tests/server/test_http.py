from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import numpy as np
import pytest

import gramvec
from gramvec import Embedder
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.server.routes.embed import choose_media_type
from gramvec.server.settings import Settings
from support.http import HELD, PATIENCE, RunningServer, WatchedModel, post_bytes, read_all, running, until

RAW = {"accept": "application/octet-stream"}
JSON_TYPE = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def model(embedder: Embedder) -> Iterator[WatchedModel]:
    watched = WatchedModel(embedder)
    yield watched
    assert not watched.overlapped


@pytest.fixture(scope="module")
def server(model: WatchedModel) -> Iterator[RunningServer]:
    with running(Settings(max_texts=50, max_body_bytes=100_000, queue_texts=60), model) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as opened:
        yield opened


def rows(answer: httpx.Response) -> np.ndarray[Any, Any]:
    assert answer.status_code == 200, answer.text
    return np.array(answer.json(), np.float32)


def waiting(server: RunningServer) -> int:
    served = server.service.served
    assert served is not None
    return served.batcher.waiting


# POST /embed


def test_embed_gives_a_list_of_vectors_also_for_one_text(client: httpx.Client, embedder: Embedder) -> None:
    one = client.post("/embed", json={"inputs": "a fast car"})
    many = client.post("/embed", json={"inputs": ["ripe bananas", "a fast car"]})
    assert one.headers["content-type"] == "application/json"
    # float32 survives JSON to the bit.
    assert rows(one).tobytes() == embedder.embed(["a fast car"]).tobytes()
    assert rows(many).tobytes() == embedder.embed(["ripe bananas", "a fast car"]).tobytes()


def test_null_is_accepted_for_every_optional_field(client: httpx.Client) -> None:
    optional = ["normalize", "truncate", "truncation_direction", "dimensions", "precision", "prompt_name", "model"]
    bare = client.post("/embed", json={"inputs": "text"})
    nulls = client.post("/embed", json={"inputs": "text", **dict.fromkeys(optional)})
    assert (nulls.status_code, nulls.content) == (200, bare.content)


def test_every_field_of_embed_has_its_effect(client: httpx.Client, embedder: Embedder) -> None:
    text = "a" * 40_000 + "b" * 40_000
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"normalize": False}, {"normalize": False}),
        ({"dimensions": 7}, {"dimensions": 7}),
        ({"dimensions": 7.0}, {"dimensions": 7}),
        ({"dimensions": embedder.dimension}, {}),
        ({"dimensions": 7, "normalize": False}, {"dimensions": 7, "normalize": False}),
        ({"model": DEFAULT_MODEL, "precision": "float32"}, {}),
    ]
    for fields, arguments in cases:
        answer = client.post("/embed", json={"inputs": ["some text"], **fields})
        assert rows(answer).tobytes() == embedder.embed(["some text"], **arguments).tobytes()
    for spelt, direction in [("left", "left"), ("Left", "left"), ("right", "right"), ("Right", "right")]:
        answer = client.post("/embed", json={"inputs": text, "truncate": True, "truncation_direction": spelt})
        kept = text[-65_536:] if direction == "left" else text[:65_536]
        assert rows(answer).tobytes() == embedder.embed([kept]).tobytes()


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("application/octet-stream", "application/octet-stream"),
        ("Application/X-NPY", "application/x-npy"),
        ("application/x-npy;q=0.5, application/octet-stream;q=0.9", "application/octet-stream"),
        ("application/json;q=0.1, application/x-npy", "application/x-npy"),
        ("*/*, application/x-npy", "application/x-npy"),
        ("application/x-npy;q=0.2, */*", "application/json"),
        ("application/octet-stream;q=0", "application/json"),
        ("application/json; encoding=base64", "application/json; encoding=base64"),
        ('Application/JSON;q=0.9;Encoding="base64", */*;q=0.1', "application/json; encoding=base64"),
        ("application/json, application/json;encoding=base64", "application/json"),
        ("application/json;q=0.5, application/json;encoding=base64;q=0.6", "application/json; encoding=base64"),
        ("application/json;encoding=base64;q=0.5, application/octet-stream", "application/octet-stream"),
        ("application/json;encoding=base64;q=0", "application/json"),
        ("text/html;encoding=base64", "application/json"),
        ("application/octet-stream;q=nonsense", "application/json"),
    ],
)
def test_accept_chooses_the_form(accept: str, chosen: str) -> None:
    assert choose_media_type(accept) == chosen


def test_the_same_text_has_the_same_bytes_alone_in_a_batch_and_among_many_clients(
    server: RunningServer, client: httpx.Client, real_texts: list[str]
) -> None:
    texts = real_texts[:200]
    alone = [client.post("/embed", json={"inputs": text}, headers=RAW).content for text in texts]
    size = len(alone[0])

    def ask(start: int) -> tuple[int, bytes]:
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as own:
            chosen = texts[start : start + 10]
            answer = own.post("/embed", json={"inputs": chosen}, headers=RAW)
            while answer.status_code == 429:
                answer = own.post("/embed", json={"inputs": chosen}, headers=RAW)
            return start, answer.content

    with ThreadPoolExecutor(16) as pool:
        for start, content in pool.map(ask, [*range(0, 190, 3), *range(0, 190, 7)]):
            assert [content[i : i + size] for i in range(0, len(content), size)] == alone[start : start + 10]


# POST /similarity


def test_similarity_in_its_three_shapes(client: httpx.Client, embedder: Embedder) -> None:
    left, right = ["vehicals", "fruit"], ["vehicles", "cars", "vehicals"]
    shapes: list[tuple[dict[str, Any], Any]] = [
        ({"source_sentence": left[0], "sentences": right}, embedder.similarity(left[:1], right)[0]),
        ({"pairs": [*map(list, zip(left, right[:2], strict=True))]}, embedder.pair_similarity(left, right[:2])),
        ({"left": left, "right": right}, embedder.similarity(left, right)),
    ]
    for inputs, expected in shapes:
        scores = rows(client.post("/similarity", json={"inputs": inputs}))
        assert (scores.shape, scores.tobytes()) == (expected.shape, expected.tobytes())


def test_top_k_keeps_the_best_in_order_and_ties_by_index(client: httpx.Client, embedder: Embedder) -> None:
    left, right = ["vehicles", ""], ["bananas", "vehicles", "cars", "vehicles"]
    body = {"inputs": {"left": left, "right": right}, "top_k": 3}
    answer = client.post("/similarity", json=body).json()
    scores = embedder.similarity(left, right)
    assert [best["index"] for best in answer[0][:2]] == [1, 3]
    assert [best["index"] for best in answer[1]] == [0, 1, 2]  # no known feature: all scores are 0
    for row, bests in zip(scores, answer, strict=True):
        assert [np.float32(best["score"]) for best in bests] == [row[best["index"]] for best in bests]
        assert [best["score"] for best in bests] == sorted((best["score"] for best in bests), reverse=True)
    assert len(client.post("/similarity", json={**body, "top_k": 99}).json()[0]) == 4


def test_similarity_takes_the_parameters_of_tei(client: httpx.Client, embedder: Embedder) -> None:
    source = "x" * 65_537 + "end"
    inputs = {"source_sentence": source, "sentences": ["end"]}
    nulls = {"truncate": None, "truncation_direction": None, "prompt_name": None}
    assert client.post("/similarity", json={"inputs": inputs, "parameters": nulls}).status_code == 422
    cut = [{"truncate": True, "truncation_direction": direction} for direction in ("right", "left")]
    scores = [rows(client.post("/similarity", json={"inputs": inputs, "parameters": one}))[0] for one in cut]
    expected = [embedder.similarity([cut], ["end"])[0] for cut in (source[:65_536], source[-65_536:])]
    assert [score.tobytes() for score in scores] == [score.tobytes() for score in expected]
    assert scores[0] != scores[1]
    plain = {"inputs": {"pairs": [["a", "b"]]}}
    bare = client.post("/similarity", json=plain)
    optional = {"parameters": None, "top_k": None, "model": None}
    assert client.post("/similarity", json={**plain, **optional}).content == bare.content


def test_each_distinct_text_is_embedded_once(client: httpx.Client, model: WatchedModel) -> None:
    model.calls.clear()
    answer = client.post(
        "/similarity", json={"inputs": {"left": ["a a", "b b", "a a"], "right": ["b b", "c c", "a a"]}}
    )
    assert model.calls == [["a a", "b b", "c c"]]
    assert answer.headers["x-compute-characters"] == "9"
    matrix = rows(answer)
    assert matrix[0].tobytes() == matrix[2].tobytes()


def test_texts_without_a_known_feature_score_zero_and_are_named(client: httpx.Client) -> None:
    unknown = "\N{EGYPTIAN HIEROGLYPH A001}\N{EGYPTIAN HIEROGLYPH A002}"
    source = client.post("/similarity", json={"inputs": {"source_sentence": unknown, "sentences": ["a", "", unknown]}})
    assert source.json() == [0, 0, 0]
    assert source.headers["x-empty-inputs"] == "inputs.source_sentence, inputs.sentences[1], inputs.sentences[2]"
    pairs = client.post("/similarity", json={"inputs": {"pairs": [["car", "car"], ["car", unknown]]}})
    assert pairs.headers["x-empty-inputs"] == "inputs.pairs[1][1]"
    matrix = client.post("/similarity", json={"inputs": {"left": ["car", unknown], "right": [unknown, "car"]}})
    assert matrix.headers["x-empty-inputs"] == "inputs.left[1], inputs.right[0]"
    assert "x-empty-inputs" not in client.post("/similarity", json={"inputs": {"pairs": [["car", "cat"]]}}).headers


def test_a_long_list_of_empty_inputs_is_cut(embedder: Embedder) -> None:
    with running(Settings(), embedder) as server:
        for count, end in ((100, "inputs.right[99]"), (101, "inputs.right[99], ...")):
            inputs = {"left": ["a"], "right": [""] * count}
            answer = httpx.post(f"{server.url}/similarity", json={"inputs": inputs})
            assert answer.headers["x-empty-inputs"].endswith(end)


# Operations


def test_health_ready_and_info(client: httpx.Client, embedder: Embedder) -> None:
    assert client.get("/health").status_code == 200
    assert client.get("/ready").json() == {"status": "ready"}
    info = client.get("/info").json()
    (served,) = info["models"]
    assert served["name"] == info["default_model"] == DEFAULT_MODEL
    assert served["kind"] == embedder.kind
    assert served["digest"] == embedder.digest
    assert served["dimension"] == embedder.dimension
    assert served["vocabulary_size"] == embedder.manifest.rows
    assert served["max_characters"] == 65_536
    assert served["license"] == embedder.manifest.provenance.get("license")
    assert served["training_data"] == embedder.manifest.provenance.get("data")
    assert info["limits"] == {
        "max_texts": 50,
        "max_characters": 65_536,
        "max_body_bytes": 100_000,
        "queue_texts": 60,
        "queue_characters": 64 * 2**20,
        "request_deadline_seconds": 30.0,
    }
    assert served["runtime"] == embedder.runtime
    assert info["device"] == {
        "requested": "auto",
        "in_use": "cpu",
        "provider": embedder.provider,
        "runtime": embedder.runtime,
    }
    assert info["versions"]["gramvec"] == gramvec.__version__


def test_every_answer_has_the_headers(client: httpx.Client, embedder: Embedder) -> None:
    label = f"{DEFAULT_MODEL}@{embedder.digest[:12]}"
    answers = [
        client.post("/embed", json={"inputs": ["four", "five!"]}),
        client.post("/similarity", json={"inputs": {"pairs": [["four", "five!"]]}}),
        client.post("/v1/embeddings", json={"input": ["four", "five!"]}),
        client.post("/embed", json={"inputs": []}),
        client.get("/nowhere"),
        client.get("/health"),
    ]
    for answer, characters in zip(answers, ["9", "9", "9", "0", "0", "0"], strict=True):
        assert answer.headers["x-model"] == label
        assert answer.headers["x-compute-characters"] == characters
        assert answer.headers["x-compute-tokens"] == {"9": "2", "0": "0"}[characters]
        assert answer.headers["x-compute-time"] == answer.headers["x-total-time"]
        assert int(answer.headers["x-tokenization-time"]) <= int(answer.headers["x-inference-time"])
        assert answer.headers["x-request-id"]
        total, queue, inference = (float(answer.headers[f"x-{name}-time"]) for name in ("total", "queue", "inference"))
        # Each is rounded to a microsecond.
        assert 0 <= queue + inference <= total + 0.002
    assert len({answer.headers["x-request-id"] for answer in answers}) == len(answers)


def test_a_request_id_is_echoed_if_it_is_a_sane_one(client: httpx.Client) -> None:
    assert client.get("/health", headers={"x-request-id": "job-7:42"}).headers["x-request-id"] == "job-7:42"
    for odd in ("two words", "x" * 129, ""):
        assert client.get("/health", headers={"x-request-id": odd}).headers["x-request-id"] not in (odd, "")


# Errors


def embed_case(body: Any, status: int, kind: str, *words: str) -> Any:
    return pytest.param("POST", "/embed", json.dumps(body).encode(), JSON_TYPE, status, kind, words)


def similarity_case(body: Any, status: int, kind: str, *words: str) -> Any:
    return pytest.param("POST", "/similarity", json.dumps(body).encode(), JSON_TYPE, status, kind, words)


def wire_case(path: str, content: bytes, status: int, *words: str, headers: dict[str, str] = JSON_TYPE) -> Any:
    return pytest.param("POST", path, content, headers, status, "validation", words)


INVALID = (422, "validation")
# From Python 3.12 on its parser takes as many levels as a request has values.
NESTED = (400, "not JSON") if sys.version_info < (3, 12) else (422, "must be a JSON object")


@pytest.mark.parametrize(
    ("method", "path", "content", "headers", "status", "kind", "words"),
    [
        wire_case("/embed", b"", 400, "not JSON"),
        wire_case("/embed", b'{"inputs": "x"', 400, "not JSON"),
        wire_case("/embed", b'{"inputs": "\xff"}', 400, "UTF-8"),
        wire_case("/embed", b'{"inputs": "x", "dimensions": NaN}', 400, "not JSON"),
        wire_case("/embed", b'{"inputs": "\\ud800", "dimensions": NaN}', 400, "not JSON"),
        wire_case("/embed", b"[" * 50_000, 400, "not JSON"),
        wire_case("/embed", b'["\\ud800",' + b"[" * 50_000, *NESTED),
        wire_case("/embed", b'{"inputs": "x"}', 415, "application/json", headers={"content-type": "text/plain"}),
        wire_case("/embed", b'{"inputs": "x"}', 415, "got none", headers={}),
        pytest.param("GET", "/nowhere", b"", {}, 404, "not_found", ("/nowhere", "/docs")),
        pytest.param("POST", "/embed/x", b"{}", JSON_TYPE, 404, "not_found", ("/embed/x",)),
        pytest.param("GET", "/embed", b"", {}, 405, "not_found", ("GET", "POST")),
        pytest.param("DELETE", "/info", b"", {}, 405, "not_found", ("DELETE", "GET")),
        embed_case({"inputs": []}, 422, "empty", "inputs"),
        embed_case({}, *INVALID, "inputs is missing"),
        embed_case(None, *INVALID, "null"),
        embed_case({"inputs": None}, *INVALID, "inputs is missing"),
        embed_case({"inputs": ["a", "b", 3]}, *INVALID, "inputs[2]"),
        embed_case({"inputs": [["a"]]}, *INVALID, "inputs[0]"),
        embed_case({"input": "a"}, *INVALID, "input"),
        embed_case({"something": "a"}, *INVALID, "inputs is missing"),
        embed_case({"inputs": "a", "normalize": "yes"}, *INVALID, "normalize"),
        embed_case({"inputs": "a", "truncation_direction": "up"}, *INVALID, "truncation_direction", "'left'"),
        embed_case({"inputs": "a", "dimensions": 0}, *INVALID, "dimensions"),
        embed_case({"inputs": "a", "dimensions": 301}, *INVALID, "dimensions", "300", "301"),
        embed_case({"inputs": "a", "dimensions": 1.5}, *INVALID, "dimensions"),
        embed_case({"inputs": "a", "precision": "int4"}, *INVALID, "'int8'"),
        embed_case({"inputs": "a", "precision": "int8", "normalize": False}, *INVALID, "int8", "normalize"),
        embed_case({"inputs": "a", "prompt_name": "query"}, *INVALID, "prompt_name"),
        embed_case({"inputs": ["a", "x" * 65_537]}, *INVALID, "65537", "65536"),
        embed_case({"inputs": "x" * 65_537}, *INVALID, "65537", "truncate"),
        embed_case({"inputs": ["a", "b\ud800"]}, *INVALID, "inputs[1]"),
        similarity_case({"inputs": ["a"]}, *INVALID, "source_sentence"),
        similarity_case({"inputs": {"source_sentence": "a"}}, *INVALID, "inputs.sentences is missing"),
        similarity_case({"inputs": {"source_sentence": "a", "sentences": "b"}}, *INVALID, "inputs.sentences"),
        similarity_case({"inputs": {"pairs": []}}, 422, "empty", "inputs.pairs"),
        similarity_case({"inputs": {"pairs": [["a", "b"], ["a"]]}}, *INVALID, "inputs.pairs[1]"),
        similarity_case({"inputs": {"pairs": [["a", "b", "c"]]}}, *INVALID, "inputs.pairs[0]", "3"),
        similarity_case({"inputs": {"pairs": [["a", 1]]}}, *INVALID, "inputs.pairs[0][1]"),
        similarity_case({"inputs": {"left": [], "right": ["a"]}}, 422, "empty", "inputs.left"),
        similarity_case({"inputs": {"left": ["a"]}}, *INVALID, "inputs.right is missing"),
        similarity_case({"inputs": {"pairs": [["a", "b"]]}, "top_k": 1}, *INVALID, "top_k", "left and right"),
        similarity_case({"inputs": {"left": ["a"], "right": ["a"]}, "top_k": 0}, *INVALID, "top_k"),
        similarity_case({"inputs": {"pairs": [["a", "b"]] * 26}}, 413, "too_large", "52 texts"),
        similarity_case({"inputs": {"pairs": [["a", "x" * 65_537]]}}, *INVALID, "inputs.pairs[0][1]"),
        similarity_case({"inputs": {"left": ["a"], "right": ["b", "\ud800"]}}, *INVALID, "inputs.right[1]"),
        similarity_case(
            {"inputs": {"pairs": [["a", "b"]]}, "parameters": {"prompt_name": "q"}}, *INVALID, "parameters.prompt_name"
        ),
    ],
)
def test_errors(
    client: httpx.Client,
    method: str,
    path: str,
    content: bytes,
    headers: dict[str, str],
    status: int,
    kind: str,
    words: tuple[str, ...],
) -> None:
    answer = client.request(method, path, content=content, headers=headers)
    body = answer.json()
    assert (answer.status_code, body["error_type"]) == (status, kind), body
    assert body.keys() == {"error", "error_type"}
    for word in words:
        assert word in body["error"]
    assert "\n" not in body["error"]
    assert client.get("/health").status_code == 200


def test_what_can_be_refused_at_once_does_not_reach_the_model(client: httpx.Client, model: WatchedModel) -> None:
    model.calls.clear()
    for fields in ({"dimensions": 301}, {"inputs": ["good", "\ud800"]}, {"inputs": ["x"] * 51}):
        assert (
            client.post("/embed", content=json.dumps({"inputs": "x", **fields}), headers=JSON_TYPE).status_code >= 400
        )
    assert model.calls == []


def test_a_body_over_the_limit_is_refused_and_the_connection_closed(server: RunningServer) -> None:
    with server.connect() as connection:
        # Refused from its announcement: nothing of the body was sent yet.
        connection.sendall(post_bytes(b"", length=100_001))
        answer = b""
        while b"too_large" not in answer:
            answer += connection.recv(65_536)
        connection.shutdown(socket.SHUT_WR)
        answer += read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


def test_a_client_that_sends_all_before_it_reads_still_gets_the_refusal(server: RunningServer) -> None:
    with server.connect() as connection:
        connection.sendall(post_bytes(b"x" * 20_000_000))
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"too_large" in answer


def test_a_chunked_body_over_the_limit_is_refused_while_it_streams(server: RunningServer) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        yield b'{"inputs": "'
        while sent < 50_000_000:
            sent += 50_000
            yield b"x" * 50_000

    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        answer = client.post("/embed", content=chunks(), headers=JSON_TYPE)
        assert answer.status_code == 413
        assert answer.json()["error_type"] == "too_large"
        assert answer.headers["connection"] == "close"


def test_a_body_at_the_limit_is_read(client: httpx.Client) -> None:
    body = b'{"inputs": "x"}'
    padded = body + b" " * (100_000 - len(body))
    assert client.post("/embed", content=padded, headers=JSON_TYPE).status_code == 200
    assert client.post("/embed", content=padded + b" ", headers=JSON_TYPE).status_code == 413


def test_a_queue_full_of_characters_is_429_too(embedder: Embedder) -> None:
    model = WatchedModel(embedder)
    chosen = Settings(queue_characters=30_000, max_characters=30_000)
    with running(chosen, model) as server, ThreadPoolExecutor(2) as pool:

        def ask(text: str) -> httpx.Response:
            return httpx.post(f"{server.url}/embed", json={"inputs": text}, timeout=PATIENCE)

        held = pool.submit(ask, HELD)
        assert model.holding.wait(PATIENCE)
        waits = pool.submit(ask, "x" * 29_000)
        until(lambda: waiting(server) == 1)
        answer = ask("y" * 1_001)
        model.gate.set()
        assert (answer.status_code, answer.json()["error_type"]) == (429, "overloaded")
        assert "29000 characters" in answer.json()["error"]
        assert int(answer.headers["retry-after"]) >= 1
        assert [one.result(PATIENCE).status_code for one in (held, waits)] == [200, 200]


def test_the_runtime_that_is_asked_for_is_the_one_in_use() -> None:
    with running(Settings(runtime="onnx", device="cpu")) as server:
        until(lambda: httpx.get(f"{server.url}/ready").status_code == 200)
        assert httpx.get(f"{server.url}/info").json()["device"]["runtime"] == "onnx"


def test_texts_are_cut_where_nobody_says_if_the_service_is_set_so() -> None:
    long = "a car " * 25
    short_ones = gramvec.load("sif", device="cpu", max_characters=100)
    with (
        closing(short_ones),
        running(Settings(truncate="on"), short_ones) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        short = client.post("/embed", json={"inputs": long[:100]}).json()
        for body in ({"inputs": long}, {"inputs": [long], "truncate": None}, {"inputs": long, "truncate": True}):
            assert client.post("/embed", json=body).json() == short
        assert client.post("/embed", json={"inputs": long, "truncate": False}).status_code == 422
        (found,) = client.post("/v1/embeddings", json={"input": long, "model": "sif"}).json()["data"]
        assert found["embedding"] == short[0]
        assert client.post("/rerank", json={"query": long, "texts": [long]}).status_code == 200
        pairs = {"inputs": {"pairs": [[long, long[:100]]]}}
        assert client.post("/similarity", json=pairs).json() == pytest.approx([1.0])
        assert (
            client.post("/explain", json={"inputs": {"source_sentence": long, "target_sentence": "a"}}).status_code
            == 422
        )
