"""The tables of docs/scaling.md: those of the committed results, and right by hand for results easy to divide."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from click.testing import CliRunner

import gramvec
from benchmarks import capacity, readme
from benchmarks.capacity import Assumptions, Capacity


def group(*rows: tuple[str, dict[str, float]]) -> dict[str, Any]:
    return {"title": "t", "unit": "u", "against": None, "rows": [{"name": name, **row} for name, row in rows]}


# 2,000 requests of 1 text, 1,000 of 32 and 250 of 256 in a CPU second.
RESULTS = {
    "machine": {"processor": "abacus", "commit": "abc"},
    "settings": {"characters": 5000, "texts": 100},
    "parts": {
        "http": {
            "groups": {
                "http_1": group(("bare", {"per_cpu_second": 9.0}), ("gramvec serve", {"per_cpu_second": 2000.0})),
                "http_32": group(("gramvec serve", {"per_cpu_second": 1000.0})),
                "http_256": group(("gramvec serve", {"per_cpu_second": 250.0})),
            }
        },
        "embedder": {
            "groups": {"embedder": group(("gramvec-en (int8, shipped), native", {"per_cpu_second": 100_000}))}
        },
        "memory": {
            "groups": {
                "memory": group(
                    ("gramvec serve, native: 1 worker", {"rss_mb": 300, "pss_mb": 250}),
                    ("gramvec serve, native: 2 workers", {"rss_mb": 600, "pss_mb": 270}),
                )
            }
        },
        "startup": {"groups": {"startup": group(("gramvec serve, native", {"seconds": 1.5}))}},
    },
}


def test_a_worked_example() -> None:
    found = Capacity(RESULTS, Assumptions(utilisation=0.5, price=0.36))
    assert [found.served(batch) for batch in (1, 32, 256, 512)] == pytest.approx([2_000, 32_000, 64_000, 64_000])
    # Half-way between 32 and 256 texts, 1 and 4 ms.
    assert found.served(144) == pytest.approx(144 / 0.0025)
    assert [found.memory(workers) for workers in (1, 2, 5)] == [300, 320, 380]
    # 0.5 * 32,000 = 16,000 texts a second each.
    assert [found.replicas(load, 32) for load in (1, 16_000, 32_001, 160_000)] == [2, 2, 3, 10]
    # 10^8 / 10^5 = 1,000 s; twice that at half use.
    assert found.cost(found.library) == pytest.approx(0.1)
    assert found.cost(found.library, 0.5) == pytest.approx(0.2)


def test_the_tables_of_the_worked_example() -> None:
    found = Capacity(RESULTS)
    assert "| `embed` of the library, 512 texts a call | 100,000 | 360.0 million | 0.28 |" in capacity.rates(found)
    assert "| HTTP, 32 texts a request | 32,000 | 115.2 million | 0.87 |" in capacity.rates(found)
    assert "Texts of 50 characters" in capacity.rates(found)
    assert "| 8 | 440 | 55 |" in capacity.memory(found)
    assert "ready after 1.5 s" in capacity.memory(found)
    # 10^8 / (2,000 * 0.6) s = 23.15 hours.
    assert "| over HTTP, 1 text a request | 60 % | 0.926 |" in capacity.cost(found)
    # 64,000 * 1,200 bytes = 614 Mbit/s.
    assert "| float32, raw or .npy | 1,200 | 614 | 2 | 16 | 41 |" in capacity.network(found)
    # 100,000 / (2,000 * 0.6), / (32,000 * 0.6), / (64,000 * 0.6), upwards.
    assert "| 100,000 | 84 | 6 | 3 | " in capacity.replicas(found)


def test_bytes_of_a_vector_are_those_that_are_served(embedder: gramvec.Embedder, real_texts: list[str]) -> None:
    from gramvec.server.contract.answers import to_json

    sizes = capacity.vector_bytes()
    assert [sizes[f"{name}, raw or .npy"] for name in ("float32", "int8", "ubinary")] == [1200, 300, 38]
    assert [sizes[f"{name}, base64"] for name in ("float32", "int8", "ubinary")] == [1603, 403, 55]
    texts = [text for text in real_texts if text.strip()][:100]
    rows = embedder.embed(texts)
    assert len(to_json(rows)) / len(rows) == pytest.approx(sizes["float32, JSON"], rel=0.01)


def test_the_page_shows_the_committed_results() -> None:
    text = readme.SCALING.read_text(encoding="utf-8")
    assert readme.filled(text, readme.PAGES[readme.SCALING]) == text
    for name in capacity.BLOCKS:
        assert f"<!-- {name} -->\n|" in text


def test_the_command_calculates_a_load_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    file = tmp_path / "cpu.json"
    file.write_bytes(orjson.dumps(RESULTS))
    monkeypatch.setattr(capacity, "RESULTS", file)
    done = CliRunner().invoke(
        capacity.main, ["--load", "40000", "--batch", "32", "--price", "1", "--utilisation", "0.5"]
    )
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[:3] == [
        "one core       32,000 texts a second in requests of 32",
        "replicas       3 of one worker, at 50 % of a core each",
        "memory         0.9 GB in all",
    ]
    # 10^8 / 16,000 / 3,600.
    assert done.output.splitlines()[4] == "cost           3.00 an hour, 1.74 for 100 million texts"
    assert CliRunner().invoke(capacity.main, ["--load", "0"]).exit_code == 2


def test_results_without_a_figure_are_named() -> None:
    parts = {name: part for name, part in RESULTS["parts"].items() if name != "embedder"}
    parts["embedder"] = {"groups": {"embedder": group(("model2vec", {"per_cpu_second": 1.0}))}}
    with pytest.raises(SystemExit, match="embedder must have one row"):
        capacity.rates(Capacity({**RESULTS, "parts": parts}))
