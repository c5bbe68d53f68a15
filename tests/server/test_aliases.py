"""Other names of served models: wherever a model is named, and refused at the start where they are of none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conftest import MODELS
from gramvec import Embedder
from gramvec.client import Client
from gramvec.errors import BundleError, InputError
from gramvec.server.app import create_app
from gramvec.server.settings import Settings, aliases_of, settings_from
from gramvec.server.state.models import load_models, reopen_models
from support.errors import refused
from support.http import PATIENCE, RunningServer, running

ALIASES = ("text-embedding-3-small=gramvec-en", "BAAI/bge-small-en=gramvec-en")
ALIAS = "text-embedding-3-small"


@pytest.fixture(scope="module")
def server(embedder: Embedder) -> Iterator[RunningServer]:
    with running(Settings(alias=ALIASES), embedder) as started:
        yield started


def test_an_alias_is_taken_wherever_a_model_is_named(server: RunningServer, embedder: Embedder) -> None:
    own = f"{embedder.name}@{embedder.digest[:12]}"
    bodies = [
        ("/embed", {"inputs": "a fast car"}),
        ("/similarity", {"inputs": {"source_sentence": "a fast car", "sentences": ["vehicles"]}}),
        ("/rerank", {"query": "a fast car", "texts": ["vehicles"]}),
        ("/v1/rerank", {"query": "a fast car", "documents": ["vehicles"]}),
        ("/explain", {"inputs": {"source_sentence": "a fast car", "target_sentence": "vehicles"}}),
        ("/v1/embeddings", {"input": "a fast car"}),
    ]
    for path, body in bodies:
        plain, named = (
            httpx.post(server.url + path, json={**body, "model": model}, timeout=PATIENCE)
            for model in (embedder.name, ALIAS)
        )
        assert (named.status_code, named.headers["x-model"]) == (200, own), path
        assert named.content == plain.content, path
    assert named.json()["model"] == embedder.name
    with Client(server.url, model=ALIAS) as client:
        assert client.embed(["a fast car"]).tobytes() == embedder.embed(["a fast car"]).tobytes()


def test_lists_have_aliases_behind_the_models(server: RunningServer) -> None:
    listed = httpx.get(f"{server.url}/v1/models").json()["data"]
    assert [one["id"] for one in listed] == ["gramvec-en", ALIAS, "BAAI/bge-small-en"]
    for name in (ALIAS, "BAAI/bge-small-en"):
        assert httpx.get(f"{server.url}/v1/models/{name}").json()["id"] == name
    assert httpx.get(f"{server.url}/info").json()["aliases"] == aliases_of(ALIASES)
    unknown = httpx.post(f"{server.url}/v1/embeddings", json={"input": "x", "model": "gpt"})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["message"].endswith(
        "'gramvec-en', 'text-embedding-3-small', 'BAAI/bge-small-en' are"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("small",), "'small'"),
        (("=gramvec-en",), "NAME=MODEL"),
        (("small=",), "NAME=MODEL"),
        (("a b=gramvec-en",), "NAME=MODEL"),
        (("a\n=gramvec-en",), "NAME=MODEL"),
        (("a" * 201 + "=gramvec-en",), "200"),
        (("gramvec-en=gramvec-en",), "itself"),
        (("a=gramvec-en", "a=sif"), "twice"),
    ],
)
def test_what_is_no_alias_is_one_sentence(given: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as caught:
        settings_from({"alias": given})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "--alias" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("a=sif", r"'a' .*'sif'.*'gramvec-en'"),
        ("gramvec-en=sif", r"'gramvec-en'"),
    ],
)
def test_an_alias_of_a_model_that_is_not_served_is_refused(given: str, said: str, embedder: Embedder) -> None:
    with pytest.raises(BundleError, match=said):
        create_app(Settings(alias=(given,)), embedder)
    with pytest.raises(BundleError, match=said):
        load_models(Settings(alias=(given,)))
    with refused(BundleError, "'b'", "'a'"):
        create_app(Settings(alias=("a=gramvec-en", "b=a")), embedder)


def test_a_reload_that_would_leave_an_alias_without_its_model_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(MODELS / "sif", folder)
    settings = Settings(model=(str(folder),), alias=("a=sif",))
    serving = load_models(settings)
    shutil.rmtree(folder)
    shutil.copytree(MODELS / "paragram-phrase", folder)
    with refused(BundleError, "'a'", "'sif'"):
        reopen_models(settings, serving, ())
    assert serving[0].embed(["x"]).shape == (1, serving[0].dimension)
    serving[0].close()
