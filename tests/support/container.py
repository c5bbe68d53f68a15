"""The container of the built image, run by docker or podman."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from support.http import PATIENCE

# Set by docker/test.sh.
ENGINE = os.environ.get("GRAMVEC_ENGINE", "")
IMAGE = os.environ.get("GRAMVEC_IMAGE", "gramvec:cpu")
MEMORY_MB = 512
# What compose.yaml asks for.
HARDENED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
LIMITED = (f"--memory={MEMORY_MB}m", f"--memory-swap={MEMORY_MB}m", "--pids-limit=256")


def engine(*arguments: str, check: bool = True) -> str:
    """Return the output of docker or podman."""
    # podman complains of a systemd that is not there, and leaves a file in its folder when a container is killed.
    quiet = ["--log-level=fatal"] if ENGINE.endswith("podman") else []
    command = [ENGINE, *quiet, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir(), timeout=4 * PATIENCE
    )
    assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


class Container:
    """A running container of the image."""

    def __init__(self, name: str, port: int | None) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"

    def run(self, *command: str, check: bool = True) -> str:
        """Return the output of a command inside."""
        return engine("exec", self.name, *command, check=check)

    def python(self, script: str) -> str:
        """Return the output of a script, run by the image's Python."""
        return self.run("python", "-c", script)

    def logs(self) -> list[str]:
        """Return the logged lines."""
        quiet = ["--log-level=fatal"] if ENGINE.endswith("podman") else []
        command = [ENGINE, *quiet, "logs", self.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        return done.stdout.splitlines()

    def state(self) -> Mapping[str, Any]:
        """Return whether it runs, its exit code, and whether it was killed for its memory."""
        state = json.loads(engine("inspect", self.name))[0]["State"]
        assert isinstance(state, dict)
        return state


@contextmanager
def container(*options: str, network: bool = True, command: tuple[str, ...] = ()) -> Iterator[Container]:
    """A container, as soon as it is ready: its own HEALTHCHECK says so."""
    reachable = ("--publish", "127.0.0.1::8000") if network else ("--network", "none")
    name = engine("run", "--detach", *HARDENED, *LIMITED, *reachable, *options, IMAGE, *command)
    try:
        port = int(engine("port", name, "8000").splitlines()[0].rpartition(":")[2]) if network else None
        running = Container(name, port)
        deadline = time.monotonic() + PATIENCE
        while not _healthy(running):
            assert running.state()["Running"], "\n".join(running.logs())
            assert time.monotonic() < deadline, "\n".join(running.logs())
            time.sleep(0.1)
        yield running
    finally:
        engine("kill", name, check=False)
        engine("rm", "--force", name)


def _healthy(running: Container) -> bool:
    kind, *command = _health_check()
    assert kind == "CMD"  # without a shell
    told = engine("exec", running.name, "sh", "-c", '"$@" >/dev/null 2>&1 && echo well', "sh", *command, check=False)
    return told == "well"


@cache
def _health_check() -> tuple[str, ...]:
    (image,) = json.loads(engine("image", "inspect", IMAGE))
    found = image["Config"].get("Healthcheck") or image.get("Healthcheck")
    assert found, "the image has no HEALTHCHECK: was it built in OCI's format?"
    return tuple(found["Test"])


def models_folder(folder: Path) -> tuple[str, str]:
    """Return the options that mount a folder over /models."""
    return "--volume", f"{folder}:/models:ro"


def ask(running: Container, path: str, body: object = None) -> httpx.Response:
    """Send a request."""
    if body is None:
        return httpx.get(running.url + path, timeout=PATIENCE)
    return httpx.post(running.url + path, json=body, timeout=PATIENCE)
