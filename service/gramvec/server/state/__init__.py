"""What is served: models that are loaded and renewed, a batcher for each, and what all requests hold together.

May import telemetry and below. A new kind of work beside batches waits in a `SerialThread`, as explanations do.
"""

from __future__ import annotations

from gramvec.server.state.aside import aside
from gramvec.server.state.attached import Attached, Reloaded, open_attached, renewed_all
from gramvec.server.state.loading import (
    Change,
    Wanted,
    changes,
    check_aliases,
    check_names,
    check_there,
    check_whole,
    close_but,
    load_models,
)
from gramvec.server.state.searches import Rows
from gramvec.server.state.served import Served, check_characters, embed, prepare, unless_gone, usage_of, usage_of_turn
from gramvec.server.state.service import Service
from gramvec.server.state.token_ids import Encoding, UnknownId
from gramvec.server.state.traffic import ENTRY_BYTES, NUMBER_BYTES, SCORE_BYTES, UNCOUNTED_BYTES

__all__ = [
    "ENTRY_BYTES",
    "NUMBER_BYTES",
    "SCORE_BYTES",
    "UNCOUNTED_BYTES",
    "Attached",
    "Change",
    "Encoding",
    "Reloaded",
    "Rows",
    "Served",
    "Service",
    "UnknownId",
    "Wanted",
    "aside",
    "changes",
    "check_aliases",
    "check_characters",
    "check_names",
    "check_there",
    "check_whole",
    "close_but",
    "embed",
    "load_models",
    "open_attached",
    "prepare",
    "renewed_all",
    "unless_gone",
    "usage_of",
    "usage_of_turn",
]
