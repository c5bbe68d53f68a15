"""docs/recipes: each program is run as it stands and prints what its page says (make test-integrations for all)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import MODELS, ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "docs" / "recipes"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.name != "README.md")
LINES = 40
# A telemetry that a library has, off; nothing is asked of a network.
QUIET = {"ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1"}


def parts(page: str) -> tuple[str, str]:
    """A page's program, and what it prints."""
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (printed,) = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return program, printed


@pytest.mark.parametrize("page", PAGES)
def test_a_recipe_prints_what_its_page_says(page: str, tmp_path: Path) -> None:
    program, printed = parts(page)
    for module in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: make test-integrations")
    if "gramvec.match" in program or "to_scipy" in program:
        pytest.importorskip("scipy", reason="scipy is not installed")
    if page == "duckdb":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    environment = {**os.environ, **QUIET, "GRAMVEC_MODELS": str(MODELS)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_the_example_of_the_index_prints_what_its_comments_say(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", (FOLDER / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    environment = {**os.environ, "GRAMVEC_MODELS": str(MODELS)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == re.findall(r"# (.*)$", program, re.MULTILINE) == ["3", "3 300"]


def test_every_recipe_is_short_and_in_the_index() -> None:
    assert len(PAGES) >= 10
    listed = re.findall(r"\]\(([\w-]+)\.md\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == PAGES
    for page in PAGES:
        assert len((FOLDER / f"{page}.md").read_text(encoding="utf-8").splitlines()) <= LINES, page
