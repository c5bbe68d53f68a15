"""The examples of docs/search.md are run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import blocks, shell

from conftest import MODELS, ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")

pytest.importorskip("tantivy", reason="tantivy is not installed: pip install '.[search]'")


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(MODELS)
    lines = shell(blocks("sh", PAGE)[0], tmp_path).splitlines()
    assert lines[0].split("\t")[1:3] == ["7", "forgot my pasword"]
    assert lines[2].split("\t")[1:] == ["9", "track a parcel", "9", "post", "2024-05-07"]
    assert lines[3] == "query,rank,score,id,subject,number,team,day"
    assert [line.split(",")[4] for line in lines[4:6]] == ["track a parcel", "aplication closes"]
    done = subprocess.run(
        [sys.executable, "-c", blocks("python", PAGE)[0]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, *hits, last = done.stdout.splitlines()
    assert (first, last) == ("3 3", "2")
    assert "'text': 'cheap flights', 'price': 9" in hits[0]
