"""What people say to each other in Taskmaster and in the dialogs that a schema guides (SGD)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from corpora.readers import Files, Records


def read_dialogs(files: Files, columns: Sequence[str]) -> Records:
    """Yield each turn."""
    for file in files:
        for dialog in json.loads(file.data):
            for turn in dialog.get("utterances", ()):
                yield (turn.get("text") or "",)
            for turn in dialog.get("turns", ()):
                yield (turn["utterance"],)
