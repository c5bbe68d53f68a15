"""Models that take for ever to be read, or lose bytes while they are served."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from conftest import MODELS
from support import http
from support.errors import assert_names
from support.http import PATIENCE, children, served_process, until

pytestmark = pytest.mark.slow

KEY = {"authorization": "Bearer secret"}
# A file of holes takes no room on a disk, and half a minute and more to be digested.
HOLES = 60 * 2**30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODELS / "sif", tmp_path / "sif"))


def slow(folder: Path) -> Path:
    """The same model with a file that takes long to read."""
    made = Path(shutil.copytree(folder, folder.with_name("slow")))
    with (made / "holes").open("wb") as file:
        file.truncate(HOLES)
    values = json.loads((made / "manifest.json").read_bytes())
    values["files"]["holes"] = {"bytes": HOLES, "sha256": "0" * 64}
    (made / "manifest.json").write_text(json.dumps(values))
    return made


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with served_process("--model", str(folder), "--api-key", "secret", *options) as (process, port):
        url = f"http://127.0.0.1:{port}"
        until(lambda: httpx.get(f"{url}/ready").status_code == 200)
        yield process, url


def reloaded(url: str) -> httpx.Response:
    with httpx.Client(base_url=url, headers=KEY, timeout=PATIENCE) as client:
        return http.reloaded(client)


def embedded(url: str) -> httpx.Response:
    return httpx.post(f"{url}/embed", json={"inputs": "a fast car"}, headers=KEY, timeout=PATIENCE)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reload_that_takes_too_long_is_given_up_and_the_next_goes_on(folder: Path, workers: str) -> None:
    made = slow(folder)
    # No model of 10 MB takes so long, nor on a machine that stands still for a while.
    options = ("--workers", workers, "--reload-timeout-seconds", "5")
    with serving(folder, *options) as (process, url), ThreadPoolExecutor(1) as pool:
        kept = folder.with_name("kept")
        folder.rename(kept)
        made.rename(folder)
        answer = reloaded(url)
        assert answer.status_code == 422
        assert "5 s" in answer.json()["error"]
        assert embedded(url).status_code == 200
        # The one that was given up still reads.
        folder.rename(made)
        kept.rename(folder)
        answer = reloaded(url)
        assert (answer.status_code, [one["changed"] for one in answer.json()["models"]]) == (200, [False])
        # And a stop waits for none.
        folder.rename(kept)
        made.rename(folder)
        asked = pool.submit(reloaded, url)
        until(lambda: any(readers(one, folder / "holes") for one in [process.pid, *children(process)]))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        with suppress(httpx.TransportError):
            assert asked.result(PATIENCE).status_code in (422, 503)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def readers(process: int, path: Path) -> int:
    """How many descriptors of a process lead to this file."""
    count = 0
    for one in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            count += one.readlink() == path
    return count


def cut(folder: Path) -> None:
    """In place, which the documents forbid."""
    os.truncate(folder / "model.onnx.data", 4_096)


def test_one_process_whose_table_was_cut_short_is_ended_and_does_not_start_again(folder: Path) -> None:
    """Nothing can be done inside of it; whatever starts it anew gets a sentence."""
    with serving(folder, "--runtime", "native") as (process, url):
        cut(folder)
        with pytest.raises(httpx.TransportError):
            embedded(url)
        assert process.wait(timeout=PATIENCE) == -signal.SIGBUS
    with served_process("--model", str(folder)) as (process, _):
        assert process.wait(timeout=PATIENCE) == 1
        assert process.stderr is not None
        assert_names(process.stderr.read().splitlines()[-1], "model.onnx.data", "4096 bytes")
