"""The sdist and the wheel as others get them: built twice, installed into clean environments, served from nowhere.

Takes minutes, so it is run by `make test-packaging` and not by `make test`.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest

import gramvec
from conftest import MODELS, ROOT
from support.errors import assert_names
from support.http import served_process, until

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

# What PyPI takes of one file unless asked.
MAX_BYTES = 100 * 2**20
NAMES = (
    "service", "training", "hatch_build.py", "pyproject.toml", "Makefile", "make", "README.md",
    "CHANGELOG.md", "LICENSE",
)  # fmt: skip
CONSTRAINTS = str(ROOT / "requirements" / "constraints.txt")
OTHERS = ("3.12", "3.13")


def run(*command: object, cwd: Path, expect: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAMVEC_")}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def copy_sources(to: Path, *, model: bool) -> Path:
    to.mkdir(parents=True)
    for name in NAMES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy(ROOT / name, to / name)
    (to / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    # What must not get into either file.
    shutil.copytree(ROOT / "tests" / "reliability", to / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (to / "service" / "gramvec" / "__pycache__").mkdir()
    (to / "service" / "gramvec" / "__pycache__" / "left.pyc").write_text("left over")
    if model:
        for one in ("gramvec-en", "sif"):
            shutil.copytree(MODELS / one, to / "models" / one)
    return to


def make_dist(folder: Path) -> tuple[Path, Path]:
    run("make", "dist", f"PYTHON={sys.executable}", cwd=folder)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    assert {path.name for path in (folder / "dist").iterdir()} == {sdist.name, wheel.name}
    return sdist, wheel


def new_environment(folder: Path, python: str = sys.executable) -> Path:
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def built(home: Path) -> tuple[Path, Path]:
    """What `make dist` makes of this tree: the sdist and the wheel."""
    return make_dist(copy_sources(home / "one", model=True))


@pytest.fixture(scope="module")
def installed(home: Path, built: tuple[Path, Path]) -> Path:
    """The programs of a clean environment that has the wheel and the extra cpu."""
    programs = new_environment(home / "clean")
    run(programs / "pip", "install", "-q", "-c", CONSTRAINTS, f"gramvec[cpu] @ {built[1].as_uri()}", cwd=home)
    return programs


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in, that is still empty afterwards."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    yield empty
    assert not list(empty.iterdir())


def files_of_wheel(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of_sdist(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        read = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {name.split("/", 1)[1]: file.read() for name, file in read.items() if file is not None}


def test_the_wheel_has_what_serves_and_nothing_else(built: tuple[Path, Path], home: Path) -> None:
    _, wheel = built
    assert wheel.stat().st_size < MAX_BYTES
    assert re.fullmatch(r"gramvec-[\d.]+-cp3\d+-cp3\d+-(manylinux[\w]+\.?)+\.whl", wheel.name)
    files = files_of_wheel(wheel)
    (loops,) = (name for name in files if name.endswith(".so"))
    assert loops.startswith("gramvec/native/loops.")
    assert {
        "gramvec/py.typed", "gramvec/native/loops.pyi", "gramvec/server/routes/playground.html",
        "gramvec_training/py.typed",
    } <= set(files)  # fmt: skip
    for name in (path.name for path in (MODELS / "gramvec-en").iterdir()):
        assert files[f"gramvec/models/gramvec-en/{name}"] == (MODELS / "gramvec-en" / name).read_bytes()
    info = f"gramvec-{gramvec.__version__}.dist-info"
    assert {name.split("/")[0] for name in files} == {"gramvec", "gramvec_training", info}
    assert not [
        name for name in files if name.endswith((".c", ".h", ".pyc")) or "test" in name or "models/sif/" in name
    ]
    assert not [name for name, data in files.items() if str(home).encode() in data or str(ROOT).encode() in data]


def test_the_sdist_has_what_a_wheel_is_built_from(built: tuple[Path, Path]) -> None:
    sdist, _ = built
    assert sdist.stat().st_size < MAX_BYTES
    files = files_of_sdist(sdist)
    assert {"service/gramvec/native/module.c", "service/gramvec/native/sum.h", "hatch_build.py", "LICENSE"} <= set(
        files
    )
    assert {name.split("/")[0] for name in files} == {
        "service", "training", "models", "hatch_build.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE",
        "PKG-INFO", ".gitignore",
    }  # fmt: skip
    assert not [name for name in files if name.endswith((".so", ".pyc")) or "models/sif/" in name]


def test_both_have_the_same_bytes_when_built_from_the_sdist_elsewhere_later(
    built: tuple[Path, Path], home: Path
) -> None:
    sdist, wheel = built
    (home / "two").mkdir()
    subprocess.run(["tar", "-xf", sdist, "-C", home / "two"], check=True)  # extractall's filter came with 3.11.4
    (elsewhere,) = (home / "two").iterdir()
    shutil.copy(ROOT / "Makefile", elsewhere)
    shutil.copytree(ROOT / "make", elsewhere / "make")
    for path in elsewhere.rglob("*.py"):
        path.chmod(0o600)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    again = make_dist(elsewhere)
    assert [path.name for path in again] == [sdist.name, wheel.name]
    # Not by ==, which would print 78 MB.
    same = [one.read_bytes() == other.read_bytes() for one, other in zip((sdist, wheel), again, strict=True)]
    assert same == [True, True]


def is_ready(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{url}/ready", timeout=30).status == 200)
    except urllib.error.HTTPError:
        return False


def test_the_installed_command_serves_the_default_model_from_an_empty_folder(
    installed: Path, nowhere: Path, embedder: gramvec.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.http.COMMAND", [str(installed / "gramvec"), "serve"])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    texts = ["cheap flihgts", "", "日本語"]
    request = {"content-type": "application/json", "accept": "application/x-npy"}
    with served_process("--device", "cpu") as (_, port):
        url = f"http://127.0.0.1:{port}"
        until(lambda: is_ready(url))
        body = orjson.dumps({"inputs": texts})
        served = urllib.request.urlopen(urllib.request.Request(f"{url}/embed", body, request), timeout=30).read()
        info = orjson.loads(urllib.request.urlopen(f"{url}/info", timeout=30).read())
        page = urllib.request.urlopen(f"{url}/", timeout=30).read()
    np.testing.assert_array_equal(np.load(io.BytesIO(served)), embedder.embed(texts))
    assert info["models"][0]["digest"] == embedder.digest
    assert info["device"]["runtime"] == "native"
    assert page.startswith(b"<!doctype html>")


def test_the_installed_commands_say_what_they_are_and_what_is_missing(installed: Path, nowhere: Path) -> None:
    said = f"gramvec, version {gramvec.__version__}\n"
    assert run(installed / "gramvec", "--version", cwd=nowhere).stdout == said
    assert run(installed / "python", "-m", "gramvec", "--version", cwd=nowhere).stdout == said
    missing = run(installed / "gramvec", "similarity", "--model", "sif", "a", "b", cwd=nowhere, expect=1).stderr
    assert_names(missing, "'sif'", "there are gramvec-en")
    run(installed / "python", "-c", "import gramvec.server.app, sys; assert 'torch' not in sys.modules", cwd=nowhere)
    pairs = nowhere.parent / "pairs.tsv"
    pairs.write_text("one\ttwo\n")
    torch = run(
        installed / "gramvec-train", "fit-pairs", pairs, "--export", nowhere.parent / "mine", cwd=nowhere, expect=1
    ).stderr
    assert_names(torch, "torch", "gramvec[train]")


def test_without_a_compiler_and_a_model_it_installs_and_says_so(installed: Path, home: Path, nowhere: Path) -> None:
    source = copy_sources(home / "bare", model=False)
    wheels = home / "bare-wheels"
    made = run(installed / "pip", "wheel", "-v", "--no-deps", "-w", wheels, source, cwd=home, CC="/bin/false")
    assert "the loops in C could not be built" in made.stdout + made.stderr
    assert "the wheel has no model in it" in made.stdout + made.stderr
    (wheel,) = wheels.iterdir()
    assert wheel.name.endswith("-py3-none-any.whl")
    programs = home / "bare-environment" / "bin"
    # Everything but gramvec itself is in the clean environment already.
    shutil.copytree(installed.parent, programs.parent, symlinks=True)
    run(programs / "python", "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel, cwd=home)
    command = [programs / "python", "-m", "gramvec", "similarity", "vehicals", "vehicles"]
    assert "without a model" in run(*command, cwd=nowhere, expect=1).stderr
    found = run(*command, cwd=nowhere, GRAMVEC_MODELS=str(MODELS))
    score, word = found.stdout.split()
    wanted = gramvec.load(MODELS / "gramvec-en").similarity(["vehicals"], ["vehicles"])[0, 0]
    assert (float(score), word) == (pytest.approx(wanted, abs=2e-3), "vehicles")
    assert found.stderr.startswith("gramvec: runtime auto: onnx, because")
    assert "apt install gcc" in found.stderr


@pytest.mark.parametrize("version", OTHERS)
def test_other_pythons_build_install_and_agree(version: str, home: Path, nowhere: Path) -> None:
    python = shutil.which(f"python{version}")
    variables = {"PYENV_VERSION": version}
    if python is None or subprocess.run([python, "-V"], env=os.environ | variables, check=False).returncode:
        pytest.skip(f"no python{version} here")
    source = copy_sources(home / f"source-{version}", model=False)
    run(python, "-m", "venv", home / version, cwd=home, **variables)
    programs = home / version / "bin"
    run(programs / "pip", "install", "-q", "-c", CONSTRAINTS, f"{source}[cpu]", cwd=home)
    verified = run(programs / "gramvec", "verify", "gramvec-en", cwd=nowhere, GRAMVEC_MODELS=str(MODELS))
    assert re.search(
        r"\d+ golden texts on cpu\tnative on cpu and onnx on cpu differ by at most .*\tok\n$", verified.stdout
    )
    runtime = "import gramvec; print(gramvec.load('gramvec-en').runtime)"
    assert run(programs / "python", "-c", runtime, cwd=nowhere, GRAMVEC_MODELS=str(MODELS)).stdout == "native\n"
