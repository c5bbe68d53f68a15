"""SECURITY.md says of the limits what the settings are."""

from __future__ import annotations

import re

from conftest import ROOT
from gramvec.server.settings import Settings

UNITS = {"": 1, " MiB": 2**20}


def test_the_limits_are_the_defaults() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| ([\d,]+)( MiB)? \|$", page, re.MULTILINE)
    told = {name: int(number.replace(",", "")) * UNITS[unit] for name, number, unit in rows}
    limits = {
        name: field.default
        for name, field in Settings.model_fields.items()
        if re.match(r"max_|queue_|.*_(seconds|bytes|connections)$", name)
    }
    assert told == limits


def test_every_setting_that_it_names_exists() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", page):
        assert name in Settings.model_fields
    for name in re.findall(r"`--([a-z-]+)", page):
        assert name.replace("-", "_") in Settings.model_fields
