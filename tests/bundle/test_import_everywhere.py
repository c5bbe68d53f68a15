"""An imported static model in every command and route that takes a model."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import gramvec
from gramvec.cli.main import cli
from gramvec.hub.static_models import import_static
from gramvec.server.settings import Settings
from support.http import PATIENCE, running
from support.static import table, write_model2vec

for _library in ("tokenizers", "onnx", "tantivy", "sklearn"):
    pytest.importorskip(_library, reason=f"{_library} is not installed: pip install '.[all]'")

RAW = {"accept": "application/octet-stream"}
KEY = {"authorization": "Bearer secret"}
TEXTS = ["the cat sat on a mat", "a mat, a cat!", "sat sat sat", "the 12 cats", "zzz qqq unknown"]
LABELED = ["cat\tthe cat sat", "cat\ta cat", "cat\tcats", "mat\ton the mat", "mat\ta mat", "mat\tmats"]


def done(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_commands_and_routes_take_an_imported_model(tmp_path: Path) -> None:
    model, texts, index, head = (tmp_path / name for name in ("static", "texts.txt", "index", "my.head"))
    texts.write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "labeled.tsv").write_text("\n".join(LABELED) + "\n")
    done("import", write_model2vec(tmp_path / "m"), "-o", model)
    assert len(done("embed", texts, "-m", model).splitlines()) == len(TEXTS)
    assert done("verify", model).rstrip().endswith("ok")
    assert float(done("similarity", "-m", model, "the cat", "the cat").split()[0]) == pytest.approx(1, abs=1e-4)
    assert "cat (word)" in done("explain", "the cat sat", "cats on", "-m", model)
    done("save", model, tmp_path / "saved")
    done("index", "build", texts, "-o", index, "-m", model)
    found = done("search", index, "cat mat", "-m", model, "--format", "jsonl").splitlines()
    assert json.loads(found[0])["record"]["text"] == TEXTS[0]
    # A misspelt word has no token of its own, and letters find it.
    assert json.loads(
        done("search", index, "catt", "-m", model, "--only", "letters", "--format", "jsonl").splitlines()[0]
    )
    done("classify", "fit", tmp_path / "labeled.tsv", "-o", head, "-m", model)
    assert len(done("classify", "predict", head, texts, "-m", model).splitlines()) == 1 + len(TEXTS)
    settings = Settings(model=str(model), device="cpu", index=(f"docs={index}",), head=(f"my={head}",))
    asked = {
        "/embed": {"inputs": TEXTS},
        "/similarity": {"inputs": {"source_sentence": "the cat", "sentences": TEXTS}},
        "/v1/embeddings": {"input": TEXTS, "model": "static"},
        "/rerank": {"query": "cat mat", "texts": TEXTS},
        "/search": {"queries": ["cat mat"]},
        "/predict": {"inputs": TEXTS},
        "/explain": {"inputs": {"source_sentence": "the cat sat", "target_sentence": "cats on"}},
    }
    with running(settings) as server:
        answers = {path: httpx.post(f"{server.url}{path}", json=body) for path, body in asked.items()}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(asked, 200)
    assert answers["/search"].json()["results"][0][0]["record"]["text"] == TEXTS[0]
    assert len(answers["/embed"].json()) == len(answers["/similarity"].json()) == len(TEXTS)
    explained = answers["/explain"].json()
    sources = {(one["source"]["text"], one["source"]["start"], one["source"]["end"]) for one in explained["features"]}
    assert sources == {("the", 0, 3), ("cat", 4, 7), ("sat", 8, 11)}
    assert sum(one["contribution"] for one in explained["features"]) == pytest.approx(explained["score"], abs=1e-5)


def test_another_version_takes_its_place_under_requests(tmp_path: Path) -> None:
    served = tmp_path / "mine"
    expected: dict[str, bytes] = {}
    for seed in (1, 0):  # the last is served first
        source = write_model2vec(tmp_path / f"source{seed}", arrays={"embeddings": table(seed=seed)})
        _, digest = import_static(source, tmp_path / f"version{seed}", name="mine")
        with closing(gramvec.load(tmp_path / f"version{seed}", device="cpu")) as opened:
            assert digest == opened.digest
            expected[f"mine@{digest[:12]}"] = opened.embed(TEXTS).tobytes()
    later, first = expected
    shutil.copytree(tmp_path / "version0", served)
    under_way, reloaded = threading.Barrier(5), threading.Event()

    def ask(url: str) -> list[str]:
        labels: list[str] = []
        with httpx.Client(base_url=url, headers=RAW | KEY, timeout=PATIENCE) as client:
            while not (reloaded.is_set() and labels[-1] == later):
                was_reloaded = reloaded.is_set()
                answer = client.post("/embed", json={"inputs": TEXTS})
                labels.append(answer.headers["x-model"])
                assert answer.content == expected[labels[-1]]
                assert not was_reloaded or labels[-1] == later
                if len(labels) == 1:
                    under_way.wait(PATIENCE)
        return labels

    settings = Settings(model=str(served), device="cpu", api_key=("secret",))
    with running(settings) as server, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, server.url) for _ in range(4)]
        under_way.wait(PATIENCE)
        import_static(tmp_path / "source1", served, name="mine", overwrite=True)
        (model,) = httpx.post(f"{server.url}/admin/reload", headers=KEY, timeout=PATIENCE).json()["models"]
        assert model["changed"] is True
        reloaded.set()
        for one in asked:
            assert [label for label, _ in groupby(one.result(PATIENCE))] == [first, later]
