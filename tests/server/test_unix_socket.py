"""`gramvec serve --unix-socket PATH`: served there, alone and with workers; what is left and what is another's."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from conftest import MODELS, ROOT
from support.http import COMMAND, PATIENCE, client_at, serves_at, until
from support.proxy import needs_nginx, nginx

pytestmark = pytest.mark.slow

SERVE = [*COMMAND, "--model", str(MODELS / "sif")]


@contextmanager
def served(path: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([*SERVE, "--unix-socket", str(path), *options], stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: serves_at(path))
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_is_served_there_and_the_path_goes_with_it(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "s"
    with served(path, "--workers", workers) as process:
        with client_at(path) as client:
            answer = client.post("/embed", json={"inputs": ["a", "b"]})
            assert (answer.status_code, len(answer.json())) == (200, 2)
            assert client.get("/openapi.json").status_code == 200
        check = [sys.executable, "-IS", str(ROOT / "docker" / "healthy.py")]
        asked = subprocess.run(check, env={"GRAMVEC_UNIX_SOCKET": str(path)}, capture_output=True, check=False)
        assert (asked.returncode, asked.stderr) == (0, b"")
        asked = subprocess.run(check, env={"GRAMVEC_UNIX_SOCKET": f"{path}-"}, capture_output=True, check=False)
        assert (asked.returncode, asked.stderr) == (1, b"/ready: [Errno 2] No such file or directory\n")
        refused = subprocess.run([*SERVE, "--unix-socket", str(path)], capture_output=True, text=True, check=False)
        assert (refused.returncode, refused.stderr) == (
            1,
            f"Error: cannot listen on {path}: another process listens there; choose another\n",
        )
        assert serves_at(path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert not path.exists()


@needs_nginx
def test_a_proxy_of_another_user_connects_there() -> None:
    with TemporaryDirectory() as folder:  # pytest's own may be entered by its user only
        Path(folder).chmod(0o755)
        path = Path(folder) / "s"
        with served(path), nginx([f"unix:{path}"]) as port:
            answer = httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": ["a", "b"]}, timeout=PATIENCE)
            assert (answer.status_code, len(answer.json())) == (200, 2)


def test_what_a_killed_service_has_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with served(path) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("name", "why"), [("plain", "something else is there"), ("no/folder", "No such file"), ("x" * 120, "too long")]
)
def test_what_cannot_be_had_is_one_sentence(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "plain").write_text("mine")
    done = subprocess.run(
        [*SERVE, "--unix-socket", str(tmp_path / name)], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "plain").read_text() == "mine"
