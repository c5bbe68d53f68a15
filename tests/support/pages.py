"""Pages as what can be run: their blocks in order, and what they say is printed.

A block of `sh` or `python` is run; a block of `text` or `json` below it is what it prints. A line `gramvec serve ...`,
the last of its block, starts a service, which the blocks below ask at 127.0.0.1:8000, up to the next such line; it
prints what it logs until it is ready. A block of `toml` that begins with `# NAME` is written to that file. A comment in
the line above a block says why it is not run here: `<!-- not run: needs docker -->`.
"""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from support.http import PATIENCE, kept_port

BLOCK = re.compile(
    r"(?:^<!-- (?P<why>not run: [^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
# Numbers with a fraction may differ in their last digits between processors; times differ between runs.
NUMBER = re.compile(r"[+-]?\d+\.\d+(?:e-?\d+)?")
TIMES = ((re.compile(r"in \d+\.\d s\b"), "in 0.0 s"), (re.compile(r'(_ms": ?)\d+(\.\d+)?'), r"\g<1>0"),
         (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "now"))  # fmt: skip
# White space of JSON that says nothing.
SPACE = re.compile(r"(?<=[\[{,:])\s+|\s+(?=[\]}])")
TOLERANCE = 5e-4
SERVE = re.compile(r"^gramvec serve\b[^\n]*\n\Z", re.MULTILINE)
ADDRESS = "127.0.0.1:8000"


class Example(NamedTuple):
    """A block that is run: its line, language and code, what it prints, in JSON or not, and why it is not run here."""

    line: int
    language: str
    code: str
    shown: str | None
    is_json: bool
    why: str | None


def examples(text: str) -> Iterator[Example]:
    """Yield the blocks of a page that are run."""
    found = list(BLOCK.finditer(text))
    for at, block in enumerate(found):
        if block["language"] not in ("sh", "python", "toml"):
            continue
        below = found[at + 1] if at + 1 < len(found) else None
        shown = below["code"] if below and below["language"] in ("text", "json") else None
        is_json = below is not None and below["language"] == "json"
        line = text.count("\n", 0, block.start("code"))
        yield Example(line, block["language"], block["code"], shown, is_json, block["why"])


class Shell:
    """What runs the blocks of a page in a folder, with the service that they have started."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._held = ExitStack()
        port = self._held.enter_context(kept_port())
        self._address = f"127.0.0.1:{port}"
        binaries = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {
            **os.environ, "PATH": binaries, "PYTHONUNBUFFERED": "1", "GRAMVEC_PORT": str(port), **environment
        }  # fmt: skip
        self._service: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()
        self._held.close()

    def _stop(self) -> None:
        if self._service is not None:
            self._service.terminate()
            self._service.wait(PATIENCE)
            self._service = None

    def printed(self, example: Example) -> str:
        """Run a block and return what it prints, results and messages in their order."""
        code = example.code
        if example.language == "toml":
            name, _, _ = code.removeprefix("# ").partition("\n")
            (self._folder / name).write_text(code)
            return ""
        serve = SERVE.search(code) if example.language == "sh" else None
        if serve is not None:
            self._stop()
            code = code[: serve.start()]
        command = {
            "sh": ["bash", "-euo", "pipefail", "-c"],
            "python": [sys.executable, "-W", "error", "-c"],
        }[example.language]
        deadline = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(
                [*command, code.replace(ADDRESS, self._address)], cwd=self._folder, env=self._environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            # The line of a request may be written after its answer.
            if done.returncode == 0 or not code.startswith("grep ") or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert done.returncode == 0, f"line {example.line}:\n{example.code}\n{done.stdout}"
        logged = "" if serve is None else self._serve(serve[0])
        return (done.stdout + logged).replace(self._address, ADDRESS)

    def _serve(self, command: str) -> str:
        """Start a service and return what it logs until it is ready."""
        log = self._folder / "service.log"
        with log.open("wb") as file:
            self._service = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self._folder, env=self._environment, stdout=file, stderr=file
            )
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready("https" if "--tls" in command else "http"):
            assert self._service.poll() is None, f"{command}: {log.read_text()}"
            assert time.monotonic() < deadline, f"{command}: {log.read_text()}"
            time.sleep(0.02)
        return log.read_text()

    def _is_ready(self, scheme: str) -> bool:
        try:
            context = ssl._create_unverified_context() if scheme == "https" else None
            with urllib.request.urlopen(f"{scheme}://{self._address}/ready", timeout=PATIENCE, context=context):
                return True
        except OSError:
            return False


def difference(shown: str, found: str, *, is_json: bool = False) -> str | None:
    """Return how the output differs from what a page shows, None if only last digits and times do.

    A line "..." stands for any lines, and "..." in a line for any characters. JSON may have other white space.
    """
    pattern, numbers = "", []
    if is_json:
        shown, found = SPACE.sub("", shown), SPACE.sub("", found)
    for times, same in TIMES:
        shown, found = times.sub(same, shown), times.sub(same, found)
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
            continue
        numbers += [float(one) for part in line.split("...") for one in NUMBER.findall(part)]
        pattern += "[^\n]*".join(_numbers_as_groups(part) for part in line.split("...")) + r"[ \t]*\n"
    matched = re.fullmatch(pattern, found if found.endswith("\n") or not found else f"{found}\n")
    if matched is None:
        return f"shown:\n{shown}\nprinted:\n{found}"
    for one, other in zip(numbers, matched.groups(), strict=True):
        if abs(one - float(other)) > TOLERANCE * max(1, abs(one)):
            return f"shown: {one}, printed: {other}, in\n{found}"
    return None


def _numbers_as_groups(text: str) -> str:
    parts = NUMBER.split(text)
    return f"({NUMBER.pattern})".join(re.escape(part) for part in parts)
