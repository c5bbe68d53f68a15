"""Disks that are full or cannot be written: one sentence, nothing half done, and serving goes on."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec.errors import GramvecError
from support.errors import refused
from support.http import COMMAND, PATIENCE, kept_port, served_process, serves, until
from support.wire import small_bundle

pytestmark = pytest.mark.slow

MODEL = MODELS / "paragram-phrase"
GRAMVEC = str(Path(sys.executable).with_name("gramvec"))
TRAIN = str(Path(sys.executable).with_name("gramvec-train"))
KB = 1024


def mounted(folder: Path, *options: str) -> bool:
    """Whether a file system of its own could be mounted there."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(params=["full disk", "limited files"])
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder that takes 256 KB, and what a process has to call first for that to hold."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limited files":
        limit = (256 * KB, 256 * KB)
        yield folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        return
    if not mounted(folder, "size=256k"):
        pytest.skip("only root can mount a small file system")
    try:
        yield folder, lambda: None
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lines") / "lines.txt"
    file.write_text("a fast car\n" * 1_000)
    return file


def failure(*command: str | Path, first: Callable[[], None] | None = None, stdout: Any = subprocess.PIPE) -> str:
    """The last line on stderr of a command that fails with a sentence; the process calls `first` before."""
    result = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=2 * PATIENCE, preexec_fn=first
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.jsonl"])
def test_embed_onto_a_full_disk_leaves_what_was_there(
    small_disk: tuple[Path, Callable[[], None]], lines: Path, name: str
) -> None:
    folder, first = small_disk
    output = folder / name
    output.write_bytes(b"the results of yesterday")
    said = failure(GRAMVEC, "embed", lines, "-o", output, "--overwrite", "--model", MODEL, first=first)
    assert said.startswith("Error: ")
    assert "no part of a file was left" in said
    assert output.read_bytes() == b"the results of yesterday"
    assert list(folder.iterdir()) == [output]


def test_embed_to_a_full_standard_output_is_one_sentence(lines: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        said = failure(GRAMVEC, "embed", lines, "--model", MODEL, stdout=full)
    assert said.startswith("Error: No space left")


def test_embed_into_a_device_leaves_the_device(lines: Path) -> None:
    before = Path("/dev/null").stat()
    arguments = [GRAMVEC, "embed", str(lines), "--model", str(MODEL), "-o"]
    assert subprocess.run([*arguments, "/dev/null"], timeout=PATIENCE, capture_output=True).returncode == 0
    assert subprocess.run([*arguments, "/dev/full"], timeout=PATIENCE, capture_output=True).returncode == 1
    after = Path("/dev/null").stat()
    assert stat.S_ISCHR(after.st_mode)
    assert after.st_ino == before.st_ino


EXPORT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
import numpy as np
from gramvec.text.vocabulary import Entry, Vocabulary
from support.wire import small_bundle
words = [Entry("word", f"w{number}", 1) for number in range(2_000)]
weights = {"vocabulary": Vocabulary.build(words), "table": np.ones((2_000, 300), np.float32)}
small_bundle(Path(sys.argv[1]), golden_texts=["w1"], parity_texts=["w1"], **weights)
"""


def test_an_export_onto_a_full_disk_leaves_no_half_bundle(small_disk: tuple[Path, Callable[[], None]]) -> None:
    folder, first = small_disk
    target = folder / "model"
    small_bundle(target)
    before = sorted(file.name for file in target.iterdir())
    result = subprocess.run(
        [sys.executable, "-c", EXPORT, str(target), *filter(None, sys.path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        preexec_fn=first,
    )
    assert result.returncode == 1
    assert "Error: [Errno" in result.stderr.splitlines()[-1]
    assert [file.name for file in folder.iterdir()] == ["model"]
    assert sorted(file.name for file in target.iterdir()) == before
    gramvec.load(target, device="cpu").close()


def test_convert_onto_a_full_disk_is_one_sentence(small_disk: tuple[Path, Callable[[], None]]) -> None:
    folder, first = small_disk
    said = failure(TRAIN, "convert", MODEL, "-o", folder / "model", "--precision", "float16", first=first)
    assert said.startswith("gramvec-train: ")
    assert list(folder.iterdir()) == []


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder with a model in it, on a file system that cannot be written; as good as that for who is not root."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    is_mounted = mounted(folder, "size=1m")
    small_bundle(folder / "small")
    if is_mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    else:
        for path in (*folder.rglob("*"), folder):
            path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield folder
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        else:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_model_is_served_where_nothing_can_be_written(read_only: Path, workers: str) -> None:
    """The folder of the model, the working folder, the home and every cache are read-only."""
    with pytest.raises(OSError):
        (read_only / "x").touch()
    embedder = gramvec.load(read_only / "small", device="cpu")
    expected = embedder.embed(["a fast car"]).tolist()
    embedder.close()
    options = ["--model", str(read_only / "small"), "--workers", workers, "--device", "cpu"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(read_only)
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX"):
            patch.setenv(name, str(read_only))
        with served_process(*options) as (_, port):
            url = f"http://127.0.0.1:{port}"
            until(lambda: httpx.get(f"{url}/ready").status_code == 200)
            answer = httpx.post(f"{url}/embed", json={"inputs": "a fast car"})
            assert (answer.status_code, np.float32(answer.json()).tolist()) == (200, expected)
            assert httpx.get(f"{url}/metrics").status_code == 200


@pytest.mark.parametrize("options", [["--log-format", "json"], ["--workers", "2"]], ids=" ".join)
def test_a_log_that_cannot_be_written_stops_nothing(options: list[str]) -> None:
    command = [*COMMAND, "--model", str(MODEL), "--access-log", "on", *options]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # as it is for most, so that lines are left at the end
    with (
        kept_port() as port,
        Path("/dev/full").open("wb") as full,
        subprocess.Popen([*command, "--port", str(port)], stderr=full, stdout=full, env=buffered) as process,
    ):
        try:
            until(lambda: serves(port))
            for _ in range(20):
                assert httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": "a fast car"}).status_code == 200
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_results_into_a_read_only_folder_are_one_sentence(read_only: Path, lines: Path) -> None:
    said = failure(GRAMVEC, "embed", lines, "-o", read_only / "x.npy", "--model", read_only / "small")
    assert f"{read_only / 'x.npy'}: cannot be written" in said


def test_a_model_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    bundle = small_bundle(tmp_path / "small")
    (bundle / "vocabulary.safetensors").unlink()
    (bundle / "vocabulary.safetensors").symlink_to(bundle / "vocabulary.safetensors")
    with refused(GramvecError, "vocabulary.safetensors"):
        gramvec.load(bundle, device="cpu")
