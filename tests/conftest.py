from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings
from packaging.utils import canonicalize_name

import gramvec
from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.progress import Progress

if TYPE_CHECKING:
    from support.http import RunningServer

ROOT = Path(__file__).parent.parent
MODELS = ROOT / "models"
SHIPPED = sorted(path.parent.name for path in MODELS.glob("*/manifest.json"))

# Examples of each property: 25 at every save, 100 on CI, 500 at night. HYPOTHESIS_PROFILE names another.
settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("nightly", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# httpx gives up after 5 s where a call names no limit; a busy machine that stands still for so long is no failure.
vars(DEFAULT_TIMEOUT_CONFIG).update(connect=60.0, read=60.0, write=60.0, pool=60.0)

# The tenth of the tests that tells most, for a newcomer's first run: pytest -m core.
CORE = (
    "features/test_native.py",
    "features/test_loops.py",
    "runtime/test_exact.py",
    "text/test_memo.py",
    "bundle/test_bundle.py",
    "server/test_batching.py",
    "server/test_errors_table.py",
    "lexical/test_letters.py",
    "hostile/test_connections.py",
    "training/test_training_equations.py",
)


class KeptProgress(Progress):
    """Progress that keeps the tasks with their totals, the steps, and what was shown beside them."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, int | None]] = []
        self.steps: list[int] = []
        self.details: list[str] = []

    def start(self, task: str, total: int | None = None, unit: str = "rows", done: int = 0) -> None:
        self.tasks.append((task, total))
        self.steps.append(done)

    def advance(self, count: int, detail: str = "") -> None:
        self.steps.append(count)
        self.details.append(detail)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of these files as core."""
    for item in items:
        if item.path.as_posix().endswith(CORE):
            item.add_marker(pytest.mark.core)


def pinned(name: str) -> dict[str, set[str]]:
    """The versions of each package that a file of requirements/ pins."""
    found: dict[str, set[str]] = {}
    lines = (ROOT / "requirements" / name).read_text()
    for package, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", lines, re.MULTILINE):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


@pytest.fixture(scope="session")
def embedder() -> Iterator[gramvec.Embedder]:
    """The default model."""
    opened = gramvec.load(MODELS / DEFAULT_MODEL, device="cpu")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def small() -> Iterator[gramvec.Embedder]:
    """The smallest model: word vectors."""
    opened = gramvec.load(MODELS / "paragram-phrase", device="cpu", threads=1)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def plain_server(embedder: gramvec.Embedder) -> Iterator[RunningServer]:
    """The default model on a real server with default settings, for tests that leave it as it is."""
    from gramvec.server.settings import Settings
    from support.http import running

    with running(Settings(), embedder) as server:
        yield server


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this host at which nobody listens, and which nobody else gets while the test runs."""
    from support.http import kept_port

    with kept_port() as kept:
        yield kept


@pytest.fixture
def bundle_copy(tmp_path: Path) -> Path:
    """A copy of a small model's folder, to be damaged."""
    return Path(shutil.copytree(MODELS / "charagram-phrase", tmp_path / "charagram-phrase"))


@pytest.fixture(scope="session")
def real_texts() -> list[str]:
    """Some hundred lines of real English, this repository's own, and odd texts among them."""
    files = [ROOT / "LICENSE", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")]
    return [*lines, "", " ", "a", "🙂", "vehicals  and\tcars", "x" * 3000, "日本語", " ".join(lines)[:20_000]]
