"""The benchmarks run on a small input and give the documented JSON. No test here asserts a time."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

import gramvec
from benchmarks import http, measure, peers, readme
from benchmarks.__main__ import PARTS, main, measured
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, number
from benchmarks.servers import Command, Server, bare, infinity
from benchmarks.texts import sentences
from conftest import MODELS, ROOT

pytestmark = pytest.mark.slow

MODEL = str(MODELS / "sif")
RATES = {"name", "per_cpu_second", "per_second", "ratio", "spread"}
LATENCY = {"name", "p50_us", "p99_us", "ratio"}
WIDTHS = {
    f"widths_{name}": RATES for name in ("gramvec-en", "charagram-phrase", "paragram-phrase", "float16", "float32")
}
# The groups of the parts that need no data of their own, and their columns; infinity-emb's come where it is installed.
GROUPS: dict[str, dict[str, set[str]]] = {
    "features": {"features": RATES, "features_one_text": LATENCY, "features_rows": {"name", "mean", "max"}},
    "embedder": {"embedder": RATES, "latency": LATENCY, "threads": RATES, "precisions": RATES, **WIDTHS},
    "http": {name: RATES for name in ("http_1", "http_1_c64", "http_32", "http_256")},
    "memory": {"memory": {"name", "rss_mb", "pss_mb", "ratio"}},
    "startup": {"startup": {"name", "seconds", "cpu_seconds", "ratio", "spread"}},
    "training": {"training": RATES},
}
PEERS = {"model2vec": "model2vec", "sentence_transformers": "StaticEmbedding", "fasttext": "fastText"}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return sentences(None, 40)


@pytest.fixture(scope="module")
def run_part(texts: list[str]) -> Callable[[str], dict[str, Any]]:
    """The JSON of a run of one part; each part runs once."""

    @cache
    def run(part: str) -> dict[str, Any]:
        return cast(dict[str, Any], orjson.loads(orjson.dumps(measured([part], MODEL, texts, 1))))

    return run


@pytest.fixture
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in PEERS:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("BENCH_INFINITY", str(ROOT / "no" / "such" / "infinity_emb"))


def check(part: dict[str, Any], groups: dict[str, set[str]]) -> None:
    assert set(part) == {"notes", "groups"}
    assert set(part["groups"]) == set(groups)
    for name, group in part["groups"].items():
        assert set(group) == {"title", "unit", "rows", "against"}
        assert group["rows"]
        assert len({row["name"] for row in group["rows"]}) == len(group["rows"])
        for row in group["rows"]:
            assert set(row) == groups[name]
            assert all(np.isfinite(value) and value >= 0 for key, value in row.items() if key != "name")
        if group["against"] is not None:
            assert next(row for row in group["rows"] if row["name"] == group["against"])["ratio"] == 1


@pytest.mark.parametrize("part", GROUPS)
def test_a_part_gives_the_documented_groups(
    part: str, texts: list[str], run_part: Callable[[str], dict[str, Any]]
) -> None:
    found = run_part(part)
    assert set(found) == {"machine", "settings", "parts"}
    assert set(found["machine"]) == {"processor", "python", "packages", "commit"}
    assert found["settings"] == {"model": MODEL, "texts": 40, "characters": sum(map(len, texts)), "rounds": 1}
    groups = GROUPS[part]
    if part == "http" and infinity() is not None:
        groups = groups | {f"http_infinity_{case}": RATES for case in ("1", "1_c64", "32")}
    check(found["parts"][part], groups)


def test_the_command_writes_json_and_prints_each_group(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    options = ["--only", "features", "--model", MODEL, "--texts", "20", "--rounds", "2", "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "benchmarks", *options, "--json", str(file)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = orjson.loads(file.read_bytes())
    check(found["parts"]["features"], GROUPS["features"])
    assert found["machine"]["commit"] in done.stdout
    for group in found["parts"]["features"]["groups"].values():
        assert group["title"] in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--only", "speed"], 2, "--only knows features"),
        (["--rounds", "0"], 2, "--rounds"),
        (["--texts", "0"], 2, "--texts"),
        (["--json", "no/such/folder/file.json"], 2, "make it first"),
        (["--only", "features", "--model", "no-such-model"], 1, "no-such-model"),
    ],
)
def test_a_bad_call_is_one_sentence(options: list[str], code: int, said: str) -> None:
    done = CliRunner().invoke(main, options)
    assert done.exit_code == code
    assert said in done.output
    assert "Traceback" not in done.output


def test_each_part_is_a_module_with_run() -> None:
    for name in PARTS:
        assert "def run(setting: Setting) -> Part:" in (ROOT / "benchmarks" / f"{name}.py").read_text()


def test_each_missing_peer_is_one_line_and_the_rest_goes_on(no_peers: None, texts: list[str]) -> None:
    part = measured(["embedder"], MODEL, texts[:5], 1)["parts"]["embedder"]
    assert len(part["notes"]) == len(PEERS)
    for line, name in zip(part["notes"], PEERS.values(), strict=True):
        assert name in line
        assert "is left out" in line
        assert "make bench-peers" in line
        assert "\n" not in line
    rows = part["groups"]["latency"]["rows"]
    assert [row["name"] for row in rows] == ["sif, native", "sif, ONNX Runtime"]


def test_a_missing_infinity_is_one_line(no_peers: None, texts: list[str]) -> None:
    part = Part()
    with ExitStack() as stack:
        http._against_infinity(part, Setting(MODEL, texts, 1, Path()), cast(Server, None), stack)
    assert part.notes == [http.NO_INFINITY]
    assert not part.groups


def test_every_peer_gives_unit_rows(texts: list[str]) -> None:
    notes: list[str] = []
    found = peers.peers(texts, notes.append)
    assert len(found) + len(notes) == len(PEERS)
    for embed in found.values():
        vectors = embed(texts)
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-4)


@pytest.mark.parametrize("coalesce", [True, False])
def test_the_bare_application_answers_each_request_with_its_own_vectors(coalesce: bool, texts: list[str]) -> None:
    with Server(bare(MODEL, coalesce=coalesce)) as server, ThreadPoolExecutor(16) as pool:

        def ask(text: str) -> Any:
            body = orjson.dumps({"inputs": text})
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/embed", body, timeout=30) as answer:
                return orjson.loads(answer.read())

        answers = np.concatenate(list(pool.map(ask, texts)))
        assert server.cpu_seconds() > 0
        assert server.memory("Rss") >= server.memory("Pss") > 0
    embedder = gramvec.load(MODEL, device="cpu")
    np.testing.assert_array_equal(answers.astype(np.float32), embedder.embed(texts))
    embedder.close()


def test_a_server_that_dies_is_reported_with_its_last_lines() -> None:
    dying = Command("dying", lambda port: [sys.executable, "-c", "import sys; print('boom'); sys.exit(3)"], "/")
    with pytest.raises(SystemExit, match=r"dying .*exit code 3.*\nboom"):
        Server(dying)


def test_rounds_are_interleaved_after_one_unmeasured() -> None:
    order: list[str] = []
    timings = measure.interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 1, 3, seconds=0)
    assert "".join(order) == "ab" * 4
    order.clear()
    measure.interleaved({"a": lambda: order.append("a")}, 1, 2, seconds=0.01)
    assert len(order) > 3  # repeated until the round's time is over
    assert set(timings) == {"a", "b"}


def test_a_summary_is_of_medians() -> None:
    timing = measure.summary([(1.0, 2.0), (2.0, 4.0), (8.0, 8.0)], 8)
    assert (timing.per_cpu_second, timing.per_second) == (4.0, 2.0)
    group = measure.rates("t", "texts", {"a": timing, "b": measure.Timing(8.0, 1.0, 0.0)}, "a")
    assert [row["ratio"] for row in group.rows] == [1, 2]
    by_wall = measure.rates("t", "texts", {"a": timing, "b": measure.Timing(8.0, 1.0, 0.0)}, "a", by="per_second")
    assert [row["ratio"] for row in by_wall.rows] == [1, 0.5]


def test_numbers_for_people() -> None:
    assert [number(value) for value in (12_345, 12_345.6, 99.994, 0.00012345, 0.0)] == [
        "12,345", "12,346", "99.99", "0.000123", "0.00",
    ]  # fmt: skip
    assert Group("t", "u", [{"name": "a", "x": 3, "max": 2.0}]).lines() == ["", "t (u)", "  a  max 2.00"]


def test_a_case_has_a_request_for_each_connection_and_its_number_of_texts(texts: list[str]) -> None:
    for case in http.CASES:
        bodies = case.bodies(texts)
        assert len(bodies) >= case.connections
        assert {len(body) for body in bodies} == {case.texts}
    assert len(http.Case(1, 16).bodies([str(i) for i in range(4096)])) == 2048


def test_sentences_are_real_different_and_as_many_as_asked_for(tmp_path: Path) -> None:
    (tmp_path / "sts12").mkdir()
    line = "a sentence that is long enough to be taken, number "
    (tmp_path / "sts12" / "set.tsv").write_text(f"1.0\t{line}1\t{line}2\n2.0\tshort\t{line}1\n")
    assert sentences(tmp_path, 5) == [f"{line}1", f"{line}2", f"{line}1", f"{line}2", f"{line}1"]
    assert len(set(sentences(None, 100))) == 100


def test_the_pages_show_the_committed_results() -> None:
    for page, text in readme.pages().items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name}: run python -m benchmarks.readme"


def test_the_page_of_all_figures_has_every_row() -> None:
    shown = readme.everything()
    for path in readme.runs():
        for group in readme._groups(orjson.loads(path.read_bytes())).values():
            assert group["title"] in shown
            for row in group["rows"]:
                assert f"| {row['name']} | " in shown


def test_the_speed_of_the_readme_is_worked_out_from_the_rows() -> None:
    groups = readme._groups(orjson.loads((readme.RESULTS / "cpu.json").read_bytes()))
    rows = {row["name"]: row["per_cpu_second"] for row in groups["embedder"]["rows"]}
    ratio = rows["gramvec-en, native"] / rows["model2vec"]
    (line,) = (line for line in readme.speed().splitlines() if line.startswith("| texts embedded a CPU second"))
    assert float(line.rstrip(" |").rpartition("|")[2]) == pytest.approx(ratio, abs=0.01)


def test_a_part_that_fails_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Setting) -> Part:
        raise SystemExit("it computes something else")

    monkeypatch.setattr("benchmarks.startup.run", fails)
    file = tmp_path / "results.json"
    options = ["--only", "features,startup", "--model", MODEL, "--texts", "9", "--rounds", "1"]
    done = CliRunner().invoke(main, [*options, "--data", str(tmp_path), "--json", str(file)])
    assert done.exit_code == 1
    assert "Error: something failed in startup" in done.output
    found = orjson.loads(file.read_bytes())
    assert found["failed"] == ["startup"]
    assert found["parts"]["startup"] == {
        "notes": ["startup failed: SystemExit: it computes something else"], "groups": {},
    }  # fmt: skip
    check(found["parts"]["features"], GROUPS["features"])
