"""Clients that people already have, over real HTTP: only their URL is changed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from gramvec import Embedder
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.server.settings import Settings
from support.http import PATIENCE, RunningServer, WatchedModel, running

openai = pytest.importorskip("openai", reason="needs the group `clients`")
httpx2 = pytest.importorskip("httpx2", reason="needs the group `clients`")
huggingface_hub = pytest.importorskip("huggingface_hub", reason="needs the group `clients`")
langchain_openai = pytest.importorskip("langchain_openai", reason="needs the group `clients`")

TEXTS = ["vehicals", "", "a fast car \N{GRINNING FACE}", "ripe\nbananas"]
KEY = "a-key-of-this-test"
INVALID = "invalid_request_error"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
OPENAI_SETTINGS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_ORG_ID", "HF_TOKEN")


@pytest.fixture(scope="module", autouse=True)
def nothing_from_outside() -> Iterator[None]:
    """No proxy and no key of whoever runs the tests: the clients talk to this machine alone."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*PROXIES, *OPENAI_SETTINGS):
            patch.delenv(name, raising=False)
        patch.setenv("LANGSMITH_TRACING", "false")
        yield


@pytest.fixture(scope="module")
def server(embedder: Embedder) -> Iterator[RunningServer]:
    """With a key, that the clients have to send."""
    chosen = Settings.model_validate({"api_key": [KEY], "queue_texts": 4_096})
    with running(chosen, WatchedModel(embedder)) as started:
        yield started


def official(server: RunningServer, **options: Any) -> Any:
    return openai.OpenAI(
        base_url=f"{server.url}/v1",
        http_client=httpx2.Client(trust_env=False, timeout=PATIENCE),
        **{"api_key": KEY, "max_retries": 0, **options},
    )


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[Any]:
    with official(server) as opened:
        yield opened


def same(found: Any, expected: np.ndarray[Any, Any]) -> bool:
    return np.array(found, np.float32).tobytes() == expected.tobytes()


def test_the_example_of_the_page_works_when_pasted(
    plain_server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (python,) = re.findall(r"^## Clients\n.*?^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(python.replace("http://127.0.0.1:8000", plain_server.url), {})
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("300", "(2, 300)")
    near, far = json.loads(third)
    assert near > 0.8 > 0.1 > far


# openai


@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
@pytest.mark.parametrize("dimensions", [None, 12, 300])
def test_openai_reads_both_encodings(client: Any, embedder: Embedder, options: Any, dimensions: int | None) -> None:
    fields = {} if dimensions is None else {"dimensions": dimensions}
    answer = client.embeddings.create(model=DEFAULT_MODEL, input=TEXTS, user="me", **options, **fields)
    found = [one.embedding for one in answer.data]
    if options.get("encoding_format") == "base64":  # asked for by name, it is handed on as it is
        found = [np.frombuffer(base64.b64decode(row), "<f4") for row in found]
    assert same(found, embedder.embed(TEXTS, dimensions=dimensions))
    assert [one.index for one in answer.data] == [0, 1, 2, 3]
    assert (answer.object, answer.model) == ("list", DEFAULT_MODEL)
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7, 7)


def test_openai_with_one_text_nulls_and_other_dialects_of_null(client: Any, embedder: Embedder) -> None:
    nulls = {"encoding_format": None, "dimensions": None, "user": None, "model": None}
    for extra in ({}, nulls, {"encoding_format": None}):
        answer = client.embeddings.create(model=DEFAULT_MODEL, input="vehicals", extra_body=extra)
        assert same([answer.data[0].embedding], embedder.embed(["vehicals"]))


def test_openai_lists_and_retrieves_models(client: Any) -> None:
    assert [model.id for model in client.models.list()] == [DEFAULT_MODEL]
    model = client.models.retrieve(DEFAULT_MODEL)
    assert (model.id, model.object, model.owned_by, model.created) == (DEFAULT_MODEL, "model", "gramvec", 0)


@pytest.mark.parametrize(
    ("fields", "error", "status", "kind", "param", "code"),
    [
        ({"input": [[1, 2], [3]]}, "BadRequestError", 400, INVALID, "input", "token_ids"),
        ({"input": "a", "model": "other"}, "NotFoundError", 404, INVALID, "model", "model_not_found"),
        ({"input": ["a"] * 2_049}, "APIStatusError", 413, INVALID, None, "too_large"),
        ({"input": []}, "BadRequestError", 400, INVALID, "input", "empty_array"),
        ({"input": ["a", "x" * 65_537]}, "BadRequestError", 400, INVALID, "input[1]", None),
        ({"input": "a", "dimensions": 301}, "BadRequestError", 400, INVALID, "dimensions", None),
        ({"input": "poison"}, "APIStatusError", 424, "server_error", None, "backend_error"),
    ],
)
def test_openai_raises_its_own_errors(
    client: Any, fields: Any, error: str, status: int, kind: str, param: str | None, code: str | None
) -> None:
    with pytest.raises(getattr(openai, error)) as raised:
        client.embeddings.create(**{"model": DEFAULT_MODEL, **fields})
    found = raised.value
    assert (found.status_code, found.type, found.param, found.code) == (status, kind, param, code)
    assert found.body.keys() == {"message", "type", "param", "code"}


def test_openai_raises_its_own_errors_for_keys_routes_and_readiness(server: RunningServer, client: Any) -> None:
    with official(server, api_key="wrong") as stranger, pytest.raises(openai.AuthenticationError) as raised:
        stranger.models.list()
    assert (raised.value.code, raised.value.type) == ("invalid_api_key", "invalid_request_error")
    with pytest.raises(openai.NotFoundError) as unknown:
        client.models.retrieve("other")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError) as route:
        client.chat.completions.create(model=DEFAULT_MODEL, messages=[{"role": "user", "content": "hello"}])
    assert route.value.code == "unknown_url"


def test_openai_waits_and_asks_again_when_the_service_says_so(embedder: Embedder) -> None:
    with running(Settings(), embedder) as server, official(server, max_retries=3) as client:
        server.service.failure = "not yet"
        with official(server) as impatient, pytest.raises(openai.InternalServerError) as raised:
            impatient.embeddings.create(model=DEFAULT_MODEL, input="a")
        assert (raised.value.status_code, raised.value.code) == (503, "service_unavailable")
        assert int(raised.value.response.headers["retry-after"]) >= 1
        asked: list[int] = []

        def recover(response: Any) -> None:
            asked.append(response.status_code)
            server.service.failure = None

        client._client.event_hooks["response"].append(recover)
        answer = client.embeddings.create(model=DEFAULT_MODEL, input="a")
    assert asked == [503, 200]
    assert same([answer.data[0].embedding], embedder.embed(["a"]))


# huggingface_hub: it posts to the URL itself


@pytest.mark.parametrize("path", ["/embed", "/", ""])
def test_hugging_face_extracts_features(server: RunningServer, embedder: Embedder, path: str) -> None:
    client = huggingface_hub.InferenceClient(model=server.url + path, token=KEY)
    assert same(client.feature_extraction(TEXTS), embedder.embed(TEXTS))
    assert same(client.feature_extraction("vehicals"), embedder.embed(["vehicals"]))
    found = client.feature_extraction(
        "x" * 70_000, normalize=False, truncate=True, truncation_direction="left", dimensions=9
    )
    assert same(found, embedder.embed(["x" * 65_536], normalize=False, dimensions=9))


@pytest.mark.parametrize("path", ["/similarity", "/", ""])
def test_hugging_face_compares_sentences(server: RunningServer, embedder: Embedder, path: str) -> None:
    client = huggingface_hub.InferenceClient(base_url=server.url + path, token=KEY)
    sentences = ["vehicles", "cars", "bananas"]
    found = client.sentence_similarity("vehicals", other_sentences=sentences)
    assert same(found, embedder.similarity(["vehicals"], sentences)[0])


def test_hugging_face_shows_what_was_wrong(server: RunningServer) -> None:
    client = huggingface_hub.InferenceClient(model=f"{server.url}/embed", token=KEY)
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="prompt_name") as raised:
        client.feature_extraction("a", prompt_name="query")
    assert raised.value.response.status_code == 422
    stranger = huggingface_hub.InferenceClient(model=f"{server.url}/embed", token="wrong")
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="401"):
        stranger.feature_extraction("a")


# langchain


def chain(server: RunningServer, **options: Any) -> Any:
    return langchain_openai.OpenAIEmbeddings(
        model=DEFAULT_MODEL, base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, **options
    )


@pytest.fixture
def synchronous() -> Iterator[Any]:
    with httpx2.Client(trust_env=False, timeout=PATIENCE) as opened:
        yield opened


@pytest.mark.parametrize("options", [{}, {"dimensions": 12}, {"chunk_size": 2}])
def test_langchain_embeds(server: RunningServer, embedder: Embedder, synchronous: Any, options: Any) -> None:
    expected = embedder.embed(TEXTS, dimensions=options.get("dimensions"))
    embeddings = chain(server, check_embedding_ctx_length=False, http_client=synchronous, **options)
    assert same(embeddings.embed_documents(TEXTS), expected)
    assert same([embeddings.embed_query("vehicals")], expected[:1])


# llama-index: 210 MB, so not among what `make test` installs


def test_llama_index_embeds_by_both_dialects(server: RunningServer, embedder: Embedder) -> None:
    reason = "needs llama-index-embeddings-openai-like and -text-embeddings-inference (210 MB)"
    like = pytest.importorskip("llama_index.embeddings.openai_like", reason=reason)
    tei = pytest.importorskip("llama_index.embeddings.text_embeddings_inference", reason=reason)
    texts = ["vehicals", "a fast car"]
    by_openai = like.OpenAILikeEmbedding(model_name=DEFAULT_MODEL, api_base=f"{server.url}/v1", api_key=KEY)
    by_tei = tei.TextEmbeddingsInference(model_name=DEFAULT_MODEL, base_url=server.url, auth_token=KEY)
    for embedding in (by_openai, by_tei):
        assert same(embedding.get_text_embedding_batch(texts), embedder.embed(texts))
        assert same([embedding.get_query_embedding("vehicals")], embedder.embed(["vehicals"]))
