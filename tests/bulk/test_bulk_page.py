"""The examples of docs/bulk.md are run, those for Ray and Spark apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import blocks, shell

from conftest import MODELS, ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "bulk.md").read_text(encoding="utf-8")

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[bulk]'")


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(MODELS)
    printed = [shell(script, tmp_path) for script in blocks("sh", PAGE)]
    assert [line.split("\t")[:2] for line in printed[1].splitlines()[:3]] == [["1", "2"], ["1", "4"], ["2", "4"]]
    assert '"lines":[1,2,4]' in printed[1]
    assert (tmp_path / "unique.txt").read_text() == "bananas\ncheap flights to rome\n"
    script = blocks("python", PAGE)[0]
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['id', 'text', 'embedding'] b'gramvec-en'", "(2, 300)"]
    for script in blocks("python", PAGE)[1:]:
        compile(script, "docs/bulk.md", "exec")
