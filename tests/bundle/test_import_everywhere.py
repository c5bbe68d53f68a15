"""An imported static model in every command and route that takes a model."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from gramvec.cli.main import cli
from gramvec.server.settings import Settings
from http_support import running
from static_support import write_model2vec

for _library in ("tokenizers", "onnx", "tantivy", "sklearn"):
    pytest.importorskip(_library, reason=f"{_library} is not installed: pip install '.[all]'")

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
    found = done("search", index, "cat mat", "-m", model, "--format", "json").splitlines()
    assert json.loads(found[0])["record"]["text"] == TEXTS[0]
    # A misspelt word has no token of its own, and letters find it.
    assert json.loads(
        done("search", index, "catt", "-m", model, "--only", "letters", "--format", "json").splitlines()[0]
    )
    done("classify", "fit", tmp_path / "labeled.tsv", "-o", head, "-m", model)
    assert len(done("classify", "predict", head, texts, "-m", model).splitlines()) == len(TEXTS)
    settings = Settings(model=str(model), device="cpu", index=(f"docs={index}",), head=(f"my={head}",))
    asked = {
        "/embed": {"inputs": TEXTS},
        "/similarity": {"inputs": {"source_sentence": "the cat", "sentences": TEXTS}},
        "/v1/embeddings": {"input": TEXTS, "model": "static"},
        "/rerank": {"query": "cat mat", "texts": TEXTS},
        "/search": {"queries": ["cat mat"]},
        "/predict": {"inputs": TEXTS},
    }
    with running(settings) as server:
        answers = {path: httpx.post(f"{server.url}{path}", json=body) for path, body in asked.items()}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(asked, 200)
    assert answers["/search"].json()["results"][0][0]["record"]["text"] == TEXTS[0]
    assert len(answers["/embed"].json()) == len(answers["/similarity"].json()) == len(TEXTS)
