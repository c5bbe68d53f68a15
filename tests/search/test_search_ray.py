"""`gramvec.search.ray`: batches of Arrow, and on Ray with two workers of which one is killed (`make test-ray`)."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gramvec
from bulk_support import MODEL
from gramvec.errors import InputError
from gramvec.search.ray import Search, search_parquet

pytest.importorskip("numkong", reason="numkong is not installed: pip install '.[search]'")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")

RECORDS = [{"text": f"{fruit} from {place}", "place": place} for fruit in ("plums", "pears") for place in "abcdefgh"]
FILES, ROWS = 12, 4_000

# Ray warns and logs as it likes, so it runs in a process of its own: `SOURCE OUTPUT INDEX MODEL`.
JOB = """
import sys
import ray
from gramvec.search.ray import search_parquet
source, output, index, model = sys.argv[1:]
ray.init(num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False)
print(search_parquet(source, output, workers=2, index=index, model=model, k=3))
"""


@pytest.fixture(scope="module")
def small() -> Iterator[gramvec.Embedder]:
    opened = gramvec.load(MODEL, device="cpu", threads=1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, small: gramvec.Embedder) -> gramvec.Index:
    path = tmp_path_factory.mktemp("index") / "things.gvi"
    return gramvec.Index.build(path, RECORDS, model=small, filters=["place"])


def expected(index: gramvec.Index, texts: list[str], k: int, **more: Any) -> tuple[list[list[str]], list[Any]]:
    found = index.search(texts, k, **more)
    return [[hit.id for hit in one] for one in found], [pytest.approx([hit.score for hit in one]) for one in found]


@pytest.mark.parametrize("kind", ["table", "batch"])
def test_batches_get_what_the_index_finds(index: gramvec.Index, kind: str) -> None:
    texts = ["plums of b", "", "paers"] * 30
    made = {"n": list(range(len(texts))), "text": texts}
    batch = pa.table(made) if kind == "table" else pa.record_batch(made)
    search = Search(index.path, k=2, model=MODEL, digest=index.digest)
    done = pickle.loads(pickle.dumps(search))(batch)
    assert type(done) is type(batch)
    assert done.schema.names == ["n", "text", "ids", "scores"]
    assert (done.column("ids").to_pylist(), done.column("scores").to_pylist()) == expected(index, texts, 2)
    assert done.schema.metadata[b"gramvec.index"] == index.digest.encode()
    narrow = Search(index.path, model=MODEL, where={"place": ["b"]}, threshold=0.3, ids="i", scores="s")(batch)
    for ids, scores, text in zip(narrow.column("i").to_pylist(), narrow.column("s").to_pylist(), texts, strict=True):
        hits = [hit for hit in index.search(text, where={"place": "b"})[0] if hit.score >= 0.3]
        assert (ids, scores) == ([hit.id for hit in hits], pytest.approx([hit.score for hit in hits]))
    empty = search(batch.slice(0, 0))
    assert (len(empty), empty.schema) == (0, done.schema)


def test_a_bad_text_is_null_or_ends_it(index: gramvec.Index) -> None:
    batch = pa.table({"text": ["plums", None, "x" * 70_000]})
    done = Search(index.path, k=1, model=MODEL, on_error="skip")(batch)
    assert [ids is None for ids in done.column("ids").to_pylist()] == [False, True, True]
    assert [one is None for one in done.column("scores").to_pylist()] == [False, True, True]
    with pytest.raises(InputError, match="row 2 of a batch: the text is missing"):
        Search(index.path, model=MODEL)(batch)
    assert len(Search(index.path, k=1, model=MODEL, truncate=True)(batch.slice(2))) == 1


def test_what_cannot_be_asked_is_one_sentence(index: gramvec.Index, tmp_path: Path) -> None:
    batch = pa.table({"text": ["plums"], "ids": [1], "n": [1]})
    for options, said in (
        ({"column": "texts"}, "no column 'texts'; there are text, ids, n"),
        ({"column": "n", "ids": "i"}, "column 'n' is of type int64"),
        ({}, "there is a column 'ids' already"),
        ({"ids": "i", "digest": "0" * 64}, "copy the same index"),
        ({"ids": "i", "where": {"text": "x"}}, "cannot be narrowed by text"),
        ({"ids": "i", "model": str(Path(MODEL).with_name("sif"))}, "was made with"),
    ):
        with pytest.raises(InputError, match=said):
            Search(index.path, **{"model": MODEL, **options})(batch)
    with pytest.raises(InputError, match='batch_format="pyarrow"'):
        Search(index.path, model=MODEL)({"text": ["a"]})
    for options, said in (({"k": 0}, "k must be a whole number"), ({"threshold": 2}, "threshold must be from -1 to 1")):
        with pytest.raises(InputError, match=said):
            Search(index.path, **options)  # type: ignore[arg-type]


def run(*arguments: object, kill_when: Any = None) -> tuple[str, bool]:
    from test_bulk_ray import actors

    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
    command, killed = [sys.executable, "-c", JOB, *map(str, arguments)], False
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        deadline = time.monotonic() + 90
        while kill_when and not killed and process.poll() is None and time.monotonic() < deadline:
            found = actors(process.pid)
            if found and kill_when():
                os.kill(found[0], signal.SIGKILL)
                killed = True
            time.sleep(0.005)
        try:
            out, errors = process.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
    assert process.returncode == 0, errors
    return out, killed


@pytest.mark.ray
@pytest.mark.timeout(240)
def test_files_with_a_worker_killed_have_what_the_index_finds(index: gramvec.Index, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
    source, output = tmp_path / "texts", tmp_path / "out"
    source.mkdir()
    for number in range(FILES):
        texts = [f"{row} plums and pears of {'abcdefgh'[row % 8]}" for row in range(number * ROWS, (number + 1) * ROWS)]
        pq.write_table(pa.table({"text": texts}), source / f"part-{number:02}.parquet")

    def has_begun() -> bool:
        return output.is_dir() and 1 <= len(list(output.glob("part-*.parquet"))) < FILES

    printed, killed = run(source, output, index.path, MODEL, kill_when=has_begun)
    assert killed
    assert "'files': 12" in printed
    search = Search(index.path, k=3, model=MODEL)
    for file in sorted(source.iterdir()):
        found = pq.read_table(output / file.name)
        assert found.equals(search(pq.read_table(file)))
    assert sorted(path.name for path in output.iterdir()) == [f"part-{number:02}.parquet" for number in range(FILES)]
    printed, _ = run(source, output, index.path, MODEL)
    assert "'skipped': 12" in printed
    with pytest.raises(InputError, match="no Parquet file"):
        search_parquet(tmp_path / "nowhere", output, index=index.path)
