"""What CONTRIBUTING.md says of new things is done, in a copy of the sources, and nothing else needs a change."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gramvec
from conftest import ROOT
from training_support import call

pytestmark = pytest.mark.slow

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


class Copy:
    """The sources, to be changed; each file that is must be named in one recipe of CONTRIBUTING.md."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self.folder = folder
        (self._recipe,) = re.findall(
            rf"^\*\*{re.escape(recipe)}\*?\*?.*?(?=^\*\*|^## |\Z)", PAGE, re.DOTALL | re.MULTILINE
        )
        for source in ("service", "training"):
            shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, path: str, text: str) -> None:
        """A new file, in a folder that the recipe names."""
        assert f"`{Path(path).parent}/`" in self._recipe
        (self.folder / path).write_text(text)

    def replace(self, path: str, before: str, after: str) -> None:
        """A change of one place of a file that the recipe names, by itself or as its room's face."""
        assert path in self._recipe or (path.endswith("__init__.py") and "that room's `__init__.py`" in self._recipe)
        text = (self.folder / path).read_text()
        assert text.count(before) == 1, f"{path} has {text.count(before)} places like {before!r}"
        (self.folder / path).write_text(text.replace(before, after))

    def run(self, script: str, *arguments: str | Path) -> str:
        path = os.pathsep.join(str(self.folder / source) for source in ("service", "training"))
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, module: str, *arguments: str | Path) -> str:
        return self.run(f"import sys; from {module} import main; sys.argv[0] = 'it'; main()", *arguments)


def test_a_route(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "A route.")
    routes = "service/gramvec/server/routes"
    copy.write(
        f"{routes}/count.py",
        '"""GET /count: the number of models that are served."""\n\n'
        "from gramvec.server.model_route import model_router\n"
        "from gramvec.server.openapi import errors, ok\n"
        "from gramvec.server.request import Request\n"
        "from gramvec.server.responses import Response, to_json\n\n"
        'router = model_router("operations")\n\n\n'
        '@router.get("/count", responses=ok("The number.", int) | errors(401, 500))\n'
        "async def count_models(request: Request) -> Response:\n"
        '    """Count the models that are served."""\n'
        "    return Response([to_json(len(request.service.models))])\n",
    )
    app = "service/gramvec/server/app.py"
    copy.replace(app, "    compare,\n    embed,\n", "    compare,\n    count,\n    embed,\n")
    copy.replace(app, "ROUTERS = (\n", "ROUTERS = (\n    count.router,\n")
    printed = copy.run(
        "import gramvec\n"
        "from fastapi.testclient import TestClient\n"
        "from gramvec.server import create_app\n"
        "with TestClient(create_app(embedder=gramvec.load('sif'))) as client:\n"
        "    answer = client.get('/count')\n"
        "    print(answer.status_code, answer.text, 'x-request-id' in answer.headers)\n"
        "    print(client.get('/openapi.json').json()['paths']['/count']['get']['summary'])\n"
    )
    assert printed == "200 1 True\nCount the models that are served\n"


def test_a_file_format(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "A file format")
    files = "service/gramvec/tables"
    copy.replace(f"{files}/inputs.py", '"tsv", "parquet",', '"tsv", "md", "parquet",')
    copy.replace(
        f"{files}/readers.py",
        "class CsvReader(LineReader):",
        "class MarkdownReader(LineReader):\n"
        '    """A line is an item of a list."""\n\n'
        "    def _line(self, line: bytes, block: Block) -> None:\n"
        '        text = line.decode("utf-8")\n'
        '        if text.startswith("- "):\n'
        "            block.texts.append(text[2:].strip())\n"
        "            if block.records is not None:\n"
        "                block.records.append({self.column: text[2:].strip()})\n"
        "        else:\n"
        '            block.refuse("no item of a list")\n\n\n'
        "class CsvReader(LineReader):",
    )
    copy.replace(f"{files}/readers.py", '"jsonl": JsonReader,', '"jsonl": JsonReader, "md": MarkdownReader,')
    (tmp_path / "list.md").write_text("- cheap flights\n# no\n- cars\n")
    printed = copy.command(
        "gramvec.cli", "embed", tmp_path / "list.md", "--model", "sif", "--dimensions", "2", "--on-error", "skip"
    )
    texts = [json.loads(line)["text"] for line in printed.splitlines()]
    assert texts == ["cheap flights", None, "cars"]


def test_a_layout_of_training_data(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "A layout of training data.")
    copy.replace(
        "training/gramvec_training/sections.py",
        'FileLayout = Literal["pairs", "groups", "ppdb"]',
        'FileLayout = Literal["pairs", "groups", "ppdb", "arrows"]',
    )
    readers = "training/gramvec_training/readers/pairs.py"
    copy.replace(
        readers,
        '_READERS = {"pairs": read_pairs,',
        'def read_arrows(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Group], BadRows]:\n'
        "    groups: list[Group] = []\n"
        "    bad = BadRows(path)\n"
        "    for number, raw in split_lines(path):\n"
        '        fields = _decode(raw, number, bad, on_bad, "write a => b", " => ")\n'
        "        if fields is not None:\n"
        '            _keep(fields if len(fields) == 2 else [], number, groups, bad, on_bad, "write a => b")\n'
        "    return groups, bad\n\n\n"
        '_READERS = {"arrows": read_arrows, "pairs": read_pairs,',
    )
    copy.replace(readers, '_REMEDIES = {"pairs":', '_REMEDIES = {"arrows": "write a => b", "pairs":')
    rows = [f"red car {i} => {i} car that is red" for i in range(40)]
    (tmp_path / "arrows.txt").write_text("\n".join([*rows, "no arrow"]) + "\n")
    (tmp_path / "small.toml").write_text(
        '[model]\nname = "small"\nkind = "charagram-phrase"\ndimension = 8\n'
        '[training]\nbatch = 8\nsteps = 5\n[[data]]\npath = "arrows.txt"\nlayout = "arrows"\n'
    )
    copy.command(
        "gramvec_training.cli", "fit", tmp_path / "small.toml", "--data", tmp_path, "--out", tmp_path / "run",
    )  # fmt: skip
    assert (tmp_path / "run").is_dir()
    result = call("fit", tmp_path / "small.toml", "--data", tmp_path, "--out", tmp_path / "without")
    assert "arrows" in result.stderr  # not known without the change
    assert result.exit_code != 0


ENCODER = '''"""A sum of rows, each column of which is scaled."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gramvec_training.encoders.base import Encoder


class Scaled(Encoder):
    """g(x) = w * the sum of the rows of x's features."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.dimension = table.shape[1]
        self.table = nn.Parameter(table)  # [rows, d]
        self.scales = nn.Parameter(torch.ones(self.dimension))  # [d]

    def forward(self, ids: Tensor, offsets: Tensor, table: Tensor | None = None) -> Tensor:
        """See Encoder."""
        rows = self.table if table is None else table  # [rows, d]
        x = functional.embedding_bag(ids, rows, offsets, mode="sum", include_last_offset=True)  # [n, d]
        return x * self.scales  # [n, d]
'''


def test_an_encoder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "An encoder.")
    package = "training/gramvec_training"
    settings = f"{package}/sections.py"
    copy.replace(settings, '    "gramvec",\n]', '    "gramvec",\n    "scaled",\n]')
    copy.replace(
        settings,
        "EncoderSettings = Annotated[\n    BagSettings\n",
        'class ScaledSettings(Strict):\n    """Scaled columns."""\n\n    kind: Literal["scaled"] = "scaled"\n\n\n'
        "EncoderSettings = Annotated[\n    BagSettings\n    | ScaledSettings\n",
    )
    copy.write(f"{package}/encoders/scaled.py", ENCODER)
    build = f"{package}/encoders/build.py"
    copy.replace(
        build,
        "    if isinstance(settings, BagSettings):\n        return Bag(table, settings)\n",
        '    if settings.kind == "scaled":\n        return Scaled(table)\n'
        "    if isinstance(settings, BagSettings):\n        return Bag(table, settings)\n",
    )
    copy.replace(
        build,
        "from gramvec_training.encoders.recurrent import Lstm, Rnn\n",
        "from gramvec_training.encoders.recurrent import Lstm, Rnn\n"
        "from gramvec_training.encoders.scaled import Scaled\n",
    )
    writers = f"{package}/export/sequence_graph.py"
    copy.replace(
        writers,
        "    if isinstance(encoder, TwoLayer):\n",
        "    if isinstance(encoder, Scaled):\n"
        '        writer = partial(write_graph, pooling="sum", activation="linear", bias=None)\n'
        '        return Graphed(table * arrays["scales"], writer, True)\n'
        "    if isinstance(encoder, TwoLayer):\n",
    )
    copy.replace(
        writers,
        "from gramvec_training.encoders.recurrent import",
        "from gramvec_training.encoders.scaled import Scaled\nfrom gramvec_training.encoders.recurrent import",
    )
    systems = f"{package}/evaluate/card.py"
    copy.replace(systems, "SYSTEMS = {\n", 'SYSTEMS = {\n    "scaled": "A sum with scaled columns.",\n')
    copy.replace(systems, "LIMITS = {\n", 'LIMITS = {\n    "scaled": ["It is an example."],\n')
    rows = [f"red car {i}\t{i} car that is red" for i in range(40)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "scaled.toml").write_text(
        '[model]\nname = "scaled"\nkind = "scaled"\ndimension = 8\n[encoder]\nkind = "scaled"\n'
        '[training]\nbatch = 8\nsteps = 20\n[[data]]\npath = "pairs.tsv"\n'
    )
    paths = ["--data", tmp_path, "--out", tmp_path / "run", "--export", tmp_path / "bundle"]
    copy.command("gramvec_training.cli", "fit", tmp_path / "scaled.toml", *paths)
    # What comes of it is served by the sources as they are.
    embedder = gramvec.load(tmp_path / "bundle", device="cpu")
    assert embedder.embed(["red car 3"]).shape == (1, 8)
    assert embedder.runtime == "native"
    embedder.close()
