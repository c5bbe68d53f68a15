"""The benchmarks run on a tiny input and give the documented JSON. No test here asserts a time."""

from __future__ import annotations

import gzip
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
from benchmarks import gpu, http, lines, measure, peers, plot, readme, tables
from benchmarks.__main__ import PARTS, main, measured
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, number
from benchmarks.servers import Command, Server, bare, infinity
from benchmarks.texts import sentences
from conftest import MODELS, ROOT
from gramvec.bundle.bundle import open_bundle
from gramvec.text.suffixes import suffix_rows, summed
from gramvec.text.vocabulary import Vocabulary

RATES = {"name", "per_cpu_second", "per_second", "ratio", "spread"}
LATENCY = {"name", "p50_us", "p99_us", "ratio"}
BANDWIDTH = {"name", "gb_per_second", "ratio"}
SCALING = {"name", "x", "us_per_text", "spread"}
ENCODERS = {
    "name", "rows_a_text", "parameters", "difference", "torch", "whole_graph", "served", "ratio", "spread",
}  # fmt: skip
# Every group of every part and its columns, as docs/benchmarks.md has them; infinity-emb's come where it is installed.
GROUPS: dict[str, dict[str, set[str]]] = {
    "features": {"features": RATES, "features_one_text": LATENCY, "features_rows": {"name", "mean", "max"}},
    "runtime": {f"runtime_{precision}": RATES for precision in ("float32", "float16", "int8")},
    "embedder": {"embedder": RATES, "precisions": {"name", "max", "mean"}, "threads": RATES},
    "latency": {"latency": LATENCY},
    "http": {name: RATES for name in ("http_1", "http_1_c64", "http_32", "http_256")},
    "protocol": {name: RATES for name in ("protocol_c1", "protocol_c16", "protocol_c64")},
    "memory": {"memory": {"name", "rss_mb", "pss_mb", "ratio"}},
    "startup": {"startup": {"name", "seconds", "cpu_seconds", "ratio", "spread"}},
    "training": {
        "training": RATES,
        **{f"training_{name}": RATES for name in ("head", "lstm", "charlstm", "charcnn", "tagger")},
    },
    "sequences": {"encoders": ENCODERS},
    "scaling": {f"scaling_{axis}": SCALING for axis in ("length", "batch", "vocabulary", "dimension")},
    "bulk": {
        "bulk": {"name", "per_second", "per_cpu_second", "peak_mb", "ratio"},
        "dedupe": {"name", "seconds", "cpu_seconds", "peak_mb"},
    },
    "index": {
        "index": {"name", "per_second", "per_cpu_second", "peak_mb", "ratio"},
        "index_search": {"name", "build_seconds", "ms", "ms_of_many", "mb", "recall", "ratio"},
    },
    "match": {"match_sentences": {"name", "cpu_seconds", "recall", "f1", "ratio"}},
    "tradeoff": {"tradeoff": RATES},
    "gpu": {},
}
PEERS = {"model2vec": "model2vec", "sentence_transformers": "StaticEmbedding", "fasttext": "fastText"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shipped model cut to 2,000 rows of 32 columns."""
    like = open_bundle(MODELS / "charagram-phrase")
    vocabulary = Vocabulary.build(like.vocabulary.entries()[:2_000])
    table = tables.reference_table(like)[:2_000, :32]
    folder = tmp_path_factory.mktemp("models") / "tiny"
    return str(tables.write_bundle(folder, like, table, "int8", vocabulary))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return sentences(None, 40)


@pytest.fixture(scope="module")
def run_part(model: str, texts: list[str]) -> Callable[[str], dict[str, Any]]:
    """The JSON of a run of one part; each is run once."""

    @cache
    def run(part: str) -> dict[str, Any]:
        return cast(dict[str, Any], orjson.loads(orjson.dumps(measured([part], model, texts, 1))))

    return run


@pytest.fixture(scope="module")
def results(run_part: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The JSON of two parts that need no server and no peer."""
    features, scaling = run_part("features"), run_part("scaling")
    return {**features, "parts": features["parts"] | scaling["parts"]}


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
            assert group["rows"][0]["name"] == group["against"]
            assert next(row for row in group["rows"] if row["name"] == group["against"])["ratio"] == 1


def test_every_part_is_described_here() -> None:
    assert set(GROUPS) == set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_gives_the_documented_groups(
    part: str, model: str, texts: list[str], run_part: Callable[[str], dict[str, Any]]
) -> None:
    found = run_part(part)
    assert set(found) == {"machine", "settings", "parts"}
    assert set(found["machine"]) == {"processor", "python", "packages", "commit"}
    assert found["settings"] == {
        "model": model, "texts": 40, "characters": sum(map(len, texts)), "rounds": 1,
    }  # fmt: skip
    groups = GROUPS[part]
    if part == "http" and infinity() is not None:
        groups = groups | {f"http_infinity_{case}": RATES for case in ("1", "1_c64", "32")}
    if part == "gpu" and not found["parts"][part]["groups"]:
        (note,) = found["parts"][part]["notes"]
        assert note.startswith("gpu is left out: no CUDA device (")
    elif part == "gpu":
        groups = {f"gpu_{size}": RATES for size in gpu.SIZES} | {"gpu_stages": RATES, "gpu_bandwidth": BANDWIDTH}
    check(found["parts"][part], groups)


def test_the_command_writes_json_and_prints_each_group(model: str, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    options = ["--only", "features", "--model", model, "--texts", "20", "--rounds", "2", "--data", str(tmp_path)]
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
        (["--only", "gpu", "--model", "no-such-model"], 1, "no-such-model"),
    ],
)
def test_a_bad_call_is_one_sentence(options: list[str], code: int, said: str) -> None:
    done = CliRunner().invoke(main, options)
    assert done.exit_code == code
    assert said in done.output
    assert "Traceback" not in done.output


def test_each_missing_peer_is_one_line_and_the_rest_goes_on(no_peers: None, model: str, texts: list[str]) -> None:
    embedder_part = measured(["latency"], model, texts[:5], 1)["parts"]["latency"]
    assert len(embedder_part["notes"]) == len(PEERS)
    for line, name in zip(embedder_part["notes"], PEERS.values(), strict=True):
        assert name in line
        assert "is left out" in line
        assert "make bench-peers" in line
        assert "\n" not in line
    assert {row["name"] for row in embedder_part["groups"]["latency"]["rows"]} == {
        "gramvec, native", "gramvec, ONNX Runtime", peers.BAG,
    }  # fmt: skip


def test_a_missing_infinity_is_one_line(no_peers: None, model: str, texts: list[str]) -> None:
    part = Part()
    with ExitStack() as stack:
        http._against_infinity(part, Setting(model, texts, 1), cast(Server, None), stack)
    assert part.notes == [http.NO_INFINITY]
    assert not part.groups


def test_every_peer_gives_unit_rows_and_torch_gives_ours(model: str, texts: list[str]) -> None:
    embedder = gramvec.load(model, device="cpu")
    notes: list[str] = []
    found = peers.peers(embedder, texts, notes.append)
    assert len(found) + len(notes) == 1 + len(PEERS)
    for embed in found.values():
        vectors = embed(texts)
        assert vectors.dtype == np.float32
        assert len(vectors) == len(texts)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-4)
    assert tables.distances(found[peers.BAG](texts), embedder.embed(texts)).max() < 1e-6
    embedder.close()


@pytest.mark.parametrize("coalesce", [True, False])
def test_the_bare_application_answers_each_request_with_its_own_vectors(
    coalesce: bool, model: str, texts: list[str]
) -> None:
    embedder = gramvec.load(model, device="cpu")
    with Server(bare(model, coalesce=coalesce)) as server, ThreadPoolExecutor(16) as pool:

        def ask(text: str) -> Any:
            body = orjson.dumps({"inputs": text})
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/embed", body, timeout=30) as answer:
                return orjson.loads(answer.read())

        answers = np.concatenate(list(pool.map(ask, texts)))
        assert server.cpu_seconds() > 0
        assert server.memory("Rss") >= server.memory("Pss") > 0
    np.testing.assert_array_equal(answers.astype(np.float32), embedder.embed(texts))
    embedder.close()


def test_a_server_that_dies_is_reported_with_its_last_lines() -> None:
    dying = Command("dying", lambda port: [sys.executable, "-c", "import sys; print('boom'); sys.exit(3)"], "/")
    with pytest.raises(SystemExit, match=r"dying did not become ready .*exit code 3.*\nboom"):
        Server(dying)


@pytest.mark.parametrize("precision", tables.PRECISIONS)
def test_the_reference_table_rounds_to_the_stored_one(precision: Any, model: str, tmp_path: Path) -> None:
    like = open_bundle(model)
    path = tables.write_bundle(tmp_path / "b", like, tables.reference_table(like), precision, like.vocabulary)
    bundle = open_bundle(path)
    arrays = tables.stored(bundle)
    table, stored = tables.reference_table(bundle), arrays["table"][: len(bundle.vocabulary)]
    if bundle.memoised.memo is not None:
        table = summed(table, suffix_rows(bundle.vocabulary))
    if precision == "int8":
        steps = arrays["scales"][: len(table)] * arrays.get("columns", np.float32(1))
        np.testing.assert_array_equal(np.rint(table / np.where(steps > 0, steps, 1)), stored)
    elif precision == "float16":
        np.testing.assert_array_equal(table.astype(stored.dtype), stored)
    apart = np.abs(table - tables.dequantised(bundle)[: len(table)]).max()
    assert (apart < 1e-5) == (precision == "float32")


def test_coarser_tables_are_farther_from_the_reference(run_part: Callable[[str], dict[str, Any]]) -> None:
    rows = run_part("embedder")["parts"]["embedder"]["groups"]["precisions"]["rows"]
    means = {row["name"]: row["mean"] for row in rows}
    for runtime in ("onnx", "native"):
        assert means[f"float32, {runtime}"] < 1e-12 < means[f"float16, {runtime}"] < means[f"int8, {runtime}"] < 1e-2


def test_rounds_are_interleaved_after_one_unmeasured() -> None:
    order: list[str] = []
    timings = measure.interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 1, 3, seconds=0)
    assert "".join(order) == "ab" * 4
    order.clear()
    measure.interleaved({"a": lambda: order.append("a")}, 1, 2, seconds=0.01)
    assert len(order) > 3  # as often as there is time for
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
    prose = sentences(None, 100)
    assert len(set(prose)) == 100


def test_the_document_shows_the_committed_results() -> None:
    text = readme.DOCUMENT.read_text(encoding="utf-8")
    assert readme.filled(text, readme.PAGES[readme.DOCUMENT]) == text


def test_tables_hold_every_row_of_the_results(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.json").write_bytes(orjson.dumps(results))
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    shown = readme.figures()
    for part in results["parts"].values():
        for group in part["groups"].values():
            assert group["title"] in shown
            for row in group["rows"]:
                assert f"| {row['name']} | " in shown


def test_the_speed_of_the_readme_is_that_of_the_committed_results() -> None:
    (row,) = (line for line in readme.speed().splitlines() if line.startswith("| vectors a CPU second"))
    rows = orjson.loads((readme.RESULTS / "cpu.json").read_bytes())["parts"]["embedder"]["groups"]["embedder"]["rows"]
    (ours,) = (one for one in rows if one["name"] == "gramvec-en (int8, shipped), native")
    assert f"{ours['per_cpu_second']:,.0f}" in row
    assert f"{rows[0]['per_cpu_second']:,.0f}: {rows[0]['name']}" in row
    assert row.endswith(f"{ours['ratio']:.2f} |")


def test_the_plot_is_drawn_from_the_results(results: dict[str, Any], tmp_path: Path) -> None:
    plot.draw(results, tmp_path / "images" / "one.png")
    plot.draw(results, tmp_path / "images" / "two.png")
    drawn = (tmp_path / "images" / "one.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert drawn == (tmp_path / "images" / "two.png").read_bytes()
    with pytest.raises(SystemExit, match="no scaling"):
        plot.draw({"parts": {}}, tmp_path / "three.png")


def test_quality_over_speed_is_drawn_from_the_committed_results(tmp_path: Path) -> None:
    quality, speed = (orjson.loads((readme.RESULTS / f"{name}.json").read_bytes()) for name in ("quality", "tradeoff"))
    points = plot.tradeoff(quality, speed)
    assert {"gramvec-en", "sif", "tfidf", "model2vec"} <= set(points)
    rate, clean, misspelt = points["gramvec-en"]
    rows = speed["parts"]["tradeoff"]["groups"]["tradeoff"]["rows"]
    assert rate == rows[0]["per_cpu_second"]
    tasks = [quality["reports"]["gramvec-en"]["tasks"][task]["mean"]["pearson"] for task in ("sts12", "sts16", "sick")]
    assert clean == pytest.approx(sum(tasks) / 3)
    assert misspelt < clean
    plot.draw_tradeoff(points, tmp_path / "one.png")
    plot.draw_tradeoff(points, tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_the_gpu_part_compares_any_two_embedders(model: str, texts: list[str]) -> None:
    part = Part()
    embedders = {name: gramvec.load(model, device="cpu", runtime="onnx") for name in ("cpu", "other")}
    gpu.compare(part, Setting(model, texts, 1), embedders, (1, 8))
    found = orjson.loads(orjson.dumps(part.as_json()))
    check(found, {"gpu_1": RATES, "gpu_8": RATES, "gpu_stages": RATES, "gpu_bandwidth": BANDWIDTH})
    assert len(found["notes"]) == 1
    for one in embedders.values():
        one.close()


def test_the_gpu_part_goes_on_where_a_size_fails(
    model: str, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    part = Part()
    embedders = {name: gramvec.load(model, device="cpu") for name in ("cpu", "other")}
    embed = embedders["other"].embed

    def fails_on_eight(texts: list[str]) -> np.ndarray:
        if len(texts) == 8:
            raise RuntimeError("out of memory")
        return embed(texts)

    embedders["other"].embed = fails_on_eight  # type: ignore[method-assign, assignment]
    gpu.compare(part, Setting(model, texts, 1), embedders, (1, 8, 9))
    assert set(part.groups) == {"gpu_1", "gpu_9", "gpu_stages", "gpu_bandwidth"}
    assert part.failed == ["8 text(s) a call"]
    assert part.notes[0] == "8 text(s) a call failed: RuntimeError: out of memory"
    assert "(of 1, 9)" in part.notes[1]
    assert "Traceback" in capsys.readouterr().err


def test_a_part_that_fails_is_named_and_the_others_go_on(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Setting) -> Part:
        raise SystemExit("it computes something else")

    monkeypatch.setattr("benchmarks.startup.run", fails)
    file = tmp_path / "results.json"
    options = ["--only", "features,startup,gpu", "--model", model, "--texts", "9", "--rounds", "1"]
    done = CliRunner().invoke(main, [*options, "--data", str(tmp_path), "--json", str(file)])
    assert done.exit_code == 1
    assert "Error: something failed in startup" in done.output
    found = orjson.loads(file.read_bytes())
    assert found["failed"] == ["startup"]
    assert list(found["parts"]) == ["features", "startup", "gpu"]
    assert found["parts"]["startup"] == {
        "notes": ["startup failed: SystemExit: it computes something else"], "groups": {},
    }  # fmt: skip
    check(found["parts"]["features"], GROUPS["features"])


def test_lines_are_real_ones_and_then_halves_of_two(tmp_path: Path) -> None:
    for name, text in (("a.txt.gz", "one two three\n\n  four   five\none two three\n"), ("b.txt.gz", "six\n")):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    printed = CliRunner().invoke(lines.main, ["50", "--data", str(tmp_path)])
    assert printed.exit_code == 0
    found = printed.output.splitlines()
    assert sorted(found[:3]) == ["four five", "one two three", "six"]
    assert set(found[3:]) <= {
        f"{one} {other}" for one in ("one two", "four", "six") for other in ("two three", "five", "six")
    }
    assert len(found) == 50
    assert CliRunner().invoke(lines.main, ["7", "--data", str(tmp_path)]).output.splitlines() == found[:7]
    (tmp_path / "empty").mkdir()
    refused = CliRunner().invoke(lines.main, ["7", "--data", str(tmp_path / "empty")])
    assert (refused.exit_code, "no line in any *.txt.gz" in refused.output) == (1, True)
