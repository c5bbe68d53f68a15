"""Blocks of match and dedupe elsewhere: the same pairs and the same bytes of scores."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gramvec
from conftest import ROOT
from gramvec.cli import cli
from gramvec.errors import InputError
from gramvec.jobs import DedupeJob, MatchJob
from gramvec.jobs.common import engines
from gramvec.jobs.matching import nearest
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.match_tables import score_fields
from gramvec.jobs.pairs import scores
from gramvec.progress import Progress

FIRST = ("anna", "ben", "carla", "david", "emma", "fred", "greta", "hans", "iris", "jon", "karin", "lars", "mia")
LAST = ("miller", "smith", "jones", "brown", "taylor", "wilson", "evans", "thomas", "roberts", "walker", "wright")


class OtherProcess(engines.Engine):
    """Engine of a process that shares no memory and hashes texts in another way."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.pool, self.blocks = pool, 0

    def share(self, value: Any) -> Any:
        return pickle.dumps(value)

    def map(self, work: Callable[[Any, Any], Any], shared: Any, blocks: Iterable[Any]) -> Iterator[Any]:
        for block in blocks:
            self.blocks += 1
            yield self.pool.submit(_work, work, shared, pickle.dumps(block)).result()


def _work(work: Callable[[Any, Any], Any], shared: bytes, block: bytes) -> Any:
    return work(pickle.loads(shared), pickle.loads(block))


def people(rows: int, seed: int) -> dict[str, list[str]]:
    drawn = Random(seed)
    names = [f"{drawn.choice(FIRST)} {drawn.choice(LAST)}-{drawn.choice(LAST)}" for _ in range(rows)]
    return {"name": names, "born": [f"{drawn.randint(1950, 1999)}-03-{drawn.randint(1, 28):02}" for _ in range(rows)]}


def slipped(table: dict[str, list[str]]) -> dict[str, list[str]]:
    return {"name": [name.replace("e", "", 1) for name in table["name"]], "born": table["born"]}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtherProcess]:
    """Have the engine ray be another process, and blocks few rows and pairs."""
    monkeypatch.setattr(nearest, "BLOCK_ROWS", 100)
    monkeypatch.setattr(scores, "BLOCK_PAIRS", 700)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        engine = OtherProcess(pool)
        monkeypatch.setattr(engines, "RayEngine", lambda: engine)
        yield engine


def test_another_process_has_the_bytes_of_this_one(elsewhere: OtherProcess) -> None:
    left = people(250, 0)
    right = slipped(left)
    check_same(left, right, "ray")
    assert elsewhere.blocks > 20


def check_same(left: dict[str, list[str]], right: dict[str, list[str]], engine: engines.EngineName) -> None:
    """Check that match and dedupe on an engine return what they return here."""
    here, there = (gramvec.match(left, right, on=["name", "born"], engine=name) for name in (None, engine))
    assert len(here.scores) > len(left["name"]) / 2
    assert here.threshold == there.threshold
    for one, other in ((here.left, there.left), (here.right, there.right), (here.scores, there.scores)):
        assert one.tobytes() == other.tobytes()
    both = {name: left[name] + right[name] for name in left}
    first, second = (gramvec.dedupe(both, engine=name) for name in (None, engine))
    assert [part.tobytes() for part in first.pairs] == [part.tobytes() for part in second.pairs]
    assert first.kept.tobytes() == second.kept.tobytes()


def test_jobs_open_their_engine_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[engines.Engine] = []

    class Counted(engines.Engine):
        def __init__(self) -> None:
            opened.append(self)

    monkeypatch.setattr(engines, "RayEngine", Counted)
    names = [tmp_path / "ours.csv", tmp_path / "theirs.csv"]
    for path in names:
        path.write_text("name\nanna miller\nanna miler\nben smith\n")
    DedupeJob(source=names[0], on=["name"], engine="ray").run()
    assert len(opened) == 1
    DedupeJob(source=names[0], more_sources=names[1:], on=["name"], engine="ray").run()
    assert len(opened) == 2
    MatchJob(left=names[0], right=names[1], on=["name"], engine="ray", output=tmp_path / "pairs.csv").run()
    assert len(opened) == 3


def test_figures_that_are_made_again_are_those_that_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    left = people(150, 1)
    fields = [Field(left[name], slipped(left)[name], 1.0) for name in left]
    kept = score_fields(fields, explain=True)
    monkeypatch.setattr(scores, "KEPT_BYTES", 0)
    monkeypatch.setattr(scores, "BLOCK_PAIRS", 64)
    again = score_fields(fields, explain=True)
    assert kept.pairs.scores.tobytes() == again.pairs.scores.tobytes()
    assert kept.reasons is not None
    assert again.reasons is not None
    at = np.arange(0, len(kept.reasons.scored.left), 7)
    np.testing.assert_array_equal(kept.reasons.scored.figures(at), again.reasons.scored.figures(at))


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_ray_and_spark_have_the_bytes_of_this_process(engine: str) -> None:
    pytest.importorskip("ray" if engine == "ray" else "pyspark", reason=f"{engine} is not installed: make test-ray")
    # They log as they like, so they run in a process of its own.
    code = f"from test_engines import *; check_same(people(300, 0), slipped(people(300, 0)), {engine!r}); print('same')"
    given = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{ROOT / 'tests'}", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=given)
    assert done.stdout.endswith("same\n"), done.stdout + done.stderr


@pytest.mark.parametrize("options", [{"labels": ["labels.csv"]}, {"matcher": "names.json"}, {"review": "p.csv"}])
def test_an_engine_has_no_labels(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="engine: compares without labels") as caught:
        MatchJob(left="ours.csv", right="theirs.csv", engine="ray", **options)
    assert caught.value.field == "engine"


@pytest.mark.parametrize(
    "options",
    [
        {"labels": ["labels.csv"]},
        {"matcher": "names.json"},
        {"by": "meaning", "threshold": 0.8},
        {"against": "a.index"},
    ],
)
def test_an_engine_compares_lines_by_letters(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="engine: compares lines of the file by letters"):
        DedupeJob(source="people.csv", engine="spark", **options)


def test_functions_refuse_what_an_engine_cannot_do() -> None:
    with pytest.raises(InputError, match="a matcher that learns from labels works in this process"):
        gramvec.match(["a"], ["b"], labels=[(0, 0, 1)], engine="ray")
    with pytest.raises(InputError, match="engine: compares by letters"):
        gramvec.dedupe(["a"], by="meaning", threshold=0.9, engine="ray")
    with pytest.raises(InputError, match="engine: must be 'ray' or 'spark', got 'dask'"):
        gramvec.match(["a"], ["b"], engine="dask")  # type: ignore[arg-type]


def test_an_engine_that_is_not_installed_is_said_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("ray", "pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("ours.csv", "theirs.csv"):
        (tmp_path / name).write_text("a broken file")
    both = [str(tmp_path / name) for name in ("ours.csv", "theirs.csv")]
    for command in (["match", *both, "--on", "name"], ["dedupe", both[0], "--on", "name"]):
        for engine, install in (("ray", "'gramvec[ray]'"), ("spark", "pyspark")):
            result = CliRunner().invoke(cli, [*command, "--engine", engine])
            assert result.exit_code == 1
            assert f"the engine {engine} needs" in result.output
            assert f"pip install {install}" in result.output


class _Tasks(Progress):
    """Tasks with their totals and what was done, as they come."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, int | None, int]] = []

    def start(self, task: str, total: int | None = None, unit: str = "rows", done: int = 0) -> None:
        self.tasks.append((task, total, done))

    def advance(self, count: int, detail: str = "") -> None:
        task, total, done = self.tasks[-1]
        self.tasks[-1] = task, total, done + count


@pytest.mark.parametrize("same", [False, True])
def test_each_bar_ends_where_it_said(same: bool) -> None:
    left = people(80, 2)
    fields = [Field(left[name], (left if same else slipped(left))[name], 1.0) for name in left]
    shown = _Tasks()
    score_fields(fields, same=same, progress=shown)
    assert [task for task, total, done in shown.tasks if total != done] == ["indexing n-grams"]
    assert [task for task, _, _ in shown.tasks] == [
        "grouping rows", "reading n-grams", "indexing n-grams", "matching", "reading cells", "comparing pairs",
        "scoring pairs",
    ]  # fmt: skip
