"""Token ids in /v1/embeddings: decoded as tiktoken decodes them, by a file of its format; bounded, and else refused."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from conftest import MODELS
from gramvec import Embedder
from gramvec.errors import GramvecError, InputError
from gramvec.server.settings import settings_from
from gramvec.server.state.token_ids import Encoding
from support.errors import refused
from support.http import COMMAND, PATIENCE, asking, running

tiktoken = pytest.importorskip("tiktoken", reason="needs the group `clients`")
langchain_openai = pytest.importorskip("langchain_openai", reason="needs the group `clients`")

# Every byte, and merges that make words of some of them; id 300 is left out, as encodings have gaps.
MERGES = [b"ve", b"hi", b"cl", b"es", b"vehi", b"cles", b"vehicles", b" f", b"as", b" fas", b" fast", b"\xf0\x9f"]
RANKS = {bytes([value]): value for value in range(256)} | {
    token: 256 + place + (place >= 44) for place, token in enumerate(MERGES)
}
RANKS[b" " * 128] = 301
TEXTS = ["vehicles", "a fast car \N{GRINNING FACE}", "ripe\nbananas", "Grüße"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("encodings") / "cl100k_base.tiktoken"
    found.write_bytes(b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for token, rank in RANKS.items()))
    return found


@pytest.fixture(scope="module")
def reference(path: Path, no_cache_outside: None) -> Any:
    """tiktoken's own encoding, of the same file."""
    ranks = import_module("tiktoken.load").load_tiktoken_bpe(str(path))
    assert ranks == RANKS
    return tiktoken.Encoding("small", pat_str=r"\s?\w+|\s+|.", mergeable_ranks=ranks, special_tokens={})


@pytest.fixture(scope="module", autouse=True)
def no_cache_outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def client(embedder: Embedder, path: Path) -> Iterator[httpx.Client]:
    settings = settings_from({"token_ids": (str(path),), "max_texts": 50})
    with asking(settings, embedder) as opened:
        yield opened


def asked(client: httpx.Client, ids: Any, **fields: Any) -> httpx.Response:
    return client.post("/v1/embeddings", json={"input": ids, "encoding_format": "base64", **fields})


def vectors(answer: httpx.Response) -> bytes:
    assert answer.status_code == 200, answer.text
    return b"".join(base64.b64decode(one["embedding"]) for one in answer.json()["data"])


def test_ids_are_decoded_as_tiktoken_decodes_them(client: httpx.Client, embedder: Embedder, reference: Any) -> None:
    ids = [reference.encode_ordinary(text) for text in TEXTS]
    assert max(map(max, ids)) >= 256
    assert vectors(asked(client, ids)) == embedder.embed(TEXTS).tobytes()
    assert vectors(asked(client, ids[1])) == embedder.embed(TEXTS[1:2]).tobytes()
    assert asked(client, ids[1]).json()["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    # Lists with nothing in them are empty texts; a text that was cut inside a character has U+FFFD.
    assert vectors(asked(client, [[], ids[0]])) == embedder.embed(["", TEXTS[0]]).tobytes()
    cut = reference.encode_ordinary("a \N{GRINNING FACE}")[:-1]
    assert "\ufffd" in reference.decode(cut)
    assert vectors(asked(client, cut)) == embedder.embed([reference.decode(cut)]).tobytes()
    rng = np.random.default_rng(1)
    every = list(RANKS.values())
    for _ in range(20):
        drawn = [every[place] for place in rng.integers(0, len(every), 40)]
        assert vectors(asked(client, drawn)) == embedder.embed([reference.decode(drawn)]).tobytes()


def test_texts_are_as_they_were(client: httpx.Client, embedder: Embedder) -> None:
    assert vectors(asked(client, TEXTS)) == embedder.embed(TEXTS).tobytes()
    assert vectors(asked(client, "12")) == embedder.embed(["12"]).tobytes()


@pytest.mark.parametrize(
    ("ids", "status", "param", "word"),
    [
        ([300, 1], 400, "input[0]", "input[0]"),
        ([[1], [2, 302]], 400, "input[1][1]", "not a token id"),
        ([[1], [-1]], 400, "input[1][0]", "not a token id"),
        ([1, True], 400, "input[1]", "not a token id"),
        ([1, 2.0], 400, "input[1]", "not a token id"),
        ([1, "a"], 400, "input[1]", "not a token id"),
        ([1, None], 400, "input[1]", "not a token id"),
        ([1, 10**30], 400, "input[1]", "not a token id"),
        ([[1], "a"], 400, "input[1]", "list"),
        ([[1], [[1]]], 400, "input[1][0]", "not a token id"),
        ([[1]] * 51, 413, None, "51 texts"),
        ([301] * 600, 400, "input", "65536"),
        ([97] * 65_537, 400, "input", "65536"),
        ([97] * 300_001, 413, None, "300000 token ids"),
        ([[97] * 30_000] * 11, 413, None, "300000 token ids"),
        ([97] * 500_000, 413, None, "300000 token ids"),
        ([1.5], 400, "input[0]", "must be a string"),
        ([[1.5]], 400, "input[0]", "must be a string"),
        (["a", 1], 400, "input[1]", "must be a string"),
        ([], 400, "input", "empty"),
        ([[]], 400, "input[0]", "must be a string"),
    ],
)
def test_what_is_refused_is_named(client: httpx.Client, ids: Any, status: int, param: str | None, word: str) -> None:
    answer = asked(client, ids)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, param), error
    assert word in error["message"]


def test_many_ids_are_many_bytes_and_bounded(embedder: Embedder, path: Path) -> None:
    settings = settings_from({"token_ids": (str(path),), "max_bytes_in_flight": 2**20, "truncate": "on"})
    with running(settings, embedder) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        server.service.memory.reserve(20_000)  # of another request
        answer = asked(client, [[301] * 1_000] * 20)  # 2.5 MB of spaces
        assert answer.status_code == 429
        server.service.memory.release(20_000)
        assert vectors(asked(client, [301] * 1_000)) == embedder.embed([" " * 65_536]).tobytes()


def test_a_name_may_have_another_encoding(embedder: Embedder, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "o200k_base.tiktoken"
    other.write_bytes(b"%b 0\n" % base64.b64encode(b"vehicles"))
    settings = settings_from({"alias": ("new=gramvec-en",), "token_ids": (f"new={other}", str(path))})
    with asking(settings, embedder) as client:
        assert vectors(asked(client, [0], model="new")) == embedder.embed(["vehicles"]).tobytes()
        assert vectors(asked(client, [97])) == embedder.embed(["a"]).tobytes()
        assert "o200k_base" in asked(client, [97], model="new").json()["error"]["message"]
    settings = settings_from({"alias": ("new=gramvec-en",), "token_ids": (f"new={other}",)})
    with asking(settings, embedder) as client:
        answer = asked(client, [0])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "token_ids")
        assert "encoding" in answer.json()["error"]["message"]


def test_langchain_works_as_it_comes(
    client: httpx.Client, embedder: Embedder, reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The registry is where tiktoken keeps an encoding that was fetched.
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", reference)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    embeddings = langchain_openai.OpenAIEmbeddings(
        model="gramvec-en", base_url=f"{client.base_url}/v1", api_key="none", max_retries=0, http_client=client
    )
    np.testing.assert_allclose(embeddings.embed_documents(TEXTS), embedder.embed(TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"YQ== 0\nYQ==\n", "line 2"),
        (b"YQ== 0\nYg== 0\n", "line 2"),
        (b"YQ== -1\n", "line 1"),
        (b"YQ== 9999999\n", "line 1"),
        (b"YQ== 99999999999999999999\n", "line 1"),
        (b"!! 0\n", "line 1"),
        (b" 0\n", "line 1"),
        (base64.b64encode(b"x" * 257) + b" 0\n", "line 1"),
        (b"\x00" * (2**24 + 1), "encoding"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(content)
    with pytest.raises(InputError, match=word) as raised:
        Encoding.read(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("value", ["=x", "name=", ""])
def test_the_setting_says_what_it_wants(value: str) -> None:
    with refused(InputError, "NAME=FILE"):
        settings_from({"token_ids": (value,)})
    with refused(InputError, "two files", "'a'"):
        settings_from({"token_ids": ("a=x", "a=y")})


def test_a_name_that_is_not_served_stops_the_start(embedder: Embedder, path: Path) -> None:
    with (
        refused(GramvecError, "'other'"),
        running(settings_from({"token_ids": (f"other={path}",)}), embedder),
    ):
        pass


def test_a_missing_file_stops_the_command_before_it_listens(tmp_path: Path) -> None:
    command = [*COMMAND, "--model", str(MODELS / "sif"), "--port", "0", "--token-ids", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert "cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
