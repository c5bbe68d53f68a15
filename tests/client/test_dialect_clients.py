"""Clients of other services and generators of clients, as people have them, over a real connection.

Each is skipped where it is not installed: `make test-integrations` brings those of pip, `npm install` in
tests/client/javascript those of npm.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gramvec import Embedder
from gramvec.server.settings import Settings
from support.http import RunningServer, running

pytestmark = pytest.mark.slow

MODEL, TEXT = "gramvec-en", "a fast car"
JAVASCRIPT = Path(__file__).parent / "javascript"
WHY = "make test-integrations installs it"
DOCUMENTS = ["bananas", "a car"]


@pytest.fixture(scope="module")
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings(), embedder) as opened:
        yield opened


@pytest.fixture(scope="module")
def vector(embedder: Embedder) -> list[float]:
    return embedder.embed([TEXT])[0].tolist()


def test_cohere(server: RunningServer, vector: list[float]) -> None:
    cohere = pytest.importorskip("cohere", reason=WHY)
    asked = {"model": MODEL, "texts": [TEXT], "input_type": "search_query"}
    second = cohere.ClientV2("k", base_url=server.url)
    assert second.embed(**asked, embedding_types=["float"]).embeddings.float_[0] == pytest.approx(vector)
    assert cohere.Client("k", base_url=server.url).embed(**asked).embeddings[0] == pytest.approx(vector)


def test_ollama(server: RunningServer, vector: list[float]) -> None:
    ollama = pytest.importorskip("ollama", reason=WHY)
    client = ollama.Client(server.url)
    assert client.embed(model=MODEL, input=[TEXT]).embeddings[0] == pytest.approx(vector)
    assert [one.model for one in client.list().models] == [MODEL]


def test_voyage(server: RunningServer, vector: list[float], embedder: Embedder) -> None:
    voyageai = pytest.importorskip("voyageai", reason=WHY)
    client = voyageai.Client("k", base_url=f"{server.url}/v1")
    assert client.embed([TEXT], model=MODEL, input_type="query").embeddings[0] == pytest.approx(vector)
    short = client.embed([TEXT], model=MODEL, output_dtype="int8", output_dimension=8).embeddings[0]
    assert len(short) == 8
    ranked = client.rerank("car", DOCUMENTS, model=MODEL, top_k=1).results
    assert [(one.index, one.document) for one in ranked] == [(1, "a car")]


def test_mixedbread(server: RunningServer, vector: list[float]) -> None:
    mixedbread = pytest.importorskip("mixedbread", reason=WHY)
    client = mixedbread.Mixedbread(api_key="k", base_url=server.url)
    assert client.embed(model=MODEL, input=[TEXT]).data[0].embedding == pytest.approx(vector)


def test_azure(server: RunningServer, vector: list[float]) -> None:
    openai = pytest.importorskip("openai", reason=WHY)
    client = openai.AzureOpenAI(azure_endpoint=server.url, api_key="k", api_version="2024-02-01")
    assert client.embeddings.create(model=MODEL, input=TEXT).data[0].embedding == pytest.approx(vector)
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model=MODEL, input=TEXT, dimensions=999)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("openai/gramvec-en", "/v1"),
        ("hosted_vllm/gramvec-en", "/v1"),
        ("infinity/gramvec-en", ""),
        ("ollama/gramvec-en", ""),
        ("cohere/gramvec-en", "/v2/embed"),
        ("jina_ai/gramvec-en", "/v1/embeddings"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_litellm(server: RunningServer, vector: list[float], model: str, path: str) -> None:
    litellm = pytest.importorskip("litellm", reason=WHY)
    found = litellm.embedding(model=model, input=[TEXT], api_key="k", api_base=server.url + path)
    assert found.data[0]["embedding"] == pytest.approx(vector)


@pytest.mark.parametrize(
    ("model", "path"),
    [("hosted_vllm/gramvec-en", ""), ("cohere/gramvec-en", "/v1/rerank"), ("jina_ai/gramvec-en", "/v1/rerank")],
)
@pytest.mark.filterwarnings("ignore")
def test_litellm_reranks(server: RunningServer, model: str, path: str) -> None:
    litellm = pytest.importorskip("litellm", reason=WHY)
    asked = {"query": "car", "documents": DOCUMENTS, "api_key": "k", "api_base": server.url + path}
    assert [one["index"] for one in litellm.rerank(model=model, **asked).results] == [1, 0]


@pytest.mark.filterwarnings("ignore")
def test_txtai(server: RunningServer) -> None:
    txtai = pytest.importorskip("txtai", reason=WHY)
    vectors = {"api_base": f"{server.url}/v1", "api_key": "k"}
    index = txtai.Embeddings(path=f"openai/{MODEL}", method="litellm", vectors=vectors, content=True)
    index.index(["bananas", "a fast car", "cheap flights"])
    assert index.search("vehicals", 1)[0]["text"] == "a fast car"


def test_text_embeddings_inference_of_llama_index(server: RunningServer, vector: list[float]) -> None:
    module = pytest.importorskip("llama_index.embeddings.text_embeddings_inference", reason=WHY)
    client = module.TextEmbeddingsInference(model_name="any", base_url=f"{server.url}/")  # it asks for //embed
    assert client.get_text_embedding(TEXT) == pytest.approx(vector)


def node(*arguments: str | Path) -> str:
    if shutil.which("node") is None or not (JAVASCRIPT / "node_modules").is_dir():
        pytest.skip("no clients of npm are installed: npm install in tests/client/javascript")
    done = subprocess.run(arguments, cwd=JAVASCRIPT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_clients_in_javascript(server: RunningServer) -> None:
    found = json.loads(node("node", "clients.mjs", server.url).splitlines()[-1])
    assert found.pop("ollama list") == 1
    assert set(found.values()) == {300}
    assert len(found) == 6


@pytest.fixture(scope="module")
def document(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(httpx.get(f"{server.url}/openapi.json").content)
    return path


def test_types_are_generated_for_typescript(document: Path, tmp_path: Path) -> None:
    node("npx", "openapi-typescript", document, "-o", tmp_path / "types.ts")
    assert "embed_texts" in (tmp_path / "types.ts").read_text()
    node("npx", "openapi-ts", "-i", document, "-o", tmp_path / "client")
    assert "embedTexts" in (tmp_path / "client" / "sdk.gen.ts").read_text()


def test_a_client_is_generated_for_python(document: Path, tmp_path: Path, server: RunningServer) -> None:
    pytest.importorskip("openapi_python_client", reason=WHY)
    package = tmp_path / "generated"
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", document, "--output-path", package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert (package / "gramvec_client" / "api").is_dir(), done.stdout + done.stderr
    script = (
        "from gramvec_client import Client\n"
        "from gramvec_client.api.texts import embed_texts\n"
        "from gramvec_client.models import EmbedRequest\n"
        f"print(len(embed_texts.sync(client=Client({server.url!r}), body=EmbedRequest(inputs='a'))[0]))\n"
    )
    used = subprocess.run([sys.executable, "-c", script], cwd=package, capture_output=True, text=True, timeout=60)
    assert used.stdout == "300\n", used.stderr


def test_models_are_generated_by_datamodel_codegen(document: Path, tmp_path: Path) -> None:
    pytest.importorskip("datamodel_code_generator", reason=WHY)
    command = [
        sys.executable,
        "-m",
        "datamodel_code_generator",
        "--input",
        document,
        "--output",
        tmp_path / "models.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert "class EmbedRequest" in (tmp_path / "models.py").read_text()
