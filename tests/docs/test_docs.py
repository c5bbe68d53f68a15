"""The documents are run: what they show is what happens."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import gramvec
from benchmarks import readme
from conftest import MODELS, ROOT
from gramvec.cli import cli
from gramvec.server.settings import Settings, option
from support.http import running

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


NUMBER = r"[+-]?\d+\.\d+"


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(NUMBER, text)]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Path]:
    """A folder like a fresh clone, where commands may write; the environment is the tests' own."""
    (tmp_path / "models").mkdir()
    for bundle in MODELS.glob("*/manifest.json"):
        (tmp_path / "models" / bundle.parent.name).symlink_to(bundle.parent)
    shutil.copy(ROOT / "README.md", tmp_path)
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.touch()
    yield tmp_path


def ran(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done


def shell(script: str, cwd: Path) -> str:
    return ran(script, cwd).stdout


def test_the_first_example_of_training_runs(newcomer: Path) -> None:
    (script,) = (block for block in blocks("sh", QUICKSTART) if "gramvec-train fit" in block)
    assert "forgot my password" in shell(script, newcomer)


def test_the_blocks_of_the_readme_are_pasted_in_their_order_into_one_shell_and_again(newcomer: Path, port: int) -> None:
    pasted = "".join(re.findall(r"^```(?:sh|python)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE))
    (newcomer / "pasted").write_text(pasted.replace("127.0.0.1:8000", f"127.0.0.1:{port}"))
    make = newcomer / "bin" / "make"  # what it installs is here
    make.parent.mkdir()
    make.write_text(f"#!/bin/sh\nexec gramvec serve --port {port}\n")
    make.chmod(0o755)
    path = f"{make.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", "bash <pasted && bash <pasted"], cwd=newcomer, env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while sum(line.startswith("[[0.") for line in lines) < 2:  # Python's last line; the vectors begin with -0.
            line = process.stdout.readline()
            assert line, lines
            lines.append(line.strip())
        assert process.wait() == 0
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    printed = " ".join(lines)
    for answer in blocks("json")[0].splitlines():
        assert printed.count(answer[:12]) >= 2, answer
    assert printed.count("(2, 300) float32") == 2
    assert "unhealthy" not in printed


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no checkout")
def test_what_the_pages_write_is_not_for_git() -> None:
    def ignored(path: str) -> bool:
        return subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False).returncode == 0

    assert all(
        map(ignored, ("runs/mine/run.json", "models/mine/manifest.json", "models/intents/model.onnx", ".venv/x"))
    )
    assert not any(ignored(f"models/{folder.parent.name}/new") for folder in MODELS.glob("*/manifest.json"))


def test_the_curl_examples_of_the_readme_give_the_answers_shown(embedder: gramvec.Embedder) -> None:
    (script,) = (block for block in blocks("sh") if "/similarity" in block)
    shown = [json.loads(line) for line in blocks("json")[0].splitlines()]
    commands = re.findall(r"^curl .*?(?<!\\)$", script, re.DOTALL | re.MULTILINE)
    assert len(commands) == len(shown) == 1
    with running(Settings(), embedder) as server:
        for command, answer in zip(commands, shown, strict=True):
            found = json.loads(shell(command.replace("http://127.0.0.1:8000", server.url), ROOT))
            assert numbers(json.dumps(found)) == pytest.approx(numbers(json.dumps(answer)), abs=1e-5)
            assert re.sub(NUMBER, "", json.dumps(found)) == re.sub(NUMBER, "", json.dumps(answer))


def test_the_python_example_of_the_readme_prints_what_its_comments_say(newcomer: Path) -> None:
    script, *_ = blocks("python")
    printed = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=newcomer, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert printed[0] == "(2, 300) float32"
    assert len(printed) == 2


def test_the_figures_of_the_readme_are_those_of_the_results() -> None:
    assert readme.filled(README) == README


def test_every_command_and_option_that_the_documents_name_exists() -> None:
    from gramvec_training.cli.main import main as training

    recipes = "\n".join(path.read_text() for path in (ROOT / "Makefile", *(ROOT / "make").glob("*.mk")))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"^```console\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)  # mistakes and messages
        code = "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", text, re.DOTALL | re.MULTILINE))
        for group, name in ((cli, "gramvec"), (training, "gramvec-train")):
            context = click.Context(group)
            for command in set(re.findall(rf"(?<![\w/-]){name} ([a-z]+)\b", code)):
                assert group.get_command(context, command), f"{page.name} names {name} {command}"
        for target in re.findall(r"(?:`|^    |\n)make ([a-z-]+)", text):
            assert re.search(rf"^{target}:", recipes, re.MULTILINE), f"make {target}"


def test_links_between_the_documents_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        # Pictures stand in HTML, of which the site keeps the paths as they are.
        for target in re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r'\b(?:src|srcset)="([^":]+)"', text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_setting_is_in_the_help_of_serve() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gramvec.cli", "serve", "--help"], capture_output=True, text=True, check=True
    )
    for name in Settings.model_fields:
        assert option(name) in done.stdout
        assert f"GRAMVEC_{name.upper()}" in done.stdout.replace("\n", "").replace(" ", "")


def test_the_documents_name_no_place_of_the_machine_they_were_written_on() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(work|home|root|tmp)/", page.read_text(encoding="utf-8")), page.name
