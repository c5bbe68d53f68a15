"""POST /predict over real HTTP: what a head says of a model's vectors, reloaded, refused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import gramvec
from gramvec.embed.vectors import Space
from gramvec.errors import InputError
from gramvec.jobs.classify.head import Head, HeadWeights
from gramvec.jobs.classify.ngrams import NgramColumns
from gramvec.server.app import create_app
from gramvec.server.job_routes import classify as predicting
from gramvec.server.settings import Settings
from gramvec_training.export.adapt import adapt, add_lexical
from support.bulk import MODEL
from support.errors import refused
from support.http import PATIENCE, asking, reloaded, running, served_process, until

LABELS = ("card", "exchange", "other")
TEXTS = ["my card is gone", "dollars for a euro", "", "hello"]


def saved(path: Path, small: gramvec.Embedder, *, labels: tuple[str, ...] = LABELS, threshold: float = 0.5) -> Head:
    """A head whose coefficients are the vectors of its labels."""
    vocabulary = NgramColumns.of_texts(TEXTS, min_texts=1, max_columns=100)
    ngrams = HeadWeights.of(vocabulary, np.ones((len(vocabulary.keys), len(labels)), np.float32))
    head = Head.of(
        small.embed(list(labels)) * 8, np.zeros(len(labels), np.float32), ngrams=ngrams, labels=labels,
        threshold=threshold, model=small.name, digest=small.digest,
    )  # fmt: skip
    head.save(path)
    return head


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> tuple[Path, Head]:
    path = tmp_path_factory.mktemp("head") / "x.head"
    return path, saved(path, small)


@pytest.fixture(scope="module")
def client(head: tuple[Path, Head], small: gramvec.Embedder, embedder: gramvec.Embedder) -> Iterator[httpx.Client]:
    # The head's model is not the default one.
    with asking(Settings(head=(f"intents={head[0]}",), max_texts=300), [embedder, small]) as client:
        yield client


def expected(head: Head, small: gramvec.Embedder, text: str) -> list[dict[str, Any]]:
    (scores,) = head.predict([text], small.embed([text])).tolist()
    ranked = sorted(zip(head.labels, scores, strict=True), key=lambda one: -one[1])
    return [{"label": label, "score": pytest.approx(score)} for label, score in ranked]


def test_labels_come_likeliest_first_in_the_shape_of_the_question(
    client: httpx.Client, head: tuple[Path, Head], small: gramvec.Embedder
) -> None:
    every = [expected(head[1], small, text) for text in TEXTS]
    assert [one[0]["label"] for one in every[:2]] == ["card", "exchange"]
    answer = client.post("/predict", json={"inputs": TEXTS[0]})
    assert (answer.status_code, answer.json()) == (200, every[0])
    assert answer.headers["x-model"] == f"{small.name}@{small.digest[:12]}"
    assert "x-unknown-inputs" not in answer.headers
    answer = client.post("/predict", json={"inputs": TEXTS, "raw_scores": True, "head": "intents"})
    assert answer.json() == every
    assert answer.headers["x-unknown-inputs"] == "inputs[2]"
    answer = client.post("/predict", json={"inputs": [[text] for text in TEXTS], "top_k": 2})
    assert answer.json() == [one[:2] for one in every]
    assert answer.headers["x-unknown-inputs"] == "inputs[2][0]"


def test_info_tells(client: httpx.Client, head: tuple[Path, Head], small: gramvec.Embedder) -> None:
    (told,) = client.get("/info").json()["heads"]
    assert told == {
        "name": "intents", "model": small.name, "digest": Head.load(head[0]).file_digest, "labels": list(LABELS),
        "number_of_labels": 3, "threshold": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 422, "inputs is missing"),
        ({"inputs": []}, 422, "inputs"),
        ({"inputs": [1]}, 422, "inputs[0]"),
        ({"inputs": [["a"], "b"]}, 422, "inputs[1]"),
        ({"inputs": [["a", "b"]]}, 422, "inputs[0]"),
        ({"inputs": "x", "top_k": 0}, 422, "top_k"),
        ({"inputs": ["x"] * 301}, 413, "301 texts"),
        ({"inputs": ["a", "q" * 70_000]}, 422, "inputs[1]"),
        ({"inputs": "x", "head": "none"}, 404, "'intents'"),
    ],
)
def test_bad_requests_are_one_sentence(client: httpx.Client, body: Any, status: int, sentence: str) -> None:
    answer = client.post("/predict", json=body)
    assert (answer.status_code, sentence in answer.json()["error"]) == (status, True), answer.text


def test_too_many_scores_are_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "MAX_SCORES", 8)
    answer = client.post("/predict", json={"inputs": TEXTS})
    assert (answer.status_code, answer.json()["error"]) == (
        413,
        "4 texts with 3 labels are over 8 scores; send fewer texts",
    )
    assert client.post("/predict", json={"inputs": TEXTS[:2]}).status_code == 200
    monkeypatch.setattr(predicting, "MAX_ENTRIES", 4)
    assert "top_k" in client.post("/predict", json={"inputs": TEXTS[:2]}).json()["error"]
    assert client.post("/predict", json={"inputs": TEXTS[:2], "top_k": 2}).status_code == 200


def test_too_much_work_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "MAX_WORK", 300)
    assert client.post("/predict", json={"inputs": "my card " * 100}).status_code == 200
    answer = client.post("/predict", json={"inputs": ["my card " * 100, "x"]})
    assert (answer.status_code, "too much work; send fewer or shorter" in answer.json()["error"]) == (413, True)


def test_a_head_whose_dimensions_lie_is_refused_at_the_start(tmp_path: Path, embedder: gramvec.Embedder) -> None:
    Head.of(
        np.zeros((2, 299), np.float32), np.zeros(2, np.float32), labels=("a", "b"), threshold=0.5,
        model=embedder.name, digest=embedder.digest,
    ).save(tmp_path / "x.head")  # fmt: skip
    with refused(InputError, "299 columns", "300"):
        create_app(Settings(head=(f"x={tmp_path / 'x.head'}",)), embedder)


def test_a_reload_says_that_a_file_was_cut(tmp_path: Path, small: gramvec.Embedder) -> None:
    path = tmp_path / "x.head"
    saved(path, small)
    settings = Settings(head=(f"x={path}",), api_key=("secret",))
    key = {"Authorization": "Bearer secret"}
    with running(settings, small) as server, httpx.Client(base_url=server.url, headers=key, timeout=PATIENCE) as client:
        before = client.post("/predict", json={"inputs": "x"}).json()
        assert client.post("/admin/reload").json()["heads"][0]["changed"] is False
        path.write_bytes(path.read_bytes()[:-8])
        answer = client.post("/admin/reload")
        assert (answer.status_code, "x.head" in answer.json()["error"]) == (422, True)
        assert client.post("/predict", json={"inputs": "x"}).json() == before


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_command_serves_and_reloads_it(tmp_path: Path, small: gramvec.Embedder, workers: str) -> None:
    path = tmp_path / "x.head"
    saved(path, small)
    with served_process("--model", MODEL, "--head", f"x={path}", "--workers", workers) as (process, port):
        url = f"http://127.0.0.1:{port}"

        def labels() -> set[int]:
            answers = [httpx.post(f"{url}/predict", json={"inputs": "x"}, timeout=PATIENCE).json() for _ in range(6)]
            return {len(answer) for answer in answers}

        assert labels() == {3}
        path.write_bytes(b"damaged")
        process.send_signal(signal.SIGHUP)
        assert labels() == {3}
        saved(path, small, labels=(*LABELS, "more"))
        until(lambda: process.send_signal(signal.SIGHUP) or labels() == {4})  # type: ignore[func-returns-value]


@pytest.mark.slow
def test_adapted_models_are_replaced_with_their_heads_and_no_answer_is_of_two(tmp_path: Path) -> None:
    """Two models of one name, adapted to other texts, in turn behind one link; two workers serve both spaces."""
    spaces: tuple[Space, ...] = ("both", "semantic", "lexical")
    right: dict[str, list[Any]] = {}
    for name, texts in (("one", ["my card", "a card", "euro"]), ("two", ["hello", "hello euro", "dollars for a euro"])):
        adapt(MODEL, tmp_path / "bag", texts, name="ours", chunks=0, edges=0)
        add_lexical(tmp_path / "bag", tmp_path / name / "model", texts)
        model = gramvec.load(tmp_path / name / "model", device="cpu", space="both")
        head = saved(tmp_path / name / "head", model, labels=(*LABELS, name))
        vectors = [model.embed(TEXTS, space=space).tobytes() for space in spaces]
        right[f"ours@{model.digest[:12]}"] = [*vectors, [expected(head, model, text) for text in TEXTS]]
        model.close()
    assert all(one != other for one, other in zip(*right.values(), strict=True))
    asked = [*(("/embed", {"inputs": TEXTS, "space": space}) for space in spaces), ("/predict", {"inputs": TEXTS})]
    one, two = right
    live = tmp_path / "live"

    def turn_to(label: str) -> None:
        (tmp_path / "new").symlink_to(tmp_path / {one: "one", two: "two"}[label])
        (tmp_path / "new").replace(live)

    turn_to(one)
    options = ("--model", f"{live}/model", "--head", f"x={live}/head", "--space", "both", "--api-key", "secret")
    headers = {"authorization": "Bearer secret", "accept": "application/octet-stream"}
    done, seen = threading.Event(), set()
    with served_process(*options, "--workers", "2") as (process, port), ThreadPoolExecutor(3) as pool:
        url = f"http://127.0.0.1:{port}"

        def ask() -> None:
            with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as client:
                while not done.is_set():
                    for place, (path, body) in enumerate(asked):
                        answer = client.post(path, json=body)
                        assert answer.status_code == 200, answer.text
                        label = answer.headers["x-model"]
                        assert (answer.json() if path == "/predict" else answer.content) == right[label][place]
                        seen.add(label)

        def all_answer_with(label: str) -> bool:
            answers = [httpx.post(f"{url}/embed", json={"inputs": "x"}, headers=headers) for _ in range(8)]
            return {answer.headers["x-model"] for answer in answers} == {label}

        others = [pool.submit(ask) for _ in range(3)]
        try:
            for label, by_signal in ((two, True), (one, False), (two, True)):
                turn_to(label)
                if by_signal:
                    process.send_signal(signal.SIGHUP)
                else:
                    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as client:
                        assert reloaded(client).status_code == 200
                until(lambda label=label: all_answer_with(label))  # type: ignore[misc]
        finally:
            done.set()
        for other in others:
            other.result(PATIENCE)
    assert seen == {one, two}


def test_a_head_that_cannot_be_served_is_refused_at_the_start(
    tmp_path: Path, head: tuple[Path, Head], embedder: gramvec.Embedder
) -> None:
    for path, sentence in (
        (head[0], "'paragram-phrase'"),
        (tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(InputError, match=sentence):
            create_app(Settings(head=(f"x={path}",)), embedder)
