"""A program that embeds texts loads the core of gramvec alone."""

from __future__ import annotations

import json
import subprocess
import sys

from conftest import ROOT

EMBED = """
import json, sys
import gramvec
gramvec.load(sys.argv[1]).embed(["a"])
print(json.dumps(sorted(sys.modules)))
"""
NOT_LOADED = ("torch", "pandas", "polars", "pyarrow", "scipy", "sklearn", "fastapi", "uvicorn", "tantivy")
CORE = {
    "bundle", "embed", "errors", "features", "lexical", "native", "progress", "runtime", "text", "threads",
}  # fmt: skip


def test_embedding_loads_no_job_and_no_other_library() -> None:
    model = str(ROOT / "models" / "gramvec-en")
    output = subprocess.run([sys.executable, "-c", EMBED, model], capture_output=True, check=True, text=True).stdout
    modules: list[str] = json.loads(output)
    own = {name.split(".")[1] for name in modules if name.startswith("gramvec.")}
    assert own <= CORE
    assert not [name for name in modules if name.split(".")[0] in NOT_LOADED]
