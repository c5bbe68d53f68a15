"""Pages as what can be run: their blocks in order, and what they say is printed.

A block of `sh` or `python` is run; a block of `text` or `json` below it is what it prints. A comment in the line above
a block says why it is not run here: `<!-- not run: needs docker -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r"(?:^<!-- (?P<why>not run: [^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
# Numbers with a fraction may differ in their last digits between processors; seconds differ between runs.
NUMBER = re.compile(r"[+-]?\d+\.\d+(?:e-?\d+)?")
SECONDS = re.compile(r"in \d+\.\d s\b")
TOLERANCE = 5e-4


class Example(NamedTuple):
    """A block that is run: its line, language and code, what it prints, and why it is not run here."""

    line: int
    language: str
    code: str
    shown: str | None
    why: str | None


def examples(text: str) -> Iterator[Example]:
    """Yield the blocks of a page that are run."""
    found = list(BLOCK.finditer(text))
    for at, block in enumerate(found):
        if block["language"] not in ("sh", "python"):
            continue
        below = found[at + 1] if at + 1 < len(found) else None
        shown = below["code"] if below and below["language"] in ("text", "json") else None
        yield Example(text.count("\n", 0, block.start("code")), block["language"], block["code"], shown, block["why"])


def printed(example: Example, folder: Path, **environment: str) -> str:
    """Run a block in a folder and return what it prints, results and messages in their order."""
    binaries = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = {
        "sh": ["bash", "-euo", "pipefail", "-c", example.code],
        "python": [sys.executable, "-W", "error", "-c", example.code],
    }[example.language]
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, "PATH": binaries, "PYTHONUNBUFFERED": "1", **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"line {example.line}:\n{example.code}\n{done.stdout}"
    return done.stdout


def difference(shown: str, found: str) -> str | None:
    """Return how the output differs from what a page shows, None if only last digits and seconds do.

    A line "..." stands for any lines, and "..." in a line for any characters.
    """
    pattern, numbers = "", []
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
            continue
        line = SECONDS.sub("in 0.0 s", line)
        numbers += [float(one) for part in line.split("...") for one in NUMBER.findall(part)]
        pattern += "[^\n]*".join(_numbers_as_groups(part) for part in line.split("...")) + r"[ \t]*\n"
    found = SECONDS.sub("in 0.0 s", found if found.endswith("\n") or not found else f"{found}\n")
    matched = re.fullmatch(pattern, found)
    if matched is None:
        return f"shown:\n{shown}\nprinted:\n{found}"
    for one, other in zip(numbers, matched.groups(), strict=True):
        if abs(one - float(other)) > TOLERANCE * max(1, abs(one)):
            return f"shown: {one}, printed: {other}, in\n{found}"
    return None


def _numbers_as_groups(text: str) -> str:
    parts = NUMBER.split(text)
    return f"({NUMBER.pattern})".join(re.escape(part) for part in parts)
