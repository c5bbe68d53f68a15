"""/openapi.json and /docs: complete, true, and of use without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient

import gramvec
from conftest import MODELS
from gramvec import Embedder
from gramvec.jobs.classify.head import Head
from gramvec.server.routes.pages import DOCS_ASSETS
from gramvec.server.settings import Settings
from support.http import PATIENCE, asking, served_process

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")

KEY = "a-key-of-this-test"
BEARER = {"authorization": f"Bearer {KEY}"}
# What a client needs no key for.
OPEN = {"/health", "/ready", "/metrics", "/docs", "/", "/v2/health/live", "/v2/health/ready", "/ping"}


@pytest.fixture(scope="module", params=[None, KEY])
def client(
    embedder: Embedder, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestClient]:
    index = gramvec.Index.build(
        tmp_path_factory.mktemp("index") / "x.index",
        [{"id": str(at), "text": text} for at, text in enumerate(["lost parcel", "late parcel", "hello"], 1)],
        model=embedder,
        id="id",
    )
    keys = [request.param] if request.param else []
    head = index.path.with_name("x.head")
    # Any text has the first label to a share of 0.93.
    logits = np.log(np.array([0.93, 0.07], np.float32))
    none = np.zeros((2, 300), np.float32)
    Head.of(
        none, logits, labels=("card_lost", "card_stolen"), threshold=0.5, model="x",
        digest=embedder.digest,
    ).save(head)  # fmt: skip
    served = {"index": [f"tickets={index.path}"], "head": [f"intents={head}"]}
    chosen = Settings.model_validate({"api_key": keys, "write_key": [KEY], **served})
    headers = BEARER if request.param else {}
    with asking(chosen, embedder, headers=headers) as opened:
        yield opened


@pytest.fixture(scope="module")
def document(client: TestClient) -> dict[str, Any]:
    found = client.get("/openapi.json").json()
    assert isinstance(found, dict)
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def whole_numbers(document: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """Return the names of a body's members that take whole numbers, in any of its forms."""
    parts = [schema]
    found: set[str] = set()
    for part in parts:
        parts += [*part.get("anyOf", []), *part.get("oneOf", [])]
        if "$ref" in part:
            parts.append(document["components"]["schemas"][part["$ref"].rpartition("/")[2]])
        for name, member in part.get("properties", {}).items():
            kinds = {kind.get("type") for kind in [member, *member.get("anyOf", [])]}
            found |= {name} if "integer" in kinds else set()
    return found


@pytest.mark.parametrize("number", [2**31, 2**63, 2**64, 10**30, -(10**30)])
def test_a_number_of_any_size_is_answered_or_refused(client: TestClient, document: dict[str, Any], number: int) -> None:
    tried = set()
    for method, path, operation in operations(document):
        media = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if media is None or path.startswith("/admin"):
            continue
        for example in media["examples"].values():
            for name in whole_numbers(document, media["schema"]):
                body = {**example["value"], name: number}
                answer = client.request(method, re.sub(r"\{\w+\}", "gramvec-en", path), json=body)
                assert answer.status_code < 500, (path, body, answer.text)
                tried.add(name)
    assert {"top", "top_k", "top_n", "k", "dimensions"} <= tried


def without_key(client: TestClient) -> TestClient:
    return TestClient(client.app, base_url="http://127.0.0.1")


def near(value: Any) -> Any:
    """The same, with numbers that are compared to four digits."""
    if isinstance(value, dict):
        return {name: near(one) for name, one in value.items()}
    if isinstance(value, list):
        return [near(one) for one in value]
    return pytest.approx(value, abs=1e-4) if isinstance(value, float) else value


def untimed(value: Any) -> Any:
    """A response without the time that it took."""
    return {name: one for name, one in value.items() if name != "total_duration"} if isinstance(value, dict) else value


def test_every_example_works_as_it_stands(client: TestClient, document: dict[str, Any]) -> None:
    tried: set[str] = set()
    for method, path, operation in operations(document):
        media = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if media is None:
            continue
        assert media["examples"], path
        shown = operation["responses"]["200"]["content"]["application/json"]["example"]
        for place, example in enumerate(media["examples"].values()):
            headers = BEARER if operation.get("security") else {}  # the key to write, which is another one elsewhere
            named = re.sub(r"\{\w+\}", "gramvec-en", path)
            answer = client.request(method, named, json=example["value"], headers=headers)
            assert answer.status_code == 200, (path, example, answer.text)
            assert place or untimed(answer.json()) == near(untimed(shown)), path
        tried.add(path)
    assert tried == {path for method, path, _ in operations(document) if method == "post"} - {"/admin/reload"}


def test_a_path_that_is_a_template_names_a_model_like_any_other(client: TestClient) -> None:
    answer = client.post("/openai/deployments/{deployment}/embeddings", json={"input": "vehicles"})
    assert answer.status_code == 404, answer.text


def test_every_route_without_a_body_answers_what_it_documents(client: TestClient, document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        if method == "get":
            answer = client.get(path.replace("{model}", "gramvec-en"))
            assert answer.status_code == 200, (path, answer.text)
            if answer.headers["content-type"] == "application/json" and path != "/info":
                shown = operation["responses"]["200"]["content"]["application/json"]["example"]
                assert answer.json() == shown


def test_every_answer_in_json_has_a_type(document: dict[str, Any]) -> None:
    """FastAPI writes an empty schema for a route of which it knows none."""
    untyped = {
        f"{method} {path}"
        for method, path, operation in operations(document)
        if operation["responses"]["200"].get("content", {}).get("application/json", {}).get("schema") == {}
    }
    assert untyped == set()


def test_the_command_serves_the_same_document(document: dict[str, Any], client: TestClient) -> None:
    """It imports FastAPI in a way of its own."""
    options = ["--write-key", KEY, *([] if "authorization" not in client.headers else ["--api-key", KEY])]
    with served_process("--model", str(MODELS / "paragram-phrase"), *options) as (_, port):
        assert httpx.get(f"http://127.0.0.1:{port}/openapi.json", timeout=PATIENCE).json() == document


def test_every_route_is_there(document: dict[str, Any]) -> None:
    found = {f"{method} {path}" for method, path, _ in operations(document)}
    posts = "/ /embed /embed_sparse /similarity /explain /match /search /rows /rows/add /rows/remove /predict"
    posts += " /admin/reload /v1/embeddings"
    posts += " /tokenize /v1/embed /v2/embed /api/embed /api/embeddings /api/show /invocations"
    posts += " /api/pull /reranker/rerank /openai/deployments/{deployment}/embeddings"
    gets = "/ /health /ready /info /metrics /v1/models /v1/models/{model} /ping /v2/health/live /v2/health/ready"
    gets += " /api/tags /api/ps /api/version /reranker/info"
    assert found == {
        *(f"post {path}" for path in f"{posts} /rerank /v1/rerank /v2/rerank".split()),
        *(f"get {path}" for path in gets.split()),
    }


def test_every_error_has_its_shape_and_every_answer_its_headers(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        assert operation["summary"], path
        assert operation["description"], path
        for status, response in operation["responses"].items():
            assert "x-request-id" in response["headers"], (path, status)
            if int(status) < 400:
                continue
            shape = "OpenAIErrorBody" if path.startswith(("/v1/", "/openai/")) else "ErrorBody"
            media = response["content"]["application/json"]
            assert media["example"].keys() == {"error"} | ({"error_type"} if shape == "ErrorBody" else set())
            assert media["schema"]["$ref"].rpartition("/")[2] == shape, (path, status)
            assert ("Retry-After" in response["headers"]) == (status in ("429", "503"))
            assert ("WWW-Authenticate" in response["headers"]) == (status == "401")


def test_hot_routes_name_every_error_that_they_have(document: dict[str, Any]) -> None:
    for path in ("/embed", "/similarity", "/", "/v1/embeddings"):
        statuses = set(document["paths"][path]["post"]["responses"])
        invalid = set() if path.startswith("/v1/") else {"422"}
        assert statuses == {"200", "400", "401", "404", "413", "415", "424", "429", "500", "503"} | invalid


def test_references_lead_somewhere_and_our_own_shapes_refuse_unknown_fields(document: dict[str, Any]) -> None:
    for kind, name in re.findall(r'"#/components/(\w+)/([^"]+)"', json.dumps(document)):
        assert name in document["components"][kind]
    schemas = document["components"]["schemas"]
    for name in ("SearchRequest", "AddRequest", "RemoveRequest", "MatchRequest", "ExplainRequest"):
        assert schemas[name]["additionalProperties"] is False
    for name in ("EmbedRequest", "SimilarityRequest", "EmbeddingsRequest", "RerankRequest", "PredictRequest"):
        assert "additionalProperties" not in schemas[name]
    dimensions, top_k = (
        schemas["EmbedRequest"]["properties"]["dimensions"],
        schemas["ExplainRequest"]["properties"]["top_k"],
    )
    assert dimensions["anyOf"] == [{"type": "integer", "minimum": 1}, {"type": "null"}]
    assert top_k["anyOf"] == [{"type": "integer", "minimum": 1, "maximum": 1000}, {"type": "null"}]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", "GET, HEAD, OPTIONS, POST"),
        ("/embed", "OPTIONS, POST"),
        ("/docs", "GET, HEAD, OPTIONS"),
        ("/v1/models/any", "GET, HEAD, OPTIONS"),
        ("/openapi.json", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_method_is_told_every_right_one(client: TestClient, path: str, allowed: str) -> None:
    answer = client.request("PUT", path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert allowed in answer.text


def test_the_key_is_asked_for_where_it_is_needed(client: TestClient, document: dict[str, Any]) -> None:
    keyed = "authorization" in client.headers
    assert ("security" in document) == keyed
    for method, path, operation in operations(document):
        is_open = path in OPEN and method == "get"
        writes = [{"write": []}] if path in ("/rows/add", "/rows/remove") else None
        assert operation.get("security") == ([] if keyed and is_open else writes), (method, path)
    if keyed:
        for path in OPEN | {"/openapi.json"}:
            assert without_key(client).get(path).status_code == 200, path
        assert without_key(client).post("/", json={"inputs": "a"}).status_code == 401


def test_the_page_needs_nothing_from_outside(client: TestClient) -> None:
    client = without_key(client)
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text
    assert "https://" not in page.text
    linked = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert sorted(linked) == sorted(f"docs/{name}" for name in DOCS_ASSETS)
    assert "url: 'openapi.json'" in page.text
    for link in linked:
        asset = client.get(f"/{link}")
        assert asset.status_code == 200
        assert asset.headers["content-type"] == DOCS_ASSETS[link.removeprefix("docs/")]
        assert len(asset.content) > 500
    assert "SwaggerUIBundle" in client.get("/docs/swagger-ui-bundle.js").text
