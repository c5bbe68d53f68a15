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
from support.training import call

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
        """A change of one place of a file that the recipe names."""
        assert path in self._recipe
        text = (self.folder / path).read_text()
        assert text.count(before) == 1, f"{path} has {text.count(before)} places like {before!r}"
        (self.folder / path).write_text(text.replace(before, after))

    def write_blocks(self) -> None:
        """Write each block of the recipe that begins with the name of its file."""
        blocks = re.findall(r"```\w+\n# (\S+/\S+)\n(.*?)```", self._recipe, re.DOTALL)
        assert blocks
        for path, text in blocks:
            (self.folder / path).parent.mkdir(exist_ok=True)
            (self.folder / path).write_text(text)

    def shell(self) -> str:
        """Carry out the commands of the recipe in the copy; return what they print."""
        (commands,) = re.findall(r"```sh\n(.*?)```", self._recipe, re.DOTALL)
        done = self._start("bash", "-euo", "pipefail", "-c", commands, folder=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def check_imports(self) -> str:
        """Return what the contracts of imports say of the copy; nothing where all are kept."""
        lint = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
        done = self._start(*lint, "--no-cache", folder=self.folder)
        return "" if done.returncode == 0 else done.stdout

    def refusal(self, *arguments: str | Path) -> str:
        """Return what gramvec-train prints where it refuses."""
        done = self._start(sys.executable, "-m", "gramvec_training.cli", *map(str, arguments), folder=self.folder)
        assert done.returncode == 1, done.stdout
        return done.stderr

    def _start(self, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        sources = os.pathsep.join(str(self.folder / source) for source in ("service", "training"))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": sources, "PATH": path}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    def run(self, script: str, *arguments: str | Path) -> str:
        done = self._start(sys.executable, "-W", "error", "-c", script, *map(str, arguments), folder=ROOT)
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
        "from gramvec.server.inference import ModelWork\n"
        "\n"
        'router = model_router("operations")\n\n\n'
        '@router.get("/count", responses=ok("The number.", int) | errors(401, 500))\n'
        "async def count_models(work: ModelWork) -> int:\n"
        '    """Count the models that are served."""\n'
        "    return len(work.service.models)\n",
    )
    app = "service/gramvec/server/app.py"
    copy.replace(app, "import compare, embed,", "import compare, count, embed,")
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


def test_a_job(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "A job")
    copy.write_blocks()
    copy.replace(
        "service/gramvec/cli/main.py",
        "COMMANDS = {\n",
        'COMMANDS = {\n    "lengths": ("gramvec.cli.jobs.lengths", "lengths_command"),\n',
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert "gramvec.jobs.lengths" in copy.check_imports()
    copy.replace("pyproject.toml", '"bulk | matching",', '"bulk | lengths | matching",')
    assert copy.check_imports() == ""
    jobs = "service/gramvec/jobs/__init__.py"
    copy.replace(jobs, '    "LabelReviewJob",\n', '    "LabelReviewJob",\n    "LengthsJob",\n')
    copy.replace(jobs, '    "MatchJob": ', '    "LengthsJob": "lengths.job",\n    "MatchJob": ')
    (tmp_path / "cars.csv").write_text("text\nfast cars\n\ncar\n")
    printed = copy.command("gramvec.cli", "lengths", tmp_path / "cars.csv", "--on-error", "skip")
    assert printed.splitlines()[:2] == ["row,characters", "2,9"]
    script = (
        "import sys\nfrom gramvec.jobs import LengthsJob\n"
        "print(LengthsJob(source=sys.argv[1], on_error='skip').run())\n"
    )
    assert copy.run(script, tmp_path / "cars.csv") == "[9, 3]\n"


def test_a_file_format(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "A file format")
    files = "service/gramvec/jobs/tables"
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
        '                block.records.append({self.column or "text": text[2:].strip()})\n'
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
    (tmp_path / "twice.md").write_text("- cheap flights\n- cheap  flights\n- cars\n")
    kept = copy.command("gramvec.cli", "dedupe", tmp_path / "twice.md", "--on", "text", "--unique", "-")
    assert kept == "text\ncheap flights\ncars\n"


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
        'def read_arrows(path: Path, *, on_bad: OnBad = "skip", given: TableFormat | None = None) '
        "-> tuple[list[Group], SkippedRows]:\n"
        "    groups: list[Group] = []\n"
        '    bad = SkippedRows(path, on_bad, "write a => b")\n'
        "    for number, text, why in read_lines(path):\n"
        '        fields = [] if why else text.split(" => ")\n'
        "        _keep(fields if len(fields) == 2 else [], number, groups, bad)\n"
        "    return groups, bad\n\n\n"
        '_READERS = {"arrows": read_arrows, "pairs": read_pairs,',
    )
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


def test_an_encoder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "An encoder")
    copy.write_blocks()
    printed = copy.shell()
    assert len(json.loads(printed.splitlines()[-1])["embedding"]) == 8
    # What comes of it is served by the sources as they are.
    embedder = gramvec.load(tmp_path / "runs" / "model", device="cpu")
    assert embedder.runtime == "native"
    embedder.close()
    config = tmp_path / "training" / "configs" / "scaled.toml"
    config.write_text(config.read_text().replace("begin = 0.5", "bigin = 0.5"))
    assert "bigin" in copy.refusal("fit", config, "--data", tmp_path)


def test_an_objective(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "An objective")
    copy.write_blocks()
    assert copy.shell().endswith("Objective softmax, temperature 0.05\n")
    config = tmp_path / "training" / "configs" / "softmax.toml"
    config.write_text(config.read_text().replace("steps = 20", "steps = 20\nmargin = 0.3"))
    assert "training.margin" in copy.refusal("fit", config, "--data", tmp_path)


def test_an_experiment(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "An experiment")
    printed = copy.shell()
    assert "margin" in printed and "0.4 is the best margin" in printed
    page = (tmp_path / "page.md").read_text()
    assert "## MARGINS" in page and "TEMPLATE" not in page and "[margins-table-1](#margins-table-1)" in page
    assert len(list((tmp_path / "results" / "models").iterdir())) == 6  # three margins, two seeds
