"""Memory of one process and of two workers that share the model's files.

RSS counts a shared page in full, PSS counts each process's share, so only PSS is summed over workers. The PSS of one
process depends on what else runs, so its ratio is by RSS.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

import orjson

from benchmarks.measure import ROOT, Setting
from benchmarks.results import Group, Part, Row
from benchmarks.servers import Server, gramvec_serve
from gramvec.bundle.resolve import find_bundle

RUNTIMES = ("native", "onnx")
TABLE = "table and vocabulary, as files"

_EMBED = """
import sys
import orjson
import gramvec
from benchmarks.servers import memory
texts = orjson.loads(sys.stdin.buffer.read())
gramvec.load(sys.argv[1], device="cpu", runtime=sys.argv[2]).embed(texts)
print(memory("self", "Rss"), memory("self", "Pss"))
"""


def run(setting: Setting) -> Part:
    part = Part()
    folder = find_bundle(setting.model)
    files = sum((folder / name).stat().st_size for name in _mapped(folder))
    rows = [_row(TABLE, files, files, ratio=1)]
    for runtime in RUNTIMES:
        rss, pss = _library(setting, runtime)
        rows.append(_row(f"library, {runtime}: 512 texts embedded", rss, pss, ratio=rss / files))
        for workers in (1, 2):
            title = f"gramvec serve, {runtime}: {workers} worker{'s' * (workers > 1)}"
            with Server(gramvec_serve(setting.model, "--workers", str(workers), runtime=runtime)) as server:
                _warm(server, setting.texts)
                rss, pss = server.memory("Rss"), server.memory("Pss")
                rows.append(_row(title, rss, pss, ratio=(rss if workers == 1 else pss) / files))
    part.add("memory", Group("memory: resident, and each process's share summed", "MB", rows, TABLE))
    return part


def _mapped(folder: Path) -> list[str]:
    files = ("model.onnx.data", "vocabulary.safetensors", "memo.safetensors")
    return [name for name in files if (folder / name).is_file()]


def _row(name: str, rss: int, pss: int, *, ratio: float) -> Row:
    return {"name": name, "rss_mb": round(rss / 1e6, 1), "pss_mb": round(pss / 1e6, 1), "ratio": round(ratio, 2)}


def _library(setting: Setting, runtime: str) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", _EMBED, setting.model, runtime],
        input=orjson.dumps(setting.texts[:512]),
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    rss, pss = map(int, done.stdout.split())
    return rss, pss


def _warm(server: Server, texts: list[str]) -> None:
    """Send enough requests over separate connections that every worker gets some."""
    for start in range(40):
        body = orjson.dumps({"inputs": texts[start * 32 % len(texts) :][:32]})
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.port}/embed", body, {"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=30).read()
