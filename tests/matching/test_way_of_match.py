"""The files that one `gramvec match` passes: those that docs/architecture.md lists, in that order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from click.testing import CliRunner

import gramvec
from conftest import ROOT
from gramvec.cli import cli

PACKAGE = Path(gramvec.__file__).parent
PAGE = ROOT / "docs" / "architecture.md"
OURS = "id,name\n1,Vienna University of Technology\n2,University of Graz\n3,Linz Art School\n"
THEIRS = "id,name\nx,Univ. of Technology Vienna\ny,Graz University\nz,Harbor Library\n"


def files_passed(arguments: list[str]) -> list[str]:
    """Return the files of the package whose functions a command calls, in that order."""
    passed: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and PACKAGE in path.parents:
            passed.setdefault(str(path.relative_to(PACKAGE)))

    sys.setprofile(profile)
    try:
        result = CliRunner().invoke(cli, arguments)
    finally:
        sys.setprofile(None)
    assert result.exit_code == 0, result.output
    return list(passed)


def test_a_match_passes_the_files_that_the_page_lists(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("### The way of two tables")[2].partition("\n### ")[0]
    listed = re.findall(r"`([\w/]+\.py)`", section)
    (tmp_path / "ours.csv").write_text(OURS)
    (tmp_path / "theirs.csv").write_text(THEIRS)
    arguments = ["match", str(tmp_path / "ours.csv"), str(tmp_path / "theirs.csv"), "--on", "name", "-o"]
    # The first run of a process imports what it needs.
    files_passed([*arguments, str(tmp_path / "first.csv")])
    assert files_passed([*arguments, str(tmp_path / "second.csv")]) == listed
