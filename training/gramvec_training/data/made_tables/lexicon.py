"""Words by hand of the families, read from words.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

LEXICON: dict[str, Any] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
