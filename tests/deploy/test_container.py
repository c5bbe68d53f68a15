"""The image that docker/test.sh has built, run as compose.yaml runs it: make image-test."""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pytest

import gramvec
from conftest import MODELS, SHIPPED
from gramvec.hub.static_models import import_static
from support.container import ENGINE, IMAGE, MEMORY_MB, Container, ask, container, engine, models_folder
from support.http import PATIENCE, until
from support.static import write_model2vec

pytestmark = pytest.mark.skipif(not ENGINE, reason="make image-test builds the image and runs these")
MAX_BYTES = 950_000_000
GRACE_SECONDS = 20
# Run inside, where there is no network to ask from elsewhere.
ASK_ALL = """
import json
from urllib.request import Request, urlopen

def ask(path, body=None):
    data = body and json.dumps(body).encode()
    return json.load(urlopen(Request("http://127.0.0.1:8000" + path, data, {"content-type": "application/json"})))

for model in ask("/info")["models"]:
    print(model["name"], len(ask("/embed", {"inputs": "a", "model": model["name"]})[0]))
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Container]:
    with container() as running:
        yield running


def test_the_image_is_small_and_says_what_it_is() -> None:
    (image,) = json.loads(engine("image", "inspect", IMAGE))
    assert image["Size"] < MAX_BYTES
    config = image["Config"]
    assert config["User"] == "65532:65532"
    assert config["StopSignal"] in ("SIGTERM", "15")
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "gramvec"
    assert labels["org.opencontainers.image.version"] == gramvec.__version__


def test_texts_have_the_bytes_that_they_have_elsewhere(served: Container, embedder: gramvec.Embedder) -> None:
    texts = ["cheap flihgts", "", "日本語", "vehicals " * 500]
    answer = httpx.post(
        f"{served.url}/embed",
        json={"inputs": texts},
        headers={"accept": "application/octet-stream"},
        timeout=PATIENCE,
    )
    found = np.frombuffer(answer.content, "<f4").reshape(len(texts), -1)
    assert found.tobytes() == embedder.embed(texts).tobytes()
    assert ask(served, "/info").json()["device"]["runtime"] == "native"


def test_it_runs_as_nobody_in_particular_and_can_write_nowhere(served: Container) -> None:
    assert served.run("id", "-u") == "65532"
    for place in ("/", "/models", "/opt/gramvec", "/usr/bin", "/var/cache"):
        assert served.run("sh", "-c", f"touch {place}/x 2>/dev/null || echo refused") == "refused"
    status = served.run("cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status


def test_there_is_no_compiler_and_no_training_in_it(served: Container) -> None:
    for program in ("gcc", "cc", "g++", "make"):
        assert served.run("sh", "-c", f"command -v {program} || echo none") == "none"
    for module in ("torch", "pip", "gramvec_training", "hatchling"):
        script = f"import importlib.util; print(importlib.util.find_spec({module!r}))"
        assert served.python(script) == "None"


def test_nothing_is_compiled_at_start(served: Container) -> None:
    script = """
import importlib.util, pathlib, sys
import gramvec.server.edge.run, gramvec.server.routes.operations, gramvec.cli
import gramvec.native.loops
sources = [m.__file__ for m in list(sys.modules.values()) if (getattr(m, "__file__", None) or "").endswith(".py")]
cached = [name for name in sources if pathlib.Path(importlib.util.cache_from_source(name)).is_file()]
print(len(sources), sorted(set(sources) - set(cached)))
"""
    number, _, missing = served.python(script).partition(" ")
    assert int(number) > 300
    assert missing == "[]"


def test_every_shipped_model_is_served_without_a_network() -> None:
    with container("--env", f"GRAMVEC_MODEL={' '.join(SHIPPED)}", network=False) as alone:
        assert [line.split() for line in alone.python(ASK_ALL).splitlines()] == [
            [name, "256" if name == "gramvec-multi" else "300"] for name in SHIPPED
        ]
        assert alone.run("sh", "-c", "ls /sys/class/net") == "lo"


def test_a_mounted_folder_goes_before_the_shipped_models(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "sif", tmp_path / "mine")
    shutil.copytree(MODELS / "charagram-phrase", tmp_path / "gramvec-en")
    tmp_path.chmod(0o755)
    wanted = "GRAMVEC_MODEL=mine gramvec-en paragram-phrase"
    with container(*models_folder(tmp_path), "--env", wanted) as running:
        names = [model["name"] for model in ask(running, "/info").json()["models"]]
        assert names == ["sif", "charagram-phrase", "paragram-phrase"]


def test_a_mounted_index_and_an_imported_model_are_served(tmp_path: Path, embedder: gramvec.Embedder) -> None:
    """These and /match need libraries that the image brings."""
    import_static(write_model2vec(tmp_path / "source"), tmp_path / "mine")
    texts = ["the cat sat", "reset my password", "a mat"]
    gramvec.Index.build(tmp_path / "docs", texts, model=embedder)
    tmp_path.chmod(0o755)
    options = ("--env", "GRAMVEC_MODEL=gramvec-en mine", "--env", "GRAMVEC_INDEX=docs=/models/docs")
    with container(*models_folder(tmp_path), *options) as running:
        (found,) = ask(running, "/embed", {"inputs": ["the cat sat"], "model": "mine"}).json()
        with closing(gramvec.load(tmp_path / "mine", device="cpu")) as mine:
            assert np.array_equal(np.array(found, np.float32), mine.embed(["the cat sat"])[0])
        (hits,) = ask(running, "/search", {"queries": ["pasword"], "k": 1}).json()["results"]
        assert hits[0]["record"] == {"text": texts[1]}
        answer = ask(running, "/match", {"left": ["reset my pasword"], "right": texts})
        assert [match["right"] for match in answer.json()["matches"]] == [1]


def test_the_command_line_is_in_the_image() -> None:
    assert engine("run", "--rm", IMAGE, "--version").endswith(gramvec.__version__)
    printed = engine("run", "--rm", "--network", "none", IMAGE, "similarity", "vehicals", "vehicles", "bananas")
    assert "vehicles" in printed


def test_memory_stays_below_the_limit_under_load(served: Container, capsys: pytest.CaptureFixture[str]) -> None:
    limit, _ = memory(served)
    if limit != MEMORY_MB * 2**20:
        pytest.skip("this engine cannot limit memory")
    short = {"inputs": "cheap flihgts to lisbon"}
    large = {"inputs": [f"{number} " + "low-cost air fares " * 20 for number in range(2048)]}
    matrix = {"inputs": {"left": ["a cheap flight"] * 1000, "right": ["air fares"] * 1000}}

    def load(number: int) -> set[int]:
        path, body = [("/embed", short), ("/embed", large), ("/v1/embeddings", {"input": large["inputs"]})][number % 3]
        if number == 0:
            path, body = "/similarity", matrix
        with httpx.Client(base_url=served.url, timeout=2 * PATIENCE) as client:
            return {client.post(path, json=body).status_code for _ in range(12)}

    with ThreadPoolExecutor(16) as threads:
        statuses = set().union(*threads.map(load, range(16)))
    assert statuses <= {200, 429}
    assert served.state()["Running"]
    assert not served.state()["OOMKilled"]
    _, peak = memory(served)
    with capsys.disabled():
        sys.stdout.write(f"\nmemory in use: at most {peak / 2**20:.0f} MB of {MEMORY_MB}\n")
    assert peak < limit
    assert ask(served, "/embed", short).status_code == 200


def memory(running: Container) -> tuple[int, int]:
    """The limit, and the most that was ever in use, in bytes, as the kernel counts them."""
    for limit, peak in (
        ("memory.max", "memory.peak"),
        ("memory/memory.limit_in_bytes", "memory/memory.max_usage_in_bytes"),
    ):
        found = running.run("sh", "-c", f"cat /sys/fs/cgroup/{limit} /sys/fs/cgroup/{peak} 2>/dev/null", check=False)
        if len(found.split()) == 2 and "max" not in found:
            return int(found.split()[0]), int(found.split()[1])
    return 0, 0


def test_sigterm_under_load_loses_nothing() -> None:
    body = json.dumps({"inputs": [f"text {number}" for number in range(512)]}).encode()
    outcomes: list[tuple[float, object]] = []

    def load(port: int) -> None:
        # Each request on a connection of its own: one that is kept may be closed just when the next is sent.
        while not outcomes or outcomes[-1][1] == 512:
            sent = float("inf")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            try:
                connection.request("POST", "/embed", body, {"content-type": "application/json"})
                sent = time.monotonic()
                answer = connection.getresponse()
                content = answer.read()
                outcome: object = len(json.loads(content)) if answer.status == 200 else answer.status
            except (OSError, http.client.HTTPException) as error:
                outcome = repr(error)
            finally:
                connection.close()
            outcomes.append((sent, outcome))

    with container() as running, ThreadPoolExecutor(8) as threads:
        loads = [threads.submit(load, int(running.url.rpartition(":")[2])) for _ in range(8)]
        until(lambda: len(outcomes) > 50 or any(one.done() for one in loads))
        asked = time.monotonic()
        engine("stop", "--time", str(GRACE_SECONDS), running.name)
        took = time.monotonic() - asked
        for one in loads:
            one.result(2 * PATIENCE)
        assert took < GRACE_SECONDS
        assert running.state()["ExitCode"] == 0
        lines = [json.loads(line)["message"] for line in running.logs()]
    sent_before = [outcome for sent, outcome in outcomes if sent < asked]
    assert len(sent_before) > 50
    # Answered whole, or told to ask elsewhere if the service had not read it yet: one at most of each client.
    assert set(sent_before) <= {512, 503}
    assert sent_before.count(503) <= len(loads)
    assert "shutting down" in lines


def test_logs_are_json(served: Container) -> None:
    assert ask(served, "/nothing").status_code == 404
    lines = [json.loads(line) for line in served.logs()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert any("is ready on cpu" in line["message"] for line in lines)


def test_the_reason_for_not_starting_is_json_too() -> None:
    name = engine("create", "--env", "GRAMVEC_MODEL=none", IMAGE)
    try:
        engine("start", "--attach", name, check=False)
        stopped = Container(name, None)
        assert stopped.state()["ExitCode"] == 1
        last = json.loads(stopped.logs()[-1])
        assert last["level"] == "error"
        assert "no model 'none'" in last["message"]
    finally:
        engine("rm", "--force", name)
