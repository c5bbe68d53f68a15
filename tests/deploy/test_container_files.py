"""What goes into the image, where no engine is needed to see it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gramvec
from conftest import ROOT, pinned
from gramvec.server.settings import Settings
from support.http import running

HEALTHY = ROOT / "docker" / "healthy.py"


@pytest.mark.parametrize("runtime", ["cpu", "gpu"])
def test_the_image_has_the_pinned_versions(runtime: str) -> None:
    image, everywhere = pinned(f"image-{runtime}.txt"), pinned("constraints.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"][runtime]]
    assert {canonicalize_name(Requirement(one).name) for one in wanted} <= image.keys(), "run make lock"
    assert {name: versions for name, versions in image.items() if versions != everywhere.get(name)} == {}
    assert "torch" not in image
    # Each with the digests that pip is told to require.
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements" / f"image-{runtime}.txt").read_text())
    assert all("--hash=sha256:" in entry for entry in entries if not entry.startswith("#"))


def test_the_image_is_built_with_what_pyproject_names() -> None:
    build = pinned("image-build.txt")
    for one in map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]):
        (version,) = build[canonicalize_name(one.name)]
        assert one.specifier.contains(version), f"{one}: run make lock"


def test_the_image_is_labeled_with_the_version() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert f'org.opencontainers.image.version="{gramvec.__version__}"' in dockerfile
    (base,) = re.findall(r'base\.name="([^"]+)"', dockerfile)
    (python,) = re.findall(r"ARG PYTHON=(\S+)", dockerfile)
    assert dockerfile.count(f"FROM {base.replace(python, '${PYTHON}')}") == 2  # built and run on the same Python


def test_the_container_is_healthy_when_the_service_is_ready(embedder: gramvec.Embedder) -> None:
    with running(Settings(), embedder) as server:
        environment = {"GRAMVEC_HOST": "0.0.0.0", "GRAMVEC_PORT": str(server.port)}
        assert healthy(environment) == (0, "")
        server.service.stop()
        code, told = healthy(environment)
    assert code == 1
    assert told.startswith("/ready: 503") and "shutting down" in told
    code, told = healthy(environment)
    assert (code, told.splitlines()) == (1, ["/ready: [Errno 111] Connection refused"])


def healthy(environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-IS", str(HEALTHY)], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr
