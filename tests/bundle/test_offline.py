"""No network is needed, and none is asked for: no telemetry, no downloads, at start or when asked to embed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conftest import ROOT, pinned
from gramvec.server.app import create_app
from support.http import PATIENCE

pytestmark = pytest.mark.slow

# Serves, asks itself, stops itself; ends with 99 at the first sight of a name looked up or a connection to elsewhere.
SERVE = """
import http.client, json, os, re, signal, socket, sys, threading

LOOK_UPS = {"socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo", "urllib.Request"}
own = threading.local()

def watch(event, arguments):
    if event == "socket.getaddrinfo":
        forbidden = arguments[0] != "127.0.0.1"
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        forbidden = not getattr(own, "asking", False)
    else:
        forbidden = event in LOOK_UPS
    if forbidden:
        os.write(2, f"NETWORK {event} {arguments[1:]}\\n".encode())
        os._exit(99)

sys.addaudithook(watch)

def ask():
    own.asking = True
    port = int(re.search(rb":(\\d+)", told.readline())[1])
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("POST", "/embed", json.dumps({"inputs": "a"}), {"content-type": "application/json"})
        status = connection.getresponse().status
        if status == 200:
            break
    for path in ("/info", "/metrics", "/docs", "/openapi.json"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path)
        assert connection.getresponse().status == 200, path
    os.write(1, json.dumps(sorted(sys.modules)).encode())
    os.kill(os.getpid(), signal.SIGTERM)

import logging
reader, writer = os.pipe()
told = os.fdopen(reader, "rb")

class Tell(logging.Handler):
    def emit(self, record):
        if "listening" in record.getMessage():
            os.write(writer, record.getMessage().encode() + b"\\n")

logging.getLogger("gramvec").addHandler(Tell())
threading.Thread(target=ask, daemon=True).start()
from gramvec.cli import main
sys.argv = ["gramvec", "serve", "--port", "0"]
main()
"""
# As somebody might have it set for other programs on the same machine.
TELEMETRY = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318", "FASTAPI_OTEL_AUTO_CONFIGURE": "true"}


def served(*before: str) -> list[str]:
    """The modules of a process that served and stopped."""
    done = subprocess.run(
        [*before, sys.executable, "-c", SERVE],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **TELEMETRY},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout)
    assert isinstance(modules, list)
    return modules


def test_serving_asks_for_no_network_and_loads_no_exporter() -> None:
    modules = served()
    assert "gramvec.server.model_route" in modules
    # FastAPI imports the interfaces of OpenTelemetry; without its SDK and an exporter they do nothing.
    assert not [name for name in modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "logfire"))]
    assert not {"torch", "requests", "httpx", "sentry_sdk", "posthog", "huggingface_hub"} & set(modules)


def test_serving_works_where_there_is_no_network() -> None:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("unshare and ip are needed to take the network away")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody have a network of his own")
    served("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


@pytest.mark.parametrize("runtime", ["onnx", "native"])
def test_onnx_runtime_tells_nobody(tmp_path: Path, runtime: str) -> None:
    # Its C++ goes past the audit hook above, but before it sends anything it keeps an identifier in the home folder.
    suppressors = ("CI", "TF_BUILD", "GITHUB_ACTIONS", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS")
    environment = {name: value for name, value in os.environ.items() if name not in suppressors}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    # Where it would be sent is nowhere.
    environment |= dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    script = f"import gramvec; gramvec.load('gramvec-en', runtime={runtime!r}).embed(['a'])"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=PATIENCE, cwd=ROOT)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_fastapi_tells_nobody() -> None:
    telemetry = create_app(embedder=[])._telemetry
    assert not any(telemetry[name] for name in ("tracing", "metrics", "logs", "operation_spans", "auto_configure"))


def needed() -> dict[str, str]:
    """What pyproject.toml asks for, all extras and groups, and what that asks for: the versions installed here."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = document["project"]
    groups = [*project["optional-dependencies"].values(), *document["dependency-groups"].values()]
    asked = [(one, "") for group in (project["dependencies"], *groups) for one in map(Requirement, group)]
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    while asked:
        requirement, of_extra = asked.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": of_extra}):
            continue
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue
        found[name] = installed.version.partition("+")[0]
        for extra in {"", *requirement.extras} - {extra for one, extra in seen if one == name}:
            seen.add((name, extra))
            asked += [(one, extra) for one in map(Requirement, installed.requires or ())]
    del found["gramvec"]  # the extra `all` names the others
    return found


def test_every_package_that_is_needed_is_pinned() -> None:
    known, versions = pinned("constraints.txt"), needed()
    assert {"fastapi", "pydantic-core", "numpy", "hypothesis"} <= versions.keys()
    wrong = {
        name: (version, known.get(name)) for name, version in versions.items() if version not in known.get(name, ())
    }
    assert not wrong, f"not as in requirements/constraints.txt; run make lock: {wrong}"


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        (
            [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "gone"}],
            0,
            "1 of 2 pinned packages",
        ),
        ([{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}], 1, "a 1: CVE-1"),
        ([{"name": "a", "skip_reason": "gone"}], 1, "nothing was audited"),
        (None, 1, "nothing was audited"),
    ],
)
def test_an_audit_that_nobody_answered_is_not_taken_for_a_good_one(
    tmp_path: Path, said: list[dict[str, object]] | None, code: int, words: str
) -> None:
    # A stand-in for pip-audit, which needs a network: what it prints, and that it ends well when it skipped all.
    answer = "" if said is None else json.dumps({"dependencies": said})
    (tmp_path / "pip_audit.py").write_text(f"print({answer!r})")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(ROOT / "requirements" / "audit.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
