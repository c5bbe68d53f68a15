"""Ray Data on this machine, with two workers of which one is killed. Run by `make test-ray`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramvec
from conftest import MODELS
from gramvec.jobs.bulk.embed_file import Files, Options, embed_file

pytestmark = [pytest.mark.ray, pytest.mark.timeout(150)]

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")

MODEL = str(MODELS / "paragram-phrase")
FILES, ROWS = 12, 20_000

# Ray warns and logs as it likes, so it runs in a process of its own: `COMMAND SOURCE OUTPUT MODEL`.
JOB = """
import sys
import ray
from gramvec.jobs.bulk.transform import Embed, embed_parquet
command, source, output, model = sys.argv[1:]
ray.init(num_cpus=4,  # two for the actors, two for reading and writing
          include_dashboard=False, logging_level="error", log_to_driver=False)
if command == "files":
    print(embed_parquet(source, output, workers=2, model=model))
else:
    done = ray.data.read_parquet(source).map_batches(
        Embed, fn_constructor_kwargs={"model": model}, batch_format=command, batch_size=1024,
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    done.write_parquet(output)
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for number in range(FILES):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        table = pa.table({"id": ids, "text": [f"{i} low-cost air fares to {i % 97}" for i in ids]})
        pq.write_table(table, folder / f"part-{number:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def alone() -> Iterator[gramvec.Embedder]:
    opened = gramvec.load(MODEL, device="cpu", threads=1)
    yield opened
    opened.close()


def actors(job: int) -> list[int]:
    """The processes that run a MapWorker of this job's Ray: descendants of the job, by their titles."""
    parents, titles = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
            pid = int(status.parent.name)
            parents[pid] = int(text.rpartition(")")[2].split()[1])
            titles[pid] = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue

    def below(pid: int) -> bool:
        return pid == job or (pid in parents and pid != 1 and below(parents[pid]))

    return [pid for pid, title in titles.items() if b"ray::" in title and b"MapWorker" in title and below(pid)]


def run(command: str, source: Path, output: Path, *, kill_when: Any = None) -> tuple[str, bool]:
    arguments = [sys.executable, "-c", JOB, command, str(source), str(output), MODEL]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
    killed = False
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        deadline = time.monotonic() + 60
        while kill_when and not killed and process.poll() is None and time.monotonic() < deadline:
            found = actors(process.pid)
            if found and kill_when():
                os.kill(found[0], signal.SIGKILL)
                killed = True
            time.sleep(0.005)
        try:
            out, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
    assert process.returncode == 0, errors
    return out, killed


def test_files_with_a_worker_killed_are_those_of_one_process(
    texts: Path, tmp_path: Path, alone: gramvec.Embedder
) -> None:
    output = tmp_path / "out"

    def has_begun() -> bool:
        done = len(list(output.glob("part-*.parquet"))) if output.is_dir() else 0
        return 1 <= done < FILES

    printed, killed = run("files", texts, output, kill_when=has_begun)
    assert killed
    assert "'files': 12" in printed
    assert sorted(path.name for path in output.iterdir() if not path.name.startswith(".")) == [
        f"part-{number:02}.parquet" for number in range(FILES)
    ]
    for file in sorted(texts.iterdir()):
        expected = tmp_path / "expected.parquet"
        embed_file(alone, Files(file, expected), Options())
        assert (output / file.name).read_bytes() == expected.read_bytes()
    assert [path.name for path in output.iterdir() if path.name.startswith(".")] == []
    printed, _ = run("files", texts, output)
    assert "'skipped': 12" in printed


@pytest.mark.parametrize("batch_format", ["pyarrow", "numpy"])
def test_map_batches_with_a_worker_killed_is_complete(
    texts: Path, tmp_path: Path, alone: gramvec.Embedder, batch_format: str
) -> None:
    output = tmp_path / "out"
    _, killed = run(batch_format, texts, output, kill_when=lambda: len(list(output.glob("*.parquet"))) >= 1)
    assert killed
    found = pq.read_table(output).sort_by("id").combine_chunks()
    ids = found.column("id").to_numpy()
    assert np.array_equal(ids, np.arange(FILES * ROWS))
    column = found.column("embedding").chunk(0)
    storage = getattr(column, "storage", column)
    vectors = storage.values.to_numpy().reshape(len(ids), -1)
    expected = alone.embed(found.column("text").to_pylist())
    assert vectors.tobytes() == expected.tobytes()
    if batch_format == "pyarrow":
        assert (found.schema.metadata or {})[b"gramvec.digest"] == alone.digest.encode()
