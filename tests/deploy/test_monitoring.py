"""What docker/monitoring asks of the metrics is what they tell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import gramvec
from conftest import ROOT
from gramvec.server.settings import Settings
from support.http import RunningServer, running

MONITORING = ROOT / "docker" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana" / "gramvec.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.fixture(scope="module")
def told(embedder: gramvec.Embedder) -> Iterator[dict[str, set[str]]]:
    """The names of the samples of a server that was asked something, with their labels."""
    with running(Settings(), embedder) as server:
        yield _told(server)


def _told(server: RunningServer) -> dict[str, set[str]]:
    assert httpx.post(f"{server.url}/embed", json={"inputs": ["a", ""]}).status_code == 200
    assert httpx.post(f"{server.url}/embed", json={}).status_code == 422
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(httpx.get(f"{server.url}/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics of an expression, with the labels that it picks them by."""
    for name, braces in re.findall(r"\b((?:gramvec|process)_[a-z_]+)(?:\{([^}]*)\})?", expression):
        yield name, set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', braces)) - {"instance", "job"}


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_the_dashboard_asks_for_what_there_is(panel: dict[str, Any], told: dict[str, set[str]]) -> None:
    for target in panel["targets"]:
        metrics = list(asked(target["expr"]))
        assert metrics
        for name, labels in metrics:
            assert labels <= told[name], name


def test_the_alerts_ask_for_what_there_is(told: dict[str, set[str]]) -> None:
    metrics = list(asked((MONITORING / "alerts.yml").read_text()))
    assert len(metrics) > 8
    for name, labels in metrics:
        assert labels <= told[name], name


def test_promtool_has_nothing_to_say(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool, of Debian's package prometheus, is not here")
    # The dashboard's expressions as rules, with Grafana's variables filled in.
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "1m")}
        for number, expression in enumerate(EXPRESSIONS)
    ]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    for command in (
        ["check", "config", str(MONITORING / "prometheus.yml")],
        ["test", "rules", str(MONITORING / "alerts_test.yml")],
        ["check", "rules", str(tmp_path / "rules.json")],
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
